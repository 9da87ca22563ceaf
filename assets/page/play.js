// The playground's chat: conversations with a model or a route, or with two side by side.

import { Answer } from "/assets/page/answer.js";
import { ApiError, ask, events } from "/assets/page/api.js";
import { catalogue, chatGroups, onCatalogue, preferred } from "/assets/page/catalogue.js";
import { listChats, loadChat, onOtherTab, removeChat, saveChat } from "/assets/page/chats.js";
import { sessionTry } from "/assets/page/cluster.js";
import { asCurl, asJs, offerCopy } from "/assets/page/copy.js";
import { $, el, options, say, set } from "/assets/page/dom.js";
import { copyText } from "/assets/page/markdown.js";
import { HOME_TOOLS, playsHome, results } from "/assets/page/home.js";
import { openMic } from "/assets/page/mic.js";
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
    throw new SettingError($(id), `${name} is not valid JSON: ${e.message}`);
  }
}

// What the form says; throws a SettingError.
function settings() {
  const schema = json("set-schema", "the schema");
  return {
    temperature: number("set-temperature", "Temperature"),
    top_p: number("set-top-p", "Top p"),
    max_tokens: number("set-max", "Max tokens"),
    seed: number("set-seed", "Seed"),
    tools: json("set-tools", "the list of tools"),
    response_format: schema && { type: "json_schema", json_schema: { name: "reply", schema } },
    logprobs: $("set-probs").checked || undefined,
    top_logprobs: $("set-probs").checked ? 3 : undefined,
  };
}

function bodyOf(model, messages) {
  const system = $("set-system").value.trim();
  return { model, messages: system ? [{ role: "system", content: system }, ...messages] : messages, ...settings(), ...(playsHome(model) ? { tools: HOME_TOOLS } : {}), stream: true, stream_options: { include_usage: true } };
}

// ---- a column -------------------------------------------------------------------------------------

const quiet = (text, onclick) => el("button", { type: "button", class: "quiet", onclick }, text);

class Column {
  constructor(n, model) {
    this.turns = []; // {message, node, answer}
    this.wanted = model; // until the catalogue is known
    this.select = el("select", { "aria-label": n ? "The other model or route" : "Model or route" });
    this.about = el("p", { class: "note about" });
    this.log = el("div", { class: "log", role: "log", "aria-live": "off", "aria-label": `Conversation ${n + 1}`, tabindex: "0" });
    this.node = el("div", { class: "column" }, el("div", { class: "bar" }, this.select, this.about), this.log);
    this.select.addEventListener("change", () => {
      this.wanted = this.select.value;
      this.describe();
    });
    this.offer(n);
  }

  // The models that can be asked, and the one that was chosen.
  offer(n) {
    options(this.select, groups, this.wanted ?? preferred(catalogue, n));
    this.describe();
  }

  describe() {
    const m = catalogue.models.find((x) => x.id === this.select.value);
    const use = m?.use ? `For: ${m.use}` : m?.members ? `${m.kind} of ${m.members.join(", ")}` : "";
    this.about.title = m?.use ?? "";
    say(this.about, use + (playsHome(this.select.value) ? "; its devices are simulated here" : ""));
  }

  // What the model is told: an answer that has nothing is left out, and what it was to answer, too.
  messages() {
    const out = [];
    this.turns.forEach(({ message: m }, i) => {
      if (m.role !== "assistant" || m.content || m.tool_calls) return out.push(m);
      while (i < this.turns.length - 1 && out.length && out.at(-1).role !== "assistant") out.pop();
    });
    return out;
  }

  clear() {
    this.abort?.abort();
    this.cut(0);
  }

