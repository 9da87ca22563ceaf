// missing.mjs URL MODEL WHY: a model that no machine has is UNAVAILABLE over gRPC, and an error over a WebSocket, with
// the reason, long before the deadline; its health is NOT_SERVING.
import assert from "node:assert/strict";
import process from "node:process";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import WebSocket from "ws";

const [url, model, why] = process.argv.slice(2);
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, { includeDirs: [process.env.SHOAL_PROTO], keepCase: true, longs: Number, enums: String }));
const at = url.slice(7), clear = grpc.credentials.createInsecure();
const shoal = new (load("shoal/v1/shoal.proto").shoal.v1.Shoal)(at, clear);
const health = new (load("grpc/health/v1/health.proto").grpc.health.v1.Health)(at, clear);
const ask = { model, messages: [{ role: "user", content: "hello" }], max_tokens: 4 };

const called = (client, method, m) => new Promise((done) => client[method](m, { deadline: Date.now() + 300000 }, (e, r) => done([e, r])));
const [refused] = await called(shoal, "Chat", ask);
assert.equal(refused?.code, grpc.status.UNAVAILABLE);
assert.ok(refused.details.includes(why), refused.details);
const streamed = await new Promise((done) => shoal.ChatStream(ask).on("data", () => {}).on("error", done));
assert.equal(streamed.code, grpc.status.UNAVAILABLE);
assert.ok(streamed.details.includes(why), streamed.details);
assert.equal((await called(health, "Check", { service: model }))[1].status, "NOT_SERVING");
assert.equal((await called(health, "Check", { service: "" }))[1].status, "NOT_SERVING");
assert.equal((await called(health, "Check", { service: "home-intent" }))[1].status, "SERVING");
assert.equal((await called(health, "Check", { service: "nobody" }))[0].code, grpc.status.NOT_FOUND);

const socket = new WebSocket(url.replace(/^http/, "ws") + "/v1/ws");
await new Promise((done, failed) => socket.on("open", done).on("error", failed));
const heard = new Promise((done) => socket.on("message", (text) => done(JSON.parse(text))));
socket.send(JSON.stringify({ id: "1", path: "/v1/chat/completions", body: ask }));
const m = await heard;
assert.equal(m.status, 503, JSON.stringify(m));
assert.ok(JSON.stringify(m).includes(why), JSON.stringify(m));
process.exit(0);
