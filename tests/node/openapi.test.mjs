// /openapi.json against a validator of OpenAPI 3.1, and real answers against the schemas that it names for them.
import assert from "node:assert/strict";
import test from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv from "ajv/dist/2020.js";

const base = process.env.SHOAL_URL;
const doc = await (await fetch(`${base}/openapi.json`)).json();
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: "doc", ...doc });

/** What is wrong with a value that should have the schema of this name; null: nothing. */
function wrong(schema, value) {
  const valid = ajv.getSchema(`doc#/components/schemas/${schema}`);
  return valid(value) ? null : `${schema}: ${ajv.errorsText(valid.errors)} in ${JSON.stringify(value).slice(0, 300)}`;
}

const errorOf = (operation) => doc.components.responses[operation.responses.default.$ref.split("/").at(-1)].content["application/json"].schema.$ref.split("/").at(-1);
const nameOf = (media) => media?.schema?.$ref?.split("/").at(-1);
const operations = Object.entries(doc.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));

test("the document is OpenAPI 3.1, without an objection", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(doc));
  assert.ok(valid, JSON.stringify(errors, null, 1));
  assert.equal(doc.openapi, "3.1.0");
});

test("every schema compiles, and its examples have its form", () => {
  for (const [name, schema] of Object.entries(doc.components.schemas)) {
    assert.ok(ajv.getSchema(`doc#/components/schemas/${name}`), name);
    for (const example of schema.examples ?? []) assert.equal(wrong(name, example), null);
  }
});

test("each path says its parameters, and each operation has a name of its own", () => {
  assert.equal(new Set(operations.map((o) => o.operation.operationId)).size, operations.length);
  for (const { path, operation } of operations) {
    const told = operation.parameters.filter((p) => p.in === "path").map((p) => p.name);
    assert.deepEqual(told, [...path.matchAll(/{(.*?)}/g)].map((m) => m[1]), path);
  }
});

test("what GET answers has the form that is promised", async () => {
  let n = 0;
  for (const { path, method, operation } of operations) {
    const schema = nameOf(operation.responses[200]?.content?.["application/json"]);
    if (method !== "get" || path.includes("{") || !schema) continue;
    const answer = await fetch(base + path);
    const form = answer.ok ? schema : errorOf(operation);
    assert.equal(wrong(form, await answer.json()), null, path);
    n++;
  }
  assert.ok(n > 10);
});

test("what the examples are answered has the form that is promised, be it an error", async () => {
  let good = 0;
  for (const { path, method, operation } of operations) {
    const content = operation.requestBody?.content?.["application/json"];
    const media = operation.responses[200]?.content ?? {};
    if (method !== "post" || path.includes("{") || !content) continue;
    for (const example of doc.components.schemas[nameOf(content)].examples ?? []) {
      const stream = media["application/x-ndjson"] ? { stream: false } : {};
      const answer = await fetch(base + path, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...example, ...stream }),
      });
      if (answer.ok && !media["application/json"]) {
        assert.match(await answer.text(), /^({})?$/, path); // a status alone is promised
        continue;
      }
      const form = answer.ok ? nameOf(media["application/json"]) : errorOf(operation);
      assert.equal(wrong(form, await answer.json()), null, `${path} ${JSON.stringify(example)}`);
      good += answer.ok;
    }
  }
  assert.ok(good > 10, `only ${good} examples were answered`);
});

test("what streams has the form that is promised", async () => {
  let n = 0;
  for (const { path, operation } of operations) {
    const [type, media] = Object.entries(operation.responses[200]?.content ?? {}).find(([, m]) => m["x-itemSchema"]) ?? [];
    const content = operation.requestBody?.content?.["application/json"];
    const example = content && doc.components.schemas[nameOf(content)].examples?.[0];
    if (!type || !example) continue;
    const answer = await fetch(base + path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...example, stream: true }),
    });
    if (!answer.ok) continue; // the home cluster has no model for it
    assert.ok(answer.headers.get("content-type").startsWith(type), path);
    const schema = media["x-itemSchema"].$ref.split("/").at(-1), text = await answer.text();
    const items = type === "text/event-stream"
      ? [...text.matchAll(/^data: (.*)$/gm)].map((m) => m[1]).filter((s) => s !== "[DONE]")
      : text.trim().split("\n");
    for (const item of items) assert.equal(wrong(schema, JSON.parse(item)), null, path);
    n += items.length > 1;
  }
  assert.ok(n >= 5, `only ${n} endpoints streamed`);
});
