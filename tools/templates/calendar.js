"use strict";
// The calendar: a cell for each day, a column for each week. One day takes part in the tab order; arrow keys hand that on.
{
  const { build, DAY, MONTHS, WEEKDAYS, counted, names, outcomes, asCounts } = Duly;
  const box = document.getElementById("calendar");
  const measure = document.getElementById("measure");
  const MEASURES = {
    all: outcomes, bad: ["failed", "abandoned"], "not-run": ["skipped", "superseded"], completed: ["completed"],
  };
  const counts = new Map(Duly.days.map(([day, ...numbers]) => [day, asCounts(numbers)]));
  const total = (some, which) => which.reduce((sum, one) => sum + (some?.[one] ?? 0), 0);
  const FILLED = 14; // days without an occurrence that are drawn; what is longer is left out
  const days = [];
  for (const day of [...counts.keys()].sort((a, b) => a - b)) {
    const last = days.at(-1);
    if (last !== undefined && day - last <= FILLED) for (let empty = last + 1; empty < day; empty++) days.push(empty);
    days.push(day);
  }
  const monday = (day) => day - ((day + 3) % 7); // day 0 was a Thursday
  // The column of each day: weeks follow on each other, with room for a label where days are left out.
  const columns = [];
  for (const [at, day] of days.entries()) {
    const apart = at ? (monday(day) - monday(days[at - 1])) / 7 : 0;
    columns.push(at ? columns[at - 1] + Math.min(apart, apart && day - days[at - 1] > 1 ? 3 : 1) : 2);
  }
  let buttons = [];

  const cell = (day, which, highest, row, column) => {
    const some = counts.get(day);
    const number = total(some, which);
    const level = number === 0 ? 0 : Math.min(4, 1 + Math.floor((4 * number) / (highest + 1)));
    const parts = outcomes.filter((one) => some?.[one]).map((one) => `${some[one].toLocaleString("en")} ${names[one]}`);
    const said = `${Duly.spokenDay(day * DAY)}: ${parts.length ? `${counted(total(some, outcomes), "occurrence")}, ${parts.join(", ")}` : "nothing"}`;
    const bad = total(some, MEASURES.bad) > 0;
    const node = build("button", { type: "button", class: bad ? "day bad" : "day", "data-level": level, "data-day": day, tabindex: -1, title: said, "aria-label": said });
    node.style.gridRow = String(row);
    node.style.gridColumn = String(column);
    return node;
  };
  const render = () => {
    const which = MEASURES[measure.value];
    const highest = Math.max(1, ...[...counts.values()].map((some) => total(some, which)));
    const weeks = columns.at(-1) - 1;
    const grid = build("div", { class: `weeks calendar-${measure.value}`, role: "group", "aria-labelledby": "calendar-title" });
    grid.style.setProperty("--cell", weeks > 40 ? "15px" : weeks > 16 ? "19px" : "27px");
    for (const [at, name] of [[1, "Mon"], [3, "Wed"], [5, "Fri"], [7, "Sun"]]) {
      const label = build("span", { class: "weekday", "aria-hidden": "true" }, name);
      label.style.gridRow = String(at + 1);
      grid.append(label);
    }
    buttons = [];
    let labelled = -9;
    for (const [number, day] of days.entries()) {
      const column = columns[number];
      const at = Duly.date(day * DAY);
      const begins = number === 0 || day - days[number - 1] > 1;
      if ((at.getUTCDate() === 1 || begins) && column - labelled > 2) {
        const label = build("span", { class: "month", "aria-hidden": "true" }, at.getUTCMonth() === 0 || begins ? `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}` : MONTHS[at.getUTCMonth()]);
        label.style.gridColumn = String(column);
        grid.append(label);
        labelled = column;
      }
      const node = cell(day, which, highest, ((day + 3) % 7) + 2, column);
      if (weeks <= 16) node.textContent = String(at.getUTCDate());
      buttons.push(node);
    }
    grid.append(...buttons);
    buttons.at(-1)?.setAttribute("tabindex", 0);
    const scale = build("div", { class: `scale calendar-${measure.value}`, "aria-hidden": "true" }, "fewer", ...[0, 1, 2, 3, 4].map((level) => build("span", { class: "day", "data-level": level })), `more (up to ${highest.toLocaleString("en")} a day)`);
    const scroller = build("div", { class: "months" }, grid);
    box.replaceChildren(scroller, scale);
    scroller.scrollLeft = scroller.scrollWidth;
  };
  box.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(event.target);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, ArrowLeft: at - 7, ArrowRight: at + 7, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    if (!buttons[to]) return;
    event.target.setAttribute("tabindex", -1);
    buttons[to].setAttribute("tabindex", 0);
    buttons[to].focus();
  });
  box.addEventListener("click", (event) => {
    const day = Number(event.target.closest("button.day")?.dataset.day);
    if (!Number.isInteger(day)) return;
    Duly.timeline.zoomTo(day * DAY, (day + 1) * DAY, true);
    document.getElementById("timeline").scrollIntoView();
    Duly.timeline.refocus();
  });
  measure.addEventListener("change", render);
  Duly.calendar = {
    start: () => {
      if (counts.size) render();
      else box.append(build("p", { class: "quiet" }, "No occurrence was decided."));
    },
  };
}
