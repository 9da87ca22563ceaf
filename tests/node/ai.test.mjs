// Vercel's ai with its providers @ai-sdk/openai (chat, responses, completions) and @ai-sdk/openai-compatible, unmodified.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Output, cosineSimilarity, embed, embedMany, generateObject, generateText, isStepCount, jsonSchema, streamObject, streamText, tool, transcribe } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";
import { z as z3 } from "zod/v3";
import { client } from "./calls.mjs";

const baseURL = `${process.env.SHOAL_URL}/v1`;
const openai = createOpenAI({ baseURL, apiKey: "none" });
const compatible = createOpenAICompatible({ name: "shoal", baseURL, includeUsage: true, supportsStructuredOutputs: true });
const system =
  "You are Shoal, a helper that runs this home. Devices:\n" +
  "light.kitchen 'Kitchen Light' = on\nlock.front_door 'Front Door Lock' = locked";
const prompt = "turn off the kitchen light";
const quiet = { temperature: 0, maxOutputTokens: 64, maxRetries: 0 };
const device = z.object({
  room: z.enum(["kitchen", "attic"]),
  on: z.boolean(),
  level: z.number().int().min(0).max(100).nullable(),
});
const obeys = (schema, value) => assert.ok(schema.safeParse(value).success, JSON.stringify(value));
const tools = (done) => ({
  "light.turn_off": tool({
    description: "turns a light off",
    inputSchema: z.object({ target: z.enum(["light.kitchen", "light.attic"]) }),
    execute: async ({ target }) => { done.push(target); return `${target} is off`; },
  }),
});

