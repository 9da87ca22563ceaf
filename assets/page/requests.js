// The last requests: a table with filters, each row opens to its details.

import { getJson } from "/assets/page/api.js";
import { catalogue, onCatalogue } from "/assets/page/catalogue.js";
import { $, clock, el, keyed, ms, options, say } from "/assets/page/dom.js";
import { onChange, state } from "/assets/page/live.js";
import { failed, traceView } from "/assets/page/trace.js";

const SHOWN = 150;
const NAMES = { chat_completions: "chat", completions: "completions", embeddings: "embeddings", process: "pipeline" };

let entries = new Map();
let open = null; // the number of the one that is open
let asked = -1; // what was the newest when the list was made

// What became of it: 200, 404, cancelled, or the code of a stream that broke off.
function outcome(r) {
  if (r.status === 499) return "cancelled";
  return r.status < 400 && r.code ? r.code.replaceAll("_", " ") : String(r.status);
}

const COLUMNS = [["time", "Time"], ["endpoint", "Endpoint"], ["model", "Model or pipeline"], ["status", "Status"], ["took", "Latency"], ["first", "First token"], ["prompt", "Prompt tokens"], ["tokens", "Completion tokens"], ["marks", "Notes"]];
const heads = () => el("div", { class: "request-heads", "aria-hidden": "true" }, COLUMNS.map(([name, title]) => el("span", { class: name }, title)));

function row(number) {
  const r = entries.get(number);
  const at = `trace-${number}`;
  const cell = (name, ...children) => el("span", { class: name }, children);
  const number0 = (n) => (n ? String(n) : "");
  const head = el("button", { type: "button", class: "request-head", "aria-expanded": "false", "aria-controls": at },
    el("time", null, clock(r.at)), cell("endpoint", NAMES[r.endpoint] ?? r.endpoint.replaceAll("_", " ")), cell("model", r.model ?? r.pipeline ?? ""),
    cell(failed(r) ? "status bad" : "status", outcome(r)), cell("took", ms(r.ms)), cell("first", r.first_token_ms === undefined ? "" : ms(r.first_token_ms)),
    cell("prompt", number0(r.prompt_tokens)), cell("tokens", number0(r.completion_tokens)), cell("marks", marks(r)));
  const body = el("div", { class: "request-body", id: at, hidden: true });
  head.addEventListener("click", () => toggle(number));
  return Object.assign(el("li", { class: "request" }, head, body), { head, body });
}

const marks = (r) => [
  r.cache && r.cache !== "miss" && `cache ${r.cache}`, r.moves && "moved", r.degraded && "fallback", r.route && "routed", r.background && "background"].filter(Boolean).map((m) => el("span", { class: "mark" }, m));

function toggle(number) {
  open = open === number ? null : number;
  for (const [key, item] of $("requests-list").lastChild.keyed) show(item, key);
}

function show(item, number) {
  const is = number === open;
  item.head.setAttribute("aria-expanded", String(is));
  item.body.hidden = !is;
  if (is && !item.body.firstChild) item.body.append(traceView(entries.get(number)));
}

function query() {
  const q = new URLSearchParams({ limit: SHOWN });
  for (const [name, id] of [["endpoint", "f-endpoint"], ["model", "f-model"], ["status", "f-status"], ["slow_ms", "f-slow"]])
    if ($(id).value && $(id).validity.valid) q.set(name, $(id).value);
  return q;
}

async function refresh() {
  const newest = state.gateway.requests ?? 0;
  try {
    const said = await getJson(`/v1/requests?${query()}`);
    asked = newest;
    entries = new Map(said.data.map((r) => [r.number, r]));
    if (!$("requests-list").firstChild) $("requests-list").replaceChildren(heads(), el("ol", { class: "requests" }));
    $("requests-list").hidden = said.data.length === 0;
    keyed($("requests-list").lastChild, said.data.map((r) => r.number), row, show);
    say($("requests-note"), `${said.data.length ? `${said.data.length} of the last ${said.kept} requests` : "No matching requests"}. ${said.prompts ? "The operator has the server keep the beginning of each request's text." : "Their texts are not stored."}`);
    seen(said.data);
  } catch (e) {
    asked = newest;
    say($("requests-note"), e.message);
  }
}

const endpoints = new Set();
function seen(list) {
  const before = endpoints.size;
  for (const r of list) endpoints.add(r.endpoint);
  if (endpoints.size === before) return;
  options($("f-endpoint"), [["", [{ value: "", text: "any" }, ...[...endpoints].sort().map((value) => ({ value, text: value.replaceAll("_", " ") }))]]]);
}

export function openRequests() {
  let due = 0;
  $("filters").addEventListener("submit", (e) => e.preventDefault());
  $("filters").addEventListener("input", () => {
    clearTimeout(due);
    due = setTimeout(refresh, 200);
  });
  onCatalogue(() => options($("f-model"), [["", [{ value: "", text: "any" }, ...[...catalogue.models, ...catalogue.pipelines.filter((p) => !catalogue.models.some((m) => m.id === p.id))].map((m) => ({ value: m.id }))]]]));
  let last = 0;
  onChange((s) => {
    if ($("view-requests").hidden || !$("f-live").checked || s.gateway.requests === asked || Date.now() - last < 700) return;
    last = Date.now();
    refresh();
  });
  return { show: refresh };
}
