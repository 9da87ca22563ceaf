// Sends each known field of each endpoint by each transport with values of every JSON type, and takes documented answers alone.
//
//     SHOAL_URL=http://127.0.0.1:8080 node tests/node/fields.mjs
//
// Fields, parameters and statuses are those that the server itself tells: /openapi.json, and gRPC's reflection. A new
// endpoint or field is swept without a change here. The order of the cases is fixed. An answer is right if
//   - it comes at all: silence, a closed connection and 500 are none,
//   - its status is one that /openapi.json lists for the operation (of gRPC: the status that http_status in ErrorInfo names),
//   - an error has the form of its dialect,
//   - it names none of the folders in SHOAL_FOLDERS (separated by ':').
// A failure is printed with the request. SHOAL_FIELDS_ONLY=TEXT: cases whose name holds TEXT alone.
import { Grpc, Http1, Http2, Ws } from "./fields_clients.mjs";
import { reflect, wire } from "./fields_proto.mjs";

const base = process.env.SHOAL_URL, only = process.env.SHOAL_FIELDS_ONLY ?? "";
const folders = (process.env.SHOAL_FOLDERS ?? "").split(":").filter(Boolean);
const WIDTH = 12, FAILURES_MAX = Number(process.env.SHOAL_FIELDS_FAILURES ?? 400), PRINTED_MAX = Number(process.env.SHOAL_FIELDS_PRINTED ?? 30);
const json = { "content-type": "application/json" };
const doc = await (await fetch(`${base}/openapi.json`)).json();

// ---- values ---------------------------------------------------------------------------------------

const deep = (n, open, shut) => open.repeat(n) + shut.repeat(n);
/** JSON texts: name, text. */
const VALUES = [
  ["number", "7"], ["zero", "0"], ["negative", "-1"], ["float", "1.5"], ["huge", "9223372036854775807"], ["least", "-9223372036854775808"],
  ["beyond", "92233720368547758070"], ["large float", "1e300"], ["overflow", "1e999"], ["true", "true"], ["false", "false"], ["null", "null"],
  ["empty text", '""'], ["NUL", '"a\\u0000b"'], ["text", '"7"'], ["long text", `"${"x".repeat(5000)}"`], ["no ASCII", '"\\ud83d\\ude00\\u202e"'],
  ["empty list", "[]"], ["list", '[1,"a",null,[],{}]'], ["empty object", "{}"], ["object", '{"a":1,"type":2,"":null}'], ["list of object", "[{}]"],
  ["nested", deep(30, "[", "]")], ["nested objects", '{"a":'.repeat(30) + "1" + "}".repeat(30)], ["deep", deep(3000, "[", "]")],
];
/** What stands in a query, a header or a part of a form. */
const TEXTS = ["", "7", "0", "-1", "+5", "1.5", "1e3", "0x10", "9223372036854775808", "99999999999999999999", "true", "null", "[]", "{}", " ", "7 ", "x".repeat(3000), "a,b", "\u00e9"];
const QUERIES = [...TEXTS.map(encodeURIComponent), "%00", "a%00b", "%", "%zz", "%ff%fe", "..%2f..%2fetc"];
const SEGMENTS = ["nothing", "..", ".", "--help", "%00", "a%00b", "%2e%2e%2f%2e%2e", "%ff", "%", "x".repeat(3000), "%F0%9F%98%80", "7", "-1", "a%0ab", ":", "*", "%", "home-intent"];
const BYTES = ["", "x", "\0", "RIFF\0\0\0\0WAVEfmt ", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "a,b\n1,2\n", "{}"].map((s) => Buffer.from(s, "latin1"));

// ---- schemas --------------------------------------------------------------------------------------

