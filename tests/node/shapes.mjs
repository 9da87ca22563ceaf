// Schemas as people's tools write them: zod 4 and 3 (each by the converter that its clients use), and pydantic, whose
// output is written out as it emits it.
import { zodToJsonSchema } from "zod-to-json-schema";
import { z } from "zod";
import { z as z3 } from "zod/v3";

const zod4 = {
  texts: z.object({ a: z.string().min(2).max(6), b: z.string().regex(/^[A-Z]{2}-\d{3}$/), c: z.string().startsWith("ab").max(9), d: z.string().endsWith("z").max(9), e: z.string().includes("mid").max(12) }),
  formats: z.object({ mail: z.email(), id: z.uuid(), at: z.iso.datetime(), on: z.iso.date(), time: z.iso.time(), v4: z.ipv4(), v6: z.ipv6() }),
  links: z.object({ url: z.url().max(40), net: z.cidrv4(), host: z.hostname().max(20) }),
  codes: z.object({ b: z.base64().max(16), bu: z.base64url().max(16), n: z.nanoid(), c2: z.cuid2().max(12), u: z.ulid(), tel: z.e164(), hex: z.hex().max(8) }),
  cases: z.object({ lower: z.string().lowercase().max(8), upper: z.string().uppercase().max(8), word: z.string().trim().max(8) }),
  numbers: z.object({ a: z.number().int().positive().max(40), b: z.number().min(-1).max(1), c: z.number().gt(0).lt(3), d: z.number().multipleOf(0.25).min(0).max(9), e: z.int32(), f: z.uint32(), g: z.int() }),
  floats: z.object({ a: z.float32(), b: z.number().nonnegative().max(1e6), c: z.number().multipleOf(5).min(-20).max(20) }),
  choices: z.object({ a: z.enum(["x", "y"]), b: z.literal(7), c: z.literal(["p", 2, null]), d: z.boolean(), e: z.null(), f: z.nativeEnum({ A: 1, B: "two" }) }),
  maybe: z.object({ a: z.string().max(5).optional(), b: z.string().max(5).nullable(), c: z.number().max(9).min(0).nullish(), d: z.boolean().default(true) }),
  lists: z.object({ a: z.array(z.number().int().min(0).max(9)).min(1).max(3), b: z.array(z.string().max(4)).length(2), c: z.tuple([z.string().max(3), z.number().min(0).max(9)]), d: z.tuple([z.boolean()]).rest(z.literal("r")) }),
  unions: z.object({ a: z.union([z.string().max(5), z.number().min(0).max(9), z.null()]), b: z.union([z.object({ x: z.literal(1) }), z.object({ y: z.literal(2) })]) }),
  told_apart: z.discriminatedUnion("kind", [z.object({ kind: z.literal("circle"), r: z.number().min(0).max(9) }), z.object({ kind: z.literal("square"), side: z.number().min(0).max(9) }), z.object({ kind: z.literal("none") })]),
  both: z.intersection(z.object({ a: z.number().min(0).max(9) }), z.object({ b: z.boolean() })),
  records: z.object({ a: z.record(z.string().max(4), z.number().min(0).max(9)), b: z.record(z.enum(["k", "l"]), z.boolean()), c: z.partialRecord(z.enum(["m", "n"]), z.literal(1)) }),
  open: z.looseObject({ a: z.boolean() }),
  rest: z.object({ a: z.boolean() }).catchall(z.number().min(0).max(9)),
  strict: z.strictObject({ a: z.boolean(), b: z.strictObject({ c: z.literal("c") }) }),
  anything: z.object({ a: z.any(), b: z.unknown() }),
  template: z.object({ a: z.templateLiteral(["v", z.number().int().min(0), ".", z.enum(["alpha", "beta"])]) }),
  reused: (() => { const p = z.object({ x: z.number().min(0).max(9) }).meta({ id: "Point" }); return z.object({ from: p, to: p, via: z.array(p).max(2) }); })(),
  tree: (() => { const n = z.object({ v: z.number().int().min(0).max(9), get kids() { return z.array(n).max(2); } }); return n; })(),
  alternate: (() => { const a = z.object({ n: z.literal("a"), get next() { return z.union([b, z.null()]); } }), b = z.object({ n: z.literal("b"), get next() { return z.union([a, z.null()]); } }); return a; })(),
  readonly: z.object({ a: z.string().max(4).readonly(), b: z.array(z.literal("x")).max(2).readonly() }),
  period: z.object({ a: z.iso.duration(), b: z.string().regex(/\bon\b/).max(12) }),
  described: z.object({ a: z.string().max(6).describe("a name") }).describe("a thing"),
  described_enum: z.object({ unit: z.enum(["celsius", "fahrenheit"]).default("celsius").describe("the unit") }),
};

