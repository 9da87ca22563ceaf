// Random sets of functions and random prompts at temperature 2, judged by ajv: whatever model writes, each call names
// an offered function and its arguments satisfy that function's schema.
//
//     SHOAL_URL=http://127.0.0.1:8080 SHOAL_MODELS=home-chat-s,hermes node tools.mjs [ROUNDS] [SEED]
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const models = process.env.SHOAL_MODELS.split(",");
const rounds = Number(process.argv[2] ?? 200);
let seed = Number(process.argv[3] ?? 1);

const ajv = new Ajv2020({ strict: false, unicodeRegExp: true, logger: false, multipleOfPrecision: 9 });
addFormats(ajv);

function draw(n) { // mulberry32
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = (list) => list[draw(list.length)];
const words = ["light", "lamp", "kitchen", "on", "off", "rain", "note", "level", "größe", "a b", "x\"y", "id_7", "7", "Zeit"];
const names = ["light.turn_on", "light.turn_off", "get_weather", "f", "ff", "note-add", "set_level", "x1"];
const keys = ["target", "level", "note", "mode", "at", "items", "a", "ab", "unit"];

function text() {
  return pick([
    { type: "string", enum: [pick(words), pick(words) + "1", pick(words) + "2"] },
    { const: pick(words) },
    { type: "string", maxLength: 1 + draw(12) },
    { type: "string", minLength: 2, maxLength: 6 },
    { type: "string", pattern: pick(["^[a-z]{1,6}$", "^\\d{2}:\\d{2}$", "^(red|green)-[0-9]+$".replace("+", "{1,3}"), "^x"]), maxLength: 14 },
    { type: "string", format: pick(["date", "time", "ipv4", "uuid"]) },
  ]);
}
function number() {
  const low = draw(50) - 25;
  return pick([
    { type: "integer", minimum: low, maximum: low + draw(60) },
    { type: "integer", exclusiveMinimum: low, exclusiveMaximum: low + 2 + draw(9) },
    { type: "number", minimum: low / 4, maximum: low / 4 + 1 + draw(9) },
    { type: "integer", multipleOf: 5, minimum: 0, maximum: 100 },
    { enum: [low, low + 0.5, null] },
  ]);
}
function schema(depth) {
  if (depth > 0 && draw(3) === 0)
    return pick([
      () => object(depth - 1),
      () => ({ type: "array", items: schema(depth - 1), minItems: draw(2), maxItems: 1 + draw(3) }),
      () => ({ anyOf: [text(), number()] }),
      () => ({ type: "array", prefixItems: [text(), number()], items: false, minItems: 2 }),
    ])();
  return pick([text, text, number, () => ({ type: "boolean" }), () => ({ type: ["integer", "null"], minimum: 0, maximum: 9 })])();
}
function object(depth) {
  const properties = {};
  for (let i = draw(4); i >= 0; i--) properties[pick(keys)] = schema(depth);
  const required = Object.keys(properties).filter(() => draw(2));
  return { type: "object", properties, required, additionalProperties: false };
}
// Gemma's syntaxes with braces hold plain properties, and texts by enum alone.
const flat = () => {
  const properties = {};
  for (let i = draw(4); i >= 0; i--)
    properties[pick(keys)] = pick([
      { type: "string", enum: ["red", "green", "blue"] }, { type: "integer", minimum: 0, maximum: 9 },
      { type: "boolean" }, { type: "number", minimum: -1, maximum: 1 }]);
  return { type: "object", properties, required: Object.keys(properties).filter(() => draw(2)), additionalProperties: false };
};
// Between tags a value of several types is a text, or one of the others: it is held to its types alone.
const tagged = /^(seed|qwen3-coder|deepseek-v3.2|deepseek-v4|minimax-m2|minimax-m3|muse|kimi-k3|minicpm|glm)/;
const unmixed = (o) => {
  for (const [key, s] of Object.entries(o.properties)) if (s.anyOf) o.properties[key] = s.anyOf[draw(2)];
  return o;
};
const parameters = (model) =>
  /gemma-[f4]/.test(model) ? flat() : tagged.test(model) ? unmixed(object(2)) : object(2);
function tools(model) {
  const list = [...new Set(Array.from({ length: 1 + draw(4) }, () => pick(names)))];
  return list.map((name) => {
    const f = { name, description: pick(words), strict: true };
    if (draw(12)) f.parameters = parameters(model);
    return { type: "function", function: f };
  });
}

async function ask(model, body) {
  const r = await fetch(process.env.SHOAL_URL + "/v1/chat/completions", {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, ...body }) });
  const answer = await r.json();
  if (r.status !== 200) throw new Error(`${r.status} ${answer.error?.message}: ${JSON.stringify(body)}`);
  return answer.choices[0];
}
async function stream(model, body) {
  const r = await fetch(process.env.SHOAL_URL + "/v1/chat/completions", {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, ...body }) });
  const choice = { message: { content: "" } }, calls = [];
  for (const line of (await r.text()).split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const c = JSON.parse(line.slice(6)).choices?.[0];
    if (!c) continue;
    choice.finish_reason = c.finish_reason ?? choice.finish_reason;
    choice.message.content += c.delta.content ?? "";
    for (const d of c.delta.tool_calls ?? []) {
      calls[d.index] ??= { function: { name: "", arguments: "" } };
      calls[d.index].function.name += d.function.name ?? "";
      calls[d.index].function.arguments += d.function.arguments ?? "";
    }
  }
  if (calls.length) choice.message.tool_calls = calls;
  return choice;
}