const providers = [
  ["@ai-sdk/openai", "chat", (m) => openai.chat(m)],
  ["@ai-sdk/openai", "responses", (m) => openai.responses(m)],
  ["@ai-sdk/openai-compatible", "chatModel", (m) => compatible.chatModel(m)],
];
for (const [name, kind, model] of providers) {
  const row = client(name);
  const chat = model("home-chat-s");

  row(`${kind}: generateText`, "a reply, its end and its usage", async () => {
    const r = await generateText({ ...quiet, model: chat, prompt: "hello", maxOutputTokens: 16, seed: kind === "responses" ? undefined : 1 });
    assert.ok(r.text.length > 0);
    assert.ok(["stop", "length"].includes(r.finishReason));
    assert.ok(r.usage.inputTokens > 0 && r.usage.outputTokens > 0);
    assert.equal(r.usage.totalTokens, r.usage.inputTokens + r.usage.outputTokens);
    assert.equal(r.response.modelId, "home-chat-s");
    assert.deepEqual(r.warnings ?? [], []);
  });

  row(`${kind}: streamText`, "the parts give what the whole gives", async () => {
    const ask = { ...quiet, model: chat, prompt: `hello there ${name} ${kind}` }; // not the cache's, which answers in one piece
    const r = streamText({ ...ask, onError: ({ error }) => { throw error; } });
    let text = "", parts = 0;
    for await (const part of r.textStream) { text += part; parts++; }
    const whole = await generateText(ask);
    assert.equal(text, whole.text);
    assert.ok(parts >= 1);
    assert.ok((await r.usage).outputTokens > 0);
    assert.equal(await r.finishReason, whole.finishReason);
  });

  for (const [how, ask] of [["generateText", generateText], ["streamText", streamText]])
    row(`${kind}: ${how}`, "a loop of steps: a tool is called, run and answered", async () => {
      const done = [];
      const r = await ask({ ...quiet, model: chat, system, prompt, tools: tools(done), stopWhen: isStepCount(3) });
      if (how === "streamText") await r.consumeStream();
      const steps = await r.steps;
      assert.deepEqual(done, ["light.kitchen"]);
      assert.equal(steps.length, 2);
      assert.equal(steps[0].finishReason, "tool-calls");
      assert.equal(steps[1].finishReason, "stop");
      assert.equal(await r.text, "light.kitchen is off");
    });

  row(`${kind}: generateText`, "toolChoice required, a name, and none; a model that was never trained to call", async () => {
    for (const name of ["home-chat-s", "plain"]) {
      const offered = {
        look: tool({ description: "looks", inputSchema: z.object({ at: z.enum(["hall", "attic"]) }) }),
        wait: tool({ description: "waits", inputSchema: z.object({ s: z.number().int().min(1).max(9) }) }),
      };
      const ask = (toolChoice) => generateText({ model: model(name), maxRetries: 0, prompt: "go", tools: offered, toolChoice, temperature: 1, maxOutputTokens: 96 });
      const required = await ask("required");
      assert.ok(["look", "wait"].includes(required.toolCalls[0].toolName));
      assert.ok(!required.toolCalls[0].invalid, JSON.stringify(required.toolCalls));
      const named = await ask({ type: "tool", toolName: "wait" });
      assert.equal(named.toolCalls.length, 1);
      assert.ok(named.toolCalls[0].input.s >= 1 && named.toolCalls[0].input.s <= 9);
      assert.equal((await ask("none")).toolCalls.length, 0);
    }
  });

  for (const [version, schema] of [["zod 4", device], ["zod 3", z3.object({ room: z3.enum(["kitchen", "attic"]), on: z3.boolean(), level: z3.number().int().min(0).max(100).nullable() })]]) {
    row(`${kind}: generateObject`, `an object of a schema of ${version}`, async () => {
      const r = await generateObject({ ...quiet, model: chat, schema, prompt: "light?", temperature: 1 });
      obeys(schema, r.object);
    });
    row(`${kind}: streamObject`, `an object of a schema of ${version}, as it grows`, async () => {
      const r = streamObject({ ...quiet, model: chat, schema, prompt: `light? ${name} ${kind} ${version}`, onError: ({ error }) => { throw error; } });
      let n = 0;
      for await (const _ of r.partialObjectStream) n++;
      assert.ok(n >= 1);
      obeys(schema, await r.object);
    });
  }

  row(`${kind}: generateText`, "Output.object, Output.array and Output.choice", async () => {
    const one = await generateText({ ...quiet, model: chat, prompt: "light?", output: Output.object({ schema: device }) });
    obeys(device, one.output);
    const many = await generateText({ ...quiet, model: chat, prompt: "rooms?", maxOutputTokens: 256, output: Output.array({ element: z.object({ room: z.enum(["kitchen", "attic"]) }).strict() }) });
    for (const e of many.output) assert.ok(["kitchen", "attic"].includes(e.room));
    const choice = await generateText({ ...quiet, model: chat, prompt: "sunny?", output: Output.choice({ options: ["sunny", "rainy"] }) });
    assert.ok(["sunny", "rainy"].includes(choice.output));
  });

  row(`${kind}: generateText`, "a schema written as JSON, with $ref and recursion", async () => {
    const schema = jsonSchema({
      type: "object", additionalProperties: false, required: ["tree"], properties: { tree: { $ref: "#/$defs/node" } },
      $defs: { node: { type: "object", additionalProperties: false, required: ["v", "kids"], properties: {
        v: { type: "integer", minimum: 0, maximum: 9 }, kids: { type: "array", maxItems: 2, items: { $ref: "#/$defs/node" } } } } },
    });
    const r = await generateText({ ...quiet, model: chat, prompt: "a tree", maxOutputTokens: 512, output: Output.object({ schema }) });
    const judge = (n) => { assert.ok(n.v >= 0 && n.v <= 9 && n.kids.length <= 2); n.kids.forEach(judge); };
    judge(r.output.tree);
  });

  row(`${kind}: streamText`, "abort ends the request", async () => {
    const controller = new AbortController();
    const r = streamText({ model: chat, prompt: "go on", temperature: 1, maxOutputTokens: 1500, abortSignal: controller.signal, onError: () => {} });
    for await (const _ of r.textStream) { controller.abort(); break; }
    for (let i = 0; i < 200; i++) {
      const s = await (await fetch(`${baseURL}/status`)).json();
      if (s.replicas.every((x) => x.model !== "home-chat-s" || !x.running)) return;
      await new Promise((wake) => setTimeout(wake, 20));
    }
    assert.fail("it runs on");
  });

  row(`${kind}: generateText`, "an error of the server is the client's APICallError", async () => {
    await assert.rejects(generateText({ ...quiet, model: model("nobody"), prompt: "x" }),
      (e) => e.name === "AI_APICallError" && e.statusCode === 404 && /nobody/.test(e.message) && !e.isRetryable);
    await assert.rejects(generateText({ ...quiet, model: chat, prompt: "word ".repeat(4000) }),
      (e) => e.statusCode === 400 && e.data.error.code === "context_length_exceeded");
  });

  row(`${kind}: generateText`, "a picture to a model that reads text is refused by name", async () => {
    const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
    await assert.rejects(generateText({ ...quiet, model: chat, messages: [{ role: "user", content: [{ type: "text", text: "what?" }, { type: "image", image: png }] }] }),
      (e) => e.statusCode === 400 && /reads? text alone/.test(e.message));
  });
}

