// An encoder of BERT's kind from our GGUF file as ONNX, the way ONNX Runtime likes it best: weights of int8 with one scale
// a matrix, activations quantised as they come, and its own fused operations (com.microsoft) for embeddings, attention,
// sums with norms, and gelu. No mask: texts of one length need none, and it would only cost it time.
//
// Formats: github.com/ggml-org/ggml docs/gguf.md; github.com/onnx/onnx onnx/onnx.proto3; docs/ContribOperators.md of
// ONNX Runtime.
import fs from "node:fs";

// ---- GGUF

const GGUF_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]; // by type; 8 is a text, 9 an array
class Cursor {
  constructor(bytes) { this.b = bytes; this.at = 0; }
  u32() { const v = this.b.readUInt32LE(this.at); this.at += 4; return v; }
  u64() { const v = Number(this.b.readBigUInt64LE(this.at)); this.at += 8; return v; }
  text() { const n = this.u64(), s = this.b.toString("utf8", this.at, this.at + n); this.at += n; return s; }
  value(type) {
    if (type === 8) return this.text();
    if (type === 9) {
      const of = this.u32(), n = this.u64();
      if (of !== 8) { this.at += n * GGUF_BYTES[of]; return null; }
      for (let i = 0; i < n; i++) this.text();
      return null;
    }
    const at = this.at;
    this.at += GGUF_BYTES[type];
    if (type === 4) return this.b.readUInt32LE(at);
    if (type === 6) return this.b.readFloatLE(at);
    return null;
  }
}

export function readGguf(file) {
  const bytes = fs.readFileSync(file), c = new Cursor(bytes);
  if (bytes.toString("latin1", 0, 4) !== "GGUF") throw new Error(`${file}: no GGUF file`);
  c.at = 8;
  const nTensors = c.u64(), nKv = c.u64(), kv = {}, tensors = {};
  for (let i = 0; i < nKv; i++) { const key = c.text(); kv[key] = c.value(c.u32()); }
  for (let i = 0; i < nTensors; i++) {
    const name = c.text(), dims = Array.from({ length: c.u32() }, () => c.u64()), type = c.u32();
    tensors[name] = { dims, type, offset: c.u64() };
  }
  const start = Math.ceil(c.at / 32) * 32;
  const floats = (name) => {
    const t = tensors[name];
    if (!t) throw new Error(`${file}: there is no ${name}`);
    return toFloats(bytes, start + t.offset, t.type, t.dims.reduce((a, b) => a * b, 1), `${file}: ${name}`);
  };
  return { kv, tensors, floats };
}

function half(h) {
  const sign = h & 0x8000 ? -1 : 1, e = (h >> 10) & 31, m = h & 1023;
  if (e === 31) return m ? NaN : sign * Infinity;
  return sign * (e ? (1 + m / 1024) * 2 ** (e - 15) : (m / 1024) * 2 ** -14);
}

function toFloats(b, at, type, n, what) {
  const out = new Float32Array(n);
  if (type === 0) for (let i = 0; i < n; i++) out[i] = b.readFloatLE(at + 4 * i);
  else if (type === 1) for (let i = 0; i < n; i++) out[i] = half(b.readUInt16LE(at + 2 * i));
  else if (type === 8) // Q8_0: 32 bytes behind a half
    for (let k = 0; k < n / 32; k++) {
      const d = half(b.readUInt16LE(at + 34 * k));
      for (let i = 0; i < 32; i++) out[32 * k + i] = d * b.readInt8(at + 34 * k + 2 + i);
    }
  else throw new Error(`${what}: only F32, F16 and Q8_0 are exported; bring your own file with --onnx`);
  return out;
}

// ---- protocol buffers

const varint = (v) => {
  const out = [];
  for (let n = BigInt(v); ; n >>= 7n) {
    if (n < 128n) { out.push(Number(n)); return Buffer.from(out); }
    out.push(Number(n & 127n) | 128);
  }
};
const integer = (field, v) => Buffer.concat([varint(field << 3), varint(v)]);
const bytes = (field, b) => Buffer.concat([varint((field << 3) | 2), varint(b.length), b]);
const text = (field, s) => bytes(field, Buffer.from(s));
const real = (field, v) => { const b = Buffer.alloc(4); b.writeFloatLE(v); return Buffer.concat([varint((field << 3) | 5), b]); };

// ---- ONNX

const FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7;
const raw = (typed) => Buffer.from(typed.buffer, typed.byteOffset, typed.byteLength);
const tensor = (name, type, dims, data) =>
  Buffer.concat([...dims.map((d) => integer(1, d)), integer(2, type), text(8, name), bytes(9, raw(data))]);
const attribute = (name, v) => Buffer.concat([text(1, name),
  ...(Array.isArray(v) ? [...v.map((x) => integer(8, x)), integer(20, 7)] : Number.isInteger(v) ? [integer(3, v), integer(20, 2)] : [real(2, v), integer(20, 1)])]);
const value = (name, type, dims) => Buffer.concat([text(1, name), bytes(2, bytes(1, Buffer.concat([integer(1, type),
  bytes(2, Buffer.concat(dims.map((d) => bytes(1, typeof d === "string" ? text(2, d) : integer(1, d)))))])))]);

