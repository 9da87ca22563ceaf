// grpc_drain.mjs URL PID: the server PID is told to end while a stream runs, a watch watches and a reflection stream
// rests: the stream is whole, the watch hears NOT_SERVING and ends, and nothing keeps the server.
import assert from "node:assert/strict";
import process from "node:process";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [url, pid] = process.argv.slice(2);
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, { includeDirs: [process.env.SHOAL_PROTO], keepCase: true, longs: Number, enums: String }));
const at = url.slice(7), clear = grpc.credentials.createInsecure();
const shoal = new (load("shoal/v1/shoal.proto").shoal.v1.Shoal)(at, clear);
const health = new (load("grpc/health/v1/health.proto").grpc.health.v1.Health)(at, clear);
const reflection = new (load("grpc/reflection/v1/reflection.proto").grpc.reflection.v1.ServerReflection)(at, clear);

const statuses = [];
let ended = null;
const watch = health.Watch({ service: "" });
watch.on("data", (m) => statuses.push(m.status)).on("error", (e) => (ended = e.code));
const resting = reflection.ServerReflectionInfo();
let rested = null;
resting.on("data", () => {}).on("error", (e) => (rested = e.code));
resting.write({ list_services: "" });
let tokens = 0;
for await (const c of shoal.ChatStream({ model: "home-chat-s", messages: [{ role: "user", content: "go on" }], temperature: 0, ignore_eos: true, max_tokens: 300, stream_options: { include_usage: true } })) {
  if (tokens++ === 2) process.kill(Number(pid), "SIGTERM");
  if (c.usage) assert.equal(c.usage.completion_tokens, 300);
}
for (let i = 0; i < 1000 && (ended === null || rested === null); i++) await new Promise((done) => setTimeout(done, 20));
assert.deepEqual(statuses, ["SERVING", "NOT_SERVING"]);
assert.deepEqual([ended, rested], [grpc.status.UNAVAILABLE, grpc.status.UNAVAILABLE]);
process.exit(0);