  cut(from) {
    for (const t of this.turns.splice(from)) t.node?.remove();
    for (const n of this.log.querySelectorAll(":scope > .failure")) n.remove();
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
      if (this.following) this.log.scrollTop = this.log.scrollHeight;
      if (answer.node.classList.contains("running")) requestAnimationFrame(step);
    };
    this.following = true;
    this.log.onscroll = () => (this.following = this.atEnd());
    requestAnimationFrame(step);
  }

  add(message) {
    const turn = { message };
    if (message.role === "user") {
      const copy = quiet("Copy", () => copyText(copy, message.content));
      turn.node = el("div", { class: "asked" }, el("div", { class: "msg user" }, message.content), el("span", { class: "actions" }, copy, quiet("Edit", () => edit(this, turn))));
      this.show(turn.node);
    }
    this.turns.push(turn);
  }

  answerOf(name, turn) {
    return new Answer(name, { stop: () => this.abort?.abort(), retry: () => retry(this, turn) });
  }

  restore({ message, note }, last) {
    if (message.role !== "assistant") return this.add(message);
    const turn = { message };
    turn.answer = this.answerOf(note?.model ?? "", turn);
    turn.node = turn.answer.node;
    this.turns.push(turn);
    this.show(turn.node);
    turn.answer.restore(message, note ?? {}, last && ((more) => start([this], more)));
  }

  // simulated: it goes on behind the results of calls that the page plays, of which none follow again.
  async talk(simulated = false) {
    const body = bodyOf(this.select.value, this.messages());
    const turn = { message: { role: "assistant", content: null } };
    const answer = (turn.answer = this.answerOf(body.model, turn));
    turn.node = answer.node;
    this.turns.push(turn);
    answer.limit = body.max_tokens;
    this.show(answer.node);
    this.follow(answer);
    this.abort = new AbortController();
    const since = performance.now();
    let id = null;
    let whole = false;
    try {
      const response = await ask("/v1/chat/completions", { body, signal: this.abort.signal });
      id = response.headers.get("x-request-id");
      answer.is("streaming");
      for await (const e of events(response, Infinity, () => (whole = true))) answer.add(e.data);
      if (!whole && !answer.finish) throw new ApiError(0, "the answer ended before it was complete");
      answer.end("done", performance.now() - since, answer.model !== body.model && answer.model);
    } catch (e) {
      answer.end(e.name === "AbortError" ? "cancelled" : "failed", performance.now() - since);
      const full = e.code === "context_length_exceeded" ? ". Begin a new chat, or load the model with a larger context." : "";
      if (e.name !== "AbortError") answer.fail(e.message + full);
    }
    this.abort = null;
    turn.message = answer.message();
    const plays = turn.message.tool_calls && playsHome(body.model);
    answer.showCalls(!plays && ((more) => start([this], more)));
    if (id) answer.showTrace(await entryOf(id));
    if (!plays || answer.ended !== "done" || simulated) return;
    for (const m of results(turn.message.tool_calls)) this.add(m);
    await this.talk(true);
  }

  kept() {
    return { model: this.select.value || this.wanted || "", turns: this.turns.map(({ message, answer }) => ({ message: answer?.message() ?? message, note: answer && { model: answer.name, ...answer.note() } })) };
  }
}

// ---- sending and stopping -------------------------------------------------------------------------

let running = 0;

function showRunning() {
  $("send").hidden = running > 0;
  $("stop").hidden = running === 0;
  $("columns").classList.toggle("busy", running > 0);
}

// More messages for these columns, and their replies.
async function start(who, more) {
  if (running) return;
  try {
    settings();
  } catch (e) {
    return complain(who[0], e);
  }
  for (const c of who) for (const m of more) c.add(m);
  const mine = chat;
  keep(mine);
  running++;
  showRunning();
  await Promise.allSettled(who.map((c) => c.talk()));
  running--;
  showRunning();
  keep(mine);
}

