// Vector stores and files by the official openai client, unmodified.
import assert from "node:assert/strict";
import OpenAI, { toFile } from "openai";
import { client as calls_of } from "./calls.mjs";

const call = calls_of("openai");
const client = new OpenAI({ baseURL: `${process.env.SHOAL_URL}/v1`, apiKey: "none", maxRetries: 0 });
const manual = "# Boiler\n## Radiators\nBleed the radiators every autumn.\n## Pressure\nKeep the pressure between one and two bar.\n";

call("files and vectorStores", "a file is uploaded, becomes part of a vector store, is found and leaves again", async () => {
  const store = await client.vectorStores.create({ name: "House", metadata: { floor: "1" } });
  assert.equal(store.object, "vector_store");
  assert.equal(store.name, "House");
  assert.equal(store.status, "completed");
  assert.deepEqual(store.metadata, { floor: "1" });

  const file = await client.files.create({ file: await toFile(Buffer.from(manual), "boiler.md"), purpose: "assistants" });
  assert.equal(file.filename, "boiler.md");
  assert.equal(file.bytes, Buffer.byteLength(manual));
  assert.equal(await (await client.files.content(file.id)).text(), manual);

  const put = await client.vectorStores.files.createAndPoll(store.id, { file_id: file.id, attributes: { room: "cellar" } });
  assert.equal(put.id, file.id);
  assert.equal(put.status, "completed");
  assert.equal(put.vector_store_id, store.id);
  await client.vectorStores.files.uploadAndPoll(store.id, await toFile(Buffer.from("The spare key hangs behind the meter."), "key.txt"));

  const counts = (await client.vectorStores.retrieve(store.id)).file_counts;
  assert.equal(counts.completed, 2);
  const first = await client.vectorStores.files.list(store.id, { limit: 1 });
  assert.equal(first.has_more, true);
  const names = [];
  for await (const f of client.vectorStores.files.list(store.id, { limit: 1 })) names.push(f.id);
  assert.equal(names.length, 2);
  assert.equal(names[0], file.id);

  const found = await client.vectorStores.search(store.id, { query: "when are radiators bled?", max_num_results: 2 });
  assert.equal(found.data[0].filename, "boiler.md");
  assert.equal(found.data[0].file_id, file.id);
  assert.deepEqual(found.data[0].attributes, { room: "cellar" });
  assert.equal(found.data[0].content[0].type, "text");
  assert.match(found.data[0].content[0].text, /Bleed the radiators/);
  const kept = await client.vectorStores.search(store.id, { query: "key", filters: { type: "ne", key: "room", value: "cellar" } });
  assert.deepEqual([...new Set(kept.data.map((d) => d.filename))], ["key.txt"]);

  assert.equal((await client.vectorStores.files.delete(file.id, { vector_store_id: store.id })).deleted, true);
  assert.equal((await client.files.delete(file.id)).deleted, true);
  await assert.rejects(client.files.retrieve(file.id), OpenAI.NotFoundError);
  const after = await client.vectorStores.search(store.id, { query: "radiators" });
  assert.ok(after.data.every((d) => d.filename === "key.txt"));

  const ids = [];
  for await (const s of client.vectorStores.list()) ids.push(s.id);
  assert.ok(ids.includes(store.id));
  assert.equal((await client.vectorStores.delete(store.id)).deleted, true);
  await assert.rejects(client.vectorStores.retrieve(store.id), OpenAI.NotFoundError);
});

call("files and vectorStores", "what cannot be is refused in OpenAI's form", async () => {
  await assert.rejects(client.vectorStores.search("vs_none", { query: "x" }), OpenAI.NotFoundError);
  const store = await client.vectorStores.create({});
  await assert.rejects(client.vectorStores.files.create(store.id, { file_id: "file-999999" }), OpenAI.NotFoundError);
  await assert.rejects(client.vectorStores.search(store.id, { query: "x", filters: { type: "like", key: "a", value: "b" } }), OpenAI.BadRequestError);
  const picture = await client.files.create({ file: await toFile(Buffer.from([137, 80, 0, 255]), "x.png"), purpose: "assistants" });
  await assert.rejects(client.vectorStores.files.create(store.id, { file_id: picture.id }), /no text/);
  await client.vectorStores.delete(store.id);
});
