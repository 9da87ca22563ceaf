// A run of a pipeline: its reply, and its stages as a waterfall.

import { ask, events } from "/assets/page/api.js";
import { catalogue, onCatalogue } from "/assets/page/catalogue.js";
import { bar, NAMES } from "/assets/page/chart.js";
import { asCurl, offerCopy } from "/assets/page/copy.js";
import { $, el, ms, options, percent } from "/assets/page/dom.js";

const STREAM_MAX = 4e6; // characters of what a run sends: more comes only from a server that never ends

let abort = null;

const bodyOf = () => ({ pipeline: $("pipe-which").value || undefined, input: $("pipe-input").value.trim() || "turn off the kitchen light" });

// ---- a stage --------------------------------------------------------------------------------------

function partsOf(entry) {
  const known = (entry.queue_ms ?? 0) + (entry.prefill_ms ?? 0) + (entry.decode_ms ?? 0);
  const all = entry.ms ?? 0;
  if (!known) return [{ kind: "busy", ms: all }];
  const way = Math.max(all - known, 0) / 2;
  return [{ kind: "before", ms: way }, { kind: "queue", ms: entry.queue_ms ?? 0 }, { kind: "prefill", ms: entry.prefill_ms ?? 0 }, { kind: "decode", ms: entry.decode_ms ?? 0 }, { kind: "after", ms: way }];
}

function resultOf(e) {
  if (!e.ran) return `skipped: ${e.why}`;
  if (e.error) return e.error;
  if (e.verdict) return e.verdict;
  if (e.label) return `${e.label}${e.score === undefined ? "" : ` ${percent(e.score)}`}`;
  if (e.completion_tokens) return `${e.completion_tokens} tokens`;
  if (e.items !== undefined) return `${e.items} items`;
  return "done";
}

function row(stage) {
  const time = el("span", { class: "stage-time" });
  const result = el("span", { class: "stage-result" }, "waiting");
  const space = el("div", { class: "stage-bar" });
  const more = el("span", { class: "stage-more" });
  const name = el("div", { class: "stage-name" }, stage.stage, el("small", null, stage.model ? `${stage.kind} · ${stage.model}` : stage.kind));
  return { stage, time, result, space, more, node: el("li", { class: "stage waits" }, name, el("div", { class: "stage-came" }, result, more), space, time) };
}

function settle(r, entry, total) {
  r.entry = entry;
  r.node.className = `stage ${entry.error ? "failed" : entry.ran ? "ran" : "skipped"}`;
  r.result.textContent = resultOf(entry);
  r.time.textContent = entry.ms === undefined ? (entry.ran ? "–" : "") : ms(entry.ms);
  r.space.replaceChildren(...(entry.ran ? [bar(entry.ms === undefined ? [{ kind: "busy", ms: total / 250 }] : partsOf(entry), entry.at_ms ?? 0, total)] : []));
  const why = entry.ran && entry.why && entry.why !== "always" ? `ran because ${entry.why}` : "";
  const times = ["queue", "prefill", "decode"].filter((k) => entry[`${k}_ms`] > 0).map((k) => `${NAMES[k]} ${ms(entry[`${k}_ms`])}`);
  r.more.textContent = [why, entry.replica, ...times, entry.ensemble, entry.degraded && `fallback for ${entry.degraded.wanted}`].filter(Boolean).join(" · ");
}

// ---- the run --------------------------------------------------------------------------------------

class Run {
  constructor(pipeline, input) {
    this.total = 1;
    this.rows = new Map((pipeline?.stages ?? []).map((s) => [s.stage, row(s)]));
    this.text = el("p", { class: "pipe-text" });
    this.calls = el("div", { class: "calls" });
    this.meta = el("p", { class: "meta" }, "Running");
    this.list = el("ol", { class: "waterfall", "aria-label": "Stages" }, [...this.rows.values()].map((r) => r.node));
    const key = ["before", "queue", "prefill", "decode"].map((k) => el("span", { class: "legend-item" }, el("span", { class: `swatch ${k}` }), k === "before" ? "overhead" : NAMES[k]));
    this.node = el("section", { class: "card" }, el("h2", null, input), this.text, this.calls, this.meta, this.list, el("p", { class: "legend" }, key));
  }