const resolve = (s) => { while (s?.$ref) s = s.$ref.slice(2).split("/").reduce((o, k) => o[k], doc); return s ?? {}; };
/** Paths to the fields of a schema: ["messages", 0, "role"]. */
function fieldsOf(schema, depth = 0, seen = new Set()) {
  const s = resolve(schema), out = [];
  if (depth > 5 || seen.has(s)) return out;
  const below = new Set(seen).add(s);
  for (const [name, of] of Object.entries(s.properties ?? {})) out.push([name], ...fieldsOf(of, depth + 1, below).map((p) => [name, ...p]));
  if (s.items) out.push([0], ...fieldsOf(s.items, depth + 1, below).map((p) => [0, ...p]));
  for (const one of [...(s.anyOf ?? []), ...(s.oneOf ?? []), ...(s.allOf ?? [])]) out.push(...fieldsOf(one, depth, below));
  return out.filter((p, i) => out.findIndex((q) => String(q) === String(p)) === i);
}
/** A copy of an object as JSON text whose field at this path is the given JSON text. */
function withField(object, path, text) {
  const copy = structuredClone(object), MARK = "\u0001";
  let at = copy;
  path.forEach((key, i) => {
    if (i === path.length - 1) at[key] = MARK;
    else at = at[key] = at[key] && typeof at[key] === "object" && Array.isArray(at[key]) === (typeof path[i + 1] === "number") ? at[key] : typeof path[i + 1] === "number" ? [] : {};
  });
  return JSON.stringify(copy).replace('"\\u0001"', () => text);
}
/** A value that fits, as far as a schema's keywords say. */
function sample(schema, depth = 0) {
  const s = resolve(schema), type = [s.type].flat().find((t) => t && t !== "null");
  if (s.examples) return s.examples[0];
  if ("const" in s) return s.const;
  if (s.enum) return s.enum[0];
  if (s.anyOf) return sample(s.anyOf[0], depth);
  if (type === "object") return depth > 4 ? {} : Object.fromEntries((s.required ?? []).map((k) => [k, sample(s.properties[k], depth + 1)]));
  return type === "array" ? [sample(s.items, depth + 1)] : type === "integer" || type === "number" ? s.minimum ?? 1 : type === "boolean" ? false : "a";
}
const wellFormed = (schema, v) => {
  const s = resolve(schema), is = { object: v && typeof v === "object" && !Array.isArray(v), string: typeof v === "string", integer: Number.isInteger(v), null: v === null, array: Array.isArray(v), number: typeof v === "number", boolean: typeof v === "boolean" };
  if (s.type && ![s.type].flat().some((t) => is[t])) return false;
  return (s.required ?? []).every((k) => k in v) && Object.entries(s.properties ?? {}).every(([k, p]) => !is.object || !(k in v) || wellFormed(p, v[k]));
};

// ---- operations and their cases -------------------------------------------------------------------

const operations = Object.entries(doc.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, o]) => ({ path, method: method.toUpperCase(), o })));
/** What must not change the server beside which the sweep runs: its models, and whatever never ends by itself. */
const KEPT = { model_load: { model: "nothing" }, model_unload: { model: "nothing" }, ollama_delete: { model: "nothing" } };
const ENDLESS = (op) => op.o.operationId === "events" || op.o.operationId === "ws";
/** llama-server's examples name no model, and several here do what they ask for. */
const modelOf = (op) => op.o.tags[0] === "llama" && !/embed|rank/.test(op.path) ? { model: "home-chat-s" } : {};

