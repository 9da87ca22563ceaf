// llama-server's own endpoints, by plain fetch, as its clients (llama.vim, LangChain, SillyTavern, ...) ask them.
import assert from "node:assert/strict";
import test from "node:test";

const base = process.env.SHOAL_URL, model = "home-chat-s";
const json = { "content-type": "application/json" };
const post = async (path, body) => { const r = await fetch(base + path, { method: "POST", headers: json, body: JSON.stringify(body) }); return { status: r.status, headers: r.headers, body: await r.json() }; };
const ok = async (path, body) => { const r = await post(path, body); assert.equal(r.status, 200, JSON.stringify(r.body)); return r.body; };
const get = async (path) => { const r = await fetch(base + path); return { status: r.status, body: await r.json() }; };
async function* events(path, body) {
  const r = await fetch(base + path, { method: "POST", headers: json, body: JSON.stringify({ ...body, stream: true }) });
  assert.match(r.headers.get("content-type"), /^text\/event-stream/);
  let rest = "";
  for await (const bytes of r.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + bytes).split("\n\n");
    rest = parts.pop();
    for (const p of parts) {
      assert.match(p, /^data: \{/); // nothing else stands in it
      yield JSON.parse(p.slice(6));
    }
  }
  assert.equal(rest, "");
}
const prompt = (await ok("/apply-template", { model, messages: [{ role: "user", content: "what can you do" }] })).prompt;
const greedy = { model, prompt, temperature: 0, n_predict: 24 };

test("a completion, whole and streamed", async () => {
  const want = (await ok("/v1/completions", { model, prompt, temperature: 0, max_tokens: 24, top_p: 0.95, top_k: 40, min_p: 0.05 })).choices[0];
  const seen = [], tokens = [];
  for await (const e of events("/completion", greedy)) { seen.push(e); tokens.push(...e.tokens); }
  const a = await ok("/completion", { ...greedy, return_tokens: true, cache_prompt: true, id_slot: -1 });
  assert.equal(a.content, want.text);
  assert.equal(a.stop, true);
  assert.equal(a.stop_type, want.finish_reason === "length" ? "limit" : "eos");
  assert.equal(a.tokens.length, a.tokens_predicted);
  assert.equal(a.prompt, prompt);
  assert.equal(a.generation_settings.n_predict, 24);
  assert.ok(a.timings.predicted_n === a.tokens_predicted && a.tokens_evaluated > 5);
  assert.deepEqual((await ok("/completions", greedy)).content, a.content);
  const last = seen.pop();
  assert.ok(seen.length >= 1 && seen.every((e) => e.stop === false) && last.stop === true && last.content === "");
  assert.equal(seen.map((e) => e.content).join(""), want.text);
  assert.deepEqual(tokens, a.tokens);
  let kept = ""; // from the cache, in one piece
  for await (const e of events("/completion", greedy)) kept += e.content;
  assert.equal(kept, want.text);
  for (const key of ["timings", "generation_settings", "tokens_predicted", "tokens_evaluated", "stop_type", "truncated"]) assert.ok(key in last, key);
});

test("what ends a reply, and what may be in it", async () => {
  const whole = await ok("/completion", greedy), word = whole.content.trim().split(/\s+/)[1];
  const a = await ok("/completion", { ...greedy, stop: ["never this", word] });
  assert.deepEqual([a.stop_type, a.stopping_word], ["word", word]);
  assert.ok(!a.content.includes(word) && whole.content.startsWith(a.content));
  assert.equal((await ok("/completion", { ...greedy, n_predict: 2 })).stop_type, "limit");
  const nothing = await ok("/completion", { ...greedy, n_predict: 0 });
  assert.deepEqual([nothing.content, nothing.tokens_predicted], ["", 0]);
  const o = JSON.parse((await ok("/completion", { ...greedy, model: "home-chat-m", n_predict: 90, json_schema: { type: "object", properties: { room: { enum: ["kitchen", "attic"] } }, required: ["room"], additionalProperties: false } })).content);
  assert.ok(["kitchen", "attic"].includes(o.room));
  const first = (await ok("/completion", { ...greedy, return_tokens: true })).tokens[0];
  assert.notEqual((await ok("/completion", { ...greedy, return_tokens: true, logit_bias: [[first, false]] })).tokens[0], first);
  const p = await ok("/completion", { ...greedy, n_probs: 3, n_predict: 2 });
  assert.equal(p.completion_probabilities.length, p.tokens_predicted);
  for (const c of p.completion_probabilities) assert.ok(c.top_logprobs.length === 3 && c.logprob <= 0 && Array.isArray(c.bytes) && c.top_logprobs[0].logprob >= c.top_logprobs[1].logprob);
  assert.deepEqual(await ok("/completion", { ...greedy, n_predict: 2, response_fields: ["stop", "generation_settings/n_predict"] }), { stop: true, n_predict: 2 });
  const seeded = { ...greedy, temperature: 0.9, seed: 11 };
  assert.equal((await ok("/completion", seeded)).content, (await ok("/completion", seeded)).content);
});

