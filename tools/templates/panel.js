"use strict";
// The panel: why an occurrence became what it did, in the words of `duly explain`; or what lies under a mark that stands for many.
{
  const { build, text, moment, duration, counted, names, named, outcomes } = Duly;
  const MOST = 60;
  const body = document.getElementById("panel-body");
  const panel = document.getElementById("panel");
  let from = null;

  const announced = document.getElementById("announced");
  const root = document.documentElement;

  const put = (...children) => {
    body.replaceChildren(...children);
    panel.hidden = false;
    panel.scrollTop = 0;
    // What is brought into sight must not lie behind the panel.
    root.style.scrollPaddingBottom = `${panel.offsetHeight + 20}px`;
    announced.textContent = [body.querySelector("h3"), body.querySelector("dd")].map((one) => one?.textContent ?? "").join(": ");
  };
  const close = () => {
    panel.hidden = true;
    root.style.scrollPaddingBottom = "";
    announced.textContent = "";
    Duly.timeline.press(null);
    if (from) Duly.timeline.refocus();
    from = null;
  };
  const occurrence = (item) => (item.kind === "mark" ? `${item.schedule.id}@${Duly.instant(item.t)}` : `${item.schedule.name}, run ${item.run}`);
  const lines = (numbers) => {
    const list = build("dl");
    for (let at = 0; at < numbers.length; at += 2) {
      const name = text(numbers[at]);
      list.append(build("div", {}, build("dt", {}, name), build("dd", name === "more" ? { class: "command" } : {}, text(numbers[at + 1]))));
    }
    return list;
  };
  const told = (item) => (item.run === null ? text(item.head) : `${text(item.head)}, ${names[item.outcome]}`);
  const explain = (item) => {
    from = item;
    const title = named(item.outcome, told(item));
    put(build("p", { class: "subject" }, occurrence(item)), build("h3", {}, title), lines(item.lines));
    if (item.kind === "mark") history.replaceState(null, "", `#${occurrence(item)}`);
  };
  const band = (item) => {
    from = item;
    const seen = item.atLeast ? `, at least ${counted(item.atLeast, "occurrence")}` : "";
    put(build("p", { class: "subject" }, `${item.schedule.name}: ${moment(item.t)} to ${moment(item.end)}`), build("h3", {}, text(item.head) + seen), lines(item.lines));
  };
  const acts = (items) => {
    from = items[0];
    const list = build("ul", {}, ...items.slice(0, MOST).map((one) => build("li", {}, `${moment(one.t)}  entry ${one.sequence}: ${text(one.head)}`)));
    put(build("p", { class: "subject" }, items[0].schedule.name), build("h3", {}, counted(items.length, "change")), list);
  };
  const many = (cluster) => {
    from = cluster;
    const total = Object.values(cluster.counts).reduce((sum, one) => sum + one, 0);
    const tallies = outcomes.filter((one) => cluster.counts[one]).map((one) => build("li", {}, named(one, `${cluster.counts[one].toLocaleString("en")} ${names[one]}`)));
    const parts = [
      build("p", { class: "subject" }, `${cluster.schedule.name}: ${moment(cluster.t)} to ${moment(cluster.end)}`),
      build("h3", {}, counted(total, "occurrence")),
      build("ul", {}, ...tallies),
    ];
    const zoom = build("button", { type: "button", class: "button" }, "Zoom in here");
    zoom.addEventListener("click", () => Duly.timeline.zoomTo(cluster.t, Math.max(cluster.end, cluster.t + 60), true));
    parts.push(build("div", { class: "tools" }, zoom));
    if (cluster.items.length) {
      const list = build("ul");
      for (const one of cluster.items.slice(0, MOST)) {
        const open = build("button", { type: "button", class: "link" }, `${moment(one.t)} ${told(one)}`);
        open.addEventListener("click", () => { explain(one); panel.focus(); });
        list.append(build("li", {}, open));
      }
      parts.push(list);
      if (cluster.items.length > MOST) parts.push(build("p", { class: "quiet" }, `and ${cluster.items.length - MOST} more: zoom in to see them`));
    }
    if (cluster.counted) {
      const command = `${Duly.again} --schedule ${cluster.schedule.id} --since ${Duly.instant(cluster.t)} --until ${Duly.instant(cluster.end)}`;
      parts.push(build("p", { class: "quiet" }, `${cluster.counted.toLocaleString("en")} of them are only counted in this page. To see each one:`), build("p", { class: "command" }, command));
    }
    put(...parts);
  };
  const open = (item) => {
    if (item.kind === "span") band(item);
    else if (item.kind === "acts") acts(item.items);
    else if (item.kind === "cluster") many(item);
    else explain(item);
    Duly.timeline.press(item);
  };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
  document.getElementById("close").addEventListener("click", close);
  Duly.panel = { open, occurrence, told };
}
