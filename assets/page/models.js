// The models: what each is, where it runs, its speed; and those that could be loaded. Loaded and unloaded while serving.

import { ApiError, ask, events } from "/assets/page/api.js";
import { catalogue, isModel, onCatalogue } from "/assets/page/catalogue.js";
import { $, bytes, count, el, keyed, say, set, some } from "/assets/page/dom.js";
import { onChange, state } from "/assets/page/live.js";

const replicasOf = (id) => [...state.replicas.values()].filter((r) => r.model === id);
const best = (list, key) => Math.max(0, ...list.map((r) => r[key] ?? 0));

// ---- one model ------------------------------------------------------------------------------------

function fact(name) {
  const value = el("dd");
  return { value, nodes: [el("dt", null, name), value] };
}

function make(id) {
  const facts = { Use: fact("For"), Task: fact("Task"), Architecture: fact("Architecture"), Quantisation: fact("Quantisation"), Memory: fact("Memory"), Speed: fact("Speed"), Context: fact("Context"), Runs: fact("Runs on"), Members: fact("Members"), Digest: fact("Digest") };
  const dot = el("span", { class: "dot" });
  const button = el("button", { type: "button", class: "quiet", onclick: () => unload(id), "aria-label": `Unload ${id}` }, "Unload");
  const said = el("span", { class: "note" });
  return Object.assign(el("article", { class: "card model-card" }, el("div", { class: "model-top" }, dot, el("h2", null, id), said, el("span", { class: "grow" }), button), el("dl", { class: "facts" }, Object.values(facts).map((f) => f.nodes))), { facts, dot, said, button });
}

function speedOf(list) {
  const read = best(list, "prefill_tokens_per_s");
  const write = best(list, "decode_tokens_per_s");
  return [write && `${count(write)} tokens/s decode`, read && `${count(read)} tokens/s prefill`].filter(Boolean).join(", ") || "not measured yet";
}

const ready = (list) => list.filter((r) => r.state === "ready").length;

// Those that an ensemble or a route asks; undefined of a model.
const membersOf = (m) => m.members ?? m.routes_to;

const found = (id) => catalogue.models.find((m) => m.id === id) ?? { id };

// good: all replicas are ready; warn: some; bad: none. Of an ensemble: of all its members, which may be ensembles again.
function shadeOf(m, depth = 0) {
  const members = membersOf(m);
  if (members && depth < 4) {
    const shades = members.map((id) => shadeOf(found(id), depth + 1));
    return shades.every((s) => s === "good") ? "good" : shades.every((s) => s === "bad") ? "bad" : "warn";
  }
  if (m.parent) return shadeOf(found(m.parent), depth + 1);
  const list = replicasOf(m.id);
  if (!list.length && m.state === "ready") return "good"; // another server's, or none that this key may see
  return list.length && ready(list) === list.length ? "good" : ready(list) ? "warn" : "bad";
}

function describe(m) {
  if (m.kind === "pipeline") return { Use: m.use ?? "", Task: "pipeline" };
  if (m.kind !== undefined) return { Task: `ensemble: ${m.kind}` };
  if (m.task === "route") return { Task: "route" };
  if (m.parent) return { Task: `adapter of ${m.parent}` };
  const list = replicasOf(m.id);
  const nodes = [...new Set(list.map((r) => r.node || "this machine"))];
  return {
    Use: m.use ?? "", Task: m.task ?? "", Architecture: m.architecture ?? "", Quantisation: m.quantisation ?? "",
    Memory: bytes(list.reduce((n, r) => n + (r.resident_bytes ?? 0), 0)), Speed: speedOf(list),
    Context: m.context_length ? `${m.context_length} tokens` : "", Runs: list.length > 1 ? `${some(list.length, "replica")} on ${nodes.join(", ")}` : nodes.join(", "),
    Digest: m.digest ? m.digest.slice(0, 16) : "",
  };
}

const memberRow = (id) => el("li", null, el("span", { class: "dot", "data-state": shadeOf(found(id)) }), id);

