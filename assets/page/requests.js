// The last requests: a list with filters, each opens to how it went.

import { getJson } from "/assets/page/api.js";
import { catalogue, onCatalogue } from "/assets/page/catalogue.js";
import { $, clock, el, keyed, ms, options, say } from "/assets/page/dom.js";
import { onChange, state } from "/assets/page/live.js";
import { traceView } from "/assets/page/trace.js";

const SHOWN = 150;
const NAMES = { chat_completions: "chat", completions: "completions", embeddings: "embed", process: "pipeline" };

let entries = new Map();
let open = null; // the number of the one that is open
let asked = -1; // what was the newest when the list was made

function row(number) {
  const r = entries.get(number);
  const at = `trace-${number}`;
  const bad = r.status >= 400;
  const head = el("button", { type: "button", class: "request-head", "aria-expanded": "false", "aria-controls": at },
    el("time", null, clock(r.at)), el("span", { class: "endpoint" }, NAMES[r.endpoint] ?? r.endpoint.replaceAll("_", " ")), el("span", { class: "model" }, r.model ?? ""),
    el("span", { class: bad ? "status bad" : "status" }, r.status === 499 ? "left" : String(r.status)), el("span", { class: "took" }, ms(r.ms)),
    el("span", { class: "tokens" }, r.completion_tokens ? `${r.completion_tokens} tok` : r.prompt_tokens ? `${r.prompt_tokens} read` : ""),
    el("span", { class: "marks" }, marks(r)));
  const body = el("div", { class: "request-body", id: at, hidden: true });
  head.addEventListener("click", () => toggle(number));
  return Object.assign(el("li", { class: "request" }, head, body), { head, body });
}

const marks = (r) => [
  r.cache && r.cache !== "miss" && `cache ${r.cache}`, r.moves && "moved", r.degraded && "stand-in", r.route && "routed", r.background && "background"].filter(Boolean).map((m) => el("span", { class: "mark" }, m));

function toggle(number) {
  open = open === number ? null : number;
  for (const [key, item] of $("requests-list").firstChild.keyed) show(item, key);
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
    if ($("requests-list").firstChild?.tagName !== "OL") $("requests-list").replaceChildren(el("ol", { class: "requests" }));
    keyed($("requests-list").firstChild, said.data.map((r) => r.number), row, show);
    say($("requests-note"), `${said.data.length ? `${said.data.length} of the last ${said.kept}` : "Nothing fits. Ask something in the playground, and it shows up here"}. ${said.prompts ? "The operator keeps the beginning of what is asked." : "What was asked is not kept."}`);
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
  onCatalogue(() => options($("f-model"), [["", [{ value: "", text: "any" }, ...catalogue.models.map((m) => ({ value: m.id }))]]]));
  let last = 0;
  onChange((s) => {
    if ($("view-requests").hidden || !$("f-live").checked || s.gateway.requests === asked || Date.now() - last < 700) return;
    last = Date.now();
    refresh();
  });
  return { show: refresh };
}