const zod3 = {
  texts: z3.object({ a: z3.string().min(2).max(6), b: z3.string().regex(/^[a-z]+$/).max(8), c: z3.string().startsWith("ab").max(9), d: z3.string().email(), e: z3.string().uuid(), f: z3.string().datetime(), g: z3.string().date(), h: z3.string().ip({ version: "v4" }), i: z3.string().url().max(40) }),
  codes: z3.object({ a: z3.string().cuid().max(20), b: z3.string().ulid(), c: z3.string().base64().max(16), d: z3.string().nanoid() }),
  numbers: z3.object({ a: z3.number().int().positive().max(40), b: z3.number().gt(0).lt(3), c: z3.number().multipleOf(0.5).min(0).max(4) }),
  choices: z3.object({ a: z3.enum(["x", "y"]), b: z3.literal(7), c: z3.nativeEnum({ A: "a", B: "b" }), d: z3.null(), e: z3.boolean() }),
  maybe: z3.object({ a: z3.string().max(4).optional(), b: z3.string().max(4).nullable(), c: z3.union([z3.string().max(4), z3.number().min(0).max(9)]) }),
  lists: z3.object({ a: z3.array(z3.number().int().min(0).max(9)).nonempty().max(3), b: z3.tuple([z3.string().max(3), z3.number().min(0).max(9)]) }),
  told_apart: z3.discriminatedUnion("kind", [z3.object({ kind: z3.literal("a"), n: z3.number().min(0).max(9) }), z3.object({ kind: z3.literal("b") })]),
  both: z3.intersection(z3.object({ a: z3.number().min(0).max(9) }), z3.object({ b: z3.boolean() })),
  records: z3.object({ a: z3.record(z3.number().min(0).max(9)), b: z3.record(z3.string().min(1).max(4), z3.boolean()), c: z3.record(z3.enum(["k", "l"]), z3.boolean()) }),
  open: z3.object({ a: z3.boolean() }).passthrough(),
  tree: (() => { const n = z3.object({ v: z3.number().int().min(0).max(9), kids: z3.lazy(() => z3.array(n).max(2)) }); return n; })(),
};