const count = { replies: 0, calls: 0, cut: 0 };
function judge(model, body, choice) {
  const fail = (why) => { throw new Error(`${model}: ${why}: ${JSON.stringify(choice)} for ${JSON.stringify(body)}`); };
  let calls = choice.message.tool_calls ?? [];
  const how = body.tool_choice ?? "auto", forced = how === "required" || typeof how === "object";
  const stopped = body.stop && !forced && choice.finish_reason === "stop"; // perhaps within a call
  const cut = choice.finish_reason === "length" || Boolean(stopped);
  count.replies++;
  count.cut += cut;
  if (how === "none" && calls.length) fail("a call in spite of none");
  if (how === "required" && !calls.length && !cut) fail("no call");
  if (typeof how === "object" && calls.length !== 1 && !cut) fail("not one call");
  if (how !== "none" && body.parallel_tool_calls === false && calls.length > 1) fail("several calls");
  if (calls.length && !cut && choice.finish_reason !== "tool_calls") fail("finish_reason");
  calls.forEach((c, i) => {
    const tool = body.tools.find((t) => t.function.name === c.function.name);
    if (!tool) fail("not offered");
    if (typeof how === "object" && c.function.name !== how.function.name) fail("another function");
    if (cut && i === calls.length - 1) return; // it may be cut
    const args = JSON.parse(c.function.arguments), valid = ajv.compile(tool.function.parameters ?? { type: "object" });
    if (!valid(args)) fail(JSON.stringify(valid.errors));
    count.calls++;
  });
}

for (let round = 0; round < rounds; round++) {
  const model = models[round % models.length], offered = tools(model);
  const named = { type: "function", function: { name: pick(offered).function.name } };
  const body = {
    tools: offered, temperature: 2, seed: draw(2 ** 31), max_tokens: 400,
    messages: [{ role: "user", content: Array.from({ length: 1 + draw(6) }, () => pick(words)).join(" ") }] };
  const choice = pick([undefined, "required", "required", named, named, "none"]);
  if (choice) body.tool_choice = choice;
  if (draw(3) === 0) body.stop = [pick(["\"", "}", "a", "name", "[", "("])];
  if (draw(2)) body.parallel_tool_calls = draw(2) === 1;
  judge(model, body, await (draw(3) ? ask : stream)(model, body));
}
console.log(`${count.replies} replies, ${count.calls} calls valid, ${count.cut} cut by max_tokens`);
if (count.calls < rounds / 4) throw new Error("too few calls to judge");