test("texts are tokens and tokens are texts", async () => {
  for (const content of ["The kitchen light", "schön \u{1f41f}\n", "", "  two"]) {
    const { tokens } = await ok("/tokenize", { model, content });
    assert.equal((await ok("/detokenize", { model, tokens })).content, content);
    const pieces = (await ok("/tokenize", { model, content, with_pieces: true })).tokens;
    assert.deepEqual(pieces.map((p) => p.id), tokens);
    const bytes = pieces.flatMap((p) => (typeof p.piece === "string" ? [...Buffer.from(p.piece)] : p.piece));
    assert.equal(Buffer.from(bytes).toString(), content);
  }
  assert.ok((await ok("/tokenize", { model, content: "\u{1f41f}", with_pieces: true })).tokens.some((t) => Array.isArray(t.piece)));
  const end = "<|im_end|>";
  assert.equal((await ok("/tokenize", { model, content: end })).tokens.length, 1);
  assert.ok((await ok("/tokenize", { model, content: end, parse_special: false })).tokens.length > 1);
  const cls = await ok("/tokenize", { model: "home-embed", content: "hello", add_special: true });
  assert.ok(cls.tokens.length > (await ok("/tokenize", { model: "home-embed", content: "hello" })).tokens.length);
});

test("prompts of ids, mixed ones, and many", async () => {
  const whole = (await ok("/completion", greedy)).content;
  const { tokens } = await ok("/tokenize", { model, content: prompt });
  assert.equal((await ok("/completion", { ...greedy, prompt: tokens })).content, whole);
  const cut = prompt.indexOf("can"), head = (await ok("/tokenize", { model, content: prompt.slice(0, cut) })).tokens;
  const tail = (await ok("/tokenize", { model, content: prompt.slice(cut) })).tokens;
  const mixed = await ok("/completion", { ...greedy, prompt: [...head, prompt.slice(cut)] });
  assert.equal(mixed.content, (await ok("/completion", { ...greedy, prompt: [...head, ...tail] })).content);
  assert.equal(mixed.tokens_evaluated, head.length + tail.length);
  const many = await ok("/completion", { ...greedy, n_predict: 4, prompt: [tokens, prompt, [...head, prompt.slice(cut)], { prompt_string: "The" }] });
  assert.deepEqual(many.map((m) => m.index), [0, 1, 2, 3]);
  assert.equal(many[0].content, many[1].content);
  const seen = ["", ""];
  for await (const e of events("/completion", { ...greedy, n_predict: 4, prompt: ["The", "A"] })) seen[e.index] += e.content;
  assert.deepEqual(seen, (await ok("/completion", { ...greedy, n_predict: 4, prompt: ["The", "A"] })).map((m) => m.content));
});

test("the model, its slots and its template", async () => {
  const { body: p } = await get(`/props?model=${model}`);
  assert.match(p.chat_template, /im_start/);
  assert.deepEqual([p.model_path, p.model_alias], [model, model]);
  assert.equal(p.default_generation_settings.n_ctx, 2048);
  assert.equal(p.default_generation_settings.params.temperature, 0); // the bundled models are greedy
  assert.match(p.build_info, /^shoal-\d/);
  let slots;
  for (let i = 0; i < 200; i++) { // what others asked and left may still be ending
    slots = (await get(`/slots?model=${model}`)).body;
    if (!slots.some((s) => s.is_processing)) break;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(slots.length, p.total_slots);
  assert.ok(slots.every((s, i) => s.id === i && typeof s.is_processing === "boolean" && s.n_ctx === 2048));
  assert.equal((await get(`/slots?model=${model}&fail_on_no_slot=1`)).status, 200);
  const vote = (await get("/props?model=home-vote")).body;
  assert.ok(vote.total_slots > 0 && (await get("/slots?model=home-vote")).body.length === vote.total_slots);
  for (const path of ["/health", "/v1/health"]) { // other tests may load a model just now
    const { status, body } = await get(path);
    if (status === 200) assert.deepEqual(body, { status: "ok" }); else assert.deepEqual([status, body.error.type], [503, "unavailable_error"]);
  }
  assert.match(prompt, /what can you do/);
  assert.ok((await get("/models")).body.data.some((m) => m.id === model));
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];
  assert.match((await ok("/apply-template", { model, messages: [{ role: "user", content: "x" }], tools })).prompt, /look/);
});

