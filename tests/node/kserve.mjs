// A client of the Open Inference Protocol, version 2, made from its public REST specification, against /v2: what it says
// equals what our own endpoints say. Run by tests/e2e/kserve.sh, with models of all the tasks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const base = process.env.SHOAL_URL, data = process.env.SHOAL_DATA;
const json = { "content-type": "application/json" };
const ours = async (path, body) => (await fetch(base + path, { method: "POST", headers: json, body: JSON.stringify(body) })).json();
const get = async (path) => { const r = await fetch(base + path); return [r.status, await r.json()]; };
const SIZES = { BOOL: 1, INT32: 4, INT64: 8, FP32: 4, FP64: 8 };

// What stands behind the JSON.
function unpack(o, bytes) {
  const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), out = [];
  for (let at = 0; at < bytes.length;) {
    if (o.datatype === "BYTES") {
      const n = v.getUint32(at, true);
      out.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + n)));
      at += 4 + n;
    } else {
      out.push(o.datatype === "FP32" ? v.getFloat32(at, true) : o.datatype === "FP64" ? v.getFloat64(at, true) : Number(v.getBigInt64(at, true)));
      at += SIZES[o.datatype];
    }
  }
  return out;
}
async function infer(model, body, tail) {
  const text = Buffer.from(JSON.stringify(body));
  const headers = tail ? { "content-type": "application/octet-stream", "inference-header-content-length": String(text.length) } : json;
  const r = await fetch(`${base}/v2/models/${model}/infer`, { method: "POST", headers, body: tail ? Buffer.concat([text, tail]) : text });
  const bytes = new Uint8Array(await r.arrayBuffer()), n = Number(r.headers.get("inference-header-content-length") ?? bytes.length);
  const answer = JSON.parse(new TextDecoder().decode(bytes.subarray(0, n)));
  let at = n;
  for (const o of answer.outputs ?? []) {
    if (o.data) continue;
    o.data = unpack(o, bytes.subarray(at, at += o.parameters.binary_data_size));
  }
  for (const o of answer.outputs ?? []) assert.equal(o.data.length, o.shape.reduce((a, b) => a * b, 1), o.name);
  return { status: r.status, headers: r.headers, answer, out: Object.fromEntries((answer.outputs ?? []).map((o) => [o.name, o])) };
}
const texts = (name, ...data) => ({ name, datatype: "BYTES", shape: [data.length], data });
const floats = (list) => list.map(Math.fround);

test("the server and its models", async () => {
  assert.deepEqual((await get("/v2"))[1].extensions, ["binary_tensor_data", "model_repository", "model_configuration", "statistics", "trace", "logging"]);
  assert.deepEqual(await get("/v2/health/live"), [200, { live: true }]);
  assert.deepEqual(await get("/v2/health/ready"), [200, { ready: true }]);
  assert.deepEqual(await get("/v2/models/home-embed/ready"), [200, { name: "home-embed", ready: true }]);
  const [status, m] = await get("/v2/models/home-embed");
  assert.equal(status, 200);
  assert.deepEqual(m.inputs, [{ name: "text", datatype: "BYTES", shape: [-1] }]);
  assert.deepEqual(m.outputs, [{ name: "embedding", datatype: "FP32", shape: [-1, 256] }]);
  assert.equal((await get(`/v2/models/home-embed/versions/${m.versions[0]}`))[0], 200);
  assert.equal((await get(`/v2/models/home-embed/versions/${m.versions[0]}/ready`))[0], 200);
  assert.equal((await get("/v2/models/home-embed/versions/none/ready"))[0], 404);
  const index = await ours("/v2/repository/index", { ready: true });
  assert.ok(index.some((o) => o.name === "home-embed" && o.state === "READY" && o.version === m.versions[0]));
  for (const name of ["home-intent", "home-slots", "home-chat-s", "trees", "table", "ranker", "look", "pair"]) {
    const [status, face] = await get(`/v2/models/${name}`);
    assert.equal(status, 200, name);
    assert.ok(face.inputs.length && face.outputs.length, name);
  }
});

