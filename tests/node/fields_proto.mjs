// What a server's gRPC reflection tells of its methods and messages, and protobuf's wire format by hand: right bytes and wrong ones.
import http2 from "node:http2";

const varint = (v) => { const out = []; v = BigInt.asUintN(64, BigInt(v)); do { out.push(Number(v & 127n) | (v > 127n ? 128 : 0)); v >>= 7n; } while (v); return Buffer.from(out); };
const tag = (number, type) => varint(number * 8 + type);

/** [{number, value}]: a BigInt of a varint, bytes of the others. */
function decode(bytes) {
  const out = [];
  let at = 0;
  const read = () => { let v = 0n, shift = 0n; for (;;) { const b = bytes[at++]; v |= BigInt(b & 127) << shift; if (b < 128) return v; shift += 7n; } };
  const take = (n) => bytes.subarray(at, at += n);
  while (at < bytes.length) {
    const key = Number(read()), type = key & 7;
    out.push({ number: key >> 3, value: type === 0 ? read() : type === 1 ? take(8) : type === 5 ? take(4) : take(Number(read())) });
  }
  return out;
}
const each = (parts, number) => parts.filter((p) => p.number === number).map((p) => p.value);
const one = (parts, number) => each(parts, number)[0];
const text = (v) => v?.toString() ?? "";

const DOUBLE = 1, FLOAT = 2, STRING = 9, MESSAGE = 11, BYTES = 12, BOOL = 8, REPEATED = 3; // google/protobuf/descriptor.proto

class Message {
  constructor(name) { this.name = name; this.fields = []; }
  /** Every field of it and of the messages within, with the fields that lead there. */
  *all(depth = 0, path = [], seen = new Set()) {
    for (const f of this.fields) {
      const fields = [...path, f];
      yield { path: fields.map((x) => x.name).join("."), fields };
      if (f.message && depth < 3 && !seen.has(f.message)) yield* f.message.all(depth + 1, fields, new Set(seen).add(f.message));
    }
  }
}

function readMessages(parts, prefix, types, number) {
  for (const bytes of each(parts, number)) {
    const m = decode(bytes), name = `${prefix}.${text(one(m, 1))}`, message = new Message(name);
    types.set(name, message);
    for (const f of each(m, 2).map(decode))
      message.fields.push({ name: text(one(f, 1)), number: Number(one(f, 3)), repeated: Number(one(f, 4)) === REPEATED, type: Number(one(f, 5)), of: text(one(f, 6)) });
    readMessages(m, name, types, 3);
  }
}

async function ask(session, number, value) {
  const message = wire.bytes(number, Buffer.from(value)), head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return new Promise((done, fail) => {
    const s = session.request({ ":method": "POST", ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "content-type": "application/grpc", te: "trailers" });
    const parts = [];
    s.on("data", (d) => parts.push(d)).on("error", fail).on("close", () => {
      const all = Buffer.concat(parts);
      all.length < 5 ? fail(new Error("reflection gave no answer")) : done(decode(all.subarray(5, 5 + all.readUInt32BE(1))));
    });
    s.end(Buffer.concat([head, message]));
  });
}

/** {methods: [{path, input}]} of all services. */
export async function reflect(base) {
  const session = http2.connect(base), types = new Map(), services = new Map();
  const list = decode(one(await ask(session, 7, ""), 6));
  for (const name of each(list, 1).map((s) => text(one(decode(s), 1)))) {
    for (const file of each(decode(one(await ask(session, 4, name), 4)), 1).map(decode)) {
      const scope = `.${text(one(file, 2))}`;
      readMessages(file, scope, types, 4);
      for (const s of each(file, 6).map(decode)) services.set(`${scope}.${text(one(s, 1))}`.slice(1), s);
    }
  }
  session.close();
  for (const m of types.values()) for (const f of m.fields) if (f.type === MESSAGE) f.message = types.get(f.of);
  return { methods: [...services].flatMap(([name, s]) => each(s, 2).map(decode).map((m) => ({ path: `/${name}/${text(one(m, 1))}`, input: types.get(text(one(m, 2))) }))) };
}

export const wire = {
  tag, varint: (number, v) => Buffer.concat([tag(number, 0), varint(v)]),
  bytes: (number, b) => Buffer.concat([tag(number, 2), varint(b.length), b]),
  fixed: (number, b) => Buffer.concat([tag(number, b.length === 8 ? 1 : 5), b]),
  /** A message of JSON, as far as it has its fields; NAME_json is the member NAME as JSON text. */
  encode(message, o) {
    const out = [];
    for (const f of message.fields) {
      const plain = o[f.name], loose = f.name.endsWith("_json") ? o[f.name.slice(0, -5)] : undefined;
      if (loose !== undefined && !message.fields.some((x) => x.name === f.name.slice(0, -5))) out.push(wire.bytes(f.number, Buffer.from(JSON.stringify(loose))));
      if (plain === undefined || plain === null) continue;
      for (const v of f.repeated ? [plain].flat() : [plain]) {
        if (f.type === MESSAGE && typeof v === "object") out.push(wire.bytes(f.number, wire.encode(f.message, v)));
        else if ((f.type === STRING || f.type === BYTES) && typeof v === "string") out.push(wire.bytes(f.number, Buffer.from(v)));
        else if (f.type === DOUBLE || f.type === FLOAT) { const b = Buffer.alloc(f.type === DOUBLE ? 8 : 4); f.type === DOUBLE ? b.writeDoubleLE(v) : b.writeFloatLE(v); out.push(wire.fixed(f.number, b)); }
        else if (f.type === BOOL || Number.isInteger(v)) out.push(wire.varint(f.number, BigInt(Number(v))));
      }
    }
    return Buffer.concat(out);
  },
};
