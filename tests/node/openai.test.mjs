// The official openai client, unmodified, against the home cluster.
import { test } from "node:test";
import assert from "node:assert/strict";
import OpenAI from "openai";

const base = process.env.SHOAL_URL;
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const home = {
  role: "system",
  content:
    "You are Shoal, a helper that runs this home. Devices:\n" +
    "light.kitchen 'Kitchen Light' = on\nlock.front_door 'Front Door Lock' = locked",
};
const off = [home, { role: "user", content: "turn off the kitchen light" }];

test("lists the five models", async () => {
  const names = [];
  for await (const m of client.models.list()) names.push(m.id);
  for (const n of ["home-intent", "home-slots", "home-embed", "home-chat-s", "home-chat-m"]) assert.ok(names.includes(n), n);
  const one = await client.models.retrieve("home-chat-s");
  assert.equal(one.id, "home-chat-s");
  assert.equal(one.object, "model");
});

test("a chat completion carries a tool call", async () => {
  const r = await client.chat.completions.create({ model: "home-chat-s", messages: off, temperature: 0, max_tokens: 96 });
  assert.equal(r.object, "chat.completion");
  const m = r.choices[0].message;
  assert.equal(r.choices[0].finish_reason, "tool_calls");
  assert.equal(m.role, "assistant");
  assert.equal(m.tool_calls[0].type, "function");
  assert.equal(m.tool_calls[0].function.name, "light.turn_off");
  assert.deepEqual(JSON.parse(m.tool_calls[0].function.arguments), { target: "light.kitchen" });
  assert.equal(r.usage.total_tokens, r.usage.prompt_tokens + r.usage.completion_tokens);
});

test("a stream gives what the whole answer gives", async () => {
  const whole = await client.chat.completions.create({ model: "home-chat-s", messages: off, temperature: 0, max_tokens: 96 });
  const stream = await client.chat.completions.create({
    model: "home-chat-s", messages: off, temperature: 0, max_tokens: 96, stream: true, stream_options: { include_usage: true },
  });
  let text = "", name = "", args = "", finish = null, usage = null, chunks = 0;
  for await (const c of stream) {
    chunks++;
    assert.equal(c.object, "chat.completion.chunk");
    if (c.usage) usage = c.usage;
    for (const choice of c.choices) {
      text += choice.delta.content ?? "";
      for (const t of choice.delta.tool_calls ?? []) {
        name += t.function?.name ?? "";
        args += t.function?.arguments ?? "";
      }
      finish = choice.finish_reason ?? finish;
    }
  }
  const m = whole.choices[0].message;
  assert.equal(text, m.content ?? "");
  assert.equal(name, m.tool_calls[0].function.name);
  assert.equal(args, m.tool_calls[0].function.arguments);
  assert.equal(finish, "tool_calls");
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [whole.usage.prompt_tokens, whole.usage.completion_tokens]);
  assert.ok(chunks >= 3);
});

test("the same seed draws the same text, and n gives n choices", async () => {
  const ask = (seed, n) =>
    client.chat.completions.create(
      { model: "home-chat-s", messages: [{ role: "user", content: "tell me a joke" }], temperature: 1, seed, n, max_tokens: 24 },
      { headers: { "cache-control": "no-cache" } },
    );
  const a = await ask(7, 1), b = await ask(7, 1), three = await ask(7, 3);
  assert.equal(a.choices[0].message.content, b.choices[0].message.content);
  assert.equal(three.choices.length, 3);
  assert.deepEqual(three.choices.map((c) => c.index), [0, 1, 2]);
});

test("stop strings end the reply and are not part of it", async () => {
  const r = await client.chat.completions.create({
    model: "home-chat-s", messages: off, temperature: 0, max_tokens: 96, stop: ["Kitchen", "nowhere"],
  });
  assert.ok(!r.choices[0].message.content.includes("Kitchen"));
  assert.equal(r.choices[0].finish_reason, "stop");
});

test("json_schema holds a hot model to the schema", async () => {
  const schema = {
    type: "object",
    properties: {
      room: { type: "string", enum: ["kitchen", "bedroom"] },
      on: { type: "boolean" },
      levels: { type: "array", items: { type: "integer" }, minItems: 1, maxItems: 3 },
    },
    required: ["room", "on", "levels"],
    additionalProperties: false,
  };
  for (let seed = 1; seed <= 8; seed++) {
    const r = await client.chat.completions.create({
      model: "home-chat-s", messages: off, temperature: 1.5, seed, max_tokens: 128,
      response_format: { type: "json_schema", json_schema: { name: "light", strict: true, schema } },
    });
    const v = JSON.parse(r.choices[0].message.content);
    assert.ok(["kitchen", "bedroom"].includes(v.room));
    assert.equal(typeof v.on, "boolean");
    assert.ok(v.levels.length >= 1 && v.levels.length <= 3 && v.levels.every(Number.isInteger));
  }
});

test("logprobs come with alternatives", async () => {
  const r = await client.chat.completions.create({
    model: "home-chat-s", messages: off, temperature: 0, max_tokens: 4, logprobs: true, top_logprobs: 3,
  });
  const content = r.choices[0].logprobs.content;
  assert.equal(content.length, 4);
  for (const t of content) {
    assert.ok(t.logprob <= 0);
    assert.equal(t.top_logprobs.length, 3);
    assert.ok(t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob);
  }
});

test("completions continue a raw prompt", async () => {
  const r = await client.completions.create({
    model: "home-chat-s", prompt: ["<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n", "Once"], temperature: 0, max_tokens: 8,
  });
  assert.equal(r.object, "text_completion");
  assert.equal(r.choices.length, 2);
  const stream = await client.completions.create({ model: "home-chat-s", prompt: "Once", temperature: 0, max_tokens: 8, stream: true });
  let text = "";
  for await (const c of stream) text += c.choices[0]?.text ?? "";
  assert.equal(text, r.choices[1].text);
});

