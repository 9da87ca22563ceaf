// grpc_rude.mjs URL PID: clients that break gRPC's rules, byte by byte over node:http2, or its manners: each hears what was
// wrong, none takes the server's memory or its time from the others. Exits with 1 and says what was not so.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import process from "node:process";
import zlib from "node:zlib";

const [url, pid] = process.argv.slice(2);
const CLASSIFY = "/shoal.v1.Shoal/Classify", REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const open = () => new Promise((done, failed) => { const s = http2.connect(url); s.on("connect", () => done(s)).on("error", failed); });
const frame = (message, flag = 0) => {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};
const field = (number, text) => {
  const b = Buffer.from(text), head = [];
  for (let n of [number << 3 | 2, b.length]) {
    for (; n > 127; n >>>= 7) head.push((n & 127) | 128);
    head.push(n);
  }
  return Buffer.concat([Buffer.from(head), b]);
};
const good = Buffer.concat([field(1, "home-intent"), field(2, "turn on the light")]);
const start = (session, path, headers = {}) => {
  const s = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...headers });
  s.on("error", () => {});
  return s;
};
/** What comes of one call: {status, headers, trailers, body}; status: grpc-status, or "HTTP n". */
const heard = (s) => new Promise((done) => {
  const out = { body: [] };
  s.on("response", (h) => (out.headers = h)).on("trailers", (t) => (out.trailers = t)).on("data", (d) => out.body.push(d));
  s.on("close", () => {
    out.body = Buffer.concat(out.body);
    const all = { ...out.headers, ...out.trailers };
    out.message = decodeURIComponent(all["grpc-message"] ?? "");
    out.status = all["grpc-status"] !== undefined ? Number(all["grpc-status"]) : `HTTP ${all[":status"] ?? s.rstCode}`;
    done(out);
  });
});
const call = async (bytes, headers, path = CLASSIFY) => {
  const s = start(session, path, headers), all = heard(s);
  s.end(bytes);
  return all;
};
const wants = async (what, promise, status, text = "") => {
  const r = await promise;
  assert.ok(r.status === status && r.message.includes(text), `${what}: ${r.status} ${r.message}, not ${status} ${text}`);
  return r;
};
const session = await open();
const answers = () => wants("a good call", call(frame(good)), 0);
const rss = () => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]) * 1024;

// ---- rules ------------------------------------------------------------------------------------------------------
await answers();
await wants("no frame", call(Buffer.alloc(0)), 13, "malformed or cut short");
await wants("half a head", call(frame(good).subarray(0, 3)), 13, "malformed or cut short");
await wants("half a message", call(frame(good).subarray(0, 20)), 13, "malformed or cut short");
await wants("two messages", call(Buffer.concat([frame(good), frame(good)])), 12, "one request message");
await wants("a flag that is none", call(frame(good, 2)), 13, "malformed");
await wants("a flag without an encoding", call(frame(good, 1)), 13, "grpc-encoding does not say how");
await wants("identity, but compressed", call(frame(good, 1), { "grpc-encoding": "identity" }), 13, "grpc-encoding does not say how");
await wants("gzip that is none", call(frame(good, 1), { "grpc-encoding": "gzip" }), 13, "malformed");
await wants("gzip", call(frame(zlib.gzipSync(good), 1), { "grpc-encoding": "gzip" }), 0);
await wants("gzip said, and not used", call(frame(good), { "grpc-encoding": "gzip" }), 0);
await wants("a bomb", call(frame(zlib.gzipSync(Buffer.alloc(1 << 30)), 1), { "grpc-encoding": "gzip" }), 8, "too large");
const snappy = await wants("snappy", call(frame(good, 1), { "grpc-encoding": "snappy" }), 12, "gzip or identity");
assert.equal(snappy.headers["grpc-accept-encoding"], "identity,gzip");
const packed = await call(frame(Buffer.concat([field(1, "home-embed"), field(2, "a")]), 0), { "grpc-encoding": "gzip", "grpc-accept-encoding": "identity,deflate,gzip" }, "/shoal.v1.Shoal/Embed");
assert.deepEqual([packed.headers["grpc-encoding"], packed.body[0]], ["gzip", 1]);
assert.ok(zlib.gunzipSync(packed.body.subarray(5)).length > 1024);
const GZIPPED = { "grpc-encoding": "gzip", "grpc-accept-encoding": "gzip" }; // but not so long that all would wait
const embeds = Buffer.concat([field(1, "home-embed"), ...Array.from({ length: 280 }, (_, i) => field(2, `lamp ${i}`))]);
const huge = await wants("a long answer", call(frame(embeds), GZIPPED, "/shoal.v1.Shoal/Embed"), 0);
assert.deepEqual([huge.body[0], huge.body.length > 262144], [0, true], `${huge.body.length} bytes`);
const bare = await call(frame(good), { "grpc-encoding": "gzip" });
assert.deepEqual([bare.headers["grpc-encoding"], bare.body[0]], [undefined, 0]);
await wants("a length that lies", call(Buffer.from([0, 255, 255, 255, 255, 1])), 8, "too large");
await wants("a long message", call(frame(Buffer.alloc(6 << 20))), 8, "too large");
await wants("no protobuf", call(frame(Buffer.from("\xff\xff\xff\xff"))), 3, "malformed");
await wants("text that is not UTF-8", call(frame(Buffer.from([0x0a, 2, 0xff, 0xfe]))), 3, "not UTF-8");
await wants("no such method", call(frame(good), {}, "/shoal.v1.Shoal/Nope"), 12, "no such method");
await wants("the workers' own protocol", call(frame(good), {}, "/shoal.v1.Worker/Classify"), 12, "no such method");
await wants("a timeout that is none", call(frame(good), { "grpc-timeout": "soon" }), 13, "grpc-timeout");
await wants("no time", call(frame(good), { "grpc-timeout": "0n", "cache-control": "no-store" }), 4);
await wants("HTTP's endpoint in gRPC's dress", call(frame(good), {}, "/v1/classify"), 12, "no such method");
assert.equal((await call(frame(good), { "content-type": "application/grpc+json" })).status, "HTTP 415");
assert.equal((await call(frame(good), { "content-type": "application/json" })).status, "HTTP 404");
await wants("deep nesting", call(frame(field(100, "[".repeat(100000))), {}, "/shoal.v1.Shoal/Chat"), 3, "more_json");
const many = Buffer.concat([field(1, "home-intent"), Buffer.alloc(800000, Buffer.from([0x12, 0]))]);
await wants("400,000 texts", call(frame(many)), 3, "input");
await wants("nonsense for reflection", call(frame(Buffer.from("\xff\xff\xff")), {}, REFLECT), 3, "malformed");
await wants("a question of a megabyte", call(frame(field(3, "x".repeat(1 << 20))), {}, REFLECT), 8, "too large");
await answers();

