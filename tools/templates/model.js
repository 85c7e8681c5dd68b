"use strict";
// The data of the page, and the few things that all its parts need: elements, times, and what is shown at the moment.
// Texts become text nodes and attributes, never markup.
const Duly = {};
{
  const raw = JSON.parse(document.getElementById("data").textContent);
  const DAY = 86400;
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const two = (number) => String(number).padStart(2, "0");
  const date = (seconds) => new Date(seconds * 1000);

  const filled = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const build = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) =>
    filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  const clock = (seconds) => {
    const at = date(seconds);
    const tail = at.getUTCSeconds() ? `:${two(at.getUTCSeconds())}` : "";
    return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${tail}`;
  };
  const day = (seconds) => {
    const at = date(seconds);
    return `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
  };
  const moment = (seconds) => `${day(seconds)} ${clock(seconds)}`;
  const instant = (seconds) => date(Math.floor(seconds)).toISOString().replace(".000Z", "Z");
  const spokenDay = (seconds) => {
    const at = date(seconds);
    return `${WEEKDAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
  };
  const duration = (seconds) => {
    let rest = Math.round(seconds);
    if (rest < 1) return "0s";
    const parts = [];
    for (const [unit, size] of [["d", DAY], ["h", 3600], ["m", 60], ["s", 1]]) {
      const count = Math.floor(rest / size);
      rest -= count * size;
      if (count) parts.push(`${count}${unit}`);
    }
    return parts.slice(0, 2).join("");
  };
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  const outcomes = raw.outcomes;
  const names = Object.fromEntries(outcomes.map((one) => [one, one === "open" ? "not ended" : one]));
  const text = (number) => raw.texts[number];

  const asMark = (kind, schedule) => ([t, outcome, started, ended, head, run, end, lines]) => ({
    kind, schedule, t, outcome: outcomes[outcome], started, ended, head, run, end, lines,
  });
  const asCounts = (numbers) => Object.fromEntries(outcomes.map((one, at) => [one, numbers[at]]).filter(([, number]) => number));
  const schedules = raw.schedules.map((one) => {
    const schedule = { id: one.id, name: one.id || "by hand", when: one.when, what: one.what, state: one.state };
    schedule.marks = [...one.marks.map(asMark("mark", schedule)), ...one.hands.map(asMark("hand", schedule))].sort((a, b) => a.t - b.t);
    schedule.bins = one.bins.map(([t, end, ...numbers]) => ({ kind: "bin", schedule, t, end, counts: asCounts(numbers) }));
    schedule.spans = one.spans.map(([t, end, became, atLeast, head, lines]) => ({ kind: "span", schedule, t, end, became, atLeast, head, lines }));
    schedule.acts = one.acts.map(([t, head, sequence]) => ({ kind: "act", schedule, t, head, sequence }));
    return schedule;
  });

  // What the reader asked to see. Parts listen for changes.
  const listeners = [];
  const shown = { query: "", matching: null, outcomes: new Set(outcomes) };
  const lowered = raw.texts.map((one) => one.toLowerCase());
  const search = (query) => {
    shown.query = query.trim().toLowerCase();
    shown.matching = shown.query ? new Set(lowered.flatMap((one, at) => (one.includes(shown.query) ? [at] : []))) : null;
    for (const schedule of schedules) {
      const about = `${schedule.name} ${schedule.what} ${schedule.state}`.toLowerCase();
      schedule.matches = !shown.query || about.includes(shown.query);
    }
    changed();
  };
  const changed = () => listeners.forEach((listener) => listener());
  const matches = (item) => {
    if (item.outcome && !shown.outcomes.has(item.outcome)) return false;
    if (item.schedule.matches) return true;
    return shown.matching.has(item.head) || Boolean(item.lines && item.lines.some((one) => shown.matching.has(one)));
  };
  const countsIn = (bin) => {
    if (!bin.schedule.matches) return null;
    const kept = Object.fromEntries(Object.entries(bin.counts).filter(([one]) => shown.outcomes.has(one)));
    return Object.keys(kept).length ? kept : null;
  };
  const toggle = (outcome) => {
    if (!shown.outcomes.delete(outcome)) shown.outcomes.add(outcome);
    changed();
  };

  Object.assign(Duly, {
    DAY, MONTHS, WEEKDAYS, build, draw, clock, day, moment, instant, spokenDay, duration, counted, date, outcomes, names, text,
    schedules, shown, search, toggle, matches, countsIn, changed, onChange: (listener) => listeners.push(listener),
    again: raw.again, since: raw.since, until: raw.until, now: raw.now, days: raw.days, down: raw.down, moments: raw.moments, asCounts,
  });
  for (const schedule of schedules) schedule.matches = true;
}
