// The playground's chat: one conversation, or the same with two models or routes side by side.

import { Answer } from "/assets/page/answer.js";
import { ask, events } from "/assets/page/api.js";
import { chatGroups, onCatalogue } from "/assets/page/catalogue.js";
import { sessionTry } from "/assets/page/cluster.js";
import { asCurl, asJs, offerCopy } from "/assets/page/copy.js";
import { $, el, options, say } from "/assets/page/dom.js";
import { openPipe, runPipe } from "/assets/page/pipe.js";
import { openTasks } from "/assets/page/tasks.js";
import { entryOf } from "/assets/page/trace.js";

const TOOLS = [{ type: "function", function: { name: "set_light", description: "Switches a light on or off", parameters: { type: "object", properties: { room: { type: "string", enum: ["kitchen", "bedroom", "office"] }, on: { type: "boolean" } }, required: ["room", "on"] } } }];
const SCHEMA = { type: "object", properties: { room: { type: "string", enum: ["kitchen", "bedroom", "office"] }, on: { type: "boolean" }, minutes: { type: "integer", minimum: 0, maximum: 90 } }, required: ["room", "on"], additionalProperties: false };

const columns = [];
let groups = [];

// ---- settings -------------------------------------------------------------------------------------

// A sentence for a person when a field cannot be used, and the field.
class SettingError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

function number(id, name) {
  const field = $(id);
  if (!field.validity.valid) throw new SettingError(field, `${name}: ${field.validationMessage}`);
  return field.value === "" ? undefined : Number(field.value);
}

function json(id, name) {
  const text = $(id).value.trim();
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new SettingError($(id), `${name} is no JSON: ${e.message}`);
  }
}

function bodyOf(model, messages) {
  const system = $("set-system").value.trim();
  const schema = json("set-schema", "the schema");
  const body = {
    model,
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    temperature: number("set-temperature", "temperature"),
    top_p: number("set-top-p", "top p"),
    max_tokens: number("set-max", "longest reply"),
    seed: number("set-seed", "seed"),
    tools: json("set-tools", "the list of tools"),
    response_format: schema && { type: "json_schema", json_schema: { name: "reply", schema } },
    logprobs: $("set-probs").checked || undefined,
    top_logprobs: $("set-probs").checked ? 3 : undefined,
    stream: true,
    stream_options: { include_usage: true },
  };
  return body;
}

// ---- a column -------------------------------------------------------------------------------------

class Column {
  constructor(n) {
    this.messages = [];
    this.select = el("select", { "aria-label": n ? "The other model or route" : "Model or route" });
    this.log = el("div", { class: "log", role: "log", "aria-live": "off", "aria-label": `Conversation ${n + 1}`, tabindex: "0" });
    this.node = el("div", { class: "column" }, this.select, this.log);
    options(this.select, groups);
    if (n) this.select.selectedIndex = Math.min(1, this.select.options.length - 1);
  }

  clear() {
    this.abort?.abort();
    this.messages = [];
    this.log.replaceChildren();
  }

  atEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
  }

  show(node) {
    const end = this.atEnd();
    this.log.append(node);
    if (end) this.log.scrollTop = this.log.scrollHeight;
  }

  follow(answer) {
    const step = () => {
      if (this.atEnd.last !== this.log.scrollHeight && this.following) this.log.scrollTop = this.log.scrollHeight;
      if (answer.node.classList.contains("running")) requestAnimationFrame(step);
    };
    this.following = true;
    this.log.onscroll = () => (this.following = this.atEnd());
    requestAnimationFrame(step);
  }

  async talk(more) {
    this.messages.push(...more);
    const body = bodyOf(this.select.value, this.messages);
    for (const m of more.filter((m) => m.role === "user")) this.show(el("div", { class: "msg user" }, m.content));
    const answer = new Answer(this.select.value);
    this.show(answer.node);
    this.follow(answer);
    this.abort = new AbortController();
    const since = performance.now();
    let id = null;
    try {
      const response = await ask("/v1/chat/completions", { body, signal: this.abort.signal });
      id = response.headers.get("x-request-id");
      answer.meta.textContent = "writing";
      for await (const e of events(response)) answer.add(e.data, since);
      answer.end(answer.model && answer.model !== body.model ? `by ${answer.model}` : "", performance.now() - since);
    } catch (e) {
      answer.end(e.name === "AbortError" ? "stopped" : "", performance.now() - since);
      if (e.name !== "AbortError") answer.fail(e.message);
    }
    this.abort = null;
    if (answer.text || answer.calls.length) this.messages.push(answer.message());
    else this.messages.length -= more.length;
    answer.showCalls((results) => start([this], results));
    if (id) answer.showTrace(await entryOf(id));
  }
}

// ---- sending and stopping -------------------------------------------------------------------------

let running = 0;

