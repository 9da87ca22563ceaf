// An answer while it is written: Markdown, or tokens coloured by their probability; in blocks, so that a very long one stays quick;
// calls of tools; and at the end its state, its figures and what can be done with it.

import { el, ms, percent } from "/assets/page/dom.js";
import { copyText, Markdown } from "/assets/page/markdown.js";
import { speedOf, traceView } from "/assets/page/trace.js";

const BLOCK_CHARS = 4000; // then the next line begins a new block,
const LINE_CHARS = 32000; // or, when no line does, the next word,
const BLOCK_MAX = 36000; // or, when there is none, the next character
const COLOURED_MAX = 4000; // tokens; behind them text has no colour
const ANSWER_MAX = 4e6; // characters: no answer is longer, but that of a server that never ends
const CALLS_MAX = 128;

const isHalf = (code) => code >= 0xd800 && code < 0xdc00; // the first half of a surrogate pair

// Where the block that has `chars` already ends in `text`: it takes what is before `at`, the next one begins at `next`.
function endOfBlock(text, chars) {
  const line = text.indexOf("\n", Math.max(BLOCK_CHARS - chars, 0));
  const word = text.indexOf(" ", Math.max(LINE_CHARS - chars, 0)) + 1;
  const most = BLOCK_MAX - chars;
  const last = isHalf(text.charCodeAt(most - 1)) ? most - 1 : most;
  const ends = [{ at: last, next: last }];
  if (word > 0) ends.push({ at: word, next: word });
  if (line >= 0) ends.push({ at: line, next: line + 1 });
  const end = ends.reduce((a, b) => (b.at < a.at ? b : a));
  return end.at < text.length || end.next === text.length ? { ...end, full: true } : { at: text.length, next: text.length, full: false };
}

class Blocks {
  constructor() {
    this.node = el("div", { class: "text" });
    this.pending = "";
  }

  block() {
    const last = this.node.lastElementChild;
    if (last && !last.full) return last;
    const fresh = Object.assign(el("div", { class: "block" }), { chars: 0, full: false });
    this.node.append(fresh);
    return fresh;
  }

  place(text, put) {
    for (let rest = text; rest; ) {
      const block = this.block();
      const { at, next, full } = endOfBlock(rest, block.chars);
      if (at > 0) put(block, rest.slice(0, at));
      block.chars += at;
      block.full = full;
      rest = rest.slice(next);
    }
  }

  write(text) {
    this.place(text, (block, part) => {
      const tail = block.lastChild;
      if (tail?.nodeType === Node.TEXT_NODE) tail.appendData(part);
      else block.append(part);
    });
  }

  colour(text, logprob, others) {
    const p = Math.exp(logprob);
    const title = [percent(p), ...(others ?? []).map((o) => `${JSON.stringify(o.token)} ${percent(Math.exp(o.logprob))}`)].join("\n");
    this.flush();
    this.place(text, (block, part) => block.append(el("span", { class: `tok p${Math.min(Math.floor(p * 5), 4)}`, title }, part)));
  }

  flush() {
    if (this.pending) this.write(this.pending);
    this.pending = "";
    this.scheduled = false;
  }

  // With the next frame: many tokens may come for one.
  add(text) {
    this.pending += text;
    if (!this.scheduled) requestAnimationFrame(() => this.flush());
    this.scheduled = true;
  }
}

const STATES = { waiting: "Waiting", streaming: "Streaming", done: "Completed", cut: "Stopped at max tokens", full: "Stopped where the context is full", cancelled: "Cancelled", failed: "Failed" };

const button = (text, onclick, name = "quiet") => el("button", { type: "button", class: name, onclick }, text);

export class Answer {
  // does: {stop, retry}; the functions of its buttons
  constructor(name, does) {
    this.name = name;
    this.text = "";
    this.calls = [];
    this.tokens = 0;
    this.coloured = 0;
    this.chars = 0; // of all that came
    this.thought = new Blocks();
    this.thoughts = el("details", { class: "thought", hidden: true }, el("summary", null, "Reasoning"), this.thought.node);
    this.called = el("div", { class: "calls" });
    this.state = el("span", { class: "state" });
    this.figures = el("span");
    const copy = button("Copy", () => copyText(copy, this.text));
    const actions = el("span", { class: "actions" }, button("Stop", does.stop, "quiet when-running"), [copy, button("Retry", does.retry)].map((b) => (b.classList.add("when-ended"), b)));
    this.meta = el("p", { class: "meta", role: "status" }, this.state, this.figures);
    this.after = el("div");
    this.node = el("article", { class: "msg assistant running" }, el("h3", { class: "who" }, name), this.thoughts, this.called, el("div", { class: "foot" }, this.meta, actions), this.after);
    this.is("waiting");
  }

  is(state) {
    this.ended = state;
    this.state.className = `state ${state}`;
    this.state.textContent = STATES[state];
  }

  // The body is made with its first text: with probabilities it is coloured as it is, without them it is Markdown.
  begin(coloured) {
    this.body = coloured ? new Blocks() : new Markdown();
    this.called.before(this.body.node);
    return this.body;
  }

  // ---- text ----