// ---- manners ----------------------------------------------------------------------------------------------------
const before = rss();
let n_calls = 0;
for (let round = 0; round < 50; round++) {
  const s = await open();
  s.on("error", () => {}); // so many resets are taken as an attack, and the connection closed
  await Promise.all(Array.from({ length: 200 }, () => new Promise((done) => {
    if (s.destroyed) return done();
    const c = start(s, CLASSIFY, { "cache-control": "no-store" });
    c.on("close", done);
    c.end(frame(good));
    n_calls++;
    setImmediate(() => c.close(http2.constants.NGHTTP2_CANCEL));
  })));
  s.destroy();
}
await answers();

const half = [];
for (let i = 0; i < 8; i++) {
  const s = await open();
  s.on("error", () => {});
  half.push(s);
  for (let k = 0; k < 100; k++) {
    const c = start(s, k % 2 ? CLASSIFY : REFLECT);
    c.write(frame(good).subarray(0, 12)); // and never more
  }
}
await answers();

// Streams that nobody reads: their sources rest, and others go on.
const slow = await open();
slow.on("error", () => {});
const chat = Buffer.concat([field(1, "home-chat-s"), Buffer.from([0x12, 16]), field(1, "user"), field(2, "go on ..."), Buffer.from([0x20, 0x90, 0x0e, 0x80, 0x01, 1])]);
for (let i = 0; i < 40; i++) {
  const c = start(slow, "/shoal.v1.Shoal/ChatStream", { "cache-control": "no-store" });
  c.on("response", () => c.pause());
  c.end(frame(chat.subarray(0)));
}
for (let i = 0; i < 20; i++) await answers();
// Reflection asked on and on without reading an answer.
const deaf = start(slow, REFLECT);
deaf.pause();
const question = frame(field(4, "shoal.v1.Shoal"));
let n_asked = 0;
for (; n_asked < 20000; n_asked++) deaf.write(question);
for (let i = 0; i < 20; i++) await answers();
// Watches of health without end: so many, and then no more until some end.
const WATCH = "/grpc.health.v1.Health/Watch", watchers = [];
let refused = 0;
for (let i = 0; i < 5; i++) {
  const s = await open();
  watchers.push(s.on("error", () => {}));
  await Promise.all(Array.from({ length: 120 }, () => new Promise((done) => {
    const c = start(s, WATCH).on("data", done).on("response", (h) => { // a refusal is its head alone
      if (h["grpc-status"] === undefined) return;
      assert.equal(h["grpc-status"], "8");
      assert.match(decodeURIComponent(h["grpc-message"]), /^512 calls watch/);
      refused++;
      done();
    });
    c.end(frame(Buffer.alloc(0)));
  })));
}
assert.equal(refused, 5 * 120 - 512);
for (const s of watchers) s.destroy();
const again = start(session, WATCH, { "grpc-timeout": "3S" });
const watched = heard(again);
again.end(frame(Buffer.alloc(0)));
assert.ok((await watched).body.length > 0, "no room for a watch when all have ended");
for (const s of [slow, ...half]) s.destroy();
await answers();
const grown = rss() - before;
assert.ok(grown < 32 << 20, `${grown} bytes more`);
console.log(`${n_calls} cancelled calls, 800 half-open, 40 unread streams, ${n_asked} unread answers of reflection: ${(grown / 1048576).toFixed(1)} MiB more`);
session.destroy();
process.exit(0);
