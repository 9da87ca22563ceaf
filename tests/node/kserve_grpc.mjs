// A gRPC client of the Open Inference Protocol against the gateway's port: its answers are those of /v2 over REST. Run by
// tests/e2e/grpc.sh.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const base = process.env.SHOAL_URL;
const definition = loader.loadSync("inference/open_inference.proto", { includeDirs: [process.env.SHOAL_PROTO], keepCase: true, longs: Number });
const client = new (grpc.loadPackageDefinition(definition).inference.GRPCInferenceService)(base.slice(7), grpc.credentials.createInsecure());
after(() => client.close());
const ask = (method, request) => new Promise((done, failed) => client[method](request, (e, r) => (e ? failed(e) : done(r))));
const fails = async (promise) => {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error("it did not fail");
};
const rest = async (path, body) => (await fetch(base + path, { method: body ? "POST" : "GET", headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) })).json();
const texts = (...list) => Buffer.concat(list.flatMap((s) => {
  const b = Buffer.from(s), n = Buffer.alloc(4);
  n.writeUInt32LE(b.length);
  return [n, b];
}));
const unpack = (o, bytes) => {
  const out = [];
  for (let at = 0; at < bytes.length;) {
    const n = o.datatype === "BYTES" ? bytes.readUInt32LE(at) : 0;
    if (o.datatype === "BYTES") out.push(bytes.toString("utf8", at + 4, at + 4 + n));
    else if (o.datatype === "FP32") out.push(bytes.readFloatLE(at));
    else if (o.datatype === "INT64") out.push(Number(bytes.readBigInt64LE(at)));
    else out.push(bytes.readInt32LE(at));
    at += { BYTES: 4 + n, FP32: 4, INT32: 4, INT64: 8 }[o.datatype];
  }
  return out;
};
const tensors = (r) => r.outputs.map((o, i) => ({ name: o.name, datatype: o.datatype, shape: o.shape, data: unpack(o, r.raw_output_contents[i]) }));
const round = (outputs) => outputs.map((o) => ({ ...o, data: o.datatype === "FP32" ? o.data.map(Math.fround) : o.data }));

test("the server and its models", async () => {
  assert.equal((await ask("ServerLive", {})).live, true);
  assert.equal((await ask("ServerReady", {})).ready, true);
  assert.deepEqual(await ask("ServerMetadata", {}), await rest("/v2"));
  assert.equal((await ask("ModelReady", { name: "home-embed" })).ready, true);
  const face = await ask("ModelMetadata", { name: "home-embed" });
  assert.deepEqual(face, await rest("/v2/models/home-embed"));
  assert.equal((await ask("ModelReady", { name: "home-embed", version: face.versions[0] })).ready, true);
  assert.deepEqual((await ask("RepositoryIndex", { ready: true })).models, await rest("/v2/repository/index", { ready: true }));
  const e = await fails(ask("ModelMetadata", { name: "nobody" }));
  assert.deepEqual([e.code, e.details], [grpc.status.NOT_FOUND, (await rest("/v2/models/nobody")).error]);
  assert.equal((await fails(ask("ModelMetadata", { name: "home-embed", version: "none" }))).code, grpc.status.NOT_FOUND);
  assert.equal((await fails(ask("ModelReady", {}))).code, grpc.status.INVALID_ARGUMENT);
});

const TEXTS = ["turn on the light", "what time is it"];
for (const model of ["home-intent", "home-embed", "home-slots"])
  test(`${model} in contents and raw is what it is over REST`, async () => {
    const input = { name: "text", datatype: "BYTES", shape: [2] };
    const http = await rest(`/v2/models/${model}/infer`, { inputs: [{ ...input, data: TEXTS }] });
    const raw = await ask("ModelInfer", { model_name: model, id: "7", inputs: [input], raw_input_contents: [texts(...TEXTS)] });
    const contents = await ask("ModelInfer", { model_name: model, inputs: [{ ...input, contents: { bytes_contents: TEXTS.map((s) => Buffer.from(s)) } }] });
    assert.equal(raw.id, "7");
    assert.equal(raw.model_version, http.model_version);
    assert.deepEqual(tensors(raw), round(http.outputs));
    assert.deepEqual(tensors(contents), tensors(raw));
  });

test("parameters and wanted outputs", async () => {
  const face = await ask("ModelMetadata", { name: "home-chat-s" }), name = face.inputs[0].name;
  const input = { name, datatype: "BYTES", shape: [1], contents: { bytes_contents: [Buffer.from("hello")] } };
  const parameters = { max_tokens: { int64_param: 5 }, temperature: { double_param: 0 } };
  const r = await ask("ModelInfer", { model_name: "home-chat-s", inputs: [input], parameters, outputs: [{ name: face.outputs[0].name }] });
  const http = await rest("/v2/models/home-chat-s/infer", { inputs: [{ name, datatype: "BYTES", shape: [1], data: ["hello"] }], parameters: { max_tokens: 5, temperature: 0 }, outputs: [{ name: face.outputs[0].name }] });
  assert.deepEqual(tensors(r), round(http.outputs));
});

test("tensors that are none are refused by their names", async () => {
  const good = { name: "text", datatype: "BYTES", shape: [1] };
  for (const [request, why] of [
    [{ inputs: [{ ...good, shape: [2] }], raw_input_contents: [texts("a")] }, /text/],
    [{ inputs: [good], raw_input_contents: [texts("a"), texts("b")] }, /raw_input_contents has 2/],
    [{ inputs: [{ ...good, contents: { bytes_contents: [Buffer.from("a")] } }], raw_input_contents: [texts("a")] }, /contents beside raw/],
    [{ inputs: [{ ...good, datatype: "FP16" }], raw_input_contents: [Buffer.alloc(2)] }, /no datatype "FP16"/],
    [{ inputs: [good], raw_input_contents: [Buffer.from([255, 255, 255, 255])] }, /text/],
    [{ inputs: [{ ...good, name: "other" }], raw_input_contents: [texts("a")] }, /text/],
    [{ inputs: [] }, /inputs/],
    [{ inputs: [good], raw_input_contents: [texts("a")], outputs: [{ name: "none" }] }, /no output "none"/],
  ]) {
    const e = await fails(ask("ModelInfer", { model_name: "home-intent", ...request }));
    assert.equal(e.code, grpc.status.INVALID_ARGUMENT, e.details);
    assert.match(e.details, why);
  }
  assert.equal((await fails(ask("ModelInfer", { model_name: "nobody", inputs: [good], raw_input_contents: [texts("a")] }))).code, grpc.status.NOT_FOUND);
});

test("a model is unloaded and loaded, in Triton's numbers and in KServe's", async () => {
  for (const request of [{ model_name: "home-ears" }, { repository_name: "home-ears" }]) {
    assert.equal((await ask("RepositoryModelUnload", request)).isUnloaded, true);
    assert.equal((await ask("RepositoryModelLoad", request)).isLoaded, true);
    for (let i = 0; i < 200; i++) {
      if ((await ask("ModelReady", { name: "home-ears" }).catch(() => ({}))).ready) break;
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.equal((await ask("ModelReady", { name: "home-ears" })).ready, true);
  }
  assert.equal((await fails(ask("RepositoryModelUnload", { model_name: "home-slots" }))).code, grpc.status.FAILED_PRECONDITION); // the pipeline needs it
  assert.equal((await fails(ask("RepositoryModelLoad", { model_name: "nobody" }))).code, grpc.status.NOT_FOUND);
  assert.equal((await fails(ask("RepositoryModelLoad", {}))).code, grpc.status.INVALID_ARGUMENT);
});
