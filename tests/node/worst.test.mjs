// The worst user: wrong types in every field, schemas of a megabyte, a hundred tools, clients that leave in the middle of
// calls. Whatever is sent is answered, and never with a 5xx.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import OpenAI from "openai";

const base = process.env.SHOAL_URL;
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const post = (path, body, signal = AbortSignal.timeout(60_000)) =>
  fetch(base + path, { method: "POST", headers: { "content-type": "application/json" }, body: typeof body === "string" ? body : JSON.stringify(body), signal });
const hi = [{ role: "user", content: "hi" }];
const quick = { model: "home-chat-s", messages: hi, max_tokens: 4, temperature: 0 };
const f = (name, parameters = { type: "object", properties: { a: { type: "string", maxLength: 4 } }, required: ["a"] }) => ({ type: "function", function: { name, parameters } });

async function answered(path, body, what) {
  const r = await post(path, body), text = await r.text();
  assert.ok(r.status < 500, `${what}: ${r.status} ${text.slice(0, 300)}`);
  if (r.status === 200) return r.status;
  const { error } = JSON.parse(text);
  assert.ok(error.message.length > 0 && typeof error.type === "string" && "param" in error && "code" in error, text);
  return r.status;
}

const wrong = [null, true, false, 0, -1, 1.5, 1e300, -1e300, 2 ** 53, "", "x", "\u0000", "9".repeat(400), [], [null], [[]], [{}], {}, { a: 1 }, { type: "function" }, { type: 7 }, [7, "x", null], { type: "json_schema", json_schema: 7 }, { type: "json_schema", json_schema: { schema: {} } }];
const bodies = {
  "/v1/chat/completions": { ...quick, n: 1, stream: false, stream_options: {}, stop: ["z"], seed: 1, top_p: 1, top_k: 1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1, logit_bias: {}, logprobs: true, top_logprobs: 1,
    tools: [f("a")], tool_choice: "auto", parallel_tool_calls: true, response_format: { type: "text" }, max_completion_tokens: 4, reasoning_effort: "low", chat_template_kwargs: {}, ignore_eos: false, user: "u", metadata: {}, store: false, service_tier: "auto",
    modalities: ["text"], prediction: {}, session: null, audio: {}, verbosity: "low", web_search_options: {} },
  "/v1/chat/completions?older": { ...quick, functions: [f("a").function], function_call: "auto" },
  "/v1/completions": { model: "home-chat-s", prompt: "a", max_tokens: 2, n: 1, best_of: 1, echo: false, logprobs: 1, suffix: null, stop: "z", stream: false, seed: 1, temperature: 0 },
  "/v1/responses": { model: "home-chat-s", input: "a", max_output_tokens: 4, instructions: "b", tools: [], tool_choice: "auto", text: { format: { type: "text" } }, store: false, stream: false, truncation: "auto", metadata: {}, include: [], reasoning: {}, previous_response_id: null,
    parallel_tool_calls: true, top_logprobs: 0, user: "u", background: false, temperature: 0, prompt: null, conversation: null, max_tool_calls: 1 },
  "/v1/embeddings": { model: "home-embed", input: "a", encoding_format: "float", dimensions: 8, user: "u" },
  "/v1/moderations": { model: "omni-moderation-latest", input: "a" },
  "/v1/classify": { model: "home-intent", input: "a", top_k: 1, pair: "b" },
};
for (const [path, body] of Object.entries(bodies))
  test(`${path}: every field with every wrong value`, async () => {
    let refused = 0, taken = 0;
    for (const key of Object.keys(body)) {
      const some = await Promise.all(wrong.map((v) => answered(path, { ...body, [key]: v }, `${key} = ${JSON.stringify(v)}`)));
      some.forEach((status) => (status === 200 ? taken++ : refused++));
    }
    assert.ok(refused > 10 && taken > 0, `${refused} refused, ${taken} taken`);
  });