test("vectors are those of /v1/embeddings, bit for bit", async () => {
  const input = ["hello", "good night", "schön \u{1f41f}"];
  const want = (await ours("/v1/embeddings", { model: "home-embed", input })).data.flatMap((d) => floats(d.embedding));
  const a = await infer("home-embed", { id: "7", inputs: [texts("text", ...input)] });
  assert.equal(a.answer.id, "7");
  assert.equal(a.answer.model_name, "home-embed");
  assert.deepEqual(a.out.embedding.shape, [3, 256]);
  assert.deepEqual(floats(a.out.embedding.data), want);
  const binary = await infer("home-embed", { inputs: [texts("text", ...input)], parameters: { binary_data_output: true } });
  assert.deepEqual(binary.out.embedding.data, want);
  assert.equal(binary.headers.get("content-type"), "application/octet-stream");
  assert.equal(binary.headers.get("x-shoal-cache"), "hit");
  const tail = Buffer.concat(input.flatMap((s) => [Buffer.from(new Uint32Array([Buffer.byteLength(s)]).buffer), Buffer.from(s)]));
  const both = await infer("home-embed", {
    inputs: [{ name: "text", datatype: "BYTES", shape: [3, 1], parameters: { binary_data_size: tail.length } }],
    outputs: [{ name: "embedding", parameters: { binary_data: true } }],
  }, tail);
  assert.deepEqual(both.out.embedding.data, want);
});

test("labels, spans and ranks", async () => {
  const input = ["turn on the lamp", "what is the time"];
  const want = (await ours("/v1/classify", { model: "home-intent", input })).data.map((d) => d.labels);
  const a = await infer("home-intent", { inputs: [texts("text", ...input)] });
  assert.deepEqual(a.out.label.data, want.map((l) => l[0].label));
  assert.deepEqual(floats(a.out.score.data), floats(want.map((l) => l[0].score)));
  assert.equal(a.out.scores.shape[1], want[0].length);
  assert.equal(Math.max(...floats(a.out.scores.data.slice(0, want[0].length))), Math.fround(want[0][0].score));
  const spans = (await ours("/v1/tag", { model: "home-slots", input })).data.map((d) => d.spans);
  const tagged = await infer("home-slots", { inputs: [texts("text", ...input)], outputs: [{ name: "spans" }] });
  assert.deepEqual(tagged.out.spans.data.map((s) => JSON.parse(s)), spans);
  const documents = ["a lamp", "the clock says ten", "nothing"];
  const ranked = (await ours("/v1/rerank", { model: "ranker", query: "time", documents })).results;
  const ranks = await infer("ranker", { inputs: [texts("query", "time"), texts("documents", ...documents)] });
  ranked.forEach((r) => assert.equal(Math.fround(ranks.out.score.data[r.index]), Math.fround(r.relevance_score)));
});

test("texts", async () => {
  const prompt = ["The kitchen", "Good"];
  const want = (await ours("/v1/completions", { model: "home-chat-s", prompt, temperature: 0, max_tokens: 8 })).choices;
  const a = await infer("home-chat-s", { inputs: [texts("text_input", ...prompt)], parameters: { temperature: 0, max_tokens: 8, sequence_id: 4 } });
  assert.deepEqual(a.out.text_output.data, want.map((c) => c.text));
  assert.deepEqual(a.out.finish_reason.data, want.map((c) => c.finish_reason));
  const pair = await infer("pair", { inputs: [texts("text_input", "The")], parameters: { max_tokens: 4 } });
  assert.equal(pair.status, 200);
  assert.match(pair.headers.get("x-shoal-ensemble"), /mean/);
});

test("rows of a table, by column and as a matrix", async () => {
  const e = JSON.parse(readFileSync(`${data}/sensors/trees/expected.json`)), rows = e.rows.map((r) => r.x);
  const want = (await ours("/v1/score", { model: "trees", columns: e.features, rows })).data;
  const inputs = e.features.map((name, i) => ({ name, datatype: "FP64", shape: [rows.length], data: rows.map((r) => r[i]) }));
  const a = await infer("trees", { inputs });
  assert.deepEqual(a.out.label.data, want.map((d) => d.label));
  assert.deepEqual(a.out.score.data, want.map((d) => d.scores[d.label]));
  assert.deepEqual(a.out.scores.data, want.flatMap((d) => Object.values(d.scores)));
  assert.deepEqual(a.out.row.data, want.map((d) => d.row));
  const n = (await get("/v2/models/table"))[1].inputs[0].shape[1];
  assert.ok(n > 1);
  const matrix = Array.from({ length: 5 * n }, (_, i) => (i % 7 ? Math.fround(Math.sin(i)) : null));
  const columns = Array.from({ length: n }, (_, i) => `f${i}`);
  const direct = (await ours("/v1/score", { model: "table", columns, rows: Array.from({ length: 5 }, (_, r) => matrix.slice(r * n, (r + 1) * n)) })).data;
  const b = await infer("table", { inputs: [{ name: "features", datatype: "FP32", shape: [5, n], data: matrix }], outputs: [{ name: "scores", parameters: { binary_data: true } }] });
  assert.deepEqual(b.out.scores.data, direct.flatMap((d) => d.scores));
});

