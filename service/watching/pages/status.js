"use strict";
// The status of a service, asked anew every two seconds with the token that the reader gave. Texts become text nodes, never markup.
{
  const EVERY = 2000;
  const MOST = 200;
  const KEY = "duly-token";
  const at = (id) => document.getElementById(id);
  const kept = { get: () => { try { return sessionStorage.getItem(KEY); } catch { return null; } }, set: (value) => { try { sessionStorage.setItem(KEY, value); } catch { /* then it is asked for again */ } }, drop: () => { try { sessionStorage.removeItem(KEY); } catch { /* it is not there */ } } };
  let token = kept.get();
  let timer = null;
  let opener = null;

  // A link may bring the token behind the #, which is sent to nobody.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    token = given;
    kept.set(token);
    history.replaceState(null, "", location.pathname);
  }

  const build = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const moment = (instant) => (instant ? instant.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "");
  const cell = (content, kind = "") => build("td", kind ? { class: kind } : {}, content ?? "");
  const state = (word, extra = "") => build("span", { class: `state state-${word}` }, extra ? `${word}: ${extra}` : word);

  class Denied extends Error {}
  const ask = async (calls) => {
    const body = JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", method, params, id })));
    const response = await fetch("/rpc", { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body });
    const answer = await response.json();
    if (response.status === 401 || response.status === 403) throw new Denied(answer.error.message);
    if (!response.ok) throw new Error(answer.error.message);
    return answer;
  };
  const result = (answer) => {
    if (answer.error) throw new Error(answer.error.message);
    return answer.result;
  };

  const stands = (one) => {
    if (one.blocked) return state("blocked", one.blocked.reason);
    for (const word of ["disabled", "paused", "exhausted"]) if (one[word]) return state(word);
    return state("live");
  };
  const when = (trigger) => {
    switch (trigger.kind) {
      case "cron": return `${trigger.expression} ${trigger.zone}`;
      case "one_shot": return `once, ${moment(trigger.at)}`;
      case "once_per": return `once per ${trigger.period} ${trigger.zone}`;
      case "every": return `every ${trigger.count} ${trigger.unit}${trigger.at ? ` at ${trigger.at}` : ""} ${trigger.zone ?? ""}`.trim();
      default: return trigger.source;
    }
  };
  const opening = (text, schedule, instant) => {
    const button = build("button", { type: "button", class: "link", "data-key": `${text}|${schedule}|${instant}` }, text);
    button.addEventListener("click", () => explain(schedule, instant, button));
    return button;
  };
  const because = (run) => (run.state === "interrupted" ? `stopped at a checkpoint; it holds its place until: duly ctl resume ${run.run_id}, or duly ctl abandon ${run.run_id}` : run.error ? [run.error.type, run.error.message].filter(Boolean).join(": ") : "");

  const fill = (id, rows) => {
    const focused = document.activeElement?.dataset?.key;
    at(id).replaceChildren(...rows);
    at(`no-${id}`).hidden = rows.length > 0;
    if (focused) [...at(id).querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus();
  };
  const show = (status, listing) => {
    const due = status.due;
    document.title = `${status.ready ? "" : "⚠ "}${status.journal} – duly status`;
    at("journal").textContent = status.journal;
    const age = status.poll_age === null ? [] : [` · last poll ${Math.round(status.poll_age)} s ago`];
    const next = status.next_due ? [` · next due ${moment(status.next_due)}`] : [];
    at("facts").replaceChildren(status.ready ? state("ready") : state("problem", status.problem), ...age, ...next, ` · duly ${status.version}`);
    fill("schedules", listing.items.map((one) => {
      const next = due[one.id] ? opening(moment(due[one.id]), one.id, due[one.id]) : "";
      return build("tr", {}, build("th", { scope: "row" }, one.id), cell(build("code", {}, when(one.trigger))), cell(one.target), cell(stands(one)), cell(next, "nowrap"), cell(one.active_runs.join(", ")));
    }));
    at("more-schedules").hidden = listing.next === null;
    at("more-schedules").textContent = `Only the first ${MOST} are shown here.`;
    fill("runs", status.runs.map((run) => {
      const whose = run.scheduled_at ? opening(moment(run.scheduled_at), run.schedule_id, run.scheduled_at) : "by hand";
      const since = run.ended_at ?? run.started_at ?? run.admitted_at;
      return build("tr", {}, cell(String(run.run_id), "number"), build("th", { scope: "row" }, run.schedule_id ?? "-"), cell(whose, "nowrap"), cell(state(run.state)), cell(moment(since), "nowrap"), cell(because(run)));
    }));
    fill("decisions", status.decisions.map((one) =>
      build("tr", {}, cell(String(one.sequence), "number"), cell(moment(one.at), "nowrap"), build("th", { scope: "row" }, one.schedule_id ?? "-"), cell(one.text))));
  };

  const look = async () => {
    clearTimeout(timer);
    try {
      const answers = await ask([["service.status", {}], ["schedules", { limit: MOST }]]);
      const [status, listing] = answers.map(result);
      at("gate").hidden = true;
      at("shown").hidden = false;
      kept.set(token);
      show(status, listing);
    } catch (error) {
      if (error instanceof Denied) {
        kept.drop();
        token = null;
        gate(error.message);
        return;
      }
      at("facts").replaceChildren(state("problem", error.message));
    }
    timer = setTimeout(look, EVERY);
  };
  const gate = (words) => {
    at("shown").hidden = true;
    at("gate").hidden = false;
    at("refused").textContent = words;
    at("token").value = "";
    at("token").focus();
  };

  const told = (value) => {
    if (typeof value === "string") return /^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? `${moment(value)} UTC` : value;
    if (Array.isArray(value)) return value.map(told).join(", ");
    if (value && typeof value === "object") return Object.entries(value).filter(([, one]) => one !== null && one !== "").map(([name, one]) => `${name.replaceAll("_", " ")} ${told(one)}`).join(", ");
    return String(value);
  };
  const FACTS = ["rule", "reason", "detail", "decided_at", "sequence", "run", "blocking_run", "superseded_by", "spent_by", "remark"];
  const explain = async (schedule, instant, from) => {
    opener = from.dataset.key;
    at("subject").textContent = `${schedule}@${instant}`;
    let became = "";
    let lines = [];
    try {
      const [answer] = await ask([["explain", { schedule_id: schedule, instant }]]);
      const found = result(answer);
      became = found.disposition;
      lines = FACTS.filter((name) => found[name] !== null && found[name] !== "").map((name) => [name.replaceAll("_", " "), told(found[name])]);
      if (found.revision) lines.push(["revision", `${found.revision.revision}${found.revision.actor ? ` by ${found.revision.actor}` : ""}`]);
    } catch (error) {
      became = error.message;
    }
    at("became").textContent = became;
    at("lines").replaceChildren(...lines.map(([name, text]) => build("div", {}, build("dt", {}, name), build("dd", {}, text))));
    at("panel").hidden = false;
    at("panel").focus();
  };
  const close = () => {
    at("panel").hidden = true;
    [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === opener)?.focus();
  };
  at("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !at("panel").hidden) close(); });
  at("gate").addEventListener("submit", (event) => {
    event.preventDefault();
    token = at("token").value.trim();
    look();
  });
  const watch = async () => {
    try {
      const health = await (await fetch("/readyz")).json();
      at("facts").replaceChildren(health.ready ? state("ready") : state("problem", health.problem));
    } catch (error) {
      at("facts").replaceChildren(state("problem", error.message));
    }
    setTimeout(watch, EVERY);
  };
  if ("watchedOnly" in document.documentElement.dataset) {
    at("journal").textContent = location.host;
    at("watched-only").hidden = false;
    watch();
  } else if (token) look();
  else gate("");
}