test("what is deep inside is wrong, too", async () => {
  const inner = [
    ...wrong.map((v) => ({ messages: [{ role: v, content: "x" }] })), ...wrong.map((v) => ({ messages: [{ role: "user", content: v }] })), ...wrong.map((v) => ({ messages: [...hi, { role: "assistant", tool_calls: v }] })),
    ...wrong.map((v) => ({ messages: [{ role: "user", content: [{ type: "text", text: v }] }] })), ...wrong.map((v) => ({ messages: [...hi, { role: "assistant", tool_calls: [{ id: v, function: { name: "a", arguments: v } }] }] })),
    ...wrong.map((v) => ({ messages: [...hi, { role: "tool", tool_call_id: v, content: "x" }] })), ...wrong.map((v) => ({ messages: [{ role: "user", name: v, content: "x" }] })),
    ...wrong.map((v) => ({ tools: [{ type: "function", function: v }] })), ...wrong.map((v) => ({ tools: [f("a", v)] })), ...wrong.map((v) => ({ tools: [{ type: "function", function: { name: v } }] })),
    ...wrong.map((v) => ({ tools: [{ type: "function", function: { name: "a", strict: v, description: v } }] })), ...wrong.map((v) => ({ tools: [f("a")], tool_choice: { type: "function", function: { name: v } } })),
    ...["type", "enum", "const", "$ref", "$defs", "properties", "items", "prefixItems", "required", "anyOf", "oneOf", "allOf", "not", "if", "minimum", "maxLength", "pattern", "format", "additionalProperties", "propertyNames", "uniqueItems", "multipleOf", "minProperties"]
      .flatMap((k) => wrong.flatMap((v) => [true, false].map((strict) => ({ response_format: { type: "json_schema", json_schema: { name: "x", strict, schema: { [k]: v } } } })))),
  ];
  for (let i = 0; i < inner.length; i += 16)
    await Promise.all(inner.slice(i, i + 16).map((more) => answered("/v1/chat/completions", { ...quick, ...more }, JSON.stringify(more).slice(0, 300))));
  for (const v of wrong)
    for (const input of [[v], [{ role: v, content: "x" }], [{ role: "user", content: v }], [{ type: v }], [{ type: "function_call", call_id: v, name: v, arguments: v }], [{ type: "function_call_output", call_id: "c", output: v }], [{ type: "item_reference", id: v }], [{ id: v }]])
      await answered("/v1/responses", { model: "home-chat-s", input, max_output_tokens: 2 }, JSON.stringify(input).slice(0, 200));
  for (const text of ["", "{", "[]", "null", "7", '"x"', "{}", "[".repeat(100_000), '{"model":"home-chat-s","messages":' + "[".repeat(5000), '{"a":"\\ud800"}', "\u0000", '{"model":"home-chat-s","model":"x"}', "{\"a\":1e999}"])
    for (const path of Object.keys(bodies)) assert.ok((await answered(path, text, text.slice(0, 40))) >= 400);
});