const openai_row = client("@ai-sdk/openai"), compatible_row = client("@ai-sdk/openai-compatible");

openai_row("responses: generateText", "a turn goes on with previousResponseId", async () => {
  const first = await generateText({ ...quiet, model: openai.responses("home-chat-s"), prompt: "my name is Ada" });
  const id = first.providerMetadata.openai.responseId;
  const second = await generateText({ ...quiet, model: openai.responses("home-chat-s"), prompt: "what is my name", providerOptions: { openai: { previousResponseId: id, store: true, metadata: { a: "b" }, user: "u", parallelToolCalls: false, serviceTier: "auto" } } });
  assert.ok(second.usage.inputTokens > first.usage.inputTokens);
});

for (const [row, kind, model] of [[openai_row, "completion", openai.completion("home-chat-s")], [compatible_row, "completionModel", compatible.completionModel("home-chat-s")]])
  row(`${kind}: generateText, streamText`, "a prompt is written on, whole and streamed", async () => {
    const ask = { ...quiet, model, prompt: "Once", maxOutputTokens: 12 };
    const whole = await generateText(ask);
    let text = "";
    for await (const part of streamText(ask).textStream) text += part;
    assert.equal(text, whole.text);
    assert.ok(whole.usage.outputTokens > 0);
  });

for (const [row, kind, model] of [[openai_row, "embedding", openai.embedding("home-embed")], [compatible_row, "embeddingModel", compatible.embeddingModel("home-embed")]])
  row(`${kind}: embed, embedMany`, "vectors of texts, fewer dimensions too", async () => {
    const { embedding, usage } = await embed({ model, value: "good morning" });
    assert.equal(embedding.length, 256);
    assert.ok(usage.tokens > 0);
    const { embeddings } = await embedMany({ model, values: ["good morning", "set an alarm"] });
    assert.ok(cosineSimilarity(embeddings[0], embedding) > 0.9999);
    const key = row === openai_row ? "openai" : "shoal";
    const short = await embed({ model, value: "good morning", providerOptions: { [key]: { dimensions: 64 } } });
    assert.equal(short.embedding.length, 64);
    assert.ok(Math.abs(Math.hypot(...short.embedding) - 1) < 1e-4);
  });

openai_row("transcription: transcribe", "a WAV file is written down", async () => {
  const r = await transcribe({ model: openai.transcription("home-ears"), audio: readFileSync(process.env.SHOAL_WAV), maxRetries: 0 });
  assert.equal(r.text, "lights on");
});

openai_row("chat: generateText", "settings of its own: logprobs, user, metadata, store, prediction, serviceTier, reasoningEffort", async () => {
  const r = await generateText({ ...quiet, model: openai.chat("home-chat-s"), prompt: "hello", topP: 0.9, presencePenalty: 0.1, frequencyPenalty: 0.1, stopSequences: ["zzz"], seed: 3,
    providerOptions: { openai: { logprobs: 2, user: "u", metadata: { a: "b" }, store: true, serviceTier: "auto", reasoningEffort: "low", maxCompletionTokens: 12, promptCacheKey: "k", safetyIdentifier: "s",
      prediction: { type: "content", content: "x" } } } });
  assert.ok(r.providerMetadata.openai.logprobs[0].top_logprobs.length === 2);
});

openai_row.differs("image: generateImage", "a picture", "no model here draws: 404 not_found", async () => {
  const { generateImage } = await import("ai");
  await assert.rejects(generateImage({ model: openai.image("dall-e-3"), prompt: "x", maxRetries: 0 }), (e) => e.statusCode === 404);
});
