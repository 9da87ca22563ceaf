// LangChain JS, unmodified: @langchain/openai (chat by both of its APIs, completions, embeddings) and @langchain/ollama.
import assert from "node:assert/strict";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { ChatOllama, OllamaEmbeddings } from "@langchain/ollama";
import { z } from "zod";
import { client } from "./calls.mjs";

const base = process.env.SHOAL_URL;
const configuration = { baseURL: `${base}/v1` };
const common = { apiKey: "none", configuration, maxRetries: 0, temperature: 0 };
const home = new SystemMessage(
  "You are Shoal, a helper that runs this home. Devices:\n" +
  "light.kitchen 'Kitchen Light' = on\nlock.front_door 'Front Door Lock' = locked");
const off = tool(async ({ target }) => `${target} is off`, {
  name: "light.turn_off", description: "turns a light off", schema: z.object({ target: z.enum(["light.kitchen", "light.attic"]) }),
});
const look = tool(async () => "dark", { name: "look", description: "looks", schema: z.object({ at: z.enum(["hall", "attic"]) }) });
const device = z.object({ room: z.enum(["kitchen", "attic"]), level: z.number().int().min(0).max(100), tags: z.array(z.string().max(8)).max(3) });
const tokens = (m) => m.usage_metadata;

const of_openai = client("@langchain/openai"), of_ollama = client("@langchain/ollama");
const doors = [
  [of_openai, "ChatOpenAI", (more) => new ChatOpenAI({ ...common, model: "home-chat-s", maxTokens: 64, ...more })],
  [of_openai, "ChatOpenAI with useResponsesApi", (more) => new ChatOpenAI({ ...common, model: "home-chat-s", maxTokens: 64, useResponsesApi: true, ...more })],
  [of_ollama, "ChatOllama", ({ maxTokens, ...more } = {}) => new ChatOllama({ baseUrl: base, model: "home-chat-s", temperature: 0, numPredict: maxTokens ?? 64, ...more })],
];
for (const [row, kind, make] of doors) {
  const ollama = row === of_ollama;

  row(`${kind}: invoke`, "a reply with its usage", async () => {
    const m = await make().invoke([new HumanMessage("hello")]);
    assert.ok(m.content.length > 0);
    assert.ok(tokens(m).input_tokens > 0 && tokens(m).output_tokens > 0);
    assert.equal(tokens(m).total_tokens, tokens(m).input_tokens + tokens(m).output_tokens);
  });

  row(`${kind}: stream`, "the pieces give the whole, and the last has the usage", async () => {
    let all;
    for await (const piece of await make().stream(`hello ${kind}`)) all = all ? all.concat(piece) : piece;
    const whole = await make().invoke(`hello ${kind}`);
    assert.equal(all.text, whole.text);
    assert.ok(tokens(all).output_tokens > 0);
  });

  row(`${kind}: bindTools`, "a call, its result, and the answer", async () => {
    const model = make().bindTools([off, look]);
    const turn = [home, new HumanMessage("turn off the kitchen light")];
    const asked = await model.invoke(turn);
    assert.deepEqual(asked.tool_calls.map((c) => [c.name, c.args]), [["light.turn_off", { target: "light.kitchen" }]]);
    const done = await off.invoke(asked.tool_calls[0]);
    assert.ok(done instanceof ToolMessage);
    const said = await model.invoke([...turn, asked, done]);
    assert.equal(said.text, "light.kitchen is off");
    let streamed;
    for await (const piece of await model.stream(turn)) streamed = streamed ? streamed.concat(piece) : piece;
    assert.deepEqual(streamed.tool_calls.map((c) => [c.name, c.args]), [["light.turn_off", { target: "light.kitchen" }]]);
  });

  const any = kind === "ChatOpenAI"; // the client's other path sends no tool_choice but a name
  if (!ollama)
    row(`${kind}: bindTools`, `tool_choice ${any ? "any, none, " : ""}a name; strict; a model that was never trained to call`, async () => {
      for (const model of ["home-chat-s", "plain"]) {
        const ask = (more) => make({ model, temperature: 1, maxTokens: 96 }).bindTools([off, look], more).invoke("go");
        const named = await ask({ tool_choice: "look", parallel_tool_calls: false, strict: true });
        assert.equal(named.tool_calls[0].name, "look");
        assert.ok(["hall", "attic"].includes(named.tool_calls[0].args.at));
        if (!any) continue;
        assert.ok(["light.turn_off", "look"].includes((await ask({ tool_choice: "any" })).tool_calls[0].name));
        assert.equal((await ask({ tool_choice: "none" })).tool_calls.length, 0);
      }
    });

  for (const method of ollama ? ["jsonSchema"] : ["jsonSchema", "functionCalling"])
    row(`${kind}: withStructuredOutput`, `${method}: an object of a zod schema`, async () => {
      const r = await make({ maxTokens: 200 }).withStructuredOutput(device, { name: "device", method, includeRaw: true }).invoke("which light?");
      assert.ok(device.safeParse(r.parsed).success, JSON.stringify(r.raw.content) + JSON.stringify(r.raw.tool_calls));
    });

  row(`${kind}: stream`, "abort ends the request", async () => {
    const controller = new AbortController();
    await assert.rejects(async () => {
      for await (const _ of await make({ maxTokens: 1500, temperature: 1 }).stream("go on", { signal: controller.signal })) controller.abort();
    });
    for (let i = 0; i < 200; i++) {
      const s = await (await fetch(`${base}/v1/status`)).json();
      if (s.replicas.every((x) => x.model !== "home-chat-s" || !x.running)) return;
      await new Promise((wake) => setTimeout(wake, 20));
    }
    assert.fail("it runs on");
  });

  row(`${kind}: pipe, batch`, "a chain of a prompt, the model and a parser, several at once", async () => {
    const chain = ChatPromptTemplate.fromMessages([["system", "Be brief."], ["human", "say {word}"]]).pipe(make({ maxTokens: 8 })).pipe(new StringOutputParser());
    const said = await chain.batch([{ word: "one" }, { word: "two" }, { word: "three" }]);
    assert.equal(said.length, 3);
    assert.ok(said.every((s) => typeof s === "string" && s.length > 0));
  });
}

