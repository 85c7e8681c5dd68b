"use strict";
// Brings the parts of the report together: the filters, the zoom, and the occurrence that the address names.
{
  const { build, outcomes, names, icon } = Duly;
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  const on = (id, action) => document.getElementById(id).addEventListener("click", action);

  const totals = {};
  const add = (outcome, number) => { totals[outcome] = (totals[outcome] ?? 0) + number; };
  for (const schedule of Duly.schedules) {
    for (const mark of schedule.marks) add(mark.outcome, 1);
    for (const bin of schedule.bins) for (const [outcome, number] of Object.entries(bin.counts)) add(outcome, number);
  }
  const legend = document.getElementById("legend");
  for (const outcome of outcomes.filter((one) => one in totals)) {
    const chip = build("button", { type: "button", class: "chip", "aria-pressed": "true", "data-outcome": outcome }, icon(outcome), names[outcome], build("span", { class: "tally" }, totals[outcome].toLocaleString("en")));
    chip.addEventListener("click", () => {
      Duly.toggle(outcome);
      chip.setAttribute("aria-pressed", String(Duly.shown.outcomes.has(outcome)));
    });
    legend.append(chip);
  }

  const search = document.getElementById("search");
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => Duly.search(search.value), 120);
  });
  on("zoom-in", () => Duly.timeline.zoom(0.5));
  on("zoom-out", () => Duly.timeline.zoom(2));
  on("earlier", () => Duly.timeline.move(-0.5));
  on("later", () => Duly.timeline.move(0.5));
  on("whole", () => Duly.timeline.whole());

  const named = () => {
    let wanted = "";
    try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    if (!wanted.includes("@")) return;
    for (const schedule of Duly.schedules) {
      const found = schedule.marks.find((item) => item.kind === "mark" && Duly.panel.occurrence(item) === wanted);
      if (found) return Duly.timeline.reveal(found);
    }
  };
  Duly.calendar.start();
  Duly.timeline.start();
  named();
  window.addEventListener("hashchange", named);
}
