// What encoders compute: labels, spans, vectors, rankings.

import { ask } from "/assets/page/api.js";
import { catalogue, onCatalogue } from "/assets/page/catalogue.js";
import { bar } from "/assets/page/chart.js";
import { asCurl, offerCopy } from "/assets/page/copy.js";
import { $, el, ms, options, percent, say } from "/assets/page/dom.js";

const lines = (text) => text.split("\n").map((l) => l.trim()).filter(Boolean);

function ranked(rows) {
  return el("ol", { class: "ranked" }, rows.map(([name, score]) => el("li", null, el("span", null, name), bar([{ kind: "busy", ms: Math.max(score, 0) }], 0, 1), el("span", { class: "number" }, percent(score)))));
}

function similarity(a, b) {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / Math.sqrt(aa * bb || 1);
}

function showVectors(reply, body) {
  const [first, ...others] = reply.data.map((d) => d.embedding);
  const near = others.map((v, i) => [body.input[i + 1], similarity(first, v)]).sort((a, b) => b[1] - a[1]);
  const numbers = first.slice(0, 8).map((v) => v.toFixed(3)).join(", ");
  return el("div", null, el("p", null, `${first.length} dimensions: `, el("code", null, `[${numbers}, …]`)), near.length ? ranked(near) : "");
}

function showSpans(reply, body) {
  const spans = (reply.data?.[0] ?? reply).spans ?? (reply.data?.[0] ?? reply).entities ?? [];
  const chars = [...body.input];
  const out = [];
  let at = 0;
  for (const s of spans) {
    out.push(chars.slice(at, s.start).join(""), el("mark", null, chars.slice(s.start, s.end).join(""), el("small", null, s.label)));
    at = s.end;
  }
  return el("p", { class: "spans" }, out, chars.slice(at).join(""), spans.length ? "" : el("span", { class: "note" }, " (no spans found)"));
}

function showLabels(reply) {
  const labels = reply.data?.[0]?.labels ?? reply.labels ?? reply.results?.[0]?.labels ?? [];
  return ranked(labels.map((l) => [l.label, l.score]));
}

const TASKS = {
  classify: { name: "Classify", path: "/v1/classify", fits: ["classify"], body: (t) => ({ input: t, top_k: 8 }), show: showLabels },
  tag: { name: "Tag", path: "/v1/tag", fits: ["tag"], body: (t) => ({ input: t }), show: showSpans },
  embed: { name: "Embed", path: "/v1/embeddings", fits: ["embed"], more: "Compare with (one per line)", example: "switch off the lamp\nplay some jazz", body: (t, more) => ({ input: [t, ...lines(more)] }), show: showVectors },
  rerank: { name: "Rerank", path: "/v1/rerank", fits: ["rerank"], more: "Documents (one per line)", example: "The kitchen light is off.\nThe door is locked.", body: (t, more) => ({ query: t, documents: lines(more) }), show: (reply, body) => ranked(reply.results.map((r) => [body.documents[r.index], r.relevance_score])) },
};

const chosen = () => TASKS[$("task-what").value] ?? TASKS.classify;
const bodyOf = () => ({ model: $("task-model").value, ...chosen().body($("task-input").value, $("task-more").value) });

function showForm() {
  const task = chosen();
  const fitting = catalogue.models.filter((m) => task.fits.includes(m.task)).sort((a, b) => task.fits.indexOf(a.task) - task.fits.indexOf(b.task));
  options($("task-model"), [["", fitting.map((m) => ({ value: m.id }))]]);
  $("task-more-label").hidden = !task.more;
  say($("task-more-name"), task.more ?? "");
  if (task.more) $("task-more").value = task.example;
}

async function run() {
  const task = chosen();
  const body = bodyOf();
  const since = performance.now();
  try {
    const reply = await (await ask(task.path, { body })).json();
    $("task-out").replaceChildren(el("section", { class: "card" }, el("h2", null, task.name), task.show(reply, body), el("p", { class: "meta" }, `${reply.model ?? body.model} · ${ms(performance.now() - since)}`)));
  } catch (e) {
    $("task-out").replaceChildren(el("p", { class: "failure", role: "alert" }, e.message));
  }
}

export function openTasks() {
  options($("task-what"), [["", Object.entries(TASKS).map(([value, t]) => ({ value, text: t.name }))]]);
  onCatalogue(showForm);
  $("task-what").addEventListener("change", showForm);
  $("task-form").addEventListener("submit", (e) => {
    e.preventDefault();
    run();
  });
  $("task-curl").addEventListener("click", () => offerCopy("As curl", asCurl(chosen().path, bodyOf())));
}
