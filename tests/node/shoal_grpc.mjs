// @grpc/grpc-js against shoal.v1.Shoal, from the .proto that is installed: every task beside the same request over HTTP,
// streams, errors with details, deadlines, cancelling, compression, health and reflection. Run by tests/e2e/grpc.sh,
// which sets SHOAL_URL, SHOAL_KEY, SHOAL_PROTO and SHOAL_DATA; with SHOAL_CA the channel speaks TLS.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { client as calls_of } from "./calls.mjs";

const call = calls_of("@grpc/grpc-js");
const base = process.env.SHOAL_URL, key = process.env.SHOAL_KEY, root = process.env.SHOAL_PROTO;
const options = { includeDirs: [root], keepCase: true, longs: Number, enums: String, oneofs: false };
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, options));
const { Shoal } = load("shoal/v1/shoal.proto").shoal.v1;
const { Health } = load("grpc/health/v1/health.proto").grpc.health.v1;
const secure = process.env.SHOAL_CA ? grpc.credentials.createSsl(readFileSync(process.env.SHOAL_CA)) : grpc.credentials.createInsecure();
const address = base.replace(/^https?:\/\//, ""), channel = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 };
const shoal = new Shoal(address, secure, channel), clients = [shoal];
after(() => clients.forEach((c) => c.close()));

const metadata = (fields = {}) => {
  const md = new grpc.Metadata();
  if (key) md.set("authorization", `Bearer ${key}`);
  for (const [name, value] of Object.entries(fields)) md.set(name, value);
  return md;
};
/** The answer, with the head's metadata as `head`; or throws the status. */
const ask = (method, request, fields, opts = {}, at = shoal) =>
  new Promise((done, failed) => {
    let head;
    const c = at[method](request, metadata(fields), opts, (e, r) => (e ? failed(e) : done(Object.assign(r, { head }))));
    c.on("metadata", (m) => (head = m.getMap()));
  });
const post = async (path, body, headers = {}) => {
  const r = await fetch(base + path, {
    method: body ? "POST" : "GET",
    headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  return { status: r.status, headers: r.headers, body: await r.json() };
};
const fails = async (promise) => {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error("it did not fail");
};

/** A message as our JSON has it: texts of JSON are what they say, what further members hold is among the others. */
const plain = (v) => {
  if (Array.isArray(v)) return v.map(plain);
  if (v === null || typeof v !== "object" || Buffer.isBuffer(v)) return v;
  const out = {};
  for (const [name, value] of Object.entries(v)) {
    if (name === "head" || value === undefined) continue;
    if (name === "more_json") Object.assign(out, JSON.parse(value));
    else if (name.endsWith("_json")) out[name.slice(0, -5)] = JSON.parse(value);
    else out[name] = plain(value);
  }
  return out;
};
/** JSON without nulls and empty lists, which a message does not have, and without what differs between two requests. */
const settle = (v) => {
  if (Array.isArray(v)) return v.map(settle);
  if (v === null || typeof v !== "object") return v;
  const drawn = ["completion_tokens_details", "cached_tokens", "cache_write_tokens", "id", "created", "ms", "at_ms", "cpu_ms", "queue_ms", "prefill_ms", "calls", "requests"];
  return Object.fromEntries(Object.entries(v).filter(([name, value]) => value !== null && value !== undefined && value.length !== 0 && !drawn.includes(name))
    .sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, settle(value)]));
};
const equal = (message, http) => assert.equal(JSON.stringify(settle(plain(message))), JSON.stringify(settle(http)));
const user = (content) => [{ role: "user", content }];
const calm = { "cache-control": "no-store" };

/** The details: a google.rpc.Status with an ErrorInfo, read by its field numbers. */
const fields_of = (bytes) => {
  const out = [];
  for (let at = 0; at < bytes.length;) {
    const varint = () => { let v = 0, k = 0, b; do { b = bytes[at++]; v += (b & 127) * 2 ** k; k += 7; } while (b & 128); return v; };
    const tag = varint(), value = tag & 7 ? ((n) => bytes.subarray(at, (at += n)))(varint()) : varint();
    out.push([tag >> 3, value]);
  }
  return out;
};
const details_of = (e) => {
  const status = fields_of(e.metadata.get("grpc-status-details-bin")[0]);
  const of = (list, number) => list.filter(([n]) => n === number).map(([, v]) => v);
  const any = of(status, 3).map((v) => fields_of(v)).find((v) => String(of(v, 1)[0]).endsWith("google.rpc.ErrorInfo"));
  const info = fields_of(of(any, 2)[0]);
  const pairs = of(info, 3).map((v) => fields_of(v)).map((v) => [String(of(v, 1)[0]), String(of(v, 2)[0] ?? "")]);
  return { code: of(status, 1)[0], message: String(of(status, 2)[0]), reason: String(of(info, 1)[0]), domain: String(of(info, 2)[0]), ...Object.fromEntries(pairs) };
};

// ---- tasks, each beside HTTP ------------------------------------------------------------------------------------

const TASKS = [
  ["Classify", "/v1/classify", { model: "home-intent", input: ["turn on the light", "what time is it"], top_k: 3 }],
  ["Tag", "/v1/tag", { model: "home-slots", input: ["turn on the kitchen light in 5 minutes"] }],
  ["Chat", "/v1/chat/completions", { model: "home-chat-s", messages: user("hello"), max_tokens: 12, temperature: 0, logprobs: true, top_logprobs: 2 }],
  ["Chat", "/v1/chat/completions", { model: "home-cascade", messages: user("hello"), max_tokens: 8, temperature: 0 }],
  ["Chat", "/v1/chat/completions", { model: "auto", messages: user("turn on the light"), max_tokens: 8, temperature: 0 }, { "x-shoal-latency": "realtime" }],
  ["Complete", "/v1/completions", { model: "home-chat-s", prompt: ["turn on"], max_tokens: 6, temperature: 0, logprobs: 1 }],
  ["Process", "/v1/process", { input: "turn off the office fan", devices: [{ id: "fan.office", name: "Office Fan", state: "on" }] }],
];
for (const [method, path, body, fields] of TASKS)
  call(method, `${body.model ?? "a pipeline"} answers as ${path} does`, async () => {
    const request = { ...body };
    if (request.devices) {
      request.devices_json = JSON.stringify(request.devices);
      delete request.devices;
    }
    equal(await ask(method, request, { ...calm, ...fields }), (await post(path, body, { ...calm, ...fields })).body);
  });

call("Embed", "vectors are HTTP's to the last bit", async () => {
  const body = { model: "home-embed", input: ["the same text"] };
  const http = (await post("/v1/embeddings", { ...body, encoding_format: "base64" })).body.data[0].embedding;
  const bytes = Buffer.from(http, "base64"), own = (await ask("Embed", body)).data[0].embedding;
  assert.equal(own.length, bytes.length / 4);
  own.forEach((v, i) => assert.equal(v, bytes.readFloatLE(4 * i)));
});

call("Chat", "tools, a schema and further members are JSON, in the order that they have", async () => {
  const schema = { type: "object", properties: { zone: { type: "string", maxLength: 8 }, area: { enum: ["a", "b"] } }, required: ["zone", "area"], additionalProperties: false };
  const format = { type: "json_schema", json_schema: { name: "place", schema } };
  const r = await ask("Chat", { model: "home-chat-m", messages: user("where?"), temperature: 0, max_tokens: 60, response_format_json: JSON.stringify(format), more_json: '{"user":"u"}' });
  assert.deepEqual(Object.keys(JSON.parse(r.choices[0].message.content)), ["zone", "area"]);
  const tools = [{ type: "function", function: { name: "light_on", parameters: { type: "object", properties: { area: { enum: ["hall"] } }, required: ["area"] } } }];
  const t = await ask("Chat", { model: "home-chat-s", messages: user("light in the hall"), temperature: 0, tools_json: JSON.stringify(tools), tool_choice_json: '"required"', max_tokens: 60 });
  assert.equal(t.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(t.choices[0].message.tool_calls[0].function.arguments), { area: "hall" });
});

call("ListModels", "lists what GET /v1/models lists", async () => {
  const facts = (list) => list.data.map(({ id, object, owned_by, task, architecture, version, digest, labels }) => ({ id, object, owned_by, task, architecture, version, digest, labels }));
  const own = plain(await ask("ListModels", {})), http = (await post("/v1/models")).body;
  assert.equal(own.object, "list");
  equal({ data: facts(own) }, { data: facts(http) });
});
call("Status", "names the replicas and their state", async () => {
  const s = await ask("Status", {});
  assert.equal(s.status, "ready");
  assert.ok(s.replicas.some((r) => r.model === "home-intent" && r.state === "ready"));
});

call("Search", "finds in a collection, and Answer cites it", async () => {
  const place = `grpc-${process.pid}`;
  const made = await post("/v1/collections", { name: place, model: "none" });
  assert.ok(made.status < 300, JSON.stringify(made.body));
  await post(`/v1/collections/${place}/documents`, { documents: [{ source: "boiler.md", text: "The radiators are bled every October." }] });
  const query = { query: "radiators", limit: 2 };
  const found = await ask("Search", { collection: place, ...query });
  equal(found, (await post(`/v1/collections/${place}/search`, query)).body);
  assert.equal(found.results[0].source, "boiler.md");
  const answer = await ask("Answer", { collection: place, question: "When are the radiators bled?", model: "home-chat-s" });
  assert.equal(typeof answer.answered, "boolean");
  const e = await fails(ask("Search", { query: "x" }));
  assert.deepEqual([e.code, details_of(e).param], [grpc.status.INVALID_ARGUMENT, "collection"]);
});

// ---- sound ------------------------------------------------------------------------------------------------------

const wav = readFileSync(`${process.env.SHOAL_DATA}/08-lights-on.wav`);
const transcribe = async (pieces, first = {}, fields) => {
  const c = shoal.Transcribe(metadata({ ...calm, ...fields })), seen = [];
  c.write({ model: "home-ears", ...first });
  for (const audio of pieces) c.write({ audio });
  c.end();
  for await (const e of c) seen.push(e);
  return seen;
};
call("Transcribe", "a stream of sound becomes a stream of text, however it is cut", async () => {
  for (const size of [wav.length, 4096, 333]) {
    const pieces = [];
    for (let at = 0; at < wav.length; at += size) pieces.push(wav.subarray(at, at + size));
    const seen = await transcribe(pieces);
    assert.equal(seen.at(-1).type, "transcript.text.done");
    assert.equal(seen.at(-1).text, "lights on");
  }
});
call("Transcribe", "silence is an empty text, with a detector and without", async () => {
  const silence = Buffer.concat([wav.subarray(0, 44), Buffer.alloc(wav.length - 44)]);
  for (const first of [{}, { vad: true }, { vad: false }]) {
    const seen = await transcribe([silence], first);
    assert.deepEqual([seen.length, seen[0].type, seen[0].text], [1, "transcript.text.done", ""]);
  }
});
call("Transcribe", "what is no sound, no model or nothing at all is refused", async () => {
  assert.equal((await fails(transcribe([Buffer.from("no sound at all")]))).code, grpc.status.INVALID_ARGUMENT);
  assert.equal((await fails(transcribe([wav], { model: "nobody" }))).code, grpc.status.NOT_FOUND);
  assert.equal((await fails(transcribe([]))).code, grpc.status.INVALID_ARGUMENT);
  const c = shoal.Transcribe(metadata());
  c.end();
  assert.match((await fails((async () => { for await (const e of c); })())).details, /no message came/);
});
call("Transcribe", "a call that is cancelled in the middle of its sound ends", async () => {
  const c = shoal.Transcribe(metadata(calm));
  c.write({ model: "home-ears", audio: wav.subarray(0, 1000) });
  setTimeout(() => c.cancel(), 30);
  assert.equal((await fails((async () => { for await (const e of c); })())).code, grpc.status.CANCELLED);
});
call("Vad", "a form is made of the message, and a model that cannot is named", async () => {
  const e = await fails(ask("Vad", { model: "home-intent", file: wav, threshold: 0.5 }));
  assert.equal(e.code, grpc.status.INVALID_ARGUMENT);
  assert.equal(details_of(e).reason, "wrong_task");
  assert.equal(details_of(await fails(ask("Vad", { model: "home-intent" }))).param, "file");
});

// ---- streams ----------------------------------------------------------------------------------------------------

const long = { model: "home-chat-s", messages: user("tell me everything"), temperature: 0, ignore_eos: true, max_tokens: 200 };
const words = (chunks) => chunks.map((c) => c.choices?.[0]?.delta?.content ?? "").join("");
const stream = async (request, fields, at = shoal) => {
  const seen = [];
  for await (const c of at.ChatStream(request, metadata({ ...calm, ...fields }))) seen.push(c);
  return seen;
};
call("ChatStream", "its chunks are the whole answer, with usage at the end", async () => {
  const seen = await stream({ ...long, stream_options: { include_usage: true } });
  const whole = await ask("Chat", long, calm);
  assert.ok(seen.length > 3);
  assert.equal(words(seen), whole.choices[0].message.content);
  assert.equal(seen.at(-1).usage.completion_tokens, 200);
  const http = await (await fetch(`${base}/v1/chat/completions`, { method: "POST", headers: { ...calm, ...(key ? { authorization: `Bearer ${key}` } : {}), "content-type": "application/json" }, body: JSON.stringify({ ...long, stream: true }) })).text();
  const events = http.split("\n").filter((l) => l.startsWith("data: {")).map((l) => JSON.parse(l.slice(6)));
  assert.equal(words(events), words(seen));
});
call("ChatStream", "goes on behind an event_id over another connection", async () => {
  const first = [], c = shoal.ChatStream(long, metadata(calm));
  for await (const chunk of c) {
    first.push(chunk);
    if (first.length === 4) break;
  }
  c.cancel();
  const other = new Shoal(address, secure, { ...channel, "grpc.use_local_subchannel_pool": 1 });
  const rest = await stream(long, { "last-event-id": first.at(-1).event_id }, other);
  assert.equal(words(first) + words(rest), (await ask("Chat", long, calm)).choices[0].message.content);
  other.close();
});
call("ProcessStream", "tells stages, words and the answer", async () => {
  const seen = [];
  for await (const e of shoal.ProcessStream({ input: "turn off the office fan" }, metadata(calm))) seen.push(e);
  const kinds = new Set(seen.map((e) => e.event));
  assert.deepEqual([...kinds], ["stage", "text", "answer"]);
  assert.equal(seen.filter((e) => e.event === "text").map((e) => e.text).join(""), seen.at(-1).answer.text);
  equal(seen.at(-1).answer, (await post("/v1/process", { input: "turn off the office fan" }, calm)).body);
});
call("CompleteStream", "gives what Complete gives", async () => {
  const request = { model: "home-chat-s", prompt: ["turn on"], max_tokens: 12, temperature: 0 };
  let text = "";
  for await (const c of shoal.CompleteStream(request, metadata(calm))) text += c.choices?.[0]?.text ?? "";
  assert.equal(text, (await ask("Complete", request, calm)).choices[0].text);
});

// ---- how a call ends --------------------------------------------------------------------------------------------

const in_flight = async () => (await post("/v1/status")).body.requests_in_flight;
const idle = async () => {
  for (let i = 0; i < 200; i++) {
    const s = (await post("/v1/status")).body;
    if (s.replicas.every((r) => r.running === 0 && r.waiting === 0) && s.requests_in_flight <= 1) return;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error("work went on for nobody");
};
const endless = { ...long, max_tokens: 1900, logit_bias_json: '{"2":-100}' };
call("ChatStream", "cancelling ends the work", async () => {
  const c = shoal.ChatStream(endless, metadata(calm));
  const e = await fails((async () => { for await (const chunk of c) c.cancel(); })());
  assert.equal(e.code, grpc.status.CANCELLED);
  await idle();
});
call("Chat", "a deadline that passes is DEADLINE_EXCEEDED, and ends the work", async () => {
  const e = await fails(ask("Chat", endless, calm, { deadline: Date.now() + 60 }));
  assert.equal(e.code, grpc.status.DEADLINE_EXCEEDED);
  await idle();
});
call("Chat", "x-shoal-deadline-ms counts where it is sooner, with our sentence", async () => {
  const e = await fails(ask("Chat", endless, { ...calm, "x-shoal-deadline-ms": "50" }, { deadline: Date.now() + 60000 }));
  assert.equal(e.code, grpc.status.DEADLINE_EXCEEDED);
  assert.equal(details_of(e).type, "timeout_error");
});
call("Classify", "errors have HTTP's sentence and code", async () => {
  for (const [request, path, code] of [
    [{ model: "nope", input: ["x"] }, "/v1/classify", grpc.status.NOT_FOUND],
    [{ model: "home-embed", input: ["x"] }, "/v1/classify", grpc.status.INVALID_ARGUMENT],
    [{ model: "home-intent" }, "/v1/classify", grpc.status.INVALID_ARGUMENT],
  ]) {
    const e = await fails(ask("Classify", request)), http = await post(path, request), said = http.body.error;
    assert.equal(e.code, code);
    assert.equal(e.details, said.message);
    const d = details_of(e);
    assert.deepEqual([d.code, d.message, d.domain, d.type, d.http_status], [code, said.message, "shoal", said.type, String(http.status)]);
    assert.equal(d.reason, said.code ?? said.type);
    assert.equal(d.param ?? null, said.param);
  }
});
call("Chat", "JSON that is none is refused by the field's name", async () => {
  const e = await fails(ask("Chat", { model: "home-chat-s", messages: user("x"), tools_json: "[{" }));
  assert.equal(e.code, grpc.status.INVALID_ARGUMENT);
  assert.match(e.details, /tools_json/);
});
call("Classify", "metadata are headers, both ways", async () => {
  const request = { model: "home-intent", input: ["said twice"] };
  assert.equal((await ask("Classify", request, { "x-request-id": "grpc-7" })).head["x-request-id"], "grpc-7");
  assert.equal((await ask("Classify", request)).head["x-shoal-cache"], "hit");
  const route = await ask("Chat", { model: "auto", messages: user("hello"), max_tokens: 2, temperature: 0 });
  assert.ok(route.head["x-shoal-route"]);
});
call("Classify", "a key that is none is UNAUTHENTICATED", async () => {
  if (!key) return;
  const e = await fails(ask("Classify", { model: "home-intent", input: ["x"] }, { authorization: "Bearer wrong" }));
  assert.equal(e.code, grpc.status.UNAUTHENTICATED);
  assert.equal(details_of(e).reason, "invalid_api_key");
  const few = { authorization: "Bearer sk-few" };
  await ask("Classify", { model: "home-intent", input: ["x"] }, few);
  assert.equal((await fails(ask("Tag", { model: "home-slots", input: ["x"] }, few))).code, grpc.status.PERMISSION_DENIED);
  assert.equal((await ask("Check", { service: "home-intent" }, few, {}, health)).status, "SERVING");
  assert.equal((await fails(ask("Check", { service: "home-slots" }, few, {}, health))).code, grpc.status.PERMISSION_DENIED);
  assert.equal((await fails(ask("Check", { service: "home-slots" }, { authorization: "" }, {}, health))).code, grpc.status.UNAUTHENTICATED);
  const c = shoal.Transcribe(metadata({ authorization: "Bearer wrong" }));
  assert.equal((await fails((async () => { for await (const v of c); })())).code, grpc.status.UNAUTHENTICATED);
});
call("Embed", "gzip is taken and given", async () => {
  const packed = new Shoal(address, secure, { ...channel, "grpc.default_compression_algorithm": 2 });
  const request = { model: "home-embed", input: Array.from({ length: 40 }, (_, i) => `light ${i % 7}`) };
  const a = await ask("Embed", request, calm, {}, packed), b = await ask("Embed", request, calm);
  assert.deepEqual(a.data, b.data);
  const deflated = new Shoal(address, secure, { ...channel, "grpc.default_compression_algorithm": 1, "grpc.use_local_subchannel_pool": 1 });
  assert.equal((await fails(ask("Embed", request, calm, {}, deflated))).code, grpc.status.UNIMPLEMENTED);
  packed.close();
  deflated.close();
});
call("Classify", "a message over the limit is RESOURCE_EXHAUSTED", async () => {
  const e = await fails(ask("Classify", { model: "home-intent", input: ["x".repeat(6 << 20)] }));
  assert.equal(e.code, grpc.status.RESOURCE_EXHAUSTED);
});
call("Classify", "many at once over one connection", async () => {
  const all = await Promise.all(Array.from({ length: 500 }, (_, i) => ask("Classify", { model: "home-intent", input: [`light ${i % 9}`] })));
  assert.equal(all.length, 500);
  for (const r of all) assert.equal(r.data[0].labels.length, 65);
});

// ---- health -----------------------------------------------------------------------------------------------------

const health = new Health(address, secure);
clients.push(health);
call("Health", "the server, its services and each model are SERVING", async () => {
  for (const service of ["", "shoal.v1.Shoal", "home-intent"])
    assert.equal((await ask("Check", { service }, {}, {}, health)).status, "SERVING");
  assert.equal((await fails(ask("Check", { service: "nobody" }, {}, {}, health))).code, grpc.status.NOT_FOUND);
});
call("Health", "a watch says when a model's worker dies, and when it is back", async () => {
  const c = health.Watch({ service: "home-slots" }, metadata()), seen = [];
  const { replicas } = (await post("/readyz")).body;
  for await (const m of c) {
    seen.push(m.status);
    if (seen.length === 1) process.kill(replicas.find((r) => r.model === "home-slots").pid, "SIGKILL");
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, ["SERVING", "NOT_SERVING", "SERVING"]);
  c.cancel();
  const none = health.Watch({ service: "nobody" }, metadata());
  for await (const m of none) {
    assert.equal(m.status, "SERVICE_UNKNOWN");
    break;
  }
  none.cancel();
});

// ---- reflection: a client that knows nothing but the reflection service --------------------------------------------

for (const version of ["v1", "v1alpha"]) {
  const { ServerReflection } = load(`grpc/reflection/${version}/reflection.proto`).grpc.reflection[version];
  const reflect = new ServerReflection(address, secure);
  clients.push(reflect);
  const tell = async (...questions) => {
    const c = reflect.ServerReflectionInfo(metadata()), seen = [];
    for (const q of questions) c.write(q);
    c.end();
    for await (const m of c) seen.push(m);
    return seen;
  };
  call("ServerReflection", `${version} lists the services, and their files make a client`, async () => {
    const [list] = await tell({ list_services: "*" });
    const names = list.list_services_response.service.map((s) => s.name);
    for (const name of ["shoal.v1.Shoal", "grpc.health.v1.Health", `grpc.reflection.${version}.ServerReflection`]) assert.ok(names.includes(name), name);
    const said = await tell(...names.map((file_containing_symbol) => ({ file_containing_symbol })));
    const files = new Map();
    for (const m of said) for (const f of m.file_descriptor_response.file_descriptor_proto) files.set(f.toString("latin1"), f);
    const set = Buffer.concat([...files.values()].map((f) => { // FileDescriptorSet: field 1 each
      const head = [0x0a];
      for (let n = f.length; ; n >>>= 7) {
        head.push(n > 127 ? (n & 127) | 128 : n);
        if (n <= 127) break;
      }
      return Buffer.concat([Buffer.from(head), f]);
    }));
    const described = grpc.loadPackageDefinition(loader.loadFileDescriptorSetFromBuffer(set, options));
    const c = new described.shoal.v1.Shoal(address, secure);
    const r = await ask("Classify", { model: "home-intent", input: ["turn on the light"], top_k: 1 }, {}, {}, c);
    assert.equal(r.data[0].labels[0].label, "iot_hue_lighton");
    c.close();
  });
  call("ServerReflection", `${version} answers nonsense with errors, and goes on`, async () => {
    const said = await tell({ file_by_filename: "../../etc/passwd" }, { file_containing_symbol: "shoal.v1.Worker" }, { all_extension_numbers_of_type: "x" }, { host: "h" },
      { file_by_filename: "shoal/v1/shoal.proto" }, { file_containing_symbol: "shoal.v1.Shoal.Chat" });
    assert.deepEqual(said.slice(0, 4).map((m) => m.error_response?.error_code), [5, 5, 5, 3]);
    assert.equal(said[4].file_descriptor_response.file_descriptor_proto.length, 1);
    assert.ok(said[5].file_descriptor_response);
    assert.equal(said[0].original_request.file_by_filename, "../../etc/passwd");
  });
}

call("Shoal", "nothing is left behind", async () => {
  await idle();
  assert.ok((await in_flight()) <= 1);
});
