// LlamaIndex JS, unmodified: @llamaindex/openai (chat by both of its APIs, embeddings), with an index and an agent on it.
import assert from "node:assert/strict";
import { OpenAI, OpenAIEmbedding, OpenAIResponses } from "@llamaindex/openai";
import { agent, agentToolCallEvent } from "@llamaindex/workflow";
import { Document, Settings, VectorStoreIndex, tool } from "llamaindex";
import { z } from "zod/v3"; // the one that its packages bring
import { client } from "./calls.mjs";

const base = process.env.SHOAL_URL;
const common = { apiKey: "none", baseURL: `${base}/v1`, maxRetries: 0, temperature: 0 };
const home = {
  role: "system",
  content: "You are Shoal, a helper that runs this home. Devices:\nlight.kitchen 'Kitchen Light' = on\nlock.front_door 'Front Door Lock' = locked",
};
const off = (done) => tool({
  name: "light.turn_off", description: "turns a light off", parameters: z.object({ target: z.enum(["light.kitchen", "light.attic"]) }),
  execute: ({ target }) => { done.push(target); return `${target} is off`; },
});
const device = z.object({ room: z.enum(["kitchen", "attic"]), level: z.number().int().min(0).max(100) });
const row = client("@llamaindex/openai");
const embedding = (more) => new OpenAIEmbedding({ ...common, model: "home-embed", ...more });

const kinds = [
  ["OpenAI", (more) => new OpenAI({ ...common, model: "home-chat-s", maxTokens: 48, ...more })],
  ["OpenAIResponses", ({ maxTokens, ...more } = {}) => new OpenAIResponses({ ...common, topP: 1e-6 /* it sends no temperature */, model: "home-chat-s", maxOutputTokens: maxTokens ?? 48, ...more })],
];
for (const [kind, make] of kinds) {
  row(`${kind}: chat`, "a reply, whole and streamed", async () => {
    const messages = [{ role: "user", content: `hello ${kind}` }];
    let text = "";
    for await (const piece of await make().chat({ messages, stream: true }))
      if (kind === "OpenAI" || piece.raw.type === "response.output_text.delta") text += piece.delta; // at other events it repeats itself
    const whole = await make().chat({ messages });
    assert.ok(whole.message.content.length > 0);
    assert.equal(text, whole.message.content);
  });

  row(`${kind}: complete`, "a prompt as one message", async () => {
    assert.ok((await make().complete({ prompt: "hello" })).text.length > 0);
  });

  row(`${kind}: chat`, "a call of a tool, its result, and the answer", async () => {
    const done = [], messages = [home, { role: "user", content: "turn off the kitchen light" }], tools = [off(done)];
    const { newMessages } = await make().exec({ messages, tools });
    assert.deepEqual(done, ["light.kitchen"]);
    const said = await make().chat({ messages: [...messages, ...newMessages], tools });
    assert.equal(said.message.content, "light.kitchen is off");
  });
}

row("OpenAI: chat", "a stream with a call of a tool", async () => {
  const tools = [off([])];
  let call;
  for await (const piece of await kinds[0][1]().chat({ messages: [home, { role: "user", content: "turn off the kitchen light" }], tools, stream: true }))
    if (piece.options && "toolCall" in piece.options) call = piece.options.toolCall[0];
  assert.equal(call.name, "light.turn_off");
  assert.deepEqual(typeof call.input === "string" ? JSON.parse(call.input) : call.input, { target: "light.kitchen" });
});

row("OpenAI: chat", "responseFormat of a zod schema holds the reply", async () => {
  const r = await kinds[0][1]().chat({ messages: [{ role: "user", content: "which light?" }], responseFormat: device });
  assert.ok(device.safeParse(JSON.parse(r.message.content)).success, r.message.content);
});

row.differs("OpenAI: exec", "responseFormat of a zod schema", "the client offers the schema as a tool and leaves it to the model whether to call it, and small models may say something instead; chat's responseFormat holds", async () => {
  const r = await kinds[0][1]().exec({ messages: [{ role: "user", content: "which light?" }], responseFormat: device });
  assert.ok(r.object ? device.safeParse(r.object).success : r.newMessages[0].content.length > 0);
});

row("OpenAI: chat", "an error has the server's status", async () => {
  await assert.rejects(kinds[0][1]({ model: "nobody" }).chat({ messages: [{ role: "user", content: "x" }] }), (e) => e.status === 404);
});

row("OpenAIEmbedding: getTextEmbedding, getTextEmbeddingsBatch", "vectors, fewer dimensions too", async () => {
  const one = await embedding().getTextEmbedding("good morning");
  assert.equal(one.length, 256);
  const many = await embedding().getTextEmbeddingsBatch(Array.from({ length: 25 }, (_, i) => (i ? `text ${i}` : "good morning")));
  assert.equal(many.length, 25);
  one.forEach((x, i) => assert.ok(Math.abs(x - many[0][i]) < 1e-5));
  assert.equal((await embedding({ dimensions: 64 }).getTextEmbedding("good morning")).length, 64);
});

client("llamaindex")("VectorStoreIndex: asRetriever, asQueryEngine", "documents are embedded, found and asked about", async () => {
  Settings.llm = kinds[0][1]();
  Settings.embedModel = embedding();
  const index = await VectorStoreIndex.fromDocuments([new Document({ text: "Bleed the radiators every autumn." }), new Document({ text: "The spare key hangs behind the meter." })]);
  const found = await index.asRetriever({ similarityTopK: 1 }).retrieve({ query: "radiators in autumn" });
  assert.match(found[0].node.text, /radiators/);
  assert.ok((await index.asQueryEngine().query({ query: "when are the radiators bled?" })).toString().length > 0);
});

client("@llamaindex/workflow")("agent: runStream", "an agent calls its tool and says what came of it", async () => {
  const done = [], called = [];
  const helper = agent({ llm: kinds[0][1](), tools: [off(done)], systemPrompt: home.content });
  let result;
  for await (const event of helper.runStream("turn off the kitchen light")) {
    if (agentToolCallEvent.include(event)) called.push(event.data.toolName);
    if (event.data?.result !== undefined) result = event.data.result;
  }
  assert.deepEqual(called, ["light.turn_off"]);
  assert.deepEqual(done, ["light.kitchen"]);
  assert.equal(result, "light.kitchen is off");
});