  addText(text, probs) {
    this.text += text;
    const body = this.body ?? this.begin(probs?.length > 0);
    if (!body.colour || !probs?.length || this.coloured + probs.length > COLOURED_MAX) return body.add(text);
    let at = 0; // of the text; the token that ends a reply may stand behind it, and has none
    const said = probs.filter((t) => text.startsWith(t.token, at) && t.token && (at += t.token.length));
    const whole = at === text.length;
    if (whole) for (const t of said) body.colour(t.token, t.logprob, t.top_logprobs);
    else body.colour(text, Math.min(...probs.map((t) => t.logprob)));
    this.coloured += whole ? said.length : 1;
  }

  // ---- what a stream brings ----

  addCall(delta) {
    const index = delta.index ?? 0;
    if (!Number.isInteger(index) || index < 0 || index >= CALLS_MAX) throw new Error(`the server sent a call of a tool with the number ${index}: 0 to ${CALLS_MAX - 1} are shown`);
    while (this.calls.length <= index) this.calls.push({ id: "", name: "", arguments: "" });
    const call = this.calls[index];
    if (delta.id) call.id = delta.id;
    if (delta.function?.name) call.name += delta.function.name;
    if (delta.function?.arguments) call.arguments += delta.function.arguments;
    this.count(`${delta.function?.name ?? ""}${delta.function?.arguments ?? ""}`);
  }

  count(text) {
    this.chars += text.length;
    if (this.chars > ANSWER_MAX) throw new Error(`stopped: the answer is longer than ${ANSWER_MAX} characters`);
  }

  add(chunk) {
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.model) this.model = chunk.model;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const d = choice.delta ?? {};
    if (d.reasoning_content) {
      this.thoughts.hidden = false;
      this.thought.add(d.reasoning_content);
      this.count(d.reasoning_content);
    }
    if (d.content) {
      this.tokens += choice.logprobs?.content?.length ?? 1;
      this.addText(d.content, choice.logprobs?.content);
      this.count(d.content);
    }
    for (const call of d.tool_calls ?? []) this.addCall(call);
    if (choice.finish_reason) this.finish = choice.finish_reason;
  }

  // ---- the end ----

  showCalls(onResults) {
    if (!this.calls.length) return;
    const rows = this.calls.map((call, i) => {
      const result = el("input", { placeholder: "tool result", "aria-label": `Result of ${call.name}` });
      return { call: { ...call, id: call.id || `call_${i}` }, result, node: el("div", { class: "call" }, el("code", null, `${call.name}(${call.arguments})`), onResults ? result : null) };
    });
    if (!onResults) return this.called.append(...rows.map((r) => r.node));
    const form = el("form", { class: "call-form" }, rows.map((r) => r.node), el("button", { type: "submit", class: "quiet" }, "Send results"));
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      form.querySelector("button").disabled = true;
      onResults(rows.map((r) => ({ role: "tool", tool_call_id: r.call.id, content: r.result.value || "done" })));
    });
    this.called.append(form);
  }

  end(state, tookMs, by) {
    this.thought.flush();
    this.body?.flush();
    this.node.classList.remove("running");
    const cut = this.usage?.completion_tokens < this.limit ? "full" : "cut";
    this.is(state === "done" && this.finish === "length" ? cut : state);
    this.by = by;
    this.tell({ ms: tookMs });
  }

  // The figures under it. r: the server's own entry of the request, where this key may see it; else what is known here.
  tell(r) {
    const n = this.usage?.completion_tokens ?? this.tokens;
    const speed = speedOf(r);
    const parts = [this.by && `by ${this.by}`, n && `${n} tokens`, speed && `${speed} tokens/s`, r.first_token_ms !== undefined && `first token ${ms(r.first_token_ms)}`, r.ms !== undefined && `total ${ms(r.ms)}`];
    this.figures.textContent = parts.filter(Boolean).join(" · ");
  }

  fail(message) {
    this.failure = message;
    this.node.classList.add("failed");
    this.after.append(el("p", { class: "failure", role: "alert" }, message));
  }

  showTrace(entry) {
    if (!entry) return;
    this.tell(entry);
    this.after.append(el("details", { class: "trace-fold" }, el("summary", null, "Details"), traceView(entry)));
  }

  // As it was kept: its message and its note.
  restore(message, note, onResults) {
    if (message.content) this.addText(message.content);
    this.calls = (message.tool_calls ?? []).map((c) => ({ id: c.id, ...c.function }));
    this.showCalls(onResults);
    const broken = note.state === "waiting" || note.state === "streaming"; // the page was left
    this.end(broken ? "cancelled" : note.state in STATES ? note.state : "done");
    this.figures.textContent = note.figures ?? "";
    if (note.failure) this.fail(note.failure);
  }

  note() {
    return { state: this.ended, figures: this.figures.textContent, failure: this.failure };
  }

  message() {
    const m = { role: "assistant", content: this.text || null };
    if (this.calls.length)
      m.tool_calls = this.calls.map((c, i) => ({ id: c.id || `call_${i}`, type: "function", function: { name: c.name, arguments: c.arguments } }));
    return m;
  }
}
