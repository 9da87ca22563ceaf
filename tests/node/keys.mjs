// What people's clients make of keys and their limits: OpenAI's, Ollama's, a browser's WebSocket.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { Ollama } from "ollama";
import WebSocket from "ws";

const base = process.env.SHOAL_URL, once = { maxRetries: 0 };
const openai = (apiKey, more = {}) => new OpenAI({ apiKey, baseURL: `${base}/v1`, ...once, ...more });
const ask = (client, model = "home-chat-s") =>
  client.chat.completions.create({ model, max_tokens: 4, messages: [{ role: "user", content: "turn on the fan" }] });

// Who is refused, and in which of the client's own classes.
await assert.rejects(ask(openai("sk-nobody")), (e) => e instanceof OpenAI.AuthenticationError && e.code === "invalid_api_key");
await assert.rejects(ask(openai("sk-old")), (e) => e instanceof OpenAI.AuthenticationError && /old ended at 2026-01-01/.test(e.message));
await assert.rejects(ask(openai("sk-tv"), "home-chat-m"),
  (e) => e instanceof OpenAI.PermissionDeniedError && e.code === "model_not_found" && e.param === "model" && /key tv/.test(e.message));
const names = [];
for await (const m of openai("sk-tv").models.list()) names.push(m.id);
assert.deepEqual(names.sort(), ["auto", "home", "home-embed"]);

// The rate's headers, its error, and a client that waits as long as it is told.
const { response } = await ask(openai("sk-node")).withResponse();
assert.equal(response.headers.get("x-ratelimit-limit-requests"), "600");
assert.match(response.headers.get("x-ratelimit-reset-requests"), /^\d+m?s$/);
await ask(openai("sk-twice"));
await ask(openai("sk-twice"));
await assert.rejects(ask(openai("sk-twice")), (e) =>
  e instanceof OpenAI.RateLimitError && e.code === "rate_limit_exceeded" && e.type === "requests" && Number(e.headers.get("retry-after")) > 0);

// As it is set up for Azure's v1 interface, which takes "api-key".
const azure = openai("none", { defaultHeaders: { authorization: null, "api-key": "sk-node" } });
assert.equal((await ask(azure)).object, "chat.completion");

// Ollama's client with a header of its own, whose stream is one request of the key.
const headers = { Authorization: "Bearer sk-node" };
const ollama = new Ollama({ host: base, headers });
let text = "";
for await (const part of await ollama.chat({ model: "home-chat-s", stream: true, messages: [{ role: "user", content: "turn on the fan" }] }))
  text += part.message.content;
assert.ok(text.length > 0);
await assert.rejects(new Ollama({ host: base }).list(), /a valid API key is needed/);
await assert.rejects(new Ollama({ host: base, headers: { Authorization: "Bearer sk-tv" } }).chat({ model: "home-chat-m", messages: [] }), /tv may not use/);

// A page cannot set headers of a handshake: each of its messages brings the key.
const socket = new WebSocket(base.replace(/^http/, "ws") + "/v1/ws");
await new Promise((done, failed) => socket.on("open", done).on("error", failed));
const said = (m) => new Promise((done) => {
  const hear = (bytes) => {
    const a = JSON.parse(bytes);
    if (a.id === m.id) socket.off("message", hear), done(a);
  };
  socket.on("message", hear);
  socket.send(JSON.stringify(m));
});
assert.equal((await said({ id: "1", path: "/v1/models" })).status, 401);
assert.equal((await said({ id: "2", path: "/v1/models", headers: { authorization: "Bearer sk-tv" } })).status, 200);
assert.equal((await said({ id: "3", path: "/v1/models", headers: { "x-api-key": "sk-tv" } })).status, 200);
assert.equal((await said({ id: "4", path: "/v1/models" })).status, 401);
const body = { model: "home-chat-m", messages: [{ role: "user", content: "hi" }] };
assert.equal((await said({ id: "5", path: "/v1/chat/completions", body, headers: { "api-key": "sk-tv" } })).status, 403);
socket.close();
// The handshake's key counts for all, a message's own for itself.
const known = new WebSocket(base.replace(/^http/, "ws") + "/v1/ws", { headers: { "x-api-key": "sk-node" } });
await new Promise((done, failed) => known.on("open", done).on("error", failed));
const heard = (m) => new Promise((done) => (known.once("message", (b) => done(JSON.parse(b))), known.send(JSON.stringify(m))));
assert.equal((await heard({ id: "1", path: "/v1/models" })).status, 200);
assert.equal((await heard({ id: "2", path: "/v1/models", headers: { authorization: "Bearer sk-nobody" } })).status, 401);
known.close();

// Who has shown no key sends little that is packed; whoever has one, in the handshake or before, as much as anybody.
const long = { method: "GET", path: "/v1/models", headers: { "x-api-key": "sk-node" }, body: { text: "a".repeat(200_000) } };
const connect = (options) => new Promise((done, failed) => {
  const s = new WebSocket(base.replace(/^http/, "ws") + "/v1/ws", options);
  s.on("open", () => done(s)).on("error", failed);
});
const outcome = (s, m) => new Promise((done) => {
  s.once("close", (code, why) => done(`${code} ${why}`)).once("message", (b) => done(JSON.parse(b).status));
  s.send(JSON.stringify(m));
});
assert.match(String(await outcome(await connect(), { id: "1", ...long })), /^1009 .*65536 bytes/);
const plain = await connect({ perMessageDeflate: false }), proved = await connect({ headers: { "x-api-key": "sk-node" } });
assert.equal(await outcome(plain, { id: "1", ...long }), 200);
assert.equal(await outcome(proved, { id: "1", ...long }), 200);
const later = await connect();
assert.equal(await outcome(later, { id: "1", path: "/v1/models", headers: { "x-api-key": "sk-node" } }), 200);
assert.equal(await outcome(later, { id: "2", ...long }), 200);
for (const s of [plain, proved, later]) s.close();
console.log("openai, ollama and ws");
