// The cluster at a glance: one sentence, four figures with their last 15 minutes, what runs on which machine, what happened.

import { catalogue, chatGroups, onCatalogue } from "/assets/page/catalogue.js";
import { area, ceiling, dots } from "/assets/page/chart.js";
import { $, bytes, clock, count, el, keyed, ms, options, percent, plain, say, set, some } from "/assets/page/dom.js";
import { KEEP_S, onChange } from "/assets/page/live.js";
import { failed } from "/assets/page/trace.js";

const MANY = 12; // machines: then they are shown densely
const isOut = (r) => r.state !== "ready" && r.state !== "standby";

// ---- the sentence ---------------------------------------------------------------------------------

const capital = (s) => s[0].toUpperCase() + s.slice(1);

function sentence(state) {
  const models = new Set([...state.replicas.values()].map((r) => r.model)).size;
  const machines = new Set([...state.replicas.values()].map((r) => r.node)).size;
  if (!models) return "No model runs here yet: load one under Models.";
  const out = [...state.replicas.values()].filter(isOut);
  const end = !out.length ? "all ready" : out.length === 1 ? `${plain(out[0])} is ${out[0].state}` : `${out.length} replicas are not ready`;
  return capital(`${some(models, "model")} on ${some(machines, "machine")}, ${end}.`);
}

// ---- the tiles ------------------------------------------------------------------------------------

function tile(name, chart) {
  const value = el("span", { class: "tile-value" }, "–");
  const note = el("span", { class: "tile-note" });
  const scale = el("span");
  return { node: el("div", { class: "card tile" }, el("h2", null, name), el("p", { class: "tile-line" }, value, note), chart, el("p", { class: "axis" }, el("span", null, "last 15 min"), scale)), value, note, chart, scale };
}

function quantile(list, q) {
  const sorted = list.slice().sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(q * (sorted.length - 1))] : NaN;
}

const median = (list) => quantile(list, 0.5);

const within = (name) => `${name}, last 15 minutes`;

function makeTiles() {
  const speed = tile("Tokens per second", area(within("tokens per second")));
  const wait = tile("Median latency", dots(within("milliseconds of each request")));
  const queue = tile("Queue", dots(within("milliseconds of each request in the queue")));
  const flight = tile("Requests", area(within("requests per second")));
  $("tiles").replaceChildren(speed.node, wait.node, queue.node, flight.node);
  return { speed, wait, queue, flight };
}

function put(t, value, note, points, top, unit = count) {
  say(t.scale, `0 to ${unit(top)}`);
  say(t.value, value);
  say(t.note, note);
  t.node.classList.toggle("quiet", !points.some((p) => p.v > 0));
  t.chart.update(points, top, KEEP_S);
}

const mean = (points) => (points.length ? points.reduce((sum, p) => sum + p.v, 0) / points.length : 0);

// Points of each second as means of ten, the last ones of those that there are: a second is less than a pixel wide.
const MEAN_S = 10;
function means(points) {
  const bins = new Map();
  for (const p of points) {
    const bin = Math.floor(p.t / MEAN_S);
    if (!bins.has(bin)) bins.set(bin, []);
    bins.get(bin).push(p);
  }
  return [...bins.values()].map((list) => ({ t: list.at(-1).t, v: mean(list) }));
}

// The highest of many numbers, but for a few that stand at the edge.
const high = (list) => (list.length ? Math.min(Math.max(...list), quantile(list, 0.95) * 3) : 0);

