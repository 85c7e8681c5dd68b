"use strict";
// The occurrences as a table, for those who read rather than look: what the search, the outcomes and the visible time leave, a page at a time.
{
  const { build, text, moment, duration, named, counted } = Duly;
  const PAGE = 50;
  const rows = document.getElementById("rows");
  const count = document.getElementById("table-count");
  const newer = document.getElementById("newer");
  const older = document.getElementById("older");
  const everything = Duly.schedules.flatMap((schedule) => schedule.marks).sort((a, b) => b.t - a.t);
  let page = 0;
  let found = [];

  const row = (item) => {
    const open = build("button", { type: "button", class: "link nowrap" }, moment(item.t));
    open.addEventListener("click", () => {
      Duly.timeline.reveal(item);
      document.getElementById("panel").focus();
    });
    const took = item.started && item.ended && item.outcome !== "abandoned" ? duration(item.ended - item.started) : "";
    return build("tr", {},
      build("td", { class: "nowrap" }, open), build("th", { scope: "row" }, item.schedule.name), build("td", {}, named(item.outcome, item.outcome === "skipped" || item.kind === "hand" ? text(item.head) : undefined)),
      build("td", {}, text(item.end ?? item.lines[1])), build("td", { class: "number" }, item.run === null ? "" : String(item.run)), build("td", { class: "number nowrap" }, took));
  };
  const fill = () => {
    const start = page * PAGE;
    const some = found.slice(start, start + PAGE);
    rows.replaceChildren(...some.map(row));
    const binned = Duly.schedules.flatMap((schedule) => schedule.bins).reduce((sum, bin) => {
      const counts = Duly.timeline.inView(bin.t) ? Duly.countsIn(bin) : null;
      return counts ? sum + Object.values(counts).reduce((all, one) => all + one, 0) : sum;
    }, 0);
    const more = binned ? `; ${counted(binned, "more occurrence")} here are only counted` : "";
    const hands = found.filter((item) => item.kind === "hand").length;
    const decided = counted(found.length - hands, "occurrence");
    const told = hands ? `${found.length.toLocaleString("en")} (${decided} and ${counted(hands, "run")} by hand)` : decided;
    count.textContent = found.length
      ? `${(start + 1).toLocaleString("en")}–${(start + some.length).toLocaleString("en")} of ${told} in the visible time, newest first${more}`
      : `No occurrence matches in the visible time${more}`;
    newer.disabled = page === 0;
    older.disabled = start + PAGE >= found.length;
  };
  const drawTable = () => {
    found = everything.filter((item) => Duly.timeline.inView(item.t) && Duly.matches(item));
    page = 0;
    fill();
  };
  newer.addEventListener("click", () => { page -= 1; fill(); });
  older.addEventListener("click", () => { page += 1; fill(); });
  Duly.table = { draw: drawTable };
}
