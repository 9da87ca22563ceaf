// npm's ollama, unmodified, against /api.
import assert from "node:assert/strict";
import { Ollama } from "ollama";
import { client } from "./calls.mjs";

const call = client("ollama");
const base = process.env.SHOAL_URL, ollama = new Ollama({ host: base });
const options = { temperature: 0, num_predict: 24, seed: 1 };
const ours = async (body) => (await (await fetch(base + "/v1/chat/completions", {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
})).json()).choices[0].message.content;
const want = await ours({ model: "home-chat-s", temperature: 0, max_tokens: 24, messages: [{ role: "user", content: "hello" }] });

call("chat", "chat, whole and streamed", async () => {
  const messages = [{ role: "user", content: "hello" }];
  const whole = await ollama.chat({ model: "home-chat-s:latest", messages, options, keep_alive: "5m" });
  assert.equal(whole.message.content, want);
  assert.equal(whole.message.role, "assistant");
  assert.equal(whole.done, true);
  assert.ok(whole.eval_count > 0 && whole.prompt_eval_count > 0 && whole.total_duration > 0);
  assert.ok(new Date(whole.created_at) > new Date("2026-01-01"));
  let text = "", last;
  for await (const part of await ollama.chat({ model: "home-chat-s", messages, options, stream: true })) {
    text += part.message.content;
    last = part;
  }
  assert.equal(text, want);
  assert.ok(last.done && ["stop", "length"].includes(last.done_reason));
});

call("generate", "generate, raw too", async () => {
  const a = await ollama.generate({ model: "home-chat-s", prompt: "hello", options });
  assert.equal(a.response, want);
  assert.equal(a.context, undefined);
  let text = "";
  for await (const part of await ollama.generate({ model: "home-chat-s", prompt: "hello", options, stream: true })) text += part.response;
  assert.equal(text, want);
  const raw = await ollama.generate({ model: "home-chat-s", prompt: "The kitchen", raw: true, options });
  assert.equal(typeof raw.response, "string");
  const system = await ollama.generate({ model: "home-chat-s", prompt: "hello", system: "Be brief.", options });
  assert.ok(system.prompt_eval_count > a.prompt_eval_count);
});

call("chat, generate", "a schema holds the reply", async () => {
  const format = { type: "object", properties: { on: { type: "boolean" }, room: { enum: ["kitchen", "attic"] } }, required: ["on", "room"] };
  const a = await ollama.chat({ model: "home-chat-m", messages: [{ role: "user", content: "light?" }], format, options: { ...options, num_predict: 60 } });
  const o = JSON.parse(a.message.content);
  assert.equal(typeof o.on, "boolean");
  assert.ok(["kitchen", "attic"].includes(o.room));
  assert.doesNotThrow(async () => JSON.parse((await ollama.generate({ model: "home-chat-m", prompt: "a", format: "json", options: { temperature: 0 } })).response));
});

call("chat", "tools are called, and their results go back", async () => {
  const system = "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on";
  const tools = [{ type: "function", function: { name: "light.turn_off", description: "turns a light off", parameters: { type: "object", properties: { target: { type: "string", enum: ["light.kitchen"] } }, required: ["target"] } } }];
  const messages = [{ role: "system", content: system }, { role: "user", content: "turn off the kitchen light" }];
  for (const stream of [false, true]) {
    const seen = [];
    const r = await ollama.chat({ model: "home-chat-s", messages, tools, stream, options: { temperature: 0 } });
    if (stream) for await (const part of r) seen.push(...(part.message.tool_calls ?? [])); else seen.push(...(r.message.tool_calls ?? []));
    assert.deepEqual(seen, [{ function: { name: "light.turn_off", arguments: { target: "light.kitchen" } } }]);
  }
  const after = await ollama.chat({
    model: "home-chat-s", options, tools,
    messages: [...messages, { role: "assistant", content: "", tool_calls: [{ function: { name: "light.turn_off", arguments: { target: "light.kitchen" } } }] }, { role: "tool", tool_name: "light.turn_off", content: "done" }],
  });
  assert.equal(typeof after.message.content, "string");
});

call("embed, embeddings", "vectors", async () => {
  const a = await ollama.embed({ model: "home-embed", input: ["hello", "good night"] });
  assert.equal(a.embeddings.length, 2);
  const b = await ollama.embeddings({ model: "home-embed", prompt: "hello" });
  assert.deepEqual(a.embeddings[0], b.embedding);
  const o = await (await fetch(base + "/v1/embeddings", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "home-embed", input: "hello" }) })).json();
  a.embeddings[0].forEach((x, i) => assert.ok(Math.abs(x - o.data[0].embedding[i]) < 1e-6));
});

call("list, ps, show", "what is there", async () => {
  const { models } = await ollama.list();
  const s = models.find((m) => m.name === "home-chat-s");
  assert.equal(s.details.quantization_level, "Q8_0");
  assert.match(s.digest, /^[0-9a-f]{64}$/);
  assert.ok((await ollama.ps()).models.some((m) => m.name === "home-chat-s"));
  const shown = await ollama.show({ model: "home-chat-s" });
  assert.deepEqual(shown.capabilities, ["completion"]); // it was trained on functions of its own
  assert.deepEqual((await ollama.show({ model: "plain" })).capabilities, ["completion", "tools"]);
  assert.equal(shown.model_info["llama.context_length"], 2048);
  assert.match((await (await fetch(base + "/api/version")).json()).version, /^\d/);
  assert.equal((await ollama.show({ model: "home-ears" })).model_info["general.architecture"], "whisper"); // loaded or not
  const vote = models.find((m) => m.name === "home-vote");
  assert.ok(vote.size > s.size && vote.modified_at >= s.modified_at); // its members' bytes
  for (const m of models) assert.match(m.digest, /^[0-9a-f]{64}$/, m.name); // Ollama's command cuts twelve of them
  for (const m of models) assert.ok(m.size > 0 && new Date(m.modified_at) > new Date("2000-01-01"), m.name);
  const command = await fetch(base + "/api/show", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "", system: "", template: "", verbose: false, options: null, name: "home-chat-s" }) });
  assert.equal(command.status, 200); // as Ollama's command writes it
  assert.equal((await ollama.chat({ model: "home-vote", messages: [{ role: "user", content: "hello" }], options })).message.role, "assistant");
});