function complain(column, e) {
  if (!(e instanceof SettingError)) throw e;
  e.field.closest("details.inner")?.setAttribute("open", "");
  e.field.focus();
  column.show(el("p", { class: "failure", role: "alert" }, e.message));
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

function retry(column, turn) {
  if (running) return;
  column.cut(column.turns.indexOf(turn));
  start([column], []);
}

// The message becomes a field; sent, it and all behind it are replaced, in the other column, too.
function edit(column, turn) {
  if (running) return;
  const nth = column.turns.filter((t) => t.message.role === "user").indexOf(turn);
  const field = el("textarea", { rows: "3", "aria-label": "Edit the message" });
  const back = () => form.replaceWith(turn.node);
  const form = el("form", { class: "edit" }, field, el("div", { class: "bar" }, quiet("Cancel", back), el("button", { type: "submit", class: "main" }, "Send")));
  field.value = turn.message.content;
  field.addEventListener("keydown", (e) => {
    if (e.key === "Escape") back();
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const text = field.value.trim();
    if (!text || running) return;
    form.remove();
    for (const c of columns) {
      const its = c.turns.filter((t) => t.message.role === "user")[nth];
      if (its) c.cut(c.turns.indexOf(its));
    }
    start(columns, [{ role: "user", content: text }]);
  });
  turn.node.replaceWith(form);
  field.focus();
}

// ---- conversations --------------------------------------------------------------------------------

const OPEN = "shoal-open-chat"; // of this tab
const TITLE_MAX = 60;

const fresh = () => ({ id: crypto.getRandomValues(new Uint32Array(2)).join("-"), title: "", named: false });
let chat = fresh();

function remember() {
  try {
    sessionStorage.setItem(OPEN, chat.id);
  } catch {
    // A reload begins a new one.
  }
}

// One that was left, or deleted, while its reply came is not written.
function keep(which) {
  if (which !== chat || !columns[0].turns.length) return;
  const first = columns[0].turns.find((t) => t.message.role === "user")?.message.content ?? "";
  if (!chat.named) chat.title = first.replace(/\s+/g, " ").slice(0, TITLE_MAX);
  const stored = saveChat({ ...chat, at: Date.now(), system: $("set-system").value, columns: columns.map((c) => c.kept()) });
  say($("chats-note"), stored ? "Kept in this browser only." : "Not kept: this browser's storage is full or disabled. Delete conversations to make room.");
  remember();
  showChats();
}

function newChat() {
  if (running) keep(chat);
  for (const c of columns) c.clear();
  chat = fresh();
  remember();
  showChats();
}

function openChat(id) {
  if (running) keep(chat);
  const found = loadChat(id);
  if (!found) return newChat();
  for (const c of columns) c.clear();
  chat = { id, title: found.title, named: found.named === true };
  $("set-system").value = typeof found.system === "string" ? found.system : "";
  columns.splice(0, columns.length, ...found.columns.map((c, i) => new Column(i, c.model)));
  showColumns();
  found.columns.forEach((c, i) => c.turns.forEach((t, k) => columns[i].restore(t, k === c.turns.length - 1)));
  remember();
  showChats();
}

function rename(item, found) {
  const field = el("input", { "aria-label": "Name of the conversation", maxlength: "200" });
  let over = false;
  const end = (save) => {
    if (over) return;
    over = true;
    const title = field.value.trim();
    if (save && title) {
      const now = loadChat(found.id);
      if (now) saveChat({ ...now, title, named: true });
      if (found.id === chat.id) Object.assign(chat, { title, named: true });
    }
    showChats();
  };
  field.value = found.title;
  field.addEventListener("keydown", (e) => (e.key === "Enter" || e.key === "Escape") && end(e.key === "Enter"));
  field.addEventListener("blur", () => end(true));
  item.replaceChildren(field);
  field.focus();
  field.select();
}

function remove(found) {
  if (!confirm(`Delete the conversation "${found.title}"?`)) return;
  removeChat(found.id);
  if (found.id === chat.id) newChat();
  else showChats();
}

function showChats() {
  $("chats").replaceChildren(...listChats().map((found) => {
    const item = el("li", null);
    item.append(el("button", { type: "button", class: "chat-title", "aria-current": found.id === chat.id && "true", onclick: () => openChat(found.id) }, found.title || "Untitled"),
      el("button", { type: "button", class: "quiet", "aria-label": `Rename ${found.title}`, title: "Rename", onclick: () => rename(item, found) }, "✎"),
      el("button", { type: "button", class: "quiet", "aria-label": `Delete ${found.title}`, title: "Delete", onclick: () => remove(found) }, "×"));
    return item;
  }));
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

function showColumns() {
  const two = columns.length > 1;
  set($("compare"), "aria-pressed", String(two));
  say($("compare"), two ? "Single model" : "Compare two");
  $("columns").replaceChildren(...columns.map((c) => c.node));
}

function setCompare(on) {
  if (on) columns.push(new Column(1));
  else columns.pop().clear();
  showColumns();
  keep(chat);
}

function offer(title, make) {
  try {
    offerCopy(title, make(bodyOf(columns[0].select.value, [...columns[0].messages(), { role: "user", content: $("say").value.trim() || "Hello" }])));
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
  $("chat-new").addEventListener("click", () => {
    newChat();
    $("say").focus();
  });
  onOtherTab(showChats);
  addEventListener("pagehide", () => running && keep(chat));
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
  newChat();
  columns[0].wanted = next.name;
  columns[0].offer(0);
  $("say").value = next.text;
  send();
}

export function openPlay() {
  openTabs();
  wire();
  if (matchMedia("(max-width: 760px)").matches) for (const d of document.querySelectorAll(".side > * > details")) d.open = false;
  columns.push(new Column(0));
  showColumns();
  let last = null;
  try {
    last = sessionStorage.getItem(OPEN);
  } catch {
    // Then none was open.
  }
  if (last) openChat(last);
  showChats();
  onCatalogue((c) => {
    groups = chatGroups(c);
    offerHome(c);
    columns.forEach((column, i) => column.offer(i));
  });
  openMic((text) => {
    $("say").value = text;
    send();
  });
  openPipe();
  openTasks();
  return { show: begin };
}
