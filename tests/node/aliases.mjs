// Clients that know only another service's names, which aliases stand for here: npm's openai, ollama and ws, gRPC and
// KServe over gRPC. Run by tests/e2e/aliases.sh.
import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { after, test } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { Ollama } from "ollama";
import OpenAI from "openai";
import WebSocket from "ws";

const base = process.env.SHOAL_URL, key = process.env.SHOAL_KEY, root = process.env.SHOAL_PROTO;
const messages = [{ role: "user", content: "hello" }];
const headers = { authorization: `Bearer ${key}` };

test("openai", async () => {
  const api = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0 });
  const whole = await api.chat.completions.create({ model: "gpt-4o-mini", messages, max_tokens: 4 });
  assert.equal(whole.model, "gpt-4o-mini");
  for await (const chunk of await api.chat.completions.create({ model: "openai/gpt-4o", messages, max_tokens: 4, stream: true }))
    assert.equal(chunk.model, "openai/gpt-4o");
  const response = await api.responses.create({ model: "gpt-4o-mini", input: "hello", max_output_tokens: 16 });
  assert.equal(response.model, "gpt-4o-mini");
  assert.equal((await api.responses.retrieve(response.id)).model, "gpt-4o-mini");
  const vectors = await api.embeddings.create({ model: "text-embedding-3-small", input: ["hello"] });
  assert.deepEqual([vectors.model, vectors.data.length], ["text-embedding-3-small", 1]);
  const heard = await api.audio.transcriptions.create({ model: "whisper-1", file: createReadStream(process.env.SHOAL_WAV) });
  assert.match(heard.text, /lights on/i);
  const model = await api.models.retrieve("openai/gpt-4o");
  assert.deepEqual([model.id, model.root], ["openai/gpt-4o", "home-chat-m"]);
});

test("ollama", async () => {
  const api = new Ollama({ host: base, headers });
  const options = { num_predict: 4 };
  assert.equal((await api.chat({ model: "llama3:latest", messages, options })).model, "llama3:latest");
  for await (const part of await api.generate({ model: "llama3.2:1b", prompt: "hello", options, stream: true }))
    assert.equal(part.model, "llama3.2:1b");
  assert.equal((await api.embed({ model: "text-embedding-3-small", input: "hello" })).embeddings.length, 1);
  assert.ok((await api.show({ model: "llama3.2:1b" })).details.family);
  const row = (await api.list()).models.find((m) => m.name === "llama3.2:1b");
  assert.equal(row.details.parent_model, "home-chat-s");
});

test("a WebSocket", async () => {
  const socket = new WebSocket(`${base.replace(/^http/, "ws")}/v1/ws`, { headers });
  await new Promise((done, failed) => socket.on("open", done).on("error", failed));
  const reply = new Promise((done) => socket.on("message", (text) => done(JSON.parse(text))));
  socket.send(JSON.stringify({ id: "1", path: "/v1/chat/completions", body: { model: "gpt-4o-mini", messages, max_tokens: 4 } }));
  const { status, body } = await reply;
  assert.deepEqual([status, body.model], [200, "gpt-4o-mini"]);
  socket.close();
});

const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, { includeDirs: [root], keepCase: true, longs: Number }));
const metadata = () => {
  const md = new grpc.Metadata();
  md.set("authorization", headers.authorization);
  return md;
};
const address = base.replace(/^https?:\/\//, "");
const open = (Client) => {
  const client = new Client(address, grpc.credentials.createInsecure());
  after(() => client.close());
  return (method, request) =>
    new Promise((done, failed) => client[method](request, metadata(), (e, r) => (e ? failed(e) : done(r))));
};

test("gRPC", async () => {
  const ask = open(load("shoal/v1/shoal.proto").shoal.v1.Shoal);
  const reply = await ask("Chat", { model: "gpt-4o-mini", messages, max_tokens: 4 });
  assert.equal(reply.model, "gpt-4o-mini");
  const vectors = await ask("Embed", { model: "text-embedding-3-small", input: ["hello"] });
  assert.equal(vectors.model, "text-embedding-3-small");
  const row = (await ask("ListModels", {})).data.find((m) => m.id === "openai/gpt-4o");
  assert.equal(JSON.parse(row.more_json).root, "home-chat-m");
});

test("KServe over gRPC", async () => {
  const ask = open(load("inference/open_inference.proto").inference.GRPCInferenceService);
  const contents = { bytes_contents: [Buffer.from("hello")] };
  const vector = await ask("ModelInfer", {
    model_name: "text-embedding-3-small",
    inputs: [{ name: "text", datatype: "BYTES", shape: [1], contents }],
  });
  assert.equal(vector.model_name, "text-embedding-3-small");
  assert.equal((await ask("ModelReady", { name: "openai/gpt-4o" })).ready, true);
  assert.equal((await ask("ModelMetadata", { name: "openai/gpt-4o" })).name, "openai/gpt-4o");
  const reply = await ask("ModelInfer", {
    model_name: "openai/gpt-4o",
    inputs: [{ name: "text_input", datatype: "BYTES", shape: [1], contents }],
    parameters: { max_tokens: { int64_param: 4 } },
  });
  assert.equal(reply.model_name, "openai/gpt-4o");
});