function update(node, m) {
  const told = describe(m);
  const members = membersOf(m);
  for (const [name, f] of Object.entries(node.facts)) {
    if (name === "Members") continue;
    say(f.value, told[name] ?? "");
    for (const n of f.nodes) n.hidden = !told[name];
  }
  for (const n of node.facts.Members.nodes) n.hidden = !members?.length;
  if (members) node.facts.Members.value.replaceChildren(el("ul", { class: "chips" }, members.map(memberRow)));
  node.facts.Digest.value.title = m.digest ?? "";
  const list = replicasOf(m.id);
  const plain = isModel(m);
  set(node.dot, "data-state", shadeOf(m));
  say(node.said, plain && list.length ? (ready(list) === list.length ? "" : `${ready(list)} of ${list.length} ready`) : "");
  node.button.hidden = !plain || !mayLoad();
}

// ---- one that could be loaded ---------------------------------------------------------------------

const mayLoad = () => state.refused !== "admin";

function makeLoadable(id) {
  const about = el("p");
  const facts = el("p", { class: "note" });
  const button = el("button", { type: "button", class: "quiet", onclick: () => load(id), "aria-label": `Load ${id}` }, "Load");
  return Object.assign(el("article", { class: "card model-card loadable" }, el("div", { class: "model-top" }, el("span", { class: "dot", "data-state": "rest" }), el("h2", null, id), el("span", { class: "grow" }), button), about, facts), { about, facts, button });
}

function updateLoadable(node, m) {
  say(node.about, m.use ?? "");
  say(node.facts, [m.task, m.quantisation, m.file_bytes && bytes(m.file_bytes)].filter(Boolean).join(" · "));
  node.button.hidden = !mayLoad();
}

function draw() {
  if ($("view-models").hidden) return;
  $("load-form").hidden = !mayLoad();
  const find = $("models-find").value.trim().toLowerCase();
  const fits = (m) => !find || [m.id, m.task, m.use, m.architecture, m.kind, m.quantisation].some((v) => v?.toLowerCase().includes(find));
  const byId = new Map(catalogue.models.filter(fits).map((m) => [m.id, m]));
  $("models-list").className = "models-grid";
  keyed($("models-list"), [...byId.keys()], make, (node, id) => update(node, byId.get(id)));
  const loadable = new Map(catalogue.loadable.filter(fits).map((m) => [m.id, m]));
  $("loadable").hidden = loadable.size === 0;
  keyed($("loadable-list"), [...loadable.keys()], makeLoadable, (node, id) => updateLoadable(node, loadable.get(id)));
}

// ---- loading --------------------------------------------------------------------------------------

function told(text, wrong = false) {
  say($("load-said"), text);
  $("load-said").classList.toggle("failure", wrong);
}

function explain(e) {
  const absent = e instanceof ApiError && (e.status === 405 || (e.status === 404 && e.code === "not_found"));
  return absent ? "This server does not load models while it serves: add them to shoal.yaml and restart it." : e.message;
}

function progress(step) {
  const part = step.total ? ` ${Math.floor((100 * (step.completed ?? 0)) / step.total)} % of ${bytes(step.total)}` : "";
  return [step.status, step.file, part].filter(Boolean).join(" ");
}

// What is loaded is a name, a path on the server or a reference to a hub, which it fetches and checks first.
async function load(what) {
  told(`Loading ${what} …`);
  try {
    const response = await ask("/v1/models/load", { body: { model: what, stream: true } });
    const streams = response.headers.get("content-type")?.startsWith("text/event-stream");
    for await (const e of streams ? events(response) : []) if (e.data.status) told(`${what}: ${progress(e.data)}`);
    told(`${what} is loaded.`);
  } catch (e) {
    told(explain(e), true);
  }
}

async function unload(model) {
  told(`Unloading ${model} …`);
  try {
    await ask("/v1/models/unload", { body: { model } });
    told(`${model} is unloaded.`);
  } catch (e) {
    told(explain(e), true);
  }
}

export function openModels() {
  $("load-form").addEventListener("submit", (e) => {
    e.preventDefault();
    const what = $("load-what").value.trim();
    if (what) load(what);
  });
  $("models-find").addEventListener("input", draw);
  onCatalogue(draw);
  onCatalogue((c) => $("load-names").replaceChildren(...c.loadable.map((m) => el("option", { value: m.id }))));
  onChange(draw);
  return { show: draw };
}