test("many choices, many tools, many alternatives, large and deep schemas", async () => {
  assert.equal(await answered("/v1/chat/completions", { ...quick, n: 32 }, "n"), 200);
  assert.equal(await answered("/v1/chat/completions", { ...quick, n: 128 }, "n"), 400);
  const tools = Array.from({ length: 128 }, (_, i) => f(`tool_${i}`, { type: "object", properties: { at: { enum: [`place ${i}`] }, n: { type: "integer", minimum: i, maximum: i + 9 } }, required: ["at", "n"], additionalProperties: false }));
  const r = await client.chat.completions.create({ model: "plain", messages: hi, tools: tools.slice(0, 8), tool_choice: "required", temperature: 1, seed: 1, max_tokens: 200 });
  const call = r.choices[0].message.tool_calls[0].function, i = Number(call.name.slice(5)), args = JSON.parse(call.arguments);
  assert.ok(args.at === `place ${i}` && args.n >= i && args.n <= i + 9, JSON.stringify(call));
  await answered("/v1/chat/completions", { ...quick, tools, tool_choice: "required" }, "128 tools");
  assert.equal(await answered("/v1/chat/completions", { ...quick, tools: [...tools, f("one_more")] }, "129 tools"), 400);
  const as = (schema, strict) => ({ ...quick, max_tokens: 32, response_format: { type: "json_schema", json_schema: { name: "x", strict, schema } } });
  const wide = { type: "object", properties: Object.fromEntries(Array.from({ length: 9000 }, (_, k) => [`property_number_${k}`, { type: "string", enum: [`a${k}`, `b${k}`], description: "d".repeat(40) }])) };
  assert.ok(JSON.stringify(wide).length > 900_000);
  const deep = (n) => { let s = { type: "null" }; for (let k = 0; k < n; k++) s = { type: "object", properties: { a: s }, required: ["a"] }; return s; };
  const bomb = { $defs: {}, $ref: "#/$defs/s0" };
  for (let k = 0; k < 30; k++) bomb.$defs[`s${k}`] = { anyOf: [{ $ref: `#/$defs/s${k + 1}` }, { allOf: [{ $ref: `#/$defs/s${k + 1}` }, { $ref: `#/$defs/s${k + 1}` }] }] };
  bomb.$defs.s30 = { type: "object", uniqueItems: true, not: {}, properties: { a: { $ref: "#" } } };
  const many = { type: "array", items: { type: "object", properties: Object.fromEntries(Array.from({ length: 40 }, (_, k) => [`k${k}`, { type: "array", uniqueItems: true, items: { type: "string" } }])) } };
  const slow = { type: "object", properties: { a: { type: "string", pattern: "^(a|b|ab)*(a+)+$|(?=x{0,999}y{0,999})z" }, b: { type: "string", pattern: "(?!(?:.{100}a){40})\\bx{0,500}\\b" } }, required: ["a", "b"] };
  for (const schema of [wide, deep(60), deep(400), bomb, many, slow, { enum: Array.from({ length: 20_000 }, (_, k) => `value ${k}`) }, { anyOf: Array.from({ length: 5000 }, (_, k) => ({ const: k })) }])
    for (const strict of [true, false]) await answered("/v1/chat/completions", as(schema, strict), `${JSON.stringify(schema).slice(0, 100)} ${strict}`);
});

test("clients that leave in the middle of calls leave nothing behind", async () => {
  const tools = [f("note", { type: "object", properties: { text: { type: "string", minLength: 300 } }, required: ["text"] })];
  const ask = { model: "home-chat-m", messages: hi, tools, tool_choice: "required", stream: true, temperature: 1, max_tokens: 1500 };
  await Promise.all(Array.from({ length: 16 }, async (_, i) => {
    const controller = new AbortController();
    const stream = await client.chat.completions.create({ ...ask, seed: i }, { signal: controller.signal });
    let n = 0;
    try {
      for await (const c of stream) if (c.choices[0]?.delta.tool_calls && ++n > i % 4) controller.abort();
    } catch (e) {
      assert.ok(e instanceof OpenAI.APIUserAbortError || controller.signal.aborted, String(e));
    }
  }));
  await Promise.allSettled(Array.from({ length: 16 }, (_, i) => post("/v1/responses", { model: "home-chat-m", input: "go on", temperature: 1, max_output_tokens: 1500 }, AbortSignal.timeout(5 + i * 3))));
});

after(async () => {
  for (let i = 0; i < 400; i++) {
    const s = await (await fetch(`${base}/v1/status`)).json();
    if (s.replicas.every((r) => r.crashes === 0 && !/home-chat|plain/.test(r.model) || (r.crashes === 0 && !r.running && !r.calls))) return;
    assert.ok(s.replicas.every((r) => !r.crashes), "a worker crashed");
    await new Promise((wake) => setTimeout(wake, 25));
  }
  assert.fail("something runs on");
});