function updateTiles(t, state) {
  const speeds = means(state.speed);
  const best = Math.max(0, ...speeds.map((p) => p.v));
  put(t.speed, count(mean(state.speed.slice(-3))), best > 0 ? `peak ${count(best)}` : "", speeds, ceiling(best, 10));

  const points = (name) => state.answers.filter((a) => a[name] !== undefined).map((a) => ({ t: a.at, v: a[name], bad: failed(a) }));
  const values = (name) => points(name).map((p) => p.v);
  const times = values("ms");
  const firsts = values("first_token_ms");
  put(t.wait, ms(median(times)), firsts.length ? `first token ${ms(median(firsts))}` : "", points("ms"), ceiling(high(times), 10), ms);

  const waiting = [...state.replicas.values()].reduce((n, r) => n + (r.waiting ?? 0), 0);
  const queued = values("queue_ms");
  put(t.queue, String(waiting), queued.length ? `waiting, median ${ms(median(queued))}` : "waiting", points("queue_ms"), ceiling(high(queued), 1), ms);

  const g = state.gateway;
  const rates = means(state.rate);
  put(t.flight, String(g.requests_in_flight ?? 0), `in flight${g.moves ? `, ${count(g.moves)} moved` : ""}`, rates, ceiling(Math.max(0, ...rates.map((p) => p.v)), 1));

  const used = [...state.replicas.values()].reduce((n, r) => n + (r.resident_bytes ?? 0), 0);
  const nodes = [...state.nodes.values()];
  const all = nodes.reduce((n, x) => n + (x.memory_bytes ?? 0), 0);
  const free = nodes.reduce((n, x) => n + (x.memory_free_bytes ?? 0), 0);
  say($("memory"), `Models use ${bytes(used)}${all ? `; ${percent((all - free) / all)} of ${bytes(all)} memory in use` : ""}`);
}

// ---- the machines ---------------------------------------------------------------------------------

const taskOf = (model) => catalogue.models.find((m) => m.id === model)?.task ?? "";

function makeReplica() {
  const parts = { dot: el("span", { class: "dot" }), name: el("span", { class: "replica-name" }), task: el("span", { class: "task" }), work: el("span", { class: "work" }), speed: el("span", { class: "speed" }), memory: el("span", { class: "memory" }), why: el("span", { class: "why" }) };
  return Object.assign(el("li", { class: "replica" }, Object.values(parts)), { parts });
}

function workOf(r) {
  if (r.state !== "ready") return r.state;
  const busy = r.running ?? 0;
  const queue = r.waiting ? `, ${r.waiting} queued` : "";
  if (busy || r.waiting) return `${busy} running${queue}`;
  return r.calls ? `${r.calls} calls` : "idle";
}

const SHADES = { ready: "good", standby: "rest", starting: "warn", draining: "warn", silent: "warn", down: "bad", failed: "bad" };

// Of many, the last part of the name tells them apart.
const short = (name) => name.slice(name.lastIndexOf("/") + 1);

function nameOf(r, many) {
  const id = plain(r);
  const name = many ? short(r.model) : r.model;
  if (id === r.model || id === `${r.model}/0`) return name;
  return id.startsWith(`${r.model}/`) ? name + id.slice(r.model.length) : id;
}

function updateReplica(node, r, last, many) {
  const { parts } = node;
  const shade = r.state === "ready" && (r.running || r.calls) ? "busy" : SHADES[r.state] ?? "unknown";
  set(parts.dot, "data-state", shade);
  say(parts.name, nameOf(r, many));
  node.title = r.kv_pages ? `${r.id}: ${r.kv_pages_used} of ${r.kv_pages} KV pages` : r.id;
  say(parts.task, taskOf(r.model));
  say(parts.work, workOf(r));
  say(parts.speed, r.decode_tokens_per_s ? `${count(r.decode_tokens_per_s)} tokens/s` : r.prefill_tokens_per_s ? `${count(r.prefill_tokens_per_s)} tokens/s in` : "");
  say(parts.memory, r.resident_bytes ? bytes(r.resident_bytes) : "");
  say(parts.why, r.state !== "ready" && r.reason ? r.reason : r.crashes ? `died ${r.crashes === 1 ? "once" : `${r.crashes} times`}${r.crash_report ? `; shoal crash ${r.crash_report}` : ""}` : "");
  if (last !== undefined && r.crashes > last) {
    node.classList.remove("struck");
    void node.offsetWidth;
    node.classList.add("struck");
  }
}

function makeMachine() {
  const parts = { name: el("h3"), facts: el("p", { class: "note" }), list: el("ul", { class: "replicas" }) };
  return Object.assign(el("article", { class: "card machine" }, Object.values(parts)), { parts });
}

