// Every schema of shapes.mjs over HTTP, with a model of the home and with one of random weights: a reply that ended
// satisfies it, says ajv. And what no grammar holds is refused by name, or, with "strict": false, looked at: what Shoal
// then says of the reply is what ajv says.
import assert from "node:assert/strict";
import { test } from "node:test";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import OpenAI from "openai";
import { shapes, unheld } from "./shapes.mjs";

const client = new OpenAI({ baseURL: `${process.env.SHOAL_URL}/v1`, apiKey: "none", maxRetries: 0 });
function validator(schema) {
  const old = Array.isArray(schema.items) || /draft-07/.test(schema.$schema ?? "");
  const ajv = new (old ? Ajv : Ajv2020)({ strict: false, unicodeRegExp: true, logger: false, multipleOfPrecision: 9 });
  addFormats(ajv);
  return ajv.compile(schema);
}
const ask = async (model, seed, schema, strict) => (await client.chat.completions.create({
  model, seed, temperature: 1, max_tokens: 600, messages: [{ role: "user", content: "an example" }],
  response_format: { type: "json_schema", json_schema: { name: "x", strict, schema } },
})).choices[0];

for (const model of ["home-chat-s", "plain"])
  test(`${model}: replies satisfy schemas as zod and pydantic write them`, async () => {
    let ended = 0;
    for (const { name, schema } of shapes) {
      const c = await ask(model, 1, schema, true), valid = validator(schema);
      assert.ok(["stop", "length"].includes(c.finish_reason), name);
      assert.equal(c.schema, undefined);
      if (c.finish_reason === "length") continue;
      ended++;
      assert.ok(valid(JSON.parse(c.message.content)), `${name}: ${c.message.content}: ${JSON.stringify(valid.errors)}`);
    }
    assert.ok(ended > shapes.length / 2, `only ${ended} of ${shapes.length} ended`);
  });

test("what cannot be enforced is refused by name", async () => {
  const key = { letters: "pattern", set: "uniqueItems" };
  for (const [name, schema] of Object.entries(unheld))
    for (const strict of [true, undefined, null])
      await assert.rejects(ask("home-chat-s", 1, schema, strict), (e) => e.status === 400 && e.param === "response_format" && e.message.includes(`"${key[name] ?? name}"`) && /"strict": false/.test(e.message), name);
});

test("with strict: false it is looked at, and what is said of the reply is so", async () => {
  const said = { true: 0, false: 0 };
  for (const [name, schema] of Object.entries(unheld))
    for (const model of ["home-chat-s", "plain"])
      for (let seed = 1; seed <= 6; seed++) {
        const c = await ask(model, seed, schema, false), valid = validator(schema);
        if (c.finish_reason === "length") {
          assert.equal(c.schema.valid, false);
          continue;
        }
        const right = valid(JSON.parse(c.message.content));
        assert.equal(c.schema.valid, right, `${name}: ${c.message.content}: ${JSON.stringify(c.schema)}`);
        if (!right) assert.ok(c.schema.why.length > 0);
        said[right]++;
      }
  assert.ok(said.true > 0 && said.false > 0, JSON.stringify(said));
});

test("a function that is not strict is held to what can be, and its arguments are looked at", async () => {
  for (const stream of [false, true])
    for (const [name, schema] of Object.entries(unheld)) {
      const body = { model: "home-chat-s", seed: 3, temperature: 1, max_tokens: 400, messages: [{ role: "user", content: "go" }], tool_choice: "required",
        tools: [{ type: "function", function: { name: "f", strict: false, parameters: schema } }] };
      let choice = { message: { arguments: "" } };
      if (stream) {
        for await (const c of await client.chat.completions.create({ ...body, stream })) {
          choice.message.arguments += c.choices[0].delta.tool_calls?.[0].function.arguments ?? "";
          choice = { ...choice, ...c.choices[0] };
        }
      } else {
        choice = (await client.chat.completions.create(body)).choices[0];
        choice.message.arguments = choice.message.tool_calls[0].function.arguments;
      }
      if (choice.finish_reason === "length") continue;
      const valid = validator(schema);
      assert.equal(choice.schema.valid, valid(JSON.parse(choice.message.arguments)), `${name}: ${choice.message.arguments}`);
      if (!choice.schema.valid) assert.match(choice.schema.at, /^\/tool_calls\/0\/function\/arguments/);
    }
});

test("the Responses API says it, too", async () => {
  const format = { type: "json_schema", name: "x", strict: false, schema: unheld.set };
  const r = await client.responses.create({ model: "home-chat-s", input: "a set", temperature: 0, max_output_tokens: 400, text: { format } });
  if (r.status === "completed") assert.equal(r.schema.valid, validator(unheld.set)(JSON.parse(r.output_text)));
  const last = await client.responses.stream({ model: "home-chat-s", input: "a set", temperature: 0, max_output_tokens: 400, text: { format } }).finalResponse();
  assert.deepEqual(last.schema, r.schema);
});

test("a thousand choices, and hundreds of objects, are all there", async () => {
  const words = Array.from({ length: 1000 }, (_, i) => `word-${i * 7919 % 1000}`);
  const objects = Array.from({ length: 333 }, (_, i) => ({ type: "object", properties: { k: { const: `kind${i}` }, v: { type: "integer", minimum: i, maximum: i + 1 } }, required: ["k", "v"], additionalProperties: false }));
  const seen = new Set();
  for (let seed = 1; seed <= 24; seed++) {
    const c = await ask("plain", seed, { type: "object", properties: { w: { enum: words } }, required: ["w"], additionalProperties: false }, true);
    assert.equal(c.finish_reason, "stop");
    const { w } = JSON.parse(c.message.content);
    assert.ok(words.includes(w));
    seen.add(w);
    const o = JSON.parse((await ask("plain", seed, { anyOf: objects }, true)).message.content), i = Number(o.k.slice(4));
    assert.ok(i >= 0 && i < 333 && o.v >= i && o.v <= i + 1, JSON.stringify(o));
  }
  assert.ok(seen.size > 12, `${seen.size} of 24 differ`);
});
