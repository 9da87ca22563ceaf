// npm's @anthropic-ai/sdk, unmodified, against /v1/messages.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { client } from "./calls.mjs";

const call = client("@anthropic-ai/sdk");
const api = new Anthropic({ baseURL: process.env.SHOAL_URL, apiKey: "none", maxRetries: 0 });
const hello = [{ role: "user", content: "hello" }];
const home = "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on";
const off = [{ role: "user", content: "turn off the kitchen light" }];
const tool = { name: "light.turn_off", description: "turns a light off", input_schema: { type: "object", properties: { target: { type: "string", enum: ["light.kitchen"] } }, required: ["target"] } };
const body = (more) => ({ model: "home-chat-s", max_tokens: 96, messages: hello, temperature: 0, ...more });
const ask = (more, options) => api.messages.create(body(more), options);
const text = (m) => m.content.filter((b) => b.type === "text").map((b) => b.text).join("");
const read = (u) => u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens;

call("messages.create", "a reply, whole and as events", async () => {
  const m = await ask();
  assert.deepEqual([m.type, m.role, m.model, m.stop_reason, m.stop_sequence], ["message", "assistant", "home-chat-s", "end_turn", null]);
  assert.ok(text(m) && m.usage.output_tokens > 0 && m._request_id);
  const kinds = [];
  let said = "";
  for await (const e of await ask({ stream: true })) {
    kinds.push(e.type);
    if (e.type === "content_block_delta") said += e.delta.text;
  }
  assert.equal(said, text(m));
  assert.deepEqual([kinds[0], ...kinds.slice(-3)], ["message_start", "content_block_stop", "message_delta", "message_stop"]);
});

call("messages.stream", "events, finalMessage, finalText", async () => {
  const heard = [];
  const stream = api.messages.stream(body()).on("text", (t) => heard.push(t));
  const final = await stream.finalMessage();
  const whole = await ask();
  assert.equal(heard.join(""), text(whole));
  assert.equal(text(final), text(whole));
  assert.equal(read(final.usage), read(whole.usage));
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(await api.messages.stream(body()).finalText(), text(whole));
});

call("messages.create, messages.stream", "a tool is called, and its result goes back", async () => {
  const first = await ask({ system: home, tools: [tool], messages: off });
  const use = first.content.at(-1);
  assert.deepEqual([first.stop_reason, use.type, use.name, use.input], ["tool_use", "tool_use", "light.turn_off", { target: "light.kitchen" }]);
  const final = await api.messages.stream(body({ system: home, tools: [tool], messages: off })).finalMessage();
  assert.deepEqual(final.content.at(-1).input, use.input);
  const messages = [...off, { role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "done" }] }];
  assert.ok(text(await ask({ system: home, tools: [tool], messages })));
  const none = await ask({ system: home, messages: off });
  assert.deepEqual(none.content.map((b) => b.type), ["text"]);
});

call("messages.countTokens", "the tokens that a message reads", async () => {
  const asked = { model: "home-chat-s", messages: off, system: home, tools: [tool] };
  assert.equal((await api.messages.countTokens(asked)).input_tokens, read((await ask({ ...asked, max_tokens: 1 })).usage));
});

call("models.list, models.retrieve", "what is served, in pages", async () => {
  const names = [];
  for await (const m of api.models.list({ limit: 2 })) names.push(m.id);
  assert.equal(new Set(names).size, names.length);
  for (const n of ["home-chat-s", "home-chat-m", "home"]) assert.ok(names.includes(n), n);
  const m = await api.models.retrieve("home-chat-s");
  assert.deepEqual([m.type, m.id, m.display_name, m.max_input_tokens], ["model", "home-chat-s", "home-chat-s", 2048]);
  assert.ok(new Date(m.created_at) > new Date("2024-01-01"));
});

call("beta.messages.create", "the same with ?beta=true", async () => {
  const m = await api.beta.messages.create({ ...body(), betas: ["some-beta-2026-01-01"] });
  assert.equal(text(m), text(await ask()));
});

call("errors", "the classes of this package, with the request's id", async () => {
  const cases = [
    [Anthropic.NotFoundError, "not_found_error", () => ask({ model: "claude-nobody" })],
    [Anthropic.NotFoundError, "not_found_error", () => ask({ model: "claude-nobody", stream: true })],
    [Anthropic.BadRequestError, "invalid_request_error", () => ask({ messages: [...hello, { role: "assistant", content: "I" }] })],
    [Anthropic.BadRequestError, "invalid_request_error", () => ask({ tools: [{ type: "web_search_20250305", name: "web_search" }] })],
    [Anthropic.InternalServerError, "timeout_error", () => ask({}, { headers: { "x-shoal-deadline-ms": "0" } })],
  ];
  for (const [kind, type, run] of cases)
    await assert.rejects(run, (e) => {
      assert.ok(e instanceof kind, String(e));
      assert.equal(e.error.error.type, type);
      assert.ok(e.requestID);
      assert.equal(e.error.request_id, e.requestID);
      return true;
    });
});

call("messages.stream", "leaving a stream ends it", async () => {
  const stream = api.messages.stream(body({ model: "home-chat-m", max_tokens: 1500, messages: [{ role: "user", content: "tell me everything" }] }));
  stream.on("text", () => stream.abort());
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
});
