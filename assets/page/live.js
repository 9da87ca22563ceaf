// The cluster as it is: GET /v1/events folded into one state, its last 15 minutes, and what happened in words.

import { ApiError, ask, events, getJson, onKey } from "/assets/page/api.js";
import { plain, some } from "/assets/page/dom.js";

export const KEEP_S = 900;
const FEED_MAX = 60;
const ANSWERS_MAX = 4000;

export const state = {
  known: false, // something has been heard
  online: false,
  refused: null, // "key": one is needed; "admin": this one may use models, and not look
  gateway: {},
  nodes: new Map(), // "" is the gateway's own machine
  replicas: new Map(),
  speed: [], // {t, v}: tokens made per second
  rate: [], // the same of requests that ended
  answers: [], // requests that ended, oldest first, as GET /v1/requests tells them
  feed: [], // {at, kind, text}, newest first
};

const listeners = new Set();
export const onChange = (f) => listeners.add(f);
function changed() {
  for (const f of listeners) f(state);
}

function tell(kind, text, at) {
  state.feed.unshift({ at, kind, text, id: (tell.id = (tell.id ?? 0) + 1) });
  state.feed.length = Math.min(state.feed.length, FEED_MAX);
}

// ---- what happened --------------------------------------------------------------------------------

const where = (r) => (r.node ? ` on ${r.node}` : "");

function compareReplica(was, is, at) {
  const place = where(is);
  const name = plain(is);
  const died = is.crashes > was.crashes;
  if (died) tell("bad", `${name} died${place}`, at);
  else if (is.restarts > was.restarts) tell("warn", `${name} restarted${place}`, at);
  if (was.state !== is.state) {
    const good = is.state === "ready";
    tell(good ? "good" : is.state === "failed" || is.state === "down" ? "bad" : "warn",
      `${name} is ${is.state}${place}${is.reason && !good ? `: ${is.reason}` : ""}`, at);
  } else if (died && is.state === "ready") {
    tell("good", `${name} is back${place}`, at);
  }
}

function compareGateway(was, is, at) {
  const moved = is.moves - was.moves;
  if (moved > 0) tell("move", `${some(moved, "answer")} moved to another worker`, at);
  const degraded = is.degraded - was.degraded;
  if (degraded > 0) tell("warn", `${some(degraded, "answer")} came from a fallback model`, at);
  if (was.status !== is.status && is.status === "draining") tell("warn", "the gateway is shutting down", at);
}

function compareNode(was, is, at) {
  const name = is.name || is.host;
  if (was.draining !== is.draining) tell("warn", `${name} ${is.draining ? "is draining" : "takes requests again"}`, at);
  if (was.on_battery !== is.on_battery) tell("warn", `${name} runs on ${is.on_battery ? "battery" : "mains"}`, at);
}

function fold(data, first) {
  const { at } = data;
  if (data.gateway) {
    if (!first) compareGateway(state.gateway, data.gateway, at);
    state.gateway = data.gateway;
  }
  for (const n of data.nodes) {
    const was = state.nodes.get(n.name);
    if (was) compareNode(was, n, at);
    else if (!first) tell("good", `${n.name || n.host} has joined`, at);
    state.nodes.set(n.name, n);
  }
  for (const r of data.replicas) {
    const was = state.replicas.get(r.id);
    if (was) compareReplica(was, r, at);
    else if (!first) tell("good", `${plain(r)} came${where(r)}`, at);
    note(was, r);
    state.replicas.set(r.id, r);
  }
  for (const gone of data.gone.filter((g) => g.startsWith("node "))) loseNode(gone.slice(5), at);
  for (const gone of data.gone.filter((g) => g.startsWith("replica "))) loseReplica(gone.slice(8), at);
}

function loseNode(name, at) {
  const its = [...state.replicas.values()].filter((r) => r.node === name);
  state.nodes.delete(name);
  for (const r of its) state.replicas.delete(r.id);
  tell("bad", `${name} is gone${its.length ? `, and ${some(its.length, "replica")} with it` : ""}`, at);
}

function loseReplica(id, at) {
  const r = state.replicas.get(id);
  state.replicas.delete(id);
  if (r) tell(r.state === "draining" ? "warn" : "bad", `${plain(r)}${where(r)} is gone`, at);
}

// ---- the last 15 minutes -------------------------------------------------------------------------

let made = 0; // tokens since the last point

function note(was, is) {
  if (was && is.generated_tokens >= was.generated_tokens) made += is.generated_tokens - was.generated_tokens;
}

