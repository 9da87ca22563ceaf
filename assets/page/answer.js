// An answer while it is written: text in blocks, so that a very long one stays quick; tokens coloured by their probability; calls
// of tools; and at the end how it went.

import { el, ms, percent } from "/assets/page/dom.js";
import { traceView } from "/assets/page/trace.js";

const BLOCK_CHARS = 4000; // then the next line begins a new block
const COLOURED_MAX = 4000; // tokens; behind them text has no colour

export class Answer {
  constructor(name) {
    this.text = "";
    this.calls = [];
    this.tokens = 0;
    this.coloured = 0;
    this.pending = "";
    this.thought = el("div", { class: "text" });
    this.thoughts = el("details", { class: "thought", hidden: true }, el("summary", null, "Thought"), this.thought);
    this.body = el("div", { class: "text" });
    this.called = el("div", { class: "calls" });
    this.meta = el("p", { class: "meta", role: "status" }, "waiting");
    this.after = el("div");
    this.node = el("article", { class: "msg assistant running" }, el("h3", { class: "who" }, name), this.thoughts, this.body, this.called, this.meta, this.after);
  }

  // ---- text ----

  block() {
    const last = this.body.lastElementChild;
    if (last && last.chars < BLOCK_CHARS) return last;
    const fresh = Object.assign(el("div", { class: "block" }), { chars: 0 });
    this.body.append(fresh);
    return fresh;
  }

  write(text) {
    for (let rest = text; rest; ) {
      const block = this.block();
      const full = block.chars + rest.length >= BLOCK_CHARS;
      const at = full ? rest.indexOf("\n", Math.max(BLOCK_CHARS - block.chars, 0)) : -1;
      const part = at < 0 ? rest : rest.slice(0, at);
      const tail = block.lastChild;
      if (tail?.nodeType === Node.TEXT_NODE) tail.appendData(part);
      else block.append(part);
      block.chars = at < 0 ? Math.min(block.chars + part.length, BLOCK_CHARS - 1) : BLOCK_CHARS;
      rest = at < 0 ? "" : rest.slice(at + 1);
    }
  }

  colour(text, logprob, others) {
    const p = Math.exp(logprob);
    const title = [`${percent(p)} sure`, ...(others ?? []).map((o) => `${JSON.stringify(o.token)} ${percent(Math.exp(o.logprob))}`)].join("\n");
    this.block().append(el("span", { class: `tok p${Math.min(Math.floor(p * 5), 4)}`, title }, text));
    this.block().chars += text.length;
    this.coloured++;
  }

  flush() {
    if (this.pending) this.write(this.pending);
    this.pending = "";
    this.scheduled = false;
  }

  addText(text, probs) {
    this.text += text;
    if (!probs?.length || this.coloured >= COLOURED_MAX) {
      this.pending += text;
      if (!this.scheduled) requestAnimationFrame(() => this.flush());
      this.scheduled = true;
      return;
    }
    this.flush();
    if (probs.map((t) => t.token).join("") === text) for (const t of probs) this.colour(t.token, t.logprob, t.top_logprobs);
    else this.colour(text, Math.min(...probs.map((t) => t.logprob)));
  }

  // ---- what a stream brings ----

  addCall(delta) {
    const call = (this.calls[delta.index ?? 0] ??= { id: "", name: "", arguments: "" });
    if (delta.id) call.id = delta.id;
    if (delta.function?.name) call.name += delta.function.name;
    if (delta.function?.arguments) call.arguments += delta.function.arguments;
  }

  add(chunk, since) {
    this.firstMs ??= performance.now() - since;
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.model) this.model = chunk.model;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const d = choice.delta ?? {};
    if (d.reasoning_content) {
      this.thoughts.hidden = false;
      this.thought.append(d.reasoning_content);
    }
    if (d.content) {
      this.tokens += choice.logprobs?.content?.length ?? 1;
      this.addText(d.content, choice.logprobs?.content);
    }
    for (const call of d.tool_calls ?? []) this.addCall(call);
    if (choice.finish_reason) this.finish = choice.finish_reason;
  }

  // ---- the end ----

  showCalls(onResults) {
    if (!this.calls.length) return;
    const rows = this.calls.map((call, i) => {
      const result = el("input", { placeholder: "what it came to", "aria-label": `Result of ${call.name}` });
      return { call: { ...call, id: call.id || `call_${i}` }, result, node: el("div", { class: "call" }, el("code", null, `${call.name}(${call.arguments})`), result) };
    });
    const form = el("form", { class: "call-form" }, rows.map((r) => r.node), el("button", { type: "submit", class: "quiet" }, "Send results"));
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      form.querySelector("button").disabled = true;
      onResults(rows.map((r) => ({ role: "tool", tool_call_id: r.call.id, content: r.result.value || "done" })));
    });
    this.called.append(form);
  }

  end(how, tookMs) {
    this.flush();
    this.node.classList.remove("running");
    const n = this.usage?.completion_tokens ?? this.tokens;
    const parts = [how];
    if (n) parts.push(`${n} tokens`);
    if (this.firstMs !== undefined) parts.push(`first after ${ms(this.firstMs)}`, `all in ${ms(tookMs)}`);
    if (this.finish === "length") parts.push("cut at the longest reply");
    this.meta.textContent = parts.filter(Boolean).join(" · ");
  }

  fail(message) {
    this.node.classList.add("failed");
    this.after.append(el("p", { class: "failure", role: "alert" }, message));
  }

  showTrace(entry) {
    if (entry) this.after.append(el("details", { class: "trace-fold" }, el("summary", null, "How it went"), traceView(entry)));
  }

  message() {
    const m = { role: "assistant", content: this.text || null };
    if (this.calls.length)
      m.tool_calls = this.calls.map((c, i) => ({ id: c.id || `call_${i}`, type: "function", function: { name: c.name, arguments: c.arguments } }));
    return m;
  }
}