call("chat, generate", "a model that is only to be loaded", async () => {
  const a = await ollama.chat({ model: "home-chat-s", messages: [] });
  assert.deepEqual([a.done, a.done_reason, a.message.content], [true, "load", ""]);
  assert.equal((await ollama.generate({ model: "home-chat-s", prompt: "" })).done_reason, "load");
  for await (const part of await ollama.generate({ model: "home-chat-s", prompt: "", stream: true })) assert.equal(part.done_reason, "load");
  await assert.rejects(ollama.generate({ model: "nobody", prompt: "" }), (e) => e.status_code === 404);
});

call("pull", "a model that lies there is pulled, and what may not be fetched is refused", async () => {
  const seen = [];
  for await (const part of await ollama.pull({ model: "home-ears", stream: true })) seen.push(part.status);
  assert.deepEqual([seen[0], seen.at(-1)], ["pulling manifest", "success"]);
  assert.equal((await ollama.pull({ model: "home-ears", stream: false })).status, "success");
  await assert.rejects(ollama.pull({ model: "llama3.2:1b", stream: false }), (e) => e.status_code === 403 && /fetch_from/.test(e.error));
  await assert.rejects(async () => { for await (const part of await ollama.pull({ model: "hf.co/org/name", stream: true })) assert.ok(part); }, /fetch_from/);
});

call("generate, ps", "keep_alive says how long a model stays; those of shoal.yaml stay", async () => {
  const expiry = async () => new Date((await ollama.ps()).models.find((m) => m.name === "home-chat-s").expires_at) - Date.now();
  await ollama.generate({ model: "home-chat-s", prompt: "hello", options, keep_alive: "1s" });
  assert.ok((await expiry()) > 1e9);
  await ollama.generate({ model: "home-chat-s", prompt: "hello", options, keep_alive: 0 });
  assert.ok((await expiry()) > 1e9);
  await assert.rejects(ollama.generate({ model: "home-chat-s", prompt: "", keep_alive: 0 }), (e) => e.status_code === 409 && /stays/.test(e.error));
  await assert.rejects(ollama.generate({ model: "home-chat-s", prompt: "hello", keep_alive: "soon" }), /keep_alive/);
});

call("delete", "what shoal.yaml names is not deleted, nor what is not there", async () => {
  await assert.rejects(ollama.delete({ model: "home-chat-s" }), (e) => e.status_code === 403 && /not pulled.*by hand/.test(e.error));
  await assert.rejects(ollama.delete({ model: "nobody" }), (e) => e.status_code === 404);
});

call("chat, generate, embed", "what is wrong is said in Ollama's form", async () => {
  await assert.rejects(ollama.chat({ model: "nobody", messages: [{ role: "user", content: "a" }] }), (e) => e.status_code === 404 && /nobody/.test(e.error));
  await assert.rejects(ollama.chat({ model: "home-chat-s", messages: [{ role: "user", content: "what", images: ["aGk="] }] }), /no model here sees pictures/);
  await assert.rejects(ollama.generate({ model: "home-chat-s", prompt: "a", options: { temperature: 9 } }), /temperature/);
  await assert.rejects(ollama.generate({ model: "home-chat-s", prompt: "a", suffix: "b" }), /does not support insert/);
  await assert.rejects(ollama.embed({ model: "home-embed" }), /input/);
  const foreign = await fetch(base + "/api/tags", { headers: { origin: "http://evil.example" } });
  assert.equal(foreign.status, 403);
  assert.equal(typeof (await foreign.json()).error, "string");
  for (const bad of ["", "[]", "{", '{"model":7}', '{"model":"home-chat-s","messages":7}', '{"model":"home-chat-s","messages":[7]}', '{"model":"home-chat-s","messages":[{}]}',
    '{"model":"home-chat-s","messages":[],"options":7}', '{"model":"home-chat-s","messages":[],"format":7}']) {
    const r = await fetch(base + "/api/chat", { method: "POST", headers: { "content-type": "application/json" }, body: bad });
    assert.ok(r.status >= 400 && r.status < 500, `${bad}: ${r.status}`);
    assert.equal(typeof (await r.json()).error, "string");
  }
});

call("chat, abort", "a client that leaves stops its request", async () => {
  const stream = await ollama.chat({ model: "home-chat-s", messages: [{ role: "user", content: "go on" }], stream: true, options: { num_predict: 1500, temperature: 1, seed: 9 } });
  for await (const part of stream) if (part.message.content) break;
  stream.abort();
  for (let i = 0; i < 100; i++) {
    const s = await (await fetch(base + "/v1/status")).json();
    if (s.replicas.every((r) => !r.running && !r.calls)) return;
    await new Promise((r) => setTimeout(r, 20));
  }
  assert.fail("it runs on");
});
