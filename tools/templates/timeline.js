"use strict";
// The timeline: a lane for each schedule, drawn only while it is in sight. Marks that would lie on each other are drawn as one that
// counts them. One mark takes part in the tab order; arrow keys hand that on.
{
  const { build, draw, text, moment, clock, DAY, MONTHS, WEEKDAYS, names, outcomes, counted, glyph, column } = Duly;
  const APART = 10; // pixels
  const HEIGHT = 42;
  const MIDDLE = 18;
  const SHORTEST = 60; // seconds
  const axis = document.getElementById("axis");
  const box = document.getElementById("lanes");
  const status = document.getElementById("visible");
  const margin = Math.max((Duly.until - Duly.since) * 0.015, 30);
  const whole = { from: Duly.since - margin, to: Math.max(Duly.until, Duly.since + SHORTEST) + margin };
  const view = { ...whole };
  let current = null; // the mark in the tab order: {lane, item, node}
  let pressed = null;

  const lanes = Duly.schedules.map((schedule, index) => {
    const svg = draw("svg", { height: HEIGHT, role: "group", "aria-label": `${schedule.name}: occurrences` });
    const label = build("div", { class: "lane-name" }, build("strong", { title: schedule.name }, schedule.name), build("span", { title: schedule.what }, [schedule.when, schedule.state === "live" ? "" : schedule.state].filter(Boolean).join(" · ") || "runs without a schedule"));
    const node = build("div", { class: "lane" }, label, svg);
    return { schedule, index, svg, node, marks: [], inSight: false, stale: true, shown: true };
  });
  box.append(...lanes.map((lane) => lane.node));

  let size = 0; // the width of a lane in pixels, measured once for each drawing
  const width = () => (size ||= Math.max(lanes.length ? lanes[0].svg.getBoundingClientRect().width || axis.clientWidth : axis.clientWidth, 80));
  const place = (t) => ((t - view.from) / (view.to - view.from)) * width();
  const time = (x) => view.from + (x / width()) * (view.to - view.from);

  // The axis

  const STEPS = [60, 300, 900, 1800, 3600, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
  const ticks = () => {
    const least = ((view.to - view.from) / width()) * 84;
    const step = STEPS.find((one) => one >= least);
    const found = [];
    if (step) {
      const offset = step >= 7 * DAY ? 4 * DAY : 0; // weeks begin on Mondays
      for (let t = Math.ceil((view.from - offset) / step) * step + offset; t <= view.to; t += step) {
        const at = Duly.date(t);
        const midnight = t % DAY === 0;
        const label = !midnight ? clock(t) : step < DAY ? `${WEEKDAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}` : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
        found.push({ t, label, major: step < DAY ? midnight : at.getUTCDate() <= step / DAY });
      }
      return found;
    }
    const months = [1, 2, 3, 6, 12, 24, 60, 120].find((one) => one * 30.4 * DAY >= least) ?? 240;
    const start = Duly.date(view.from);
    for (let month = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months; ; month += months) {
      const t = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
      if (t > view.to) return found;
      if (t >= view.from) found.push({ t, label: `${MONTHS[month % 12]} ${Math.floor(month / 12)}`, major: month % 12 === 0 });
    }
  };
  const drawAxis = (marks) => {
    const svg = draw("svg", { height: 26 });
    for (const { t, label, major } of marks) {
      const x = place(t);
      svg.append(draw("line", { x1: x, x2: x, y1: major ? 4 : 16, y2: 26, class: major ? "major" : "" }));
      if (x < width() - 46) svg.append(draw("text", { x: x + 4, y: 14, class: major ? "major" : "" }, label));
    }
    axis.replaceChildren(svg);
  };

  // The marks of a lane

  const pixels = (item) => {
    if (item.started === null || item.started === undefined) return 0;
    return Math.max(place(item.ended ?? Math.max(Duly.now, item.started)) - place(item.started), 0);
  };
  const clusters = (schedule) => {
    const room = (bin) => place(bin.end) - place(bin.t) >= APART;
    const alone = [];
    const parts = schedule.marks.filter((one) => inView(one.t) && Duly.matches(one)).map((item) => ({ t: item.t, end: item.t, item }));
    for (const bin of schedule.bins) {
      const counts = bin.end > view.from && bin.t < view.to ? Duly.countsIn(bin) : null;
      if (!counts) continue;
      if (room(bin)) alone.push({ kind: "cluster", schedule, t: bin.t, end: bin.end, counts, items: [], counted: sum(counts), wide: true });
      else parts.push({ t: bin.t, end: bin.end, counts });
    }
    parts.sort((a, b) => a.t - b.t);
    const found = [];
    for (let at = 0; at < parts.length; ) {
      const group = [parts[at]];
      const x = place(parts[at].t);
      while (++at < parts.length && place(parts[at].t) - x < APART) group.push(parts[at]);
      found.push(group.length === 1 && group[0].item ? group[0].item : joined(schedule, group));
    }
    return [...alone, ...found];
  };
  const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);
  const joined = (schedule, group) => {
    const counts = {};
    const items = [];
    let only = 0;
    for (const part of group) {
      if (part.item) {
        items.push(part.item);
        counts[part.item.outcome] = (counts[part.item.outcome] ?? 0) + 1;
      } else {
        for (const [one, number] of Object.entries(part.counts)) counts[one] = (counts[one] ?? 0) + number;
        only += sum(part.counts);
      }
    }
    return { kind: "cluster", schedule, t: group[0].t, end: Math.max(...group.map((one) => one.end)), counts, items, counted: only };
  };
  const inView = (t) => t >= view.from && t <= view.to;

  const spoken = (item) => {
    const { schedule } = item;
    if (item.kind === "cluster") {
      const parts = outcomes.filter((one) => item.counts[one]).map((one) => `${item.counts[one]} ${names[one]}`);
      return `${schedule.name}, ${moment(item.t)} to ${moment(item.end)} UTC: ${counted(sum(item.counts), "occurrence")}, ${parts.join(", ")}`;
    }
    if (item.kind === "span") return `${schedule.name}, ${moment(item.t)} to ${moment(item.end)} UTC: ${text(item.head)}`;
    if (item.kind === "acts") return `${schedule.name}, ${moment(item.t)} UTC: ${item.items.length === 1 ? text(item.items[0].head) : counted(item.items.length, "change")}`;
    return `${schedule.name}, ${moment(item.t)} UTC: ${Duly.panel.told(item)}`;
  };
  const button = (lane, item, x, shape, halo) => {
    const node = draw("g", { class: "mark", role: "button", tabindex: -1, "aria-label": spoken(item), "aria-pressed": "false", transform: `translate(${x.toFixed(1)},${MIDDLE})` });
    node.append(draw("rect", { class: "halo", rx: 4, ...halo }), shape);
    if (isSame(item, pressed)) node.setAttribute("aria-pressed", "true");
    node.item = item;
    node.lane = lane;
    lane.marks.push({ node, item, t: item.t, x });
    return node;
  };
  const isSame = (a, b) => Boolean(a && b && a.schedule === b.schedule && a.kind === b.kind && a.t === b.t && a.end === b.end);

  const drawMark = (lane, item, highest) => {
    if (item.kind === "cluster") {
      const across = item.wide ? Math.max(place(item.end) - place(item.t) - 1, 4) : APART - 3;
      const share = Math.log(1 + sum(item.counts)) / Math.log(1 + highest);
      return button(lane, item, place(item.t) + 2, column(item.counts, across, share), { x: -4, y: -17, width: across + 4, height: 32 });
    }
    const start = item.started ?? item.t;
    const across = pixels(item);
    const group = draw("g", {}, glyph(item.outcome, across));
    if (item.kind === "hand") group.append(draw("path", { d: "M0,-14 l4,4 l-4,4 l-4,-4 z", class: `o-${item.outcome} g-hand` }));
    return button(lane, item, place(inView(start) ? start : item.t), group, { x: -7, y: -15, width: Math.max(across, 9) + 9, height: 30 });
  };
  const drawSpan = (lane, item) => {
    const x = Math.max(place(item.t), -2);
    const across = Math.max(Math.min(place(item.end), width() + 2) - x, 3);
    const group = draw("g", {}, draw("rect", { x: 0, y: -MIDDLE, width: across, height: HEIGHT, class: "span-band" }));
    if (item.became !== "covered" && across < 6000) {
      let hatch = "";
      for (let at = 6; at < across + 20; at += 9) hatch += `M${Math.min(at, across)},${-10 + Math.max(at - across, 0)} L${Math.max(at - 20, 0)},${10 - Math.max(20 - at, 0)} `;
      group.append(draw("path", { d: hatch, class: "span-hatch" }));
    }
    group.append(draw("path", { d: `M0.5,${-MIDDLE} v${HEIGHT} M${across},${-MIDDLE} v${HEIGHT}`, class: "span-edge" }));
    return button(lane, item, x, group, { x: 0, y: -16, width: across, height: 32 });
  };
  const drawActs = (lane) => {
    const acts = lane.schedule.acts.filter((one) => inView(one.t) && Duly.matches(one));
    const nodes = [];
    for (let at = 0; at < acts.length; ) {
      const group = [acts[at]];
      while (++at < acts.length && place(acts[at].t) - place(group[0].t) < APART) group.push(acts[at]);
      const item = { kind: "acts", schedule: lane.schedule, t: group[0].t, end: group.at(-1).t, items: group };
      nodes.push(button(lane, item, place(item.t), draw("path", { d: "M0,15 l4.5,7 h-9 z", class: "act" }), { x: -6, y: 13, width: 12, height: 11 }));
    }
    return nodes;
  };

  const drawLane = (lane, marks = ticks()) => {
    lane.stale = false;
    lane.marks = [];
    const behind = draw("g", { "aria-hidden": "true" });
    for (const { t } of marks) behind.append(draw("line", { x1: place(t), x2: place(t), y1: 0, y2: HEIGHT, class: "grid-line" }));
    for (const [since, until] of Duly.down) {
      if (until > view.from && since < view.to) behind.append(draw("rect", { x: place(since), y: 0, width: Math.max(place(until) - place(since), 1), height: HEIGHT, class: "down-band" }));
    }
    for (const [t] of Duly.moments) if (inView(t)) behind.append(draw("line", { x1: place(t), x2: place(t), y1: 0, y2: HEIGHT, class: "moment-line" }));
    if (inView(Duly.now)) behind.append(draw("line", { x1: place(Duly.now), x2: place(Duly.now), y1: 0, y2: HEIGHT, class: "now-line" }));
    const spans = lane.schedule.spans.filter((one) => one.end > view.from && one.t < view.to && Duly.matches(one)).map((one) => drawSpan(lane, one));
    const items = clusters(lane.schedule);
    const highest = Math.max(1, ...items.map((one) => (one.kind === "cluster" ? sum(one.counts) : 1)));
    const drawn = items.map((one) => drawMark(lane, one, highest));
    lane.svg.replaceChildren(behind, ...spans, ...drawn, ...drawActs(lane));
    lane.marks.sort((a, b) => a.t - b.t);
    if (current && current.lane === lane) adopt(lane, current.item, document.activeElement === document.body && current.focused);
  };
  // After a lane was drawn anew, the mark that was in the tab order is so again, or the one nearest to it.
  const adopt = (lane, item, focused) => {
    const found = lane.marks.find((one) => isSame(one.item, item)) ?? nearest(lane, place(item.t));
    current = null;
    if (found) enter(found.node, focused);
  };
  const nearest = (lane, x) => lane.marks.reduce((best, one) => (!best || Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best), null);
  const enter = (node, focus = true) => {
    if (current && current.node !== node) current.node.setAttribute("tabindex", -1);
    current = { lane: node.lane, item: node.item, node, focused: focus };
    node.setAttribute("tabindex", 0);
    if (focus) node.focus();
  };

  // All of it

  const redraw = () => {
    size = 0;
    if (current) current.focused = current.node === document.activeElement;
    const marks = ticks();
    drawAxis(marks);
    let left = 0;
    for (const lane of lanes) {
      const { schedule } = lane;
      lane.shown = schedule.matches || schedule.marks.some(Duly.matches) || schedule.spans.some(Duly.matches) || schedule.acts.some(Duly.matches);
      lane.node.hidden = !lane.shown;
      lane.stale = true;
      left += lane.shown ? 1 : 0;
      if (lane.shown && (lane.inSight || (current && current.lane === lane))) drawLane(lane, marks);
    }
    document.getElementById("nothing").hidden = left > 0;
    status.textContent = `${moment(view.from)} to ${moment(view.to)} UTC, ${counted(left, "timeline")}`;
    if (!current || !current.node.isConnected || !current.lane.shown) first();
    Duly.table?.draw();
  };
  const first = () => {
    current = null;
    for (const lane of lanes) {
      if (!lane.shown) continue;
      if (lane.stale) drawLane(lane);
      if (lane.marks.length) return enter(lane.marks[0].node, false);
    }
    return null;
  };
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; redraw(); });
  };
  const zoomTo = (from, to, padded = false) => {
    const spare = padded ? (to - from) * 0.05 : 0;
    const length = Math.min(Math.max(to - from + 2 * spare, SHORTEST), whole.to - whole.from);
    view.from = Math.min(Math.max((from + to - length) / 2, whole.from), whole.to - length);
    view.to = view.from + length;
    redraw();
  };
  const zoom = (factor, around = (view.from + view.to) / 2) => zoomTo(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const move = (share) => {
    const by = (view.to - view.from) * share;
    zoomTo(view.from + by, view.to + by);
  };

  const step = (event) => {
    const node = event.target.closest(".mark");
    if (!node) return false;
    const { lane } = node;
    const at = lane.marks.findIndex((one) => one.node === node);
    const beside = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: lane.marks.length - 1 }[event.key];
    if (beside !== undefined) {
      if (lane.marks[beside]) enter(lane.marks[beside].node);
      return true;
    }
    const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (way) {
      for (let index = lane.index + way; lanes[index]; index += way) {
        const other = lanes[index];
        if (!other.shown) continue;
        if (other.stale) drawLane(other);
        const found = nearest(other, lane.marks[at].x);
        if (!found) continue;
        enter(found.node);
        other.node.scrollIntoView({ block: "nearest" });
        break;
      }
      return true;
    }
    if (event.key === "Enter" || event.key === " ") {
      Duly.panel.open(node.item);
      lane.node.scrollIntoView({ block: "nearest" });
      return true;
    }
    const sizes = { "+": 0.5, "=": 0.5, "-": 2, "−": 2 };
    if (sizes[event.key]) zoom(sizes[event.key], node.item.t);
    else if (event.key === "0") zoomTo(whole.from, whole.to);
    else return false;
    return true;
  };
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step(event)) event.preventDefault();
  });
  let brushed = false;
  box.addEventListener("click", (event) => {
    const node = event.target.closest(".mark");
    if (!node || brushed) return;
    enter(node);
    Duly.panel.open(node.item);
    node.lane.node.scrollIntoView({ block: "nearest" });
  });
  box.addEventListener("focusin", (event) => {
    const node = event.target.closest(".mark");
    if (node && (!current || current.node !== node)) enter(node, false);
  });

  // Dragging with a mouse zooms.

  box.addEventListener("pointerdown", (down) => {
    const svg = down.target.closest("svg");
    brushed = false;
    if (!svg || down.button !== 0 || down.pointerType === "touch") return;
    const left = svg.getBoundingClientRect().left;
    const brush = draw("rect", { class: "brush", y: 0, height: HEIGHT });
    const bounds = (event) => [Math.max(Math.min(down.clientX, event.clientX) - left, 0), Math.min(Math.max(down.clientX, event.clientX) - left, width())];
    const onMove = (event) => {
      if (Math.abs(event.clientX - down.clientX) < 6 && !brushed) return;
      brushed = true;
      const [from, to] = bounds(event);
      brush.setAttribute("x", from);
      brush.setAttribute("width", Math.max(to - from, 0));
      if (!brush.isConnected) svg.append(brush);
    };
    const onUp = (event) => {
      window.removeEventListener("pointermove", onMove);
      brush.remove();
      if (!brushed) return;
      const [from, to] = bounds(event).map(time);
      zoomTo(from, to);
    };
    window.addEventListener("pointermove", onMove);
    window.addEventListener("pointerup", onUp, { once: true });
  });

  const sight = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      const lane = lanes.find((one) => one.node === target);
      lane.inSight = isIntersecting;
      if (isIntersecting && lane.stale && lane.shown) drawLane(lane);
    }
  }, { rootMargin: "400px" });

  const press = (item) => {
    pressed = item;
    for (const lane of lanes) for (const { node } of lane.marks) node.setAttribute("aria-pressed", String(isSame(node.item, item)));
  };
  // Brings an occurrence into sight, from wherever it was named, and explains it.
  const reveal = (item) => {
    if (!inView(item.t)) zoomTo(item.t - 12 * 3600, item.t + 12 * 3600);
    const lane = lanes.find((one) => one.schedule === item.schedule);
    if (lane.stale) drawLane(lane);
    const found = lane.marks.find((one) => isSame(one.item, item) || one.item.items?.includes(item));
    if (found) enter(found.node, false);
    Duly.panel.open(item);
    lane.node.scrollIntoView({ block: "nearest" });
  };
  const refocus = () => {
    if (current) enter(current.node);
    current?.lane.node.scrollIntoView({ block: "nearest" });
  };
  const start = () => {
    redraw();
    for (const lane of lanes) sight.observe(lane.node);
    new ResizeObserver(later).observe(axis);
  };
  Duly.onChange(redraw);
  Duly.timeline = { start, zoomTo, zoom, move, reveal, refocus, press, whole: () => zoomTo(whole.from, whole.to), inView };
}
