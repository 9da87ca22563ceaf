// @grpc/grpc-js against the worker protocol, over the worker's own Unix socket.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { client } from "./calls.mjs";

const row = client("@grpc/grpc-js");
const root = process.env.SHOAL_PROTO;
const load = (file) =>
  grpc.loadPackageDefinition(loader.loadSync(file, { includeDirs: [root], keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true }));
const { Worker } = load("shoal/v1/worker.proto").shoal.v1;
const { Health } = load("grpc/health/v1/health.proto").grpc.health.v1;

function address(model) {
  const name = readdirSync(process.env.SHOAL_SOCKETS).find((f) => f.startsWith(model) && f.endsWith(".sock"));
  return `unix:${process.env.SHOAL_SOCKETS}/${name}`;
}
const credentials = grpc.credentials.createInsecure();
const unary = (client, method, request, options = {}) =>
  new Promise((resolve, reject) => client[method](request, new grpc.Metadata(), options, (e, r) => (e ? reject(e) : resolve(r))));

row("Worker.Describe", "describe says what the worker runs", async () => {
  const c = new Worker(address("home-intent"), credentials);
  const info = await unary(c, "Describe", {});
  assert.equal(info.name, "home-intent");
  assert.equal(info.task, "classify");
  assert.equal(info.labels.length, 65);
  assert.match(info.digest, /^[0-9a-f]{64}$/);
  c.close();
});

row("Health.Check", "health is serving", async () => {
  const c = new Health(address("home-chat-s"), credentials);
  assert.equal((await unary(c, "Check", { service: "" })).status, "SERVING");
  c.close();
});

row("Worker.Generate", "generate streams started, deltas and done", async () => {
  const c = new Worker(address("home-chat-s"), credentials);
  const call = c.Generate({
    messages_json: JSON.stringify([{ role: "user", content: "sensor current asset=fan-54 change=-12% threshold=30% window=5s" }]),
    max_tokens: 40,
  });
  let started = 0, text = "", done = null;
  for await (const ev of call) {
    if (ev.started) started++;
    if (ev.delta) text += ev.delta.text;
    if (ev.done) done = ev.done;
  }
  assert.equal(started, 1);
  assert.ok(text.length > 0);
  assert.ok(["stop", "length"].includes(done.finish));
  c.close();
});

row("Worker.Generate", "a cancelled stream ends, and the worker serves on", async () => {
  const c = new Worker(address("home-chat-s"), credentials);
  const call = c.Generate({ text: "Once", max_tokens: 1500, ignore_eos: true });
  await assert.rejects(
    (async () => {
      for await (const ev of call) if (ev.delta) call.cancel();
    })(),
    (e) => e.code === grpc.status.CANCELLED,
  );
  assert.equal((await unary(c, "Describe", {})).name, "home-chat-s");
  c.close();
});

row("Worker.Generate", "errors have the standard codes", async () => {
  const c = new Worker(address("home-intent"), credentials);
  await assert.rejects(unary(c, "Embed", { inputs: [{ text: "x" }] }), (e) => e.code === grpc.status.UNIMPLEMENTED);
  await assert.rejects(unary(c, "Classify", { inputs: [{ text: "word ".repeat(500) }] }), (e) => e.code === grpc.status.OUT_OF_RANGE);
  const r = await unary(c, "Classify", { inputs: [{ text: "play some jazz" }, { text: "what time is it" }] });
  assert.equal(r.results.length, 2);
  assert.equal(r.results[0].labels[0].label, "play_music");
  c.close();
});
