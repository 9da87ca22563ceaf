// Requests to this server. The key, if there is one, lives in sessionStorage and goes out as a header, never as a cookie: no
// other site's page can make the browser send it.

const KEY = "shoal-key";
let key = "";
try {
  key = sessionStorage.getItem(KEY) ?? "";
} catch {
  // Storage is shut off: the key lives as long as the page.
}
const listeners = new Set();

export const hasKey = () => key !== "";
export const onKey = (f) => listeners.add(f);

export function setKey(value) {
  key = value.trim();
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
  for (const f of listeners) f();
}

export class ApiError extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let whenRefused = () => {};
export const onRefused = (f) => (whenRefused = f);

async function fail(response) {
  let told = null;
  try {
    told = (await response.json()).error;
  } catch {
    // Not JSON: a proxy's own words, which are not for people.
  }
  if (response.status === 401) whenRefused(hasKey());
  const message = typeof told === "string" ? told : told?.message;
  throw new ApiError(response.status, message ?? `the server answered ${response.status}`, told?.code);
}

export async function ask(path, { body, method, signal } = {}) {
  const headers = {};
  if (key) headers.authorization = `Bearer ${key}`;
  const form = body instanceof FormData; // the browser writes its type and boundary
  if (body !== undefined && !form) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body: body === undefined || form ? body : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new ApiError(0, "the server cannot be reached");
  }
  if (!response.ok) await fail(response);
  return response;
}

export const getJson = async (path, more) => (await ask(path, more)).json();

const PIECE_MAX = 16e6; // characters of one event

// Pieces of text between separators, as they come; `most` characters in all.
async function* pieces(response, separator, most) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let total = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      total += value.length;
      if (total > most) throw new ApiError(0, `stopped: the server sent more than ${most} characters`);
      rest += value;
      let from = 0;
      for (let at; (at = rest.indexOf(separator, from)) >= 0; from = at + separator.length) yield rest.slice(from, at);
      rest = rest.slice(from);
      if (rest.length > PIECE_MAX) throw new ApiError(0, "the server sends an event that has no end");
    }
    if (rest.trim()) yield rest;
  } catch (e) {
    if (e.name === "AbortError" || e instanceof ApiError) throw e;
    throw new ApiError(0, "the connection ended in the middle of the answer");
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Server-sent events: {event, data}; data is parsed JSON. A stream that says [DONE] is complete, which `done` hears; an error in it
// is thrown.
export async function* events(response, most = Infinity, done = () => {}) {
  for await (const piece of pieces(response, "\n\n", most)) {
    let event = "message";
    let data = "";
    for (const line of piece.split("\n")) {
      if (line.startsWith("event: ")) event = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data === "[DONE]") {
      done();
      continue; // read to the end, so that the connection can be used again
    }
    if (!data) continue;
    const value = JSON.parse(data);
    if (value.error) throw new ApiError(200, value.error.message ?? String(value.error), value.error.code);
    yield { event, data: value };
  }
}