  stage(entry) {
    if (!this.rows.has(entry.stage)) {
      this.rows.set(entry.stage, row(entry));
      this.list.append(this.rows.get(entry.stage).node);
    }
    const longer = Math.max(this.total, (entry.at_ms ?? 0) + (entry.ms ?? 0));
    settle(this.rows.get(entry.stage), entry, longer);
    if (longer === this.total) return;
    this.total = longer;
    for (const r of this.rows.values()) if (r.entry) settle(r, r.entry, longer);
  }

  write(text) {
    if (this.text.firstChild) this.text.firstChild.appendData(text);
    else this.text.append(text);
  }

  answer(a, cache) {
    for (const entry of a.trace) this.stage(entry);
    this.text.textContent = a.text ?? "No reply.";
    const calls = a.tool_calls ?? (a.tool_call ? [a.tool_call] : []);
    const slots = (a.slots ?? []).map((s) => el("li", null, s.text, el("small", null, s.label.replaceAll("_", " "))));
    this.calls.replaceChildren(...calls.map((c) => el("div", { class: "call" }, el("code", null, `${c.name}(${JSON.stringify(c.arguments)})`))),
      ...(slots.length ? [el("ul", { class: "chips" }, slots)] : []));
    this.meta.textContent = [ms(a.ms), `${a.usage.total_tokens} tokens`, cache && cache !== "miss" ? `from the cache (${cache}): these are the stages of the run that filled it` : ""].filter(Boolean).join(" · ");
  }
}

async function run() {
  abort?.abort();
  abort = new AbortController();
  const { signal } = abort;
  const body = bodyOf();
  const at = new Run(catalogue.pipelines.find((p) => p.id === body.pipeline), body.input);
  $("pipe-out").replaceChildren(at.node);
  $("pipe-run").hidden = true;
  $("pipe-stop").hidden = false;
  try {
    const response = await ask("/v1/process", { body: { ...body, stream: true }, signal });
    for await (const e of events(response, STREAM_MAX)) {
      if (e.event === "stage") at.stage(e.data);
      if (e.event === "text") at.write(e.data.text);
      if (e.event === "answer") at.answer(e.data, response.headers.get("x-shoal-cache"));
    }
  } catch (e) {
    at.meta.textContent = e.name === "AbortError" ? "Cancelled" : "Failed";
    if (e.name !== "AbortError") at.node.append(el("p", { class: "failure", role: "alert" }, e.message));
  }
  if (abort?.signal !== signal) return;
  abort = null;
  $("pipe-run").hidden = false;
  $("pipe-stop").hidden = true;
}

export function runPipe(pipeline, input) {
  $("pipe-which").value = pipeline;
  showDevices();
  $("pipe-input").value = input;
  run();
}

function showDevices() {
  const devices = catalogue.pipelines.find((p) => p.id === $("pipe-which").value)?.devices ?? [];
  $("pipe-devices").replaceChildren(...devices.map((d) => el("li", { title: d.id }, d.name, d.state ? el("small", null, d.state) : "")));
}

export function openPipe() {
  onCatalogue((c) => {
    options($("pipe-which"), [["", c.pipelines.map((p) => ({ value: p.id }))]]);
    showDevices();
  });
  $("pipe-which").addEventListener("change", showDevices);
  $("pipe-form").addEventListener("submit", (e) => {
    e.preventDefault();
    run();
  });
  $("pipe-stop").addEventListener("click", () => abort?.abort());
  $("pipe-curl").addEventListener("click", () => offerCopy("As curl", asCurl("/v1/process", bodyOf())));
}
