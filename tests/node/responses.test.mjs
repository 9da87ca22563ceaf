// The official openai client's Responses API, unmodified, against the home cluster.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { client as calls_of } from "./calls.mjs";

const call = calls_of("openai");
const client = new OpenAI({ baseURL: `${process.env.SHOAL_URL}/v1`, apiKey: "none", maxRetries: 0 });
const model = "home-chat-s";
const home =
  "You are Shoal, a helper that runs this home. Devices:\n" +
  "light.kitchen 'Kitchen Light' = on\nlock.front_door 'Front Door Lock' = locked";
const tools = [{
  type: "function", name: "light.turn_off", description: "turns a light off", strict: false,
  parameters: { type: "object", properties: { target: { type: "string" } }, required: ["target"] },
}];

call("responses.create, retrieve, delete", "a response goes on with another, is read and deleted", async () => {
  const first = await client.responses.create({ model, input: "my name is Ada", instructions: "Be brief.", temperature: 0, max_output_tokens: 16 });
  assert.equal(first.object, "response");
  assert.equal(typeof first.output_text, "string");
  assert.equal(first.usage.total_tokens, first.usage.input_tokens + first.usage.output_tokens);
  const second = await client.responses.create({ model, input: [{ role: "user", content: "what is my name" }], previous_response_id: first.id, temperature: 0, max_output_tokens: 16 });
  assert.equal(second.previous_response_id, first.id);
  assert.ok(second.usage.input_tokens > first.usage.input_tokens);
  const read = await client.responses.retrieve(second.id);
  assert.equal(read.id, second.id);
  assert.equal(read.output_text, second.output_text);
  await client.responses.delete(second.id);
  await assert.rejects(client.responses.retrieve(second.id), (e) => e instanceof OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({ model, input: "x", previous_response_id: second.id }),
    (e) => e.status === 400 && e.code === "previous_response_not_found");
});

call("responses.create", "what is not to be stored is not", async () => {
  const r = await client.responses.create({ model, input: "hello", store: false, max_output_tokens: 4 });
  assert.equal(r.store, false);
  await assert.rejects(client.responses.retrieve(r.id), (e) => e instanceof OpenAI.NotFoundError);
});

call("responses.create", "the events of a stream come to its response", async () => {
  const stream = await client.responses.create({ model, input: "hello there", temperature: 0, max_output_tokens: 16, stream: true });
  const types = [];
  let text = "", last = null;
  for await (const e of stream) {
    assert.equal(e.sequence_number, types.length);
    types.push(e.type);
    if (e.type === "response.output_text.delta") text += e.delta;
    last = e;
  }
  assert.deepEqual(types.slice(0, 4), ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]);
  assert.ok(["response.completed", "response.incomplete"].includes(last.type), last.type);
  assert.equal(last.response.output[0].content[0].text, text);
  const whole = await client.responses.create({ model, input: "hello there", temperature: 0, max_output_tokens: 16 });
  assert.equal(whole.output_text, text);
});

call("responses.stream", "the client's own accumulator understands the stream", async () => {
  const stream = client.responses.stream({ model, input: "hello there", temperature: 0, max_output_tokens: 16 });
  const final = await stream.finalResponse();
  assert.ok(final.output_text.length > 0);
});

call("responses.create", "a call of a tool, streamed or not, and its result", async () => {
  const ask = { model, instructions: home, input: "turn off the kitchen light", tools, tool_choice: "required", temperature: 0, max_output_tokens: 96 };
  const r = await client.responses.create(ask);
  const call = r.output.find((i) => i.type === "function_call");
  assert.equal(call.name, "light.turn_off");
  assert.equal(typeof JSON.parse(call.arguments).target, "string");
  const final = await client.responses.stream(ask).finalResponse();
  const streamed = final.output.find((i) => i.type === "function_call");
  assert.equal(streamed.name, call.name);
  assert.equal(streamed.arguments, call.arguments);
  const after = await client.responses.create({ model, previous_response_id: r.id, max_output_tokens: 16,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "done" }] });
  assert.equal(after.object, "response");
});

call("responses.create", "a schema constrains the text", async () => {
  const schema = { type: "object", properties: { room: { enum: ["kitchen", "office"] } }, required: ["room"], additionalProperties: false };
  const r = await client.responses.create({ model, input: "which room", temperature: 0, max_output_tokens: 64,
    text: { format: { type: "json_schema", name: "room", strict: true, schema } } });
  assert.ok(["kitchen", "office"].includes(JSON.parse(r.output_text).room));
});

call("responses.create", "an error in the request names its field", async () => {
  await assert.rejects(client.responses.create({ model, input: [{ type: "image_generation_call" }] }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "input");
});

call("responses.create", "log-probabilities where \"include\" or top_logprobs asks for them, and reasoning.effort", async () => {
  const ask = { model, input: "hello there", temperature: 0, max_output_tokens: 8, top_logprobs: 2, include: ["message.output_text.logprobs"], reasoning: { effort: "low" } };
  const r = await client.responses.create(ask);
  const part = r.output.find((i) => i.type === "message").content[0];
  assert.equal(r.reasoning.effort, "low");
  assert.ok(part.logprobs.length > 0 && part.logprobs.every((t) => t.logprob <= 0 && t.top_logprobs.length === 2));
  const final = await client.responses.stream(ask).finalResponse();
  assert.deepEqual(final.output.find((i) => i.type === "message").content[0].logprobs, part.logprobs);
  assert.deepEqual((await client.responses.create({ ...ask, top_logprobs: undefined, include: [] })).output.find((i) => i.type === "message").content[0].logprobs, []);
  await assert.rejects(client.responses.create({ ...ask, reasoning: { effort: "hard" } }), (e) => e.status === 400 && e.param === "reasoning.effort");
});