const pathOf = (op, name, value) => op.path.replace(/{(.*?)}/g, (_, n) => n === name ? value : op.path.startsWith("/v2/models") ? "home-intent" : "nothing");
const bodyOf = (op) => {
  const schema = op.o.requestBody?.content?.["application/json"]?.schema;
  return schema && { ...sample(schema), ...("model" in (resolve(schema).properties ?? {}) && modelOf(op)), ...KEPT[op.o.operationId] };
};
const form = (parts) => Buffer.concat([...parts.flatMap(([name, value, file]) => [
  Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"${file ? '; filename="f"' : ""}\r\n\r\n`), Buffer.isBuffer(value) ? value : Buffer.from(value), Buffer.from("\r\n")]), Buffer.from("--b--\r\n")]);
const isFile = (s) => resolve(s).format === "binary" || resolve(s).contentMediaType !== undefined;

/** A file that the operation can read: a tenth of a second of silence, a table. */
const wav = () => { const b = Buffer.alloc(44 + 3200); b.write("RIFF", 0); b.writeUInt32LE(36 + 3200, 4); b.write("WAVEfmt ", 8); b.writeUInt32LE(16, 16); b.writeUInt16LE(1, 20); b.writeUInt16LE(1, 22); b.writeUInt32LE(16000, 24); b.writeUInt32LE(32000, 28); b.writeUInt16LE(2, 32); b.writeUInt16LE(16, 34); b.write("data", 36); b.writeUInt32LE(3200, 40); return b; };
const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const fileFor = (op) => op.o.tags[0] === "audio" ? wav() : op.path.includes("image") ? png : BYTES[6];

function* formCases(op, schema) {
  const properties = Object.entries(resolve(schema).properties ?? {}), type = { "content-type": "multipart/form-data; boundary=b" };
  const rest = properties.filter(([name, s]) => resolve(schema).required?.includes(name) || isFile(s)).map(([name, s]) => [name, isFile(s) ? fileFor(op) : String(sample(s)), isFile(s)]);
  const others = (name) => rest.filter(([n]) => n !== name);
  for (const [name, s] of properties) {
    for (const value of isFile(s) ? BYTES : [...TEXTS, "\0", "a\0b", Buffer.from([255, 254])])
      yield { name: `form ${name}=${JSON.stringify(String(value).slice(0, 24))}`, headers: type, body: form([...others(name), [name, value, isFile(s)]]) };
    yield { name: `form ${name} twice`, headers: type, body: form([...rest, [name, "1", isFile(s)], [name, "2", isFile(s)]]), wrong: true };
  }
  yield { name: "form without parts", headers: type, body: form([]) };
  yield { name: "form cut", headers: type, body: form(rest).subarray(0, -9) };
}
/** Each case has a name and changes a request that is right. */
function* casesOf(op) {
  const content = op.o.requestBody?.content ?? {}, schema = content["application/json"]?.schema, body = bodyOf(op);
  const parameters = op.o.parameters.map(resolve);
  if (body) {
    for (const path of fieldsOf(schema)) for (const [what, text] of VALUES) yield { name: `${path.join(".")}=${what}`, headers: json, body: Buffer.from(withField(body, path, text)) };
    for (const [what, text] of VALUES) yield { name: `body=${what}`, headers: json, body: Buffer.from(text), raw: true };
    yield { name: "body=nothing", headers: json, body: Buffer.alloc(0), raw: true };
  }
  if (content["multipart/form-data"]) yield* formCases(op, content["multipart/form-data"].schema);
  for (const type of Object.keys(content).filter((t) => t.includes("/") && t !== "application/json" && t !== "multipart/form-data"))
    for (const bytes of BYTES) yield { name: `${type} of ${bytes.length} bytes`, headers: { "content-type": type.replace("*", "wav") }, body: bytes };
  const fits = { headers: body ? json : {}, body: body && Buffer.from(JSON.stringify(body)) };
  for (const p of parameters) {
    if (p.in === "query") for (const v of QUERIES) yield { name: `?${p.name}=${v.slice(0, 24)}`, ...fits, query: `${p.name}=${v}` };
    if (p.in === "query") yield { name: `?${p.name} twice`, ...fits, query: `${p.name}=1&${p.name}=2` };
    if (p.in === "path") for (const v of SEGMENTS) yield { name: `{${p.name}}=${v.slice(0, 24)}`, ...fits, path: pathOf(op, p.name, v) };
    if (p.in === "header") for (const v of TEXTS) yield { name: `${p.name}: ${v.slice(0, 24)}`, ...fits, headers: { ...fits.headers, [p.name]: v.replaceAll("\u00e9", "e") } };
  }
}
const requestOf = (op, c) => ({ method: op.method, path: c.path ?? pathOf(op), query: c.query, headers: c.headers ?? {}, body: c.body });

// ---- judging --------------------------------------------------------------------------------------

const told = (text) => folders.find((f) => text.includes(f));
function judge(op, answer) {
  const listed = op.o.responses[answer.status], { body, status } = answer;
  if (status >= 500 && !listed) return `status ${status}`;
  if (!listed) return `status ${status} is not listed for ${op.method} ${op.path}`;
  if (status >= 400 && told(body)) return `the answer names ${told(body)}`;
  const content = resolve(listed).content, type = answer.type.split(";")[0];
  if (status !== 304 && body && content && !(type in content)) return `content type "${type}" is not listed for ${status}`;
  if (status < 400) return /"type":"server_error"|"status":5\d\d/.test(/stream|ndjson/.test(type) ? body : "") ? "the stream ends with an error of the server" : null;
  let v;
  try { v = JSON.parse(body); } catch { return "the error is no JSON"; }
  return wellFormed(content["application/json"].schema, v) ? null : "the error has not the form of its dialect";
}

const curl = (r) => `curl -X ${r.method} '${base}${r.path}${r.query ? `?${r.query}` : ""}'${Object.entries(r.headers).map(([k, v]) => ` -H '${k}: ${v.slice(0, 200)}'`).join("")}${r.body ? ` --data-binary $'${[...r.body.subarray(0, 600)].map((b) => b >= 32 && b < 127 && b !== 39 && b !== 92 ? String.fromCharCode(b) : `\\x${b.toString(16).padStart(2, "0")}`).join("")}'` : ""}`;
/** By what is wrong: the first case of each, and how many more. */
const failures = new Map();
let nFailed = 0;
function failed(name, why, request, answer) {
  nFailed++;
  const key = `${name.split(" ").slice(0, 3).join(" ")} ${why}`, one = failures.get(key);
  if (one) one.more++;
  else failures.set(key, { text: `${name}: ${why}\n    ${request}\n    ${JSON.stringify(answer ?? null).slice(0, 500)}`, more: 0 });
}

/** All jobs, `width` at a time, begun in their order. */
async function all(jobs, width = WIDTH) {
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => { while (next < jobs.length && nFailed < FAILURES_MAX) await jobs[next++](); }));
}

// ---- HTTP/1.1, HTTP/2, WebSocket ------------------------------------------------------------------

/** A WebSocket is closed when answers over max_write_backlog_bytes wait for it; some answers are 150 kB. */
const WIDTHS = { WebSocket: 4 };

async function sweep(client) {
  const jobs = operations.filter((op) => !ENDLESS(op)).flatMap((op) => [...casesOf(op)].flatMap((c) => {
    const name = `${client.name} ${op.method} ${op.path} ${c.name}`, r = requestOf(op, c);
    if (!name.includes(only) || (client.name === "WebSocket" && c.raw && !jsonText(c.body))) return [];
    // A blank at either end makes a message of HTTP/2 malformed (RFC 9113, section 8.2.1), and that is no answer.
    if (client.name === "HTTP/2" && Object.values(r.headers).some((v) => v !== v.trim())) return [];
    return [async () => {
      try {
        const answer = await client.ask(r), why = judge(op, answer) ?? (c.wrong && answer.status < 400 ? "a field that is there twice is taken" : null);
        if (why) failed(name, why, curl(r), answer);
      } catch (e) { failed(name, e.message, curl(r)); }
    }];
  }));
  await all(jobs, WIDTHS[client.name]);
  return jobs.length;
}
const jsonText = (b) => { try { JSON.parse(b); return true; } catch { return false; } };

/** The envelope of a WebSocket's messages. One that is refused closes nothing. */
async function sweepEnvelope(ws) {
  const members = Object.keys(resolve({ $ref: "#/components/schemas/WebSocketMessage" }).properties);
  const right = { id: "e", path: "/v1/classify", body: { model: "home-intent", input: "a" } };
  let n = 0;
  for (const [i, [what, text]] of [...members.flatMap((m) => VALUES.map(([w, t]) => [[m], w, t])), ...VALUES.map(([w, t]) => [null, w, t])].map(([m, w, t]) => [`${m ?? "message"}=${w}`, m ? withField(right, m, t) : t]).entries()) {
    const name = `WebSocket message ${what}`;
    if (!name.includes(only)) continue;
    // Its answer may bear no id, "e", or what the id became; the next request's answer shows that the socket lives.
    try {
      ws.write(1, Buffer.from(text));
      const next = await ws.message(`{"id":"n${i}","path":"/healthz"}`, `n${i}`);
      if (next.status !== 200) failed(name, `/healthz answers ${next.status}`, text.slice(0, 600), next);
    } catch (e) { failed(name, e.message, text.slice(0, 600)); break; }
    n++;
  }
  return n;
}

// ---- gRPC -----------------------------------------------------------------------------------------

/** JSON schema with the most names in common: its example makes a message that is right. */
function exampleFor(message) {
  const names = new Set(message.fields.map((f) => f.name.replace(/_json$/, "")));
  let best = [0, {}];
  for (const s of Object.values(doc.components.schemas)) {
    const keys = Object.keys(s.properties ?? {}), both = keys.filter((k) => names.has(k)).length, score = both / (keys.length + names.size - both);
    if (s.examples && score > best[0]) best = [score, s.examples[0]];
  }
  return best[1];
}
const numbers = [0n, 1n, 7n, 2n ** 31n - 1n, 2n ** 32n - 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];
const texts = ["", "7", "a\0b", "\xff\xfe", "x".repeat(5000), "[".repeat(3000), "\0"].map((s) => Buffer.from(s, "latin1"));
/** Raw bytes of one field with each wire type, right or not. */
function* wires(f) {
  for (const n of numbers) yield [`varint ${n}`, wire.varint(f.number, n)];
  for (const b of [Buffer.alloc(8, 255), Buffer.from("000000000000f07f", "hex"), Buffer.from("000000000000f8bf", "hex"), Buffer.from("0000e03f9a99d93f", "hex")]) yield [`fixed64 ${b.toString("hex")}`, wire.fixed(f.number, b)];
  for (const b of [Buffer.alloc(4, 255), Buffer.from("0000807f", "hex"), Buffer.from("0000c03f", "hex")]) yield [`fixed32 ${b.toString("hex")}`, wire.fixed(f.number, b)];
  for (const b of texts) yield [`bytes ${JSON.stringify(b.toString("latin1").slice(0, 12))} of ${b.length}`, wire.bytes(f.number, b)];
  for (const [what, t] of f.name.endsWith("_json") ? VALUES : []) yield [`JSON ${what}`, wire.bytes(f.number, Buffer.from(t))];
  yield ["group", Buffer.concat([wire.tag(f.number, 3), wire.tag(f.number, 4)])];
  yield ["groups", Buffer.concat([...Array(200)].map(() => wire.tag(f.number, 3)))];
  yield ["length beyond", Buffer.concat([wire.tag(f.number, 2), Buffer.from([255, 255, 255, 255, 15])])];
  yield ["cut varint", Buffer.concat([wire.tag(f.number, 0), Buffer.from([255])])];
  yield ["wire type 7", wire.tag(f.number, 7)];
  yield ["nested", Array.from({ length: 100 }).reduce((b) => wire.bytes(f.number, b), Buffer.from([8, 1]))];
}
const GRPC_OK = new Set([0, 3, 4, 5, 7, 8, 9, 12]);

async function sweepGrpc(client) {
  const jobs = [], listed = new Set(operations.flatMap(({ o }) => Object.keys(o.responses)));
  for (const method of (await reflect(base)).methods) {
    if (/\.reflection\.|Watch$/.test(method.path)) continue; // one lives as long as its client
    const example = KEPT[method.path] ?? exampleFor(method.input), right = wire.encode(method.input, JSON.parse(JSON.stringify(example)));
    const cases = [["as it is", right], ["empty", Buffer.alloc(0)], ...[...method.input.all()].flatMap(({ path, fields }) => [...wires(fields.at(-1))].map(([what, bytes]) => [
      `${path}=${what}`, Buffer.concat([right, fields.slice(0, -1).reduceRight((b, f) => wire.bytes(f.number, b), bytes)])]))];
    for (const [what, message] of cases) {
      const name = `gRPC ${method.path} ${what}`, request = `grpc ${method.path} message (hex) ${message.subarray(0, 400).toString("hex")}`;
      if (!name.includes(only)) continue;
      jobs.push(async () => {
        try {
          const a = await client.ask({ path: method.path, message, headers: {} }), http = /http_status\x12\x03(\d{3})/.exec(a.details)?.[1];
          if (!GRPC_OK.has(a.code)) failed(name, `grpc-status ${a.code}`, request, a);
          else if (told(a.message) || told(a.bytes.toString())) failed(name, "the answer names a folder of this machine", request, a);
          else if (http && !listed.has(http)) failed(name, `http_status ${http} is listed nowhere`, request, a);
        } catch (e) { failed(name, e.message, request); }
      });
    }
  }
  await all(jobs);
  return jobs.length;
}

// ---- all of it ------------------------------------------------------------------------------------

const counts = {};
const timed = async (name, work) => { const t = Date.now(); counts[name] = await work(); if (process.env.SHOAL_FIELDS_TIMES) console.error(`${name}: ${counts[name]} in ${Date.now() - t} ms`); };
for (const make of [() => new Http1(base, WIDTH), () => new Http2(base), () => new Ws(base).open()]) {
  const client = await make();
  await timed(client.name, () => sweep(client));
  client.close();
}
const ws = await new Ws(base).open(), grpc = new Grpc(base);
await timed("WebSocket messages", () => sweepEnvelope(ws));
await timed("gRPC", () => sweepGrpc(grpc));
ws.close();
grpc.close();
for (const f of [...failures.values()].slice(0, PRINTED_MAX)) console.log(f.text, f.more ? `\n    and ${f.more} more like it` : "");
console.log(Object.entries(counts).map(([k, n]) => `${k} ${n}`).join(", "), `requests; ${nFailed} wrong`);
process.exit(nFailed || Object.values(counts).some((n) => n === 0 && !only) ? 1 : 0);
