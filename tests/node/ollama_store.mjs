// npm's ollama, unmodified: models fetched, loaded because somebody asks, kept alive, and deleted.
import assert from "node:assert/strict";
import test from "node:test";
import { Ollama } from "ollama";

const base = process.env.SHOAL_URL, ollama = new Ollama({ host: base });
const options = { temperature: 0, num_predict: 12, seed: 1 }, messages = [{ role: "user", content: "hello" }];
const names = async () => (await ollama.ps()).models.map((m) => m.name);
const gone = async (name) => {
  for (let i = 0; i < 300 && (await names()).includes(name); i++) await new Promise((r) => setTimeout(r, 20));
  assert.ok(!(await names()).includes(name), `${name} stays`);
};

test("pull, streamed", async () => {
  const seen = [];
  for await (const part of await ollama.pull({ model: "home:s", stream: true })) seen.push(part);
  assert.equal(seen[0].status, "pulling manifest");
  assert.equal(seen.at(-1).status, "success");
  const file = seen.filter((p) => p.total);
  assert.ok(file.length >= 2, JSON.stringify(seen));
  assert.ok(file.every((p) => p.completed <= p.total && /^sha256:[0-9a-f]{64}$/.test(p.digest) && p.status.startsWith("pulling ")));
  assert.equal(file.at(-1).completed, file.at(-1).total);
  assert.ok(seen.some((p) => p.status === "verifying sha256 digest"));
});

test("pull, whole, and again", async () => {
  assert.equal((await ollama.pull({ model: "home:s", stream: false })).status, "success");
  assert.equal((await ollama.pull({ model: "tiny", stream: false })).status, "success");
});

test("what cannot be pulled", async () => {
  await assert.rejects(ollama.pull({ model: "missing", stream: false }), /missing|no such|404/);
  await assert.rejects(async () => { for await (const _ of await ollama.pull({ model: "tiny:2b", stream: true })); }, /2b/);
  await assert.rejects(ollama.pull({ model: "hf.co/org/one", stream: false }), (e) => e.status_code === 403 && /fetch_from/.test(e.error));
  await assert.rejects(ollama.pull({ model: "evil.example/a/b", stream: false }), (e) => e.status_code === 403);
  for (const model of ["", "../x", "a b", "\u0007", "x".repeat(500), "http://127.0.0.1:1/x.gguf"])
    await assert.rejects(ollama.pull({ model, stream: false }), (e) => e.status_code >= 400 && e.status_code < 500, model);
});

test("what lies there is listed, and not run", async () => {
  const { models } = await ollama.list();
  const m = models.find((x) => x.name === "home-s");
  assert.ok(m && m.size > 1000000 && /^[0-9a-f]{64}$/.test(m.digest), JSON.stringify(models));
  assert.ok(!(await names()).includes("home-s"));
});

test("asking loads it", async () => {
  const a = await ollama.chat({ model: "home:s", messages, options });
  assert.equal(typeof a.message.content, "string");
  assert.ok(a.message.content.length > 0);
  const running = (await ollama.ps()).models.find((m) => m.name === "home-s");
  const left = new Date(running.expires_at) - Date.now();
  assert.ok(left > 0 && left < 400000, `${left} ms are left`);
  const b = await ollama.generate({ model: "home-s", prompt: "hello", options, keep_alive: "10m" });
  assert.equal(b.response, a.message.content);
  assert.ok(new Date((await ollama.ps()).models.find((m) => m.name === "home-s").expires_at) - Date.now() > 400000);
  await ollama.generate({ model: "home:s", prompt: "hello", options, keep_alive: -1 });
  assert.ok(new Date((await ollama.ps()).models.find((m) => m.name === "home-s").expires_at) - Date.now() > 1e9);
});

test("keep_alive 0 unloads it, an empty prompt loads it", async () => {
  assert.equal((await ollama.generate({ model: "home:s", prompt: "", keep_alive: 0 })).done_reason, "unload");
  await gone("home-s");
  assert.equal((await ollama.generate({ model: "home:s", prompt: "" })).done_reason, "load");
  assert.ok((await names()).includes("home-s"));
  await ollama.chat({ model: "home:s", messages, options, keep_alive: 0 });
  await gone("home-s");
  let text = "";
  for await (const part of await ollama.chat({ model: "home:s", messages, options, keep_alive: "1s", stream: true })) text += part.message.content;
  assert.ok(text.length > 0);
  await gone("home-s");
  assert.equal((await ollama.generate({ model: "home:s", prompt: "", keep_alive: 0 })).done_reason, "unload");
});

test("a model of the configuration stays", async () => {
  await assert.rejects(ollama.generate({ model: "home-intent", prompt: "", keep_alive: 0 }), /configuration, and stays/);
  assert.ok((await names()).includes("home-intent"));
  await assert.rejects(ollama.generate({ model: "home-intent", prompt: "", keep_alive: "soon" }), /keep_alive/);
});

test("many ask at once for what is not loaded", async () => {
  const all = await Promise.all(Array.from({ length: 12 }, () => ollama.chat({ model: "home:s", messages, options })));
  assert.ok(all.every((a) => a.message.content === all[0].message.content));
  assert.equal((await names()).filter((n) => n === "home-s").length, 1);
});

test("a client that leaves ends its download", async () => {
  const stream = await ollama.pull({ model: "slow", stream: true });
  await assert.rejects(async () => { for await (const part of stream) if (part.total) stream.abort(); }, /abort/i);
});

test("delete", async () => {
  await ollama.chat({ model: "home:s", messages, options });
  await ollama.delete({ model: "home:s" });
  assert.ok(!(await ollama.list()).models.some((m) => m.name === "home-s"));
  await assert.rejects(ollama.chat({ model: "home:s", messages }), (e) => e.status_code === 404);
  await assert.rejects(ollama.delete({ model: "home:s" }), (e) => e.status_code === 404);
  await assert.rejects(ollama.delete({ model: "home-intent" }), (e) => e.status_code >= 400);
  await assert.rejects(ollama.delete({ model: "../../x" }), (e) => e.status_code >= 400);
  await ollama.delete({ model: "tiny" });
});