const object = (properties, more = {}) => ({ type: "object", title: "M", properties, required: Object.keys(properties), ...more });
const pydantic = {
  basics: object({ s: { type: "string", title: "S", minLength: 1, maxLength: 6 }, i: { type: "integer", exclusiveMinimum: 0, maximum: 100, title: "I" }, f: { type: "number", minimum: 0, maximum: 1, title: "F" }, b: { type: "boolean", title: "B", default: false } }),
  optional: object({ a: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }], default: null, title: "A" }, b: { anyOf: [{ type: "integer", minimum: 0, maximum: 9 }, { type: "string", pattern: "^[a-z]{2}$" }, { type: "null" }], title: "B" } }),
  times: object({ a: { type: "string", format: "date-time", title: "A" }, b: { type: "string", format: "date", title: "B" }, c: { type: "string", format: "time", title: "C" }, d: { type: "string", format: "duration", title: "D" } }),
  strings: object({ a: { type: "string", format: "uuid" }, b: { type: "string", format: "email" }, c: { type: "string", format: "ipv4" }, d: { type: "string", format: "uri", minLength: 1, maxLength: 60 }, e: { type: "string", format: "path", maxLength: 9 }, f: { type: "string", format: "password", writeOnly: true, maxLength: 9 }, g: { type: "string", format: "binary", maxLength: 9 } }),
  decimal: object({ a: { anyOf: [{ type: "number", minimum: 0, maximum: 99 }, { type: "string", pattern: "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$" }], title: "A" }, b: { type: "string", pattern: "^(?!^[-+.]*$)[+-]?0*(?:\\d{0,3}|(?=[\\d.]{1,6}0*$)\\d{0,3}\\.\\d{0,2}0*$)" } }),
  enums: { $defs: { Color: { enum: ["red", "green"], title: "Color", type: "string" }, Level: { enum: [1, 2, 3], title: "Level", type: "integer" } }, ...object({ c: { $ref: "#/$defs/Color" }, d: { $ref: "#/$defs/Color", default: "red" }, l: { $ref: "#/$defs/Level" }, k: { const: "fixed", title: "K", type: "string" } }) },
  nested: { $defs: { Address: object({ city: { type: "string", maxLength: 6 }, zip: { type: "string", pattern: "^\\d{5}$" } }) }, ...object({ home: { $ref: "#/$defs/Address" }, work: { anyOf: [{ $ref: "#/$defs/Address" }, { type: "null" }], default: null } }) },
  dicts: object({ a: { additionalProperties: { type: "integer", minimum: 0, maximum: 9 }, type: "object", title: "A" }, b: { additionalProperties: { items: { type: "boolean" }, maxItems: 2, type: "array" }, type: "object", title: "B" }, c: { additionalProperties: true, type: "object", title: "C" } }),
  tuples: object({ a: { maxItems: 2, minItems: 2, prefixItems: [{ type: "integer", minimum: 0, maximum: 9 }, { type: "string", maxLength: 3 }], type: "array", title: "A" }, b: { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, minItems: 1, maxItems: 3 } }),
  sets_of_enum: { $defs: { C: { enum: ["r", "g", "b"], type: "string", title: "C" } }, ...object({ a: { type: "array", items: { $ref: "#/$defs/C" }, uniqueItems: true, title: "A" } }) },
  told_apart: { $defs: { Cat: object({ kind: { const: "cat", title: "Kind", type: "string" }, lives: { type: "integer", minimum: 0, maximum: 9 } }), Dog: object({ kind: { const: "dog", title: "Kind", type: "string" }, good: { type: "boolean" } }) },
    ...object({ pet: { discriminator: { mapping: { cat: "#/$defs/Cat", dog: "#/$defs/Dog" }, propertyName: "kind" }, oneOf: [{ $ref: "#/$defs/Cat" }, { $ref: "#/$defs/Dog" }], title: "Pet" } }) },
  recursive: { $defs: { Node: object({ v: { type: "integer", minimum: 0, maximum: 9 }, kids: { type: "array", items: { $ref: "#/$defs/Node" }, maxItems: 2, default: [] } }) }, $ref: "#/$defs/Node" },
  forbids: object({ a: { type: "boolean" } }, { additionalProperties: false }),
  allows: object({ a: { type: "boolean" } }, { additionalProperties: true }),
  extra: object({ a: { type: "boolean" } }, { additionalProperties: { type: "integer", minimum: 0, maximum: 9 } }),
  all_of: { $defs: { Base: object({ id: { type: "integer", minimum: 0, maximum: 9 } }) }, ...object({ it: { allOf: [{ $ref: "#/$defs/Base" }], title: "It", description: "one" } }) },
  root_list: { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, minItems: 1, maxItems: 3, title: "L" },
  literals: object({ a: { enum: ["x", "y", 1, null], title: "A" }, b: { const: 3, title: "B" } }),
};

const string = { type: "string", maxLength: 6 };
const conditions = {
  not: object({ a: { ...string, not: { const: "no" } } }),
  if: object({ kind: { enum: ["a", "b"] }, n: { type: "integer", minimum: 0, maximum: 9 } }, { if: { properties: { kind: { const: "a" } } }, then: { properties: { n: { minimum: 5 } } }, else: { properties: { n: { maximum: 4 } } } }),
  pattern_properties: { type: "object", patternProperties: { "^x": { type: "integer", minimum: 0, maximum: 9 } }, additionalProperties: false, maxProperties: 3 },
  dependent: object({ a: string }, { dependentRequired: { b: ["a"] } }),
  contains: object({ a: { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, contains: { const: 7 }, maxItems: 4 } }),
};

// What no grammar here holds; with "strict": false it is checked when it is written.
export const unheld = {
  set: object({ a: { type: "array", items: string, uniqueItems: true, maxItems: 4 } }),
  letters: object({ a: { ...string, pattern: "^\\p{L}+$" } }),
};

const of = (from, schemas) => Object.entries(schemas).map(([name, schema]) => ({ name: `${from} ${name}`, schema }));
const convert = (schemas, to) => Object.fromEntries(Object.entries(schemas).map(([name, s]) => [name, to(s)]));
export const shapes = [...of("zod 4", convert(zod4, (s) => z.toJSONSchema(s))), ...of("zod 3", convert(zod3, (s) => zodToJsonSchema(s, { $refStrategy: "root" }))), ...of("pydantic", pydantic), ...of("conditions", conditions)];