function factsOf(n) {
  const facts = [];
  if (n.cores) facts.push(some(n.cores, "core"));
  if (n.memory_bytes) facts.push(`${bytes(n.memory_free_bytes)} of ${bytes(n.memory_bytes)} free`);
  if (n.load !== undefined) facts.push(`load ${n.load.toFixed(1)}`);
  if (n.rtt_ms) facts.push(`${ms(n.rtt_ms)} away`);
  if (n.site) facts.push(n.site);
  if (n.on_battery) facts.push("on battery");
  if (n.draining) facts.push("drains");
  return facts.join(" · ");
}

function updateMachine(node, name, state, many) {
  const n = state.nodes.get(name) ?? { name };
  say(node.parts.name, name || (state.nodes.size > 1 ? `${n.host ?? "gateway"} (this gateway)` : `This machine${n.host ? `, ${n.host}` : ""}`));
  say(node.parts.facts, factsOf(n));
  const mine = [...state.replicas.values()].filter((r) => r.node === name);
  keyed(node.parts.list, mine.map((r) => r.id), makeReplica, (item, id) => {
    const r = state.replicas.get(id);
    updateReplica(item, r, item.crashes, many);
    item.crashes = r.crashes;
  });
}

// By name, numbers in it counted; of many machines those in trouble stand first.
function sorted(state) {
  const names = new Set([...state.nodes.keys(), ...[...state.replicas.values()].map((r) => r.node)]);
  const all = [...state.replicas.values()];
  const busy = new Set(all.map((r) => r.node));
  const out = new Set(all.filter(isOut).map((r) => r.node));
  const shown = [...names].filter((n) => n !== "" || busy.has(n) || names.size === 1);
  const trouble = (a, b) => (shown.length > MANY ? out.has(b) - out.has(a) : 0);
  return shown.sort((a, b) => trouble(a, b) || a.localeCompare(b, undefined, { numeric: true }));
}

function updateMachines(state) {
  const names = sorted(state);
  const many = names.length > MANY;
  set($("machines"), "class", many ? "machines many" : "machines");
  keyed($("machines"), names, makeMachine, (node, name) => updateMachine(node, name, state, many));
}

// ---- what happened --------------------------------------------------------------------------------

function updateFeed(state) {
  const byId = new Map(state.feed.map((f) => [f.id, f]));
  keyed($("feed"), [...byId.keys()], (id) => {
    const f = byId.get(id);
    return el("li", { class: `happened ${f.kind}` }, el("time", null, clock(f.at)), el("span", null, f.text));
  });
  $("feed").classList.toggle("empty", state.feed.length === 0);
}

// ---- the view -------------------------------------------------------------------------------------

function groups(c) {
  return [["Pipelines", c.pipelines.map((p) => ({ value: `pipeline ${p.id}`, text: p.id }))], ...chatGroups(c).map(([label, items]) => [label, items.map((i) => ({ ...i, value: `model ${i.value}`, text: i.text ?? i.value }))])]
    .filter(([, items]) => items.length);
}

export function openCluster() {
  const tiles = makeTiles();
  let due = false;
  const draw = (state) => {
    due = false;
    if ($("view-cluster").hidden || !state.known) return;
    say($("h-cluster"), sentence(state));
    updateTiles(tiles, state);
    updateMachines(state);
    updateFeed(state);
  };
  let now = null;
  let example = "";
  onChange((state) => {
    now = state;
    if (due) return;
    due = true;
    requestAnimationFrame(() => draw(state));
  });
  onCatalogue((c) => {
    options($("try-who"), groups(c));
    const acts = [...$("try-who").options].some((o) => o.value.startsWith("pipeline ")); // of a home
    example = acts ? "turn off the kitchen light" : "Hello";
    $("try-text").placeholder = `Try it: ${example}`;
    $("try").hidden = $("try-who").options.length === 0;
    if (now) draw(now);
  });
  $("try").addEventListener("submit", (e) => {
    e.preventDefault();
    const [kind, ...name] = $("try-who").value.split(" ");
    const text = $("try-text").value.trim() || example;
    sessionTry.next = { kind, name: name.join(" "), text };
    location.hash = "#/play/try";
  });
  return { show: () => now && draw(now) };
}

// What the playground is asked to begin with.
export const sessionTry = { next: null };
