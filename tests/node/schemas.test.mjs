// Documents that random walks through the grammars made (tests/engine/grammar/test_grammar_walk.c), judged by ajv.
import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import AjvDraft4 from "ajv-draft-04";
import addFormats from "ajv-formats";

// 8.52 is a multiple of 0.01, though not when doubles divide.
const options = { strict: false, unicodeRegExp: true, logger: false, multipleOfPrecision: 9 };
const walks = JSON.parse(readFileSync(process.env.SHOAL_WALKS, "utf8"));

function validator(schema) {
  const old = Array.isArray(schema.items) || /draft-07/.test(schema.$schema ?? "");
  const four = typeof schema.exclusiveMinimum === "boolean";
  const ajv = new (four ? AjvDraft4 : old ? Ajv : Ajv2020)(options);
  addFormats(ajv);
  return ajv.compile(schema);
}

test("every document satisfies its schema", () => {
  let n = 0;
  for (const { name, schema, documents } of walks) {
    const valid = validator(schema);
    for (const text of documents) {
      assert.ok(valid(JSON.parse(text)), `${name}: ${text}: ${JSON.stringify(valid.errors)}`);
      n++;
    }
  }
  assert.ok(n > 1000, `only ${n} documents`);
});