let pointAt = 0;
let ended = 0; // requests, as of pointAt
function point() {
  const now = Date.now() / 1000;
  const requests = state.gateway.requests ?? 0;
  if (pointAt) {
    state.speed.push({ t: now, v: made / (now - pointAt) });
    state.rate.push({ t: now, v: Math.max(requests - ended, 0) / (now - pointAt) });
  }
  pointAt = now;
  made = 0;
  ended = requests;
  for (const list of [state.speed, state.rate]) while (list.length && list[0].t < now - KEEP_S) list.shift();
  if (state.answers.length > ANSWERS_MAX) state.answers.splice(0, state.answers.length - ANSWERS_MAX);
  const oldest = state.answers.findIndex((a) => a.at > now - KEEP_S);
  if (oldest > 0) state.answers.splice(0, oldest);
  else if (oldest < 0) state.answers.length = 0;
}

// What was before this page was opened, from the requests that the server remembers: all that fit the chart, or back to the oldest
// of them. Tokens are spread over the time of their decode.
function fillHistory({ data, kept }) {
  const from = Math.floor(state.rate[0]?.t ?? Date.now() / 1000);
  const begin = Math.max(from - KEEP_S, data.length < kept ? 0 : Math.ceil(data.at(-1).at));
  const seconds = Array.from({ length: Math.max(from - begin, 0) }, (_, i) => ({ t: begin + i, rate: 0, speed: 0 }));
  for (const a of state.answers) {
    const last = Math.floor(a.at) - begin;
    const first = Math.floor(a.at - (a.decode_ms ?? 0) / 1000) - begin;
    if (seconds[last]) seconds[last].rate++;
    for (let i = Math.max(first, 0); i <= last && i < seconds.length; i++) seconds[i].speed += (a.completion_tokens ?? 0) / (last - first + 1);
  }
  state.rate.unshift(...seconds.map(({ t, rate }) => ({ t, v: rate })));
  state.speed.unshift(...seconds.map(({ t, speed }) => ({ t, v: speed })));
}

let asking = false;
let heard = 0; // number of the newest answer
async function askAnswers() {
  if (asking || !state.online || !(state.gateway.requests > heard)) return;
  asking = true;
  try {
    const said = await getJson(`/v1/requests?since=${heard}&limit=${heard ? 200 : 512}`);
    state.answers.push(...said.data.filter((a) => !a.background).reverse());
    if (!heard) fillHistory(said);
    heard = said.last;
  } catch {
    // The chart has a gap; the stream says what is the matter.
  }
  asking = false;
}

function everySecond() {
  if (!state.online) return;
  point();
  askAnswers();
  changed();
}

// ---- the connection -------------------------------------------------------------------------------

let abort = null;
let lost = false; // it was told that the connection is

// What was there and is not any more, after a time in which nothing was heard.
function missing(data) {
  const nodes = new Set(data.nodes.map((n) => n.name));
  const replicas = new Set(data.replicas.map((r) => r.id));
  return [...[...state.nodes.keys()].filter((n) => !nodes.has(n)).map((n) => `node ${n}`), ...[...state.replicas.keys()].filter((r) => !replicas.has(r)).map((r) => `replica ${r}`)];
}

function begin(data) {
  const again = state.known;
  Object.assign(state, { known: true, online: true, refused: null });
  heard = Math.min(heard, data.gateway?.requests ?? 0);
  pointAt = 0;
  fold({ ...data, gone: missing(data) }, !again);
  if (lost) tell("good", "the connection is back", data.at);
  lost = false;
}

async function listen() {
  abort = new AbortController();
  const response = await ask("/v1/events", { signal: abort.signal });
  let first = true;
  for await (const e of events(response)) {
    if (first) begin(e.data);
    else fold(e.data, false);
    first = false;
    changed();
  }
}

let wake = () => {};
const rest = (time) => new Promise((go) => ((wake = go), setTimeout(go, time)));

// A browser has few connections for a server, and each page that listens holds one: those that nobody sees let go of theirs.
const HIDDEN_MS = 3000;
let asleep = false;
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    asleep = false;
    return wake();
  }
  setTimeout(() => {
    if (!document.hidden) return;
    asleep = true;
    abort?.abort();
  }, HIDDEN_MS);
});

function noteEnd(error) {
  state.refused = (error instanceof ApiError && { 401: "key", 403: "admin" }[error.status]) || null;
  if (state.online && !asleep) {
    tell("bad", "the connection to the gateway is lost", Date.now() / 1000);
    lost = true;
  }
  state.online = false;
  if (!asleep) changed();
}

export async function watch() {
  setInterval(everySecond, 1000);
  onKey(() => {
    abort?.abort();
    wake();
  });
  for (let wait = 500; ; wait = Math.min(wait * 1.7, 5000)) {
    try {
      await listen();
      noteEnd(null);
      wait = 500;
    } catch (e) {
      if (state.online) wait = 500;
      noteEnd(e);
    }
    while (asleep) await rest(3600000);
    await rest(state.refused ? 3600000 : wait);
  }
}