test("vectors in the older form", async () => {
  const want = (await ok("/v1/embeddings", { model: "home-embed", input: ["hello", "bye"] })).data.map((d) => [d.embedding]);
  for (const path of ["/embedding", "/embeddings"]) assert.deepEqual((await ok(path, { content: ["hello", "bye"] })).map((o) => o.embedding), want);
});

test("without a model the first generator is asked, as by clients of a server that has one", async () => {
  const first = (await get("/props")).body.model_path, ask = { prompt: "turn on", n_predict: 2, temperature: 0 };
  const said = await ok("/completion", ask);
  assert.equal(said.model, first);
  assert.equal(said.content, (await ok("/completion", { ...ask, model: first })).content);
  assert.deepEqual(await ok("/tokenize", { content: "turn on" }), await ok("/tokenize", { model: first, content: "turn on" }));
});

test("what is wrong is said in llama-server's form", async () => {
  const BAD = [
    ["/completion", { model: "nobody", prompt: "a" }, 404, /nobody/],
    ["/completion", { model }, 400, /prompt/],
    ["/completion", { model, prompt: [5, "a", -7] }, 400, /ids/],
    ["/completion", { model, prompt: [99999999] }, 400, /99999999/],
    ["/completion", { model: "auto", prompt: [5, "a"] }, 400, /route/],
    ["/completion", { model: "home-embed", prompt: "a" }, 400, /embed/],
    ["/completion", { model, prompt: "a", grammar: 'root ::= "a"' }, 400, /json_schema/],
    ["/completion", { model, prompt: "a", mirostat: 2 }, 400, /mirostat/],
    ["/completion", { model, prompt: "a ".repeat(5000) }, 400, /context/],
    ["/tokenize", { model }, 400, /content/],
    ["/tokenize", { model, content: 7 }, 400, /content/],
    ["/detokenize", { model, tokens: [-1] }, 400, /tokens\[0\]/],
    ["/detokenize", { model, tokens: [1.5] }, 400, /tokens\[0\]/],
    ["/detokenize", { model, tokens: [8192] }, 400, /vocabulary has 8192/],
    ["/detokenize", { model, tokens: "a" }, 400, /array/],
    ["/apply-template", { model }, 400, /messages/],
    ["/apply-template", { model: "home-embed", messages: [{ role: "user", content: "a" }] }, 400, /template/],
    ["/infill", { model, input_prefix: "a", input_suffix: "b" }, 501, /gaps/],
    ["/embedding", {}, 400, /content/],
    ["/embedding", { content: "a", embd_normalize: 0 }, 400, /embd_normalize/],
    ["/rerank", { model, query: "a", documents: ["b"] }, 400, /does "generate"/],
    ["/rerank", { query: "a" }, 400, /documents/],
  ];
  for (const [path, body, status, words] of BAD) {
    const r = await post(path, body);
    assert.deepEqual([path, r.status, r.body.error?.code], [path, status, status], JSON.stringify([body, r.body]).slice(0, 300));
    assert.match(r.body.error.message, words);
    assert.match(r.body.error.type, /_error$/);
  }
  for (const bad of ["", "[]", "{", '{"prompt":']) {
    for (const path of ["/completion", "/tokenize", "/detokenize", "/embedding", "/infill"]) {
      const r = await fetch(base + path, { method: "POST", headers: json, body: bad });
      assert.deepEqual([r.status, (await r.json()).error.code], [400, 400]);
    }
  }
  assert.equal((await get("/slots?model=nobody")).status, 404);
  await assert.rejects(async () => { for await (const e of events("/completion", { model: "nobody", prompt: "a" })) void e; });
});

test("without a cross-encoder an embedder ranks", async () => {
  const r = await ok("/rerank", { query: "turn on the light", documents: ["cook dinner", "switch the lamp on"] });
  assert.deepEqual([r.ranked_by, r.model, r.results[0].index], ["embeddings", "home-embed", 1]);
});

test("a client that leaves stops its request", async () => {
  for (let i = 0; i < 10; i++) {
    const long = events("/completion", { ...greedy, n_predict: 1500, ignore_eos: true, temperature: 1, seed: i });
    await long.next();
    await long.return();
  }
  for (let i = 0; i < 100; i++) {
    const s = await (await fetch(base + "/v1/status")).json();
    if (s.replicas.every((r) => !r.running && !r.calls)) return;
    await new Promise((r) => setTimeout(r, 50));
  }
  assert.fail("it runs on");
});