test("embeddings agree in float and base64", async () => {
  const input = ["good morning", "set an alarm for seven"];
  const float = await client.embeddings.create({ model: "home-embed", input, encoding_format: "float" });
  const b64 = await client.embeddings.create({ model: "home-embed", input, encoding_format: "base64" });
  assert.equal(float.data.length, 2);
  float.data.forEach((d, i) => {
    assert.equal(d.embedding.length, 256);
    assert.ok(Math.abs(Math.hypot(...d.embedding) - 1) < 1e-4);
    const bytes = Buffer.from(b64.data[i].embedding, "base64");
    const f = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    d.embedding.forEach((v, k) => assert.ok(Math.abs(v - f[k]) < 1e-6));
  });
  const byDefault = await client.embeddings.create({ model: "home-embed", input: "good morning" });
  assert.ok(Math.abs(byDefault.data[0].embedding[0] - float.data[0].embedding[0]) < 1e-6);
});

test("errors have the OpenAI form", async () => {
  const is = (status, code) => (e) => {
    assert.equal(e.status, status);
    if (code) assert.equal(e.code, code);
    return true;
  };
  await assert.rejects(client.chat.completions.create({ model: "nobody", messages: off }), is(404, "model_not_found"));
  await assert.rejects(client.chat.completions.create({ model: "home-chat-s", messages: off, temperature: 9 }), is(400));
  await assert.rejects(client.chat.completions.create({ model: "home-intent", messages: off }), is(400));
  await assert.rejects(
    client.chat.completions.create({ model: "home-chat-s", messages: [{ role: "user", content: "word ".repeat(4000) }] }),
    (e) => is(400, "context_length_exceeded")(e) && /2048/.test(e.message),
  );
});

test("a stream that the client leaves does not disturb the next", async () => {
  const controller = new AbortController();
  const stream = await client.chat.completions.create(
    { model: "home-chat-s", messages: [{ role: "user", content: "tell me everything" }], temperature: 1, seed: 1, stream: true },
    { signal: controller.signal },
  );
  for await (const _ of stream) {
    controller.abort();
    break;
  }
  const r = await client.chat.completions.create({ model: "home-chat-s", messages: off, temperature: 0, max_tokens: 96 });
  assert.equal(r.choices[0].finish_reason, "tool_calls");
});

const post = (path, body, headers = {}) =>
  fetch(base + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });

test("classify and tag answer with scores and offsets", async () => {
  const c = await (await post("/v1/classify", { model: "home-intent", input: "wake me up at seven tomorrow" })).json();
  assert.equal(c.data[0].labels[0].label, "alarm_set");
  const text = "wake me up at seven tomorrow";
  const t = await (await post("/v1/tag", { model: "home-slots", input: text })).json();
  const spans = t.data[0].spans;
  assert.ok(spans.length >= 2);
  for (const s of spans) assert.equal(text.slice(s.start, s.end), s.text);
});

test("the home pipeline calls a device, answers an intent, and alerts", async () => {
  const r = await (await post("/v1/process", { pipeline: "home", input: "turn off the kitchen light" })).json();
  assert.equal(r.tool_call.name, "light.turn_off");
  assert.ok(r.intent.score > 0);
  assert.ok(r.trace.some((s) => s.model === "home-chat-s" && s.ran && s.ms > 0));
  const alarm = await (await post("/v1/process", { pipeline: "home", input: "wake me up at seven tomorrow" })).json();
  assert.equal(alarm.intent.label, "alarm_set");
  assert.equal(alarm.tool_call, null);
  assert.ok(alarm.slots.length > 0);
  const alert = await (
    await post("/v1/process", { pipeline: "home", input: "sensor vibration asset=valve-30 change=+65% threshold=10% window=30s" })
  ).json();
  assert.equal(alert.text, "Valve 30 shows a 65% increase in RMS vibration over 30 s (limit 10%). Schedule inspection within 1 h.");
  const own = await (
    await post("/v1/process", {
      pipeline: "home", input: "turn on the attic fan", context: { devices: [{ id: "fan.attic", name: "Attic Fan", state: "off" }] },
    })
  ).json();
  assert.equal(own.tool_call.arguments.target, "fan.attic");
});

test("identical requests are computed once and then remembered", async () => {
  const body = { pipeline: "home", input: `is the front door locked ${Math.random()}` };
  const first = await Promise.all([post("/v1/process", body), post("/v1/process", body), post("/v1/process", body)]);
  const kinds = first.map((r) => r.headers.get("x-shoal-cache")).sort();
  assert.deepEqual(kinds.filter((k) => k === "miss").length, 1);
  assert.ok(kinds.every((k) => ["hit", "miss", "shared"].includes(k)));
  const again = await post("/v1/process", body);
  assert.equal(again.headers.get("x-shoal-cache"), "hit");
});

test("request ids, deadlines and metrics", async () => {
  const named = await post("/v1/classify", { model: "home-intent", input: "hello" }, { "x-request-id": "test-id-1" });
  assert.equal(named.headers.get("x-request-id"), "test-id-1");
  const late = await post(
    "/v1/chat/completions",
    { model: "home-chat-m", messages: [{ role: "user", content: "tell me everything" }], temperature: 1, seed: 3, max_tokens: 1500 },
    { "x-shoal-deadline-ms": "5" },
  );
  assert.equal(late.status, 504);
  const metrics = await (await fetch(`${base}/metrics`)).text();
  assert.match(metrics, /# TYPE shoal_/);
  assert.match(metrics, /_bucket\{.*le="\+Inf"\}/);
});