of_openai("ChatOpenAI: invoke", "logprobs, stop, seed, user, n, service_tier, metadata", async () => {
  const model = new ChatOpenAI({ ...common, model: "home-chat-s", maxTokens: 12, logprobs: true, topLogprobs: 2, stop: ["zzz"], user: "u", n: 2, topP: 0.9,
    frequencyPenalty: 0.1, presencePenalty: 0.1, service_tier: "auto", modelKwargs: { seed: 1, metadata: { a: "b" }, store: false } });
  const r = await model.generate([[new HumanMessage("hello")]]);
  assert.equal(r.generations[0].length, 2);
  assert.equal(r.generations[0][0].message.response_metadata.logprobs.content[0].top_logprobs.length, 2);
});

of_openai("ChatOpenAI: invoke", "an error has the server's status and code", async () => {
  await assert.rejects(new ChatOpenAI({ ...common, model: "nobody" }).invoke("x"), (e) => e.status === 404 && e.code === "model_not_found");
  await assert.rejects(new ChatOpenAI({ ...common, model: "home-chat-s" }).invoke("word ".repeat(4000)), (e) => e.name === "ContextOverflowError" && /2048/.test(e.message));
});

of_openai("ChatOpenAI with useResponsesApi: invoke", "a turn goes on with previous_response_id", async () => {
  const model = new ChatOpenAI({ ...common, model: "home-chat-s", maxTokens: 16, useResponsesApi: true });
  const first = await model.invoke("my name is Ada");
  const second = await model.invoke("what is my name", { previous_response_id: first.response_metadata.id });
  assert.ok(tokens(second).input_tokens > tokens(first).input_tokens);
});

of_openai("ChatOpenAI with useResponsesApi: invoke", "a turn of the assistant goes back as it came, calls among it", async () => {
  const model = new ChatOpenAI({ ...common, model: "home-chat-s", maxTokens: 64, useResponsesApi: true }).bindTools([off]);
  const turn = [home, new HumanMessage("hello"), new AIMessage("hello yourself"), new HumanMessage([{ type: "text", text: "turn off the kitchen light" }])];
  const asked = await model.invoke(turn);
  const said = await model.invoke([...turn, asked, await off.invoke(asked.tool_calls[0])]);
  assert.equal(said.text, "light.kitchen is off");
});

of_openai("OpenAI: invoke, stream", "a completion, whole and streamed", async () => {
  const model = new OpenAI({ ...common, model: "home-chat-s", maxTokens: 12 });
  const whole = await model.invoke("Once");
  let text = "";
  for await (const piece of await model.stream("Once")) text += piece;
  assert.equal(text, whole);
});

of_openai("OpenAIEmbeddings: embedQuery, embedDocuments", "vectors, in batches of 512, fewer dimensions too", async () => {
  const all = new OpenAIEmbeddings({ ...common, model: "home-embed" });
  const one = await all.embedQuery("good morning");
  assert.equal(one.length, 256);
  const many = await all.embedDocuments(Array.from({ length: 520 }, (_, i) => (i ? `text ${i}` : "good morning")));
  assert.equal(many.length, 520);
  one.forEach((x, i) => assert.ok(Math.abs(x - many[0][i]) < 1e-5));
  const few = await new OpenAIEmbeddings({ ...common, model: "home-embed", dimensions: 32 }).embedQuery("good morning");
  assert.equal(few.length, 32);
});

of_ollama("OllamaEmbeddings: embedQuery, embedDocuments", "vectors", async () => {
  const all = new OllamaEmbeddings({ baseUrl: base, model: "home-embed" });
  const [one, many] = [await all.embedQuery("good morning"), await all.embedDocuments(["good morning", "good night"])];
  assert.equal(many.length, 2);
  one.forEach((x, i) => assert.ok(Math.abs(x - many[0][i]) < 1e-5));
});