test("a picture", async () => {
  const bytes = readFileSync(`${data}/signal/alpha.png`), image = bytes.toString("base64");
  const want = (await ours("/v1/images/classify", { model: "look", image })).data[0].labels[0];
  const tail = Buffer.concat([Buffer.from(new Uint32Array([bytes.length]).buffer), bytes]);
  const a = await infer("look", { inputs: [{ name: "image", datatype: "BYTES", shape: [1], parameters: { binary_data_size: tail.length } }] }, tail);
  assert.equal(a.out.label.data[0], want.label);
  assert.equal(Math.fround(a.out.score.data[0]), Math.fround(want.score));
});

test("what is wrong is said in the protocol's form", async () => {
  const text = (o) => ({ inputs: [{ name: "text", datatype: "BYTES", shape: [1], data: ["a"], ...o }] });
  const BAD = [
    ["nobody", text(), 404, /nobody/],
    ["home-embed", text({ name: "x" }), 400, /input "text" is missing; the request has "x"/],
    ["home-embed", text({ datatype: "FP32", data: [1] }), 400, /must be BYTES/],
    ["home-embed", text({ shape: [2] }), 400, /its shape says 2/],
    ["home-embed", text({ shape: [-1] }), 400, /dimension/],
    ["home-embed", text({ shape: [2 ** 40, 2 ** 40] }), 400, /more elements/],
    ["home-embed", text({ shape: [0], data: [] }), 400, /empty/],
    ["home-embed", { ...text(), outputs: [{ name: "nothing" }] }, 400, /no output "nothing"/],
    ["home-embed", { inputs: [] }, 400, /inputs/],
    ["home-embed", [], 400, /object/],
    ["home-chat-s", { inputs: [texts("text_input", "a")], parameters: { temperature: 9 } }, 400, /temperature/],
    ["table", { inputs: [{ name: "features", datatype: "FP32", shape: [1, 1], data: [1] }] }, 400, /columns/],
    ["trees", { inputs: [{ name: "a", datatype: "FP32", shape: [1], data: [1] }] }, 400, /column/],
    ["hears", { inputs: [texts("text", "a")] }, 400, /not served in tensors/],
  ];
  for (const [model, body, status, words] of BAD) {
    const r = await infer(model, body);
    assert.equal(r.status, status, JSON.stringify(r.answer));
    assert.match(r.answer.error, words);
  }
  const nan = Buffer.from(new Float32Array([NaN, Infinity]).buffer);
  const r = await infer("trees", { inputs: [{ name: "vibration", datatype: "FP32", shape: [2], parameters: { binary_data_size: 8 } }] }, nan);
  assert.deepEqual([r.status, /infinite/.test(r.answer.error)], [400, true]);
  for (const n of ["x", "-1", "99999999", "18446744073709551616"]) {
    const r = await fetch(`${base}/v2/models/home-embed/infer`, { method: "POST", headers: { ...json, "inference-header-content-length": n }, body: "{}" });
    assert.deepEqual([n, r.status, typeof (await r.json()).error], [n, 400, "string"]);
  }
  for (const path of ["/v2/models/no%2Fbody", "/v2/models/%ff", "/v2/models/nobody/ready"]) assert.ok((await get(path))[0] >= 400, path);
  const foreign = await fetch(`${base}/v2/models/home-embed`, { headers: { origin: "http://evil.example" } });
  assert.deepEqual([foreign.status, typeof (await foreign.json()).error], [403, "string"]);
});
