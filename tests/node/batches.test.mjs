// OpenAI's and Anthropic's batches, by their official clients, unmodified.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { client as calls_of } from "./calls.mjs";

const base = process.env.SHOAL_URL;
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });
const hello = [{ role: "user", content: "hello" }];
const pause = () => new Promise((done) => setTimeout(done, 50));

calls_of("openai")("batches.create, retrieve, list, cancel", "each line of a file is answered, or has an error, under its custom_id", async () => {
  const line = (custom_id, model) =>
    JSON.stringify({ custom_id, method: "POST", url: "/v1/embeddings", body: { model, input: "x" } }) + "\n";
  const file = await client.files.create({ file: await toFile(Buffer.from(line("a", "home-embed") + line("b", "no-such")), "in.jsonl"), purpose: "batch" });
  const made = await client.batches.create({ input_file_id: file.id, endpoint: "/v1/embeddings", completion_window: "24h", metadata: { a: "b" } });
  assert.equal(made.object, "batch");
  let batch;
  while ((batch = await client.batches.retrieve(made.id)).status !== "completed") {
    assert.ok(["validating", "in_progress", "finalizing"].includes(batch.status), batch.status);
    await pause();
  }
  assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 });
  const read = async (id) => JSON.parse(await (await client.files.content(id)).text());
  const [ok, error] = [await read(batch.output_file_id), await read(batch.error_file_id)];
  assert.equal(ok.custom_id, "a");
  assert.equal(ok.response.body.data[0].object, "embedding");
  assert.equal(error.custom_id, "b");
  assert.equal(error.response.status_code, 404);
  const listed = [];
  for await (const b of client.batches.list({ limit: 1 })) listed.push(b.id);
  assert.ok(listed.includes(made.id));
  await assert.rejects(client.batches.cancel(made.id), OpenAI.BadRequestError);
});

calls_of("@anthropic-ai/sdk")("messages.batches", "messages are answered in the background", async () => {
  const params = { model: "home-chat-s", max_tokens: 8, messages: hello };
  const made = await anthropic.messages.batches.create({ requests: [{ custom_id: "a", params }, { custom_id: "b", params: { ...params, model: "no-such" } }] });
  let batch;
  while ((batch = await anthropic.messages.batches.retrieve(made.id)).processing_status !== "ended") await pause();
  assert.deepEqual(batch.request_counts, { processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 });
  const results = {};
  for await (const r of await anthropic.messages.batches.results(made.id)) results[r.custom_id] = r.result;
  assert.equal(results.a.message.role, "assistant");
  assert.equal(results.b.error.error.type, "not_found_error");
  assert.equal((await anthropic.messages.batches.delete(made.id)).id, made.id);
});