function showRunning() {
  $("send").hidden = running > 0;
  $("stop").hidden = running === 0;
}

async function start(who, more) {
  running++;
  showRunning();
  try {
    await Promise.all(who.map((c) => c.talk(more)));
  } catch (e) {
    for (const c of who) c.messages.length -= more.length;
    if (!(e instanceof SettingError)) throw e;
    e.field.closest("details.inner")?.setAttribute("open", "");
    e.field.focus();
    who[0].show(el("p", { class: "failure", role: "alert" }, e.message));
  } finally {
    running--;
    showRunning();
  }
}

function stop() {
  for (const c of columns) c.abort?.abort();
}

function send() {
  const text = $("say").value.trim();
  if (!text || running) return;
  $("say").value = "";
  start(columns, [{ role: "user", content: text }]);
}

// ---- tabs -----------------------------------------------------------------------------------------

const TABS = ["chat", "pipe", "tasks"];

function choose(tab, focus) {
  for (const t of TABS) {
    $(`tab-${t}`).setAttribute("aria-selected", String(t === tab));
    $(`tab-${t}`).tabIndex = t === tab ? 0 : -1;
    $(`pane-${t}`).hidden = t !== tab;
  }
  if (focus) $(`tab-${tab}`).focus();
}

function openTabs() {
  TABS.forEach((t, i) => {
    $(`tab-${t}`).addEventListener("click", () => choose(t));
    $(`tab-${t}`).addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[e.key];
      if (step) choose(TABS[(i + step) % TABS.length], true);
    });
  });
}

// ---- the view -------------------------------------------------------------------------------------

function setCompare(on) {
  $("compare").setAttribute("aria-pressed", String(on));
  say($("compare"), on ? "One again" : "Compare two");
  if (on === columns.length > 1) return;
  if (on) columns.push(new Column(1));
  else columns.pop().clear();
  $("columns").replaceChildren(...columns.map((c) => c.node));
}

function offer(title, make) {
  try {
    offerCopy(title, make(bodyOf(columns[0].select.value, [...columns[0].messages, { role: "user", content: $("say").value.trim() || "Hello" }])));
  } catch (e) {
    if (!(e instanceof SettingError)) throw e;
    e.field.focus();
  }
}

function wire() {
  $("composer").addEventListener("submit", (e) => {
    e.preventDefault();
    send();
  });
  $("say").addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    send();
  });
  addEventListener("keydown", (e) => {
    if (e.key === "Escape" && running && !document.querySelector("dialog[open]")) stop();
  });
  $("settings").addEventListener("submit", (e) => e.preventDefault());
  $("stop").addEventListener("click", stop);
  $("compare").addEventListener("click", () => setCompare(columns.length === 1));
  $("chat-clear").addEventListener("click", () => columns.forEach((c) => c.clear()));
  $("copy-curl").addEventListener("click", () => offer("As curl", (body) => asCurl("/v1/chat/completions", body)));
  $("copy-js").addEventListener("click", () => offer("As JavaScript, with OpenAI's client", asJs));
  $("tools-example").addEventListener("click", () => ($("set-tools").value = JSON.stringify(TOOLS, null, 1)));
  $("schema-example").addEventListener("click", () => ($("set-schema").value = JSON.stringify(SCHEMA, null, 1)));
}

// The system prompt that the pipelines' generators read: which devices there are, and how they are.
function homePrompt(devices) {
  return `You are Shoal, a helper that runs this home. Devices:\n${devices.map((d) => `${d.id} '${d.name}' = ${d.state ?? "unknown"}`).join("\n")}`;
}

function offerHome({ pipelines }) {
  const devices = pipelines.find((p) => p.devices.length)?.devices;
  $("home-prompt").hidden = !devices;
  $("home-prompt").onclick = () => ($("set-system").value = homePrompt(devices));
}

// From the cluster's view: what was asked there runs here.
function begin() {
  const next = sessionTry.next;
  sessionTry.next = null;
  if (!next) return;
  choose(next.kind === "pipeline" ? "pipe" : "chat");
  if (next.kind === "pipeline") return runPipe(next.name, next.text);
  columns[0].select.value = next.name;
  $("say").value = next.text;
  send();
}

export function openPlay() {
  openTabs();
  wire();
  if (matchMedia("(max-width: 760px)").matches) document.querySelector("#settings > details").open = false;
  columns.push(new Column(0));
  $("columns").replaceChildren(columns[0].node);
  onCatalogue((c) => {
    groups = chatGroups(c);
    offerHome(c);
    columns.forEach((column, i) => {
      const empty = column.select.options.length === 0;
      options(column.select, groups);
      if (empty && i) column.select.selectedIndex = Math.min(1, column.select.options.length - 1);
    });
  });
  openPipe();
  openTasks();
  return { show: begin };
}