class Graph {
  constructor() { this.nodes = []; this.initializers = []; }
  node(op, inputs, outputs, attributes = {}, domain = "com.microsoft") {
    this.nodes.push(bytes(1, Buffer.concat([...inputs.map((s) => text(1, s)), ...outputs.map((s) => text(2, s)), text(4, op),
      ...Object.entries(attributes).map(([k, v]) => bytes(5, attribute(k, v))), ...(domain ? [text(7, domain)] : [])])));
    return outputs[0];
  }
  floats(name, dims, data) { this.initializers.push(bytes(5, tensor(name, FLOAT, dims, data))); return name; }
  // w[out][in] as int8[in][out] and its scale: "NAME.q", "NAME.s"
  matrix(name, parts, nIn) {
    const nOut = parts.reduce((n, p) => n + p.length / nIn, 0), q = new Int8Array(nIn * nOut);
    let most = 0;
    for (const p of parts) for (const v of p) most = Math.max(most, Math.abs(v));
    let row = 0;
    for (const p of parts) for (let r = 0; r < p.length / nIn; r++, row++)
      for (let c = 0; c < nIn; c++) q[c * nOut + row] = Math.round(p[r * nIn + c] / most * 127);
    this.initializers.push(bytes(5, tensor(`${name}.q`, INT8, [nIn, nOut], q)));
    this.floats(`${name}.s`, [], Float32Array.of(most / 127));
    this.initializers.push(bytes(5, tensor(`${name}.z`, INT8, [], Int8Array.of(0))));
  }
  model(inputs, outputs) {
    const graph = Buffer.concat([...this.nodes, text(2, "encoder"), ...this.initializers,
      ...inputs.map((v) => bytes(11, v)), ...outputs.map((v) => bytes(12, v))]);
    return Buffer.concat([integer(1, 8), text(2, "shoal bench/versus"), bytes(7, graph),
      bytes(8, Buffer.concat([text(1, ""), integer(2, 17)])), bytes(8, Buffer.concat([text(1, "com.microsoft"), integer(2, 1)]))]);
  }
}

export function exportBert(file, out) {
  const f = readGguf(file), at = (key) => f.kv[`bert.${key}`];
  if (f.kv["general.architecture"] !== "bert") throw new Error(`${file}: only BERT's kind is exported; bring your own file with --onnx`);
  const width = at("embedding_length"), layers = at("block_count"), heads = at("attention.head_count");
  const ff = at("feed_forward_length"), epsilon = at("attention.layer_norm_epsilon"), g = new Graph();
  const vector = (name, as = name) => g.floats(as, [f.floats(name).length], f.floats(name));
  const table = (name) => g.floats(name, [...f.tensors[name].dims].reverse(), f.floats(name));

  g.node("Cast", ["input_ids"], ["ids"], { to: INT32 }, "");
  const types = "token_types.weight" in f.tensors;
  let typeIds = "";
  if (types) {
    g.node("Sub", ["ids", "ids"], ["type_ids"], {}, "");
    typeIds = "type_ids";
  }
  let x = g.node("EmbedLayerNormalization", ["ids", typeIds, table("token_embd.weight"), table("position_embd.weight"),
    types ? table("token_types.weight") : "", vector("token_embd_norm.weight"), vector("token_embd_norm.bias")], ["x0", "mask_index"], { epsilon });
  const dense = (name, input, bias) => {
    g.matrix(name, [f.floats(`${name}.weight`)], f.tensors[`${name}.weight`].dims[0]);
    return g.node("DynamicQuantizeMatMul", [input, `${name}.q`, `${name}.s`, `${name}.z`, ...(bias ? [vector(`${name}.bias`)] : [])], [`${name}.out`]);
  };
  const joined = (a, b, norm, name) =>
    g.node("SkipLayerNormalization", [a, b, vector(`${norm}.weight`), vector(`${norm}.bias`)], [name], { epsilon });
  for (let i = 0; i < layers; i++) {
    const b = `blk.${i}.`, qkv = ["attn_q", "attn_k", "attn_v"];
    g.matrix(`${b}qkv`, qkv.map((n) => f.floats(`${b}${n}.weight`)), width);
    const bias = Float32Array.from(qkv.flatMap((n) => [...f.floats(`${b}${n}.bias`)]));
    g.node("DynamicQuantizeLinear", [x], [`${b}u`, `${b}us`, `${b}uz`], {}, "");
    g.node("QAttention", [`${b}u`, `${b}qkv.q`, g.floats(`${b}qkv.bias`, [3 * width], bias), `${b}us`, `${b}qkv.s`, "", `${b}uz`, `${b}qkv.z`],
      [`${b}a`], { num_heads: heads });
    x = joined(dense(`${b}attn_output`, `${b}a`, true), x, `${b}attn_output_norm`, `${b}x`);
    const up = g.node("BiasGelu", [dense(`${b}ffn_up`, x, false), vector(`${b}ffn_up.bias`)], [`${b}gelu`]);
    x = joined(dense(`${b}ffn_down`, up, true), x, `${b}layer_output_norm`, `${b}y`);
  }
  g.node("ReduceMean", [x], ["mean"], { axes: [1], keepdims: 0 }, "");
  g.node("LpNormalization", ["mean"], ["embedding"], { axis: 1, p: 2 }, "");
  fs.writeFileSync(out, g.model([value("input_ids", INT64, ["texts", "tokens"])], [value("embedding", FLOAT, ["texts", width])]));
  return { width, layers, heads, ff };
}
