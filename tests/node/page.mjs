// The page at / in a real browser: what a person does with it, and what the worst server, model and operator do to it.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";
import { openStand } from "./page_stand.mjs";

const url = process.env.SHOAL_URL;
const chromium = process.env.SHOAL_CHROMIUM;
const shots = process.env.SHOAL_SHOTS;
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;

before(async () => {
  browser = await puppeteer.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP evil.example 127.0.0.1"] });
});

after(() => browser?.close());

// A page of its own session. What the browser complains of, scripts that fail and breaches of the policy are kept.
async function open(address, { width = 1280, height = 800, mobile = false } = {}, by = browser) {
  const context = await by.createBrowserContext();
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => m.type() === "error" && page.complaints.push(m.text()));
  page.on("pageerror", (e) => page.complaints.push(e.message));
  await page.setViewport({ width, height, isMobile: mobile, hasTouch: mobile });
  await page.evaluateOnNewDocument(() => {
    globalThis.breaches = [];
    document.addEventListener("securitypolicyviolation", (e) => globalThis.breaches.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  await page.goto(address, { waitUntil: "load" });
  return page;
}

async function close(page, expected = []) {
  const breaches = await page.evaluate(() => globalThis.breaches);
  await page.browserContext().close();
  assert.deepEqual(breaches, [], "the policy was breached");
  assert.deepEqual(page.complaints.filter((c) => !expected.some((e) => c.includes(e))), [], "the console has errors");
}

const text = (page, selector) => page.$eval(selector, (n) => n.textContent);
const has = (page, selector, part) => page.waitForFunction((s, p) => [...document.querySelectorAll(s)].some((n) => n.textContent.includes(p)), { timeout: 20000 }, selector, part);
const view = async (page, name) => {
  await page.click(`nav a[data-view=${name}]`);
  await page.waitForSelector(`#view-${name}:not([hidden])`);
};
// Touches what is there, and not what was there before the page around it moved.
const tap = async (page, selector) => {
  await page.waitForFunction(async (s) => {
    const at = () => JSON.stringify(document.querySelector(s)?.getBoundingClientRect() ?? null);
    const before = at();
    await new Promise((done) => setTimeout(done, 100));
    return before === at() && document.querySelector(s)?.checkVisibility();
  }, { timeout: 20000 }, selector);
  await page.tap(selector);
};
const shot = async (page, name) => shots && page.screenshot({ path: `${shots}/${name}.png` });

async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`), []);
}

async function say(page, words) {
  await page.type("#say", words);
  await page.keyboard.press("Enter");
}

const idle = (page) => page.waitForFunction(() => !document.querySelector(".msg.running") && !document.querySelector("#send").hidden, { timeout: 20000 });
const replicas = async () => (await (await fetch(`${url}/readyz`)).json()).replicas;

// ---- a person -------------------------------------------------------------------------------------

test("the first view says what runs where, and a request can be tried from it", async () => {
  const page = await open(`${url}/`);
  await has(page, "h1", "Five models on one machine, all ready.");
  for (const model of ["home-intent", "home-slots", "home-embed", "home-chat-s", "home-chat-m"]) await has(page, ".machine .replica-name", model);
  await has(page, "#health", "All ready");
  await shot(page, "first");
  await page.type("#try-text", "turn off the kitchen light");
  await page.keyboard.press("Enter");
  await has(page, ".pipe-text", "Turning off Kitchen Light.");
  await has(page, ".call code", "light.turn_off");
  const stages = await page.$$eval(".stage", (nodes) => nodes.map((n) => [n.querySelector(".stage-name").firstChild.textContent, n.className, n.querySelectorAll("rect").length]));
  assert.equal(stages.length, 8);
  assert.deepEqual(stages.find(([name]) => name === "choice").slice(0, 2), ["choice", "stage skipped"]);
  const [, , parts] = stages.find(([name]) => name === "intent");
  assert.ok(parts >= 3, "the stage's time has parts: overhead, queue, prefill");
  await has(page, ".stage-more", "home-intent/0");
  await shot(page, "pipeline");
  await close(page);
});

test("a chat streams, is coloured, tells how it went and can be copied", async () => {
  const page = await open(`${url}/#/play`);
  await has(page, ".column option", "home-chat-s");
  await page.select(".column select", "home-chat-s");
  await page.click("#set-probs");
  await page.$eval("#set-temperature", (n) => (n.value = "0"));
  await say(page, "is the garage door closed");
  await has(page, ".msg.user", "is the garage door closed");
  await page.waitForFunction(() => document.querySelectorAll(".msg.assistant .tok").length > 2, { timeout: 20000 });
  await idle(page);
  await has(page, ".msg.assistant .meta", "tokens");
  await has(page, ".trace dd", "home-chat-s/0");
  await page.click("#copy-curl");
  assert.match(await text(page, "#copy-text"), /^curl -N '.*\/v1\/chat\/completions'/);
  await page.click("#copy-close");
  await page.click("#copy-js");
  assert.match(await text(page, "#copy-text"), /new OpenAI/);
  await page.click("#copy-close");
  await close(page);
});

test("a chat begins with the home, whose devices the page plays", async () => {
  const page = await open(`${url}/#/play`);
  await page.waitForFunction(() => document.querySelector(".column select").value === "home");
  await has(page, ".about", "simulated");
  await say(page, "set the kitchen light to 30 percent");
  await has(page, ".msg.assistant .call code", 'turn_on({"target":"light.kitchen","brightness":30})');
  await has(page, ".msg.assistant > .text", "Kitchen Light");
  await idle(page);
  const said = await page.$$eval(".msg.assistant > .text", (n) => n.at(-1).textContent);
  assert.ok(!/can't|nothing was done/i.test(said), said);
  await say(page, "is the front door locked?");
  await has(page, ".msg.assistant > .text", "Front Door Lock is locked");
  await idle(page);
  await shot(page, "home");
  await close(page);
});

test("first token is one figure: the server's, under the reply and in its details", async () => {
  const page = await open(`${url}/#/play`);
  await has(page, ".column option", "home-chat-s");
  await page.select(".column select", "home-chat-m");
  await page.type("#set-temperature", "1"); // no answer of the cache
  await say(page, "is the front door locked");
  await has(page, ".msg.assistant .meta", "first token");
  const [, under] = /first token ([\d.]+ m?s)/.exec(await text(page, ".msg.assistant .meta"));
  const details = await page.$$eval(".trace dt", (n) => n.filter((t) => t.textContent === "First token").map((t) => t.nextElementSibling.textContent));
  assert.deepEqual(details, [under]);
  const id = await page.$$eval(".trace dt", (n) => n.find((t) => t.textContent === "Request id").nextElementSibling.textContent);
  const { data } = await (await fetch(`${url}/v1/requests?id=${id}`)).json();
  assert.ok(Math.abs(parseFloat(under) - data[0].first_token_ms) <= 0.5, `${under} is not ${data[0].first_token_ms}`);
  await page.click("#copy-curl");
  assert.ok(!(await text(page, "#copy-text")).includes("authorization"), "a key where none is needed");
  await close(page);
});

test("two models answer side by side", async () => {
  const page = await open(`${url}/#/play`);
  await has(page, ".column option", "home-chat-m");
  await page.select(".column select", "home-chat-m");
  await page.click("#compare");
  await say(page, "is the garage door closed");
  await idle(page);
  assert.deepEqual(await page.$$eval(".column", (c) => c.map((n) => [n.querySelector("select").value, n.querySelectorAll(".msg").length])), [["home-chat-m", 2], ["home-chat-s", 2]]);
  await shot(page, "compare");
  await close(page);
});

test("tools, a schema and their mistakes", async () => {
  const page = await open(`${url}/#/play`);
  await has(page, ".column option", "home-chat-s");
  await page.select(".column select", "home-chat-s");
  await page.click("#settings .inner summary");
  await page.type("#set-schema", "{ no");
  await say(page, "hello");
  await has(page, ".failure", "the schema is not valid JSON");
  assert.equal(await page.evaluate(() => document.activeElement.id), "set-schema");
  await page.click("#schema-example");
  await say(page, "the kitchen light");
  await idle(page);
  const reply = JSON.parse(await page.$eval(".msg.assistant > .text .block", (n) => n.textContent));
  assert.equal(typeof reply.on, "boolean");
  await page.$eval("#set-schema", (n) => (n.value = ""));
  await page.click("#tools-example");
  await page.click("#chat-new");
  await page.$eval("#set-system", (n) => (n.value = "Call the tool."));
  await say(page, "switch the kitchen light on");
  await idle(page);
  await close(page);
});

test("other tasks: labels, spans, vectors", async () => {
  const page = await open(`${url}/#/play`);
  await page.click("#tab-tasks");
  await has(page, "#task-model option", "home-intent");
  await page.click("#task-run");
  await has(page, ".ranked li", "iot_hue_lightoff");
  await page.select("#task-what", "tag");
  await page.click("#task-run");
  await has(page, "mark", "kitchen");
  await page.select("#task-what", "embed");
  await page.click("#task-run");
  await has(page, "#task-out p", "256 dimensions");
  await close(page);
});

test("a request names its pipeline, and a stream that failed behind its 200 counts as failed", async () => {
  const post = async (path, body, headers) => (await fetch(`${url}${path}`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) })).text();
  const list = async (query) => (await (await fetch(`${url}/v1/requests?${query}`)).json()).data;
  await post("/v1/process", { pipeline: "home", input: "lock the front door" });
  assert.equal((await list("model=home"))[0].pipeline, "home");
  const reply = await post("/v1/chat/completions", { model: "home-chat-m", stream: true, ignore_eos: true, max_tokens: 1900, messages: [{ role: "user", content: "a long story" }] }, { "x-shoal-deadline-ms": "500", "x-request-id": "cut" });
  assert.match(reply, /deadline_exceeded/);
  assert.deepEqual((await list("status=error&id=cut")).map((r) => [r.status, r.code]), [[200, "deadline_exceeded"]]);
});

test("requests are listed, filtered and opened", async () => {
  await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json", "x-request-id": "to-be-found" }, body: JSON.stringify({ model: "home-chat-m", max_tokens: 8, messages: [{ role: "user", content: "a very private question" }] }) });
  await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  const page = await open(`${url}/#/requests`);
  await has(page, ".request .model", "home-chat-m");
  await page.select("#f-model", "home-chat-m");
  await page.waitForFunction(() => [...document.querySelectorAll(".request .model")].every((n) => n.textContent === "home-chat-m"));
  await page.click(".request-head");
  await has(page, ".request-body dd", "home-chat-m/0");
  await has(page, ".request-body .legend", "decode");
  assert.ok(!(await page.content()).includes("private question"));
  await shot(page, "requests");
  await page.select("#f-model", "home");
  await page.waitForFunction(() => [...document.querySelectorAll(".request .model")].every((n) => n.textContent === "home"));
  await page.select("#f-model", "");
  await page.select("#f-status", "error");
  await has(page, ".request .status.bad", "deadline exceeded");
  await has(page, ".request .status", "400");
  await accessible(page, "requests");
  await close(page);
});

test("the log shows, with lines of workers", async () => {
  const page = await open(url);
  await page.click("#log > summary");
  await page.select("#log-level", "info");
  await has(page, "#log-lines .from", "worker home-");
  await has(page, "#log-lines .what", "call_done");
  assert.ok(!(await page.$eval("#log-lines", (n) => n.textContent)).includes("private question"));
  await page.select("#log-level", "error");
  await page.waitForFunction(() => !document.querySelector("#log-lines .line.info"));
  await page.select("#log-level", "info");
  await has(page, "#log-lines .what", "request endpoint=");
  await page.$eval("#log", (n) => n.scrollIntoView());
  await shot(page, "log");
  await accessible(page, "log");
  await close(page);
});

test("models are described and can be found", async () => {
  const page = await open(`${url}/#/models`);
  await has(page, ".model-card h2", "home-chat-m");
  await has(page, ".model-card dd", "llama");
  await page.type("#models-find", "bert");
  await page.waitForFunction(() => document.querySelectorAll("#models-list .model-card").length === 3);
  await shot(page, "models");
  await accessible(page, "models");
  await close(page);
});

test("a worker that is killed is seen dying and coming back", async () => {
  const page = await open(`${url}/`);
  await has(page, "h1", "all ready");
  const victim = (await replicas()).find((r) => r.model === "home-slots");
  process.kill(victim.pid, "SIGKILL");
  await has(page, ".happened.bad", "home-slots/0 died");
  await has(page, ".happened.good", "home-slots/0 is");
  await has(page, ".replica .why", "died once");
  await has(page, "h1", "all ready");
  await shot(page, "killed");
  await close(page);
});

test("the keyboard alone is enough", async () => {
  const page = await open(`${url}/`);
  await has(page, "h1", "all ready");
  const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  await page.keyboard.press("Tab");
  assert.equal(await focus(), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await focus(), "main");
  await page.keyboard.press("Tab");
  assert.equal(await focus(), "try-text");
  await page.keyboard.type("lock the front door");
  await page.keyboard.press("Enter");
  await has(page, ".pipe-text", "Front Door Lock");
  await page.focus("#tab-pipe");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await focus(), "tab-chat");
  await page.waitForSelector("#pane-chat:not([hidden])");
  await page.focus("#key-button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#key-dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#key-dialog:not([open])");
  assert.equal(await focus(), "key-button");
  await close(page);
});

test("light and dark, each with nothing serious for a screen reader", async () => {
  const page = await open(`${url}/`);
  await has(page, "h1", "all ready");
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  const dark = await ground();
  assert.notEqual(light, dark);
  await page.click("#theme-button"); // auto, then light
  assert.equal(await ground(), light);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.click("#theme-button");
  assert.equal(await ground(), dark);
  await page.reload({ waitUntil: "load" });
  assert.equal(await ground(), dark, "the choice is kept");
  await has(page, "h1", "all ready");
  for (const name of ["cluster", "play", "requests", "models"]) {
    await view(page, name);
    await accessible(page, `${name}, dark`);
    await shot(page, `dark-${name}`);
  }
  await page.click("#theme-button"); // auto: light
  for (const name of ["cluster", "play"]) {
    await view(page, name);
    await accessible(page, `${name}, light`);
  }
  for (const tab of ["pipe", "tasks"]) {
    await page.click(`#tab-${tab}`);
    await accessible(page, `${tab}, light`);
  }
  await page.click("#key-button");
  await accessible(page, "the key's dialog");
  await close(page);
});

test("nothing is wider than a phone", async () => {
  const page = await open(`${url}/`, { width: 390, height: 844, mobile: true });
  await has(page, "h1", "all ready");
  await has(page, "#try-who option", "home");
  await tap(page, "#try button");
  await has(page, ".pipe-text", "Turning off");
  for (const name of ["play", "cluster", "requests", "models"]) {
    await view(page, name);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, name);
    await accessible(page, `${name}, phone`);
    await shot(page, `phone-${name}`);
  }
  await close(page);
});

test("a model that is not loaded is listed and loaded; an ensemble shows its members", async () => {
  const page = await open(`${url}/#/models`);
  await has(page, "#loadable .loadable h2", "home-ears");
  await has(page, "#loadable .loadable p", "transcribing");
  const card = (name) => page.evaluateHandle((n) => [...document.querySelectorAll("#models-list .model-card")].find((c) => c.querySelector("h2").textContent === n), name);
  const members = await (await card("home-cascade")).$$eval(".chips li", (n) => n.map((li) => [li.textContent, li.firstChild.dataset.state]));
  assert.deepEqual(members, [["home-chat-s", "good"], ["home-chat-m", "good"]]);
  await page.click('#loadable button[aria-label="Load home-ears"]');
  await has(page, "#load-said", "home-ears is loaded.");
  await has(page, "#models-list .model-card h2", "home-ears");
  await page.waitForSelector("#loadable[hidden]");
  await accessible(page, "models");
  await close(page);
});

test("speech is recorded, transcribed and sent", async () => {
  const spoken = process.env.SHOAL_SPEECH;
  const hears = await puppeteer.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", `--use-file-for-fake-audio-capture=${spoken}%noloop`] });
  try {
    const page = await open(`${url}/#/play`, {}, hears);
    await page.waitForSelector("#mic:not([hidden])"); // home-ears is loaded by now
    await page.click("#mic");
    await has(page, "#mic-note", "Recording");
    await new Promise((go) => setTimeout(go, 3000)); // longer than the file
    await page.click("#mic");
    await has(page, ".msg.user", "lights on");
    await idle(page);
    await page.waitForFunction(() => document.querySelector("#mic-note").textContent === "");
    await close(page);
  } finally {
    await hears.close();
  }
  const unloaded = await fetch(`${url}/v1/models/unload`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"model":"home-ears"}' });
  assert.equal(unloaded.status, 200);
});

test("conversations survive a reload, are renamed, deleted, and sent nowhere", async () => {
  const page = await open(`${url}/#/play`);
  const sent = [];
  page.on("request", (r) => r.method() !== "GET" && sent.push([new URL(r.url()).pathname, r.postData() ?? ""]));
  await has(page, ".column option", "home-chat-s");
  await page.select(".column select", "home-chat-s");
  await page.type("#set-system", "Be brief.");
  await say(page, "is the garage door closed");
  await idle(page);
  await has(page, ".msg.assistant .meta", "Completed");
  const reply = await text(page, ".msg.assistant .text");
  await page.reload({ waitUntil: "load" });
  await has(page, ".column option", "home-chat-s");
  await has(page, ".msg.user", "is the garage door closed");
  assert.equal(await text(page, ".msg.assistant .text"), reply);
  assert.equal(await page.$eval("#set-system", (n) => n.value), "Be brief.");
  assert.equal(await page.$eval(".column select", (n) => n.value), "home-chat-s");
  await page.click("#chat-new");
  assert.equal((await page.$$(".msg")).length, 0);
  await say(page, "lock the front door");
  await idle(page);
  const titles = () => page.$$eval(".chat-title", (n) => n.map((t) => t.textContent));
  assert.deepEqual(await titles(), ["lock the front door", "is the garage door closed"]);
  await page.click('[aria-label="Rename is the garage door closed"]');
  await page.keyboard.type("the garage");
  await page.keyboard.press("Enter");
  await has(page, ".chat-title", "the garage");
  await page.evaluate(() => [...document.querySelectorAll(".chat-title")].find((t) => t.textContent === "the garage").click());
  await has(page, ".msg.user", "is the garage door closed");
  await accessible(page, "a conversation");
  page.on("dialog", (d) => d.accept());
  await page.click('[aria-label="Delete the garage"]');
  await page.waitForFunction(() => document.querySelectorAll(".chat-title").length === 1);
  assert.equal((await page.$$(".msg")).length, 0);
  assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((k) => k.startsWith("shoal-chat:")).length), 1);
  assert.deepEqual(sent.map(([path]) => path), ["/v1/chat/completions", "/v1/chat/completions"]);
  assert.ok(!sent[1][1].includes("garage"), "another conversation is sent along");
  await page.evaluate(() => {
    localStorage.setItem("shoal-chat:x", "{ broken");
    localStorage.setItem("shoal-chat:y", '{"title":"y","at":1,"columns":[{"model":"m","turns":[{"message":{"role":"system","content":3}}]}]}');
    sessionStorage.setItem("shoal-open-chat", "y");
  });
  await page.reload({ waitUntil: "load" });
  await has(page, ".chat-title", "lock the front door");
  assert.deepEqual(await titles(), ["lock the front door"]);
  await close(page);
});

// ---- the worst ------------------------------------------------------------------------------------

const EVIL = '<img src=x onerror="document.title=1"><script>document.title=1</script></textarea>"\'`${1}';
const model = (id, more = {}) => ({ id, object: "model", task: "generate", state: "ready", architecture: "llama", quantisation: "Q8_0", ...more });
const replica = (id, m, node, more = {}) => ({ id, model: m, node, site: "", state: "ready", reason: "", calls: 0, restarts: 0, crashes: 0, running: 0, waiting: 0, generated_tokens: 0, resident_bytes: 1e7, ...more });

async function withStand(job) {
  const stand = await openStand(url);
  stand.models = [model("m")];
  stand.status.nodes = [{ name: "", host: "here", cores: 2, load: 0.1, memory_bytes: 1e9, memory_free_bytes: 5e8 }];
  stand.status.replicas = [replica("m/0", "m", "")];
  try {
    await job(stand);
  } finally {
    await stand.shut();
  }
}

test("what models and machines are called and say is text and nothing else", () => withStand(async (stand) => {
  stand.models = [model(EVIL, { architecture: EVIL, quantisation: EVIL })];
  stand.status.nodes = [{ name: EVIL, cores: 1, site: EVIL }];
  stand.status.replicas = [replica(`${EVIL}/0`, EVIL, EVIL, { state: "down", reason: EVIL })];
  stand.chat = (res) => {
    stand.chunk(res, { content: EVIL }, { logprobs: { content: [{ token: EVIL, logprob: -1, top_logprobs: [{ token: EVIL, logprob: -2 }] }] } });
    stand.chunk(res, { reasoning_content: EVIL, content: EVIL, tool_calls: [{ index: 0, id: EVIL, function: { name: EVIL, arguments: EVIL } }] });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/`);
  await has(page, ".machine h3", EVIL);
  await has(page, ".replica .why", EVIL);
  await view(page, "models");
  await has(page, ".model-card h2", EVIL);
  await view(page, "play");
  await say(page, EVIL);
  await idle(page);
  assert.equal(await text(page, ".msg.assistant > .text .block"), EVIL + EVIL);
  assert.equal(await text(page, ".msg.assistant .thought .block"), EVIL);
  await has(page, ".call code", EVIL);
  assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
  assert.match(await page.title(), /Shoal/);
  await close(page);
}));

test("a reply can be stopped, by button, by key and at the reply, and the server hears of it", () => withStand(async (stand) => {
  let left = 0;
  stand.chat = (res) => {
    stand.chunk(res, { content: "it never ends" });
    res.on("close", () => left++);
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  for (const [n, stop] of [[1, () => page.click("#stop")], [2, () => page.keyboard.press("Escape")], [3, () => page.click(".msg.running .when-running")]]) {
    await say(page, "hello");
    await page.waitForFunction((k) => [...document.querySelectorAll(".msg.assistant .block")].filter((b) => b.textContent === "it never ends").length === k, {}, n);
    await stop();
    await page.waitForFunction((k) => [...document.querySelectorAll(".meta")].filter((m) => m.textContent.startsWith("Cancelled")).length === k, {}, n);
    await idle(page);
  }
  for (let i = 0; left < 3 && i < 500; i++) await new Promise((go) => setTimeout(go, 10));
  assert.equal(left, 3);
  assert.deepEqual(stand.asked[1].messages.map((m) => m.role), ["user", "assistant", "user"], "what was written stays part of the conversation");
  await close(page);
}));

const answers = (stand, words) => (stand.chat = (res) => {
  for (const content of words) stand.chunk(res, { content });
  res.end("data: [DONE]\n\n");
});

test("Markdown is rendered, and what could be dangerous in it is text", () => withStand(async (stand) => {
  const source = ["# A title ##\n\n### In C#\n\nSome **bold**, *slanted* and `code` with snake_case_names and 2 * 3 * 4.\nA second line.\n\n", "- one\n- two\n  - inner\n\n1. first\n2. second\n\n",
    "```js\nconst a = \"<b>\"; // a line that is wider than a phone, and does not break, but can be scrolled to its end\n\n**not bold**\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n---\n\n",
    "[good](https://example.com/a_(b)) https://example.org/x. [bad](javascript:alert(1)) [data](data:text/html,x) ![pic](https://example.com/p.png) <img src=x onerror=alert(1)> <script>alert(1)</script>\n\n", "[rel](/v1/models) last **open"];
  answers(stand, source.join("").match(/[^]{1,3}/g)); // in pieces that end anywhere
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "show me");
  await idle(page);
  const all = (selector) => page.$$eval(`.msg.assistant > .text ${selector}`, (nodes) => nodes.map((n) => n.textContent));
  assert.deepEqual(await all("h4"), ["A title"]);
  assert.deepEqual(await all("h6"), ["In C#"]);
  assert.deepEqual(await all("strong"), ["bold", "2"]);
  assert.deepEqual(await all("em"), ["slanted"]);
  assert.deepEqual(await all("ul > li"), ["one", "twoinner", "inner"]);
  assert.deepEqual(await all("ol > li"), ["first", "second"]);
  assert.deepEqual(await all("pre code"), ['const a = "<b>"; // a line that is wider than a phone, and does not break, but can be scrolled to its end\n\n**not bold**']);
  assert.deepEqual(await all("figcaption span"), ["js"]);
  assert.deepEqual(await all("blockquote"), ["quoted"]);
  assert.deepEqual(await all("td"), ["1", "2"]);
  assert.equal((await all("hr")).length, 1);
  assert.ok((await all("p"))[0].includes("snake_case_names and 2 * 3 * 4."));
  const links = await page.$$eval(".msg.assistant a", (nodes) => nodes.map((n) => [n.href, n.rel]));
  assert.deepEqual(links.map(([href]) => href), ["https://example.com/a_(b)", "https://example.org/x", "https://example.com/p.png"]);
  assert.ok(links.every(([, rel]) => rel.includes("noopener")));
  const body = await text(page, ".msg.assistant > .text");
  for (const part of ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "bad", "data", "rel last **open"]) assert.ok(body.includes(part), part);
  assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script").length), 0);
  await shot(page, "markdown");
  await accessible(page, "Markdown");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await accessible(page, "Markdown, dark");
  await page.setViewport({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await accessible(page, "Markdown, phone");
  await shot(page, "markdown-phone");
  for (const nasty of ["*".repeat(20000), "`".repeat(20000), "[".repeat(20000), "> ".repeat(5000), "- ".repeat(5000), "**a ".repeat(5000), "_a_".repeat(5000), "|".repeat(20000), "https://".repeat(3000), "```\n".repeat(4000), "1. a\n\n".repeat(3000), "![](".repeat(4000), "<".repeat(20000)]) {
    answers(stand, [nasty]);
    await page.click("#chat-new");
    await say(page, "again");
    await idle(page);
    await has(page, ".msg.assistant .meta", "Completed");
  }
  await close(page);
}));

test("a reply is copied and retried, a message edited", () => withStand(async (stand) => {
  let n = 0;
  stand.chat = (res) => {
    stand.chunk(res, { content: `reply **${++n}**` });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/#/play`);
  await page.browserContext().overridePermissions(stand.url, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
  const press = (words, nth = 0) => page.evaluate((w, i) => [...document.querySelectorAll("#columns button")].filter((b) => b.textContent === w)[i].click(), words, nth);
  const said = async () => (await idle(page), page.$$eval(".msg", (m) => m.map((x) => (x.querySelector(":scope > .text") ?? x).textContent)));
  await has(page, ".column option", "m");
  await say(page, "first");
  await idle(page);
  await say(page, "second");
  assert.deepEqual(await said(), ["first", "reply 1", "second", "reply 2"]);
  await press("Retry", 0);
  await has(page, ".msg.assistant", "reply 3");
  assert.deepEqual(await said(), ["first", "reply 3"]);
  assert.deepEqual(stand.asked.at(-1).messages, [{ role: "user", content: "first" }]);
  await press("Copy", 1);
  await has(page, "#columns button", "Copied");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "reply **3**");
  await press("Edit", 0);
  await page.waitForSelector(".edit textarea");
  await page.keyboard.press("Escape");
  assert.deepEqual(await said(), ["first", "reply 3"]);
  await press("Edit", 0);
  await page.waitForSelector(".edit textarea");
  await page.keyboard.type(", corrected");
  await page.keyboard.press("Enter");
  await has(page, ".msg.assistant", "reply 4");
  assert.deepEqual(await said(), ["first, corrected", "reply 4"]);
  assert.equal(stand.asked.at(-1).messages.length, 1);
  await close(page);
}));

test("an answer that ended early is no success", () => withStand(async (stand) => {
  const page = await open(`${stand.url}/`);
  await page.waitForFunction(() => document.querySelector("#try-text").placeholder === "Try it: Hello"); // a model alone knows no light
  await view(page, "play");
  await has(page, ".column option", "m");
  for (const [end, state, why] of [
    [`data: ${JSON.stringify({ error: { message: "the deadline was missed", code: "deadline_exceeded" } })}\n\n`, "Failed", "deadline was missed"],
    [`data: ${JSON.stringify({ error: { message: "the prompt has 304", code: "context_length_exceeded" } })}\n\n`, "Failed", "304. Begin a new chat"],
    ["", "Failed", "before it was complete"],
    [`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] })}\n\ndata: [DONE]\n\n`, "Stopped at max tokens", ""],
    [`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "length" }], usage: { completion_tokens: 2 } })}\n\ndata: [DONE]\n\n`, "Stopped where the context is full", ""],
  ]) {
    stand.chat = (res) => {
      stand.chunk(res, { content: "half of" });
      res.end(end);
    };
    await page.click("#chat-new");
    await say(page, "go on");
    await idle(page);
    await has(page, ".msg.assistant .state", state);
    if (why) await has(page, ".msg.assistant .failure", why);
    await page.reload({ waitUntil: "load" }); // kept as it was
    await has(page, ".msg.assistant .state", state);
    if (why) await has(page, ".msg.assistant .failure", why);
  }
  await close(page);
}));

test("a chat begins with the home's model, and says what a model is for", () => withStand(async (stand) => {
  stand.models = [model("m", { use: "testing" }), model("home", { use: "the home" }), model("n")];
  const page = await open(`${stand.url}/#/play`);
  await page.waitForFunction(() => document.querySelector(".column select").value === "home");
  await has(page, ".about", "For: the home");
  await page.select(".column select", "m");
  await has(page, ".about", "For: testing");
  await page.click("#compare");
  assert.deepEqual(await page.$$eval(".column select", (n) => n.map((x) => x.value)), ["m", "m"]);
  await close(page);
}));

test("the charts show what was before the page was opened", () => withStand(async (stand) => {
  const now = Date.now() / 1000;
  const entry = (number, ago, more) => ({ number, at: now - ago, endpoint: "chat_completions", status: 200, ms: 100, id: `r${number}`, model: "m", prompt_tokens: 5, completion_tokens: 50, queue_ms: 4, first_token_ms: 12, decode_ms: 1000, background: false, streamed: true, ...more });
  stand.status.gateway.requests = 3;
  stand.requests = [entry(3, 30, { code: "deadline_exceeded" }), entry(2, 303), entry(1, 806)]; // no two end in the same second of ten
  const page = await open(`${stand.url}/`);
  await has(page, ".tile", "peak 5"); // 50 tokens in ten seconds
  await has(page, ".tile", "first token 12 ms");
  await has(page, ".tile", "median 4.0 ms");
  const drawn = await page.$$eval(".tile .chart", (n) => n.map((c) => [...c.querySelectorAll("path")].map((p) => (p.getAttribute("d").match(/M/g) ?? []).length)));
  assert.deepEqual(drawn[1], [2, 1], "two requests, and one that failed behind its 200");
  assert.deepEqual(drawn[2], [2, 1]);
  const places = await page.$eval(".tile .chart-dots", (p) => [...p.getAttribute("d").matchAll(/M([\d.]+) /g)].map((m) => Math.round(Number(m[1]))));
  assert.ok(Math.abs(places[0] - 26) < 3 && Math.abs(places[1] - 160) < 3, `15 minutes wide: ${places}`);
  await close(page);
}));

test("an answer of 100,000 tokens is shown whole, and the page goes on", () => withStand(async (stand) => {
  const n = 100000;
  stand.chat = (res) => {
    for (let i = 0; i < n; i += 100) stand.chunk(res, { content: Array.from({ length: 100 }, (_, k) => `w${i + k}${(i + k) % 20 ? " " : "\n"}`).join("") });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "everything");
  await idle(page);
  const words = (await page.$$eval(".msg.assistant > .text .block", (b) => b.map((x) => [...x.querySelectorAll("p")].map((p) => [...p.childNodes].map((c) => c.data ?? " ").join("")).join(" ")).join(" "))).match(/w\d+/g);
  assert.equal(words.length, n);
  assert.ok(words.every((w, i) => w === `w${i}`), "a word is missing or moved");
  stand.chat = (res) => {
    stand.chunk(res, { content: "short" });
    res.end("data: [DONE]\n\n");
  };
  await say(page, "and now");
  await has(page, ".msg.assistant", "short");
  await close(page);
}));

const blocks = (page, where) => page.$$eval(`${where} .block`, (nodes) => nodes.map((n) => n.textContent));

test("thoughts and a line without end stand in blocks, broken between words", () => withStand(async (stand) => {
  const words = Array.from({ length: 20000 }, (_, i) => `word${i} `);
  stand.chat = (res) => {
    for (let i = 0; i < words.length; i += 50) stand.chunk(res, { reasoning_content: words.slice(i, i + 50).join("") });
    for (let i = 0; i < words.length; i += 50) stand.chunk(res, { content: words.slice(i, i + 50).join("") });
    stand.chunk(res, { content: "\u{1f41f}".repeat(50000) });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "a long line");
  await idle(page);
  const thought = await blocks(page, ".msg.assistant .thought");
  const body = await blocks(page, ".msg.assistant > .text");
  assert.equal(thought.join(""), words.join(""));
  assert.equal(body.map((b) => b.trim()).join(" ").replace(/ (?=\u{1f41f})/gu, ""), words.join("").trim() + "\u{1f41f}".repeat(50000));
  for (const block of [...thought, ...body]) {
    assert.ok(block.length <= 36000, `a block of ${block.length}`);
    assert.match(block, /^(word\d+ |\u{1f41f}+$)/u, "a block begins in mid-word");
  }
  assert.ok(await page.$eval(".thought .text", (n) => n.querySelectorAll(".block").length === [...n.querySelectorAll(".block")].reduce((k, b) => k + b.childNodes.length, 0)), "a node for each token");
  await close(page);
}));

test("coloured tokens stay on their line", () => withStand(async (stand) => {
  const tokens = Array.from({ length: 1500 }, (_, i) => (i % 30 === 29 ? "end.\nBe" : i % 30 === 0 && i ? "gin " : i % 2 ? "lark " : "sky"));
  stand.chat = (res) => {
    for (const token of tokens) stand.chunk(res, { content: token }, { logprobs: { content: [{ token, logprob: -0.1, top_logprobs: [] }] } });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "in colours");
  await idle(page);
  const body = await blocks(page, ".msg.assistant > .text");
  assert.ok(body.length > 1);
  assert.equal(body.join("\n"), tokens.join(""));
  assert.equal(await page.$eval(".msg.assistant > .text", (n) => n.querySelectorAll(".block > :not(.tok)").length), 0);
  await close(page);
}));

// The same over and over, as quickly as it is read.
function flood(res, words) {
  const more = () => {
    while (!res.destroyed && res.write(words));
    if (!res.destroyed) res.once("drain", more);
  };
  more();
}

test("an answer that never ends is stopped, as are calls without end", () => withStand(async (stand) => {
  let left = 0;
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  for (const [delta, why] of [
    [{ reasoning_content: "and so on ".repeat(5000) }, "longer than 4000000 characters"],
    [{ content: "and so on\n".repeat(5000) }, "longer than 4000000 characters"],
    [{ tool_calls: [{ index: 0, function: { name: "f", arguments: "0".repeat(50000) } }] }, "longer than 4000000 characters"],
    [{ tool_calls: [{ index: 4e9, function: { name: "f" } }] }, "with the number 4000000000"],
  ]) {
    stand.chat = (res) => {
      res.on("close", () => left++);
      flood(res, `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`);
    };
    const before = left;
    await say(page, "go on");
    await has(page, ".failure", why);
    await idle(page);
    for (let i = 0; left === before && i < 500; i++) await new Promise((go) => setTimeout(go, 10));
    assert.equal(left, before + 1, "the server hears of it");
    await page.click("#chat-new");
  }
  await close(page);
}));

test("an event and a run of a pipeline that never end are stopped", () => withStand(async (stand) => {
  stand.chat = (res) => {
    res.write("data: ");
    flood(res, "x".repeat(100000));
  };
  stand.process = (res) => {
    res.write(`event: text\ndata: {"text":"once "}\n\nevent: text\ndata: {"text":"upon "}\n\n`);
    flood(res, `event: text\ndata: ${JSON.stringify({ text: "and so on ".repeat(100) })}\n\n`);
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "go on");
  await has(page, ".failure", "an event that has no end");
  await idle(page);
  await page.click("#tab-pipe");
  await page.click("#pipe-run");
  await has(page, "#pipe-out .failure", "more than 4000000 characters");
  await page.waitForSelector("#pipe-run:not([hidden])");
  assert.deepEqual(await page.$eval(".pipe-text", (n) => [n.childNodes.length, n.textContent.slice(0, 15)]), [1, "once upon and s"]);
  await close(page);
}));

test("a server that stops in mid-answer is told of, and found again", () => withStand(async (stand) => {
  stand.chat = (res) => {
    stand.chunk(res, { content: "half of " });
    setTimeout(() => stand.hangUp(), 100);
  };
  const page = await open(`${stand.url}/#/play`);
  await has(page, ".column option", "m");
  await say(page, "hello");
  await has(page, ".msg.assistant .text", "half of");
  await has(page, ".failure", "ended in the middle");
  await stand.shut();
  await has(page, "#banner", "does not answer");
  await has(page, "#health", "Not reachable");
  await say(page, "and now?");
  await has(page, ".failure", "cannot be reached");
  await stand.open(stand.port);
  await has(page, "#health", "All ready");
  await close(page, ["net::ERR"]);
}));

test("a cluster without models says so", () => withStand(async (stand) => {
  stand.models = [];
  stand.status.replicas = [];
  const page = await open(`${stand.url}/`);
  await has(page, "h1", "No model runs here yet");
  await has(page, "#health", "No models");
  await page.waitForSelector("#try[hidden]");
  for (const name of ["play", "requests", "models"]) await view(page, name);
  await accessible(page, "nothing");
  await close(page);
}));

test("a page that nobody sees lets go of its connection, and tells afterwards what happened", () => withStand(async (stand) => {
  const page = await open(`${stand.url}/`);
  await has(page, "#health", "All ready");
  const hide = (hidden) => page.evaluate((h) => {
    Object.defineProperty(document, "hidden", { value: h, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const listeners = async (n) => {
    for (let i = 0; stand.listeners.size !== n && i < 2000; i++) await new Promise((go) => setTimeout(go, 10));
    assert.equal(stand.listeners.size, n);
  };
  await listeners(1);
  await hide(true);
  await listeners(0);
  stand.status.replicas = [replica("m/0", "m", "", { crashes: 1 }), replica("m/1", "m", "")];
  await hide(false);
  await listeners(1);
  await has(page, ".happened", "m/0 died");
  await has(page, ".happened", "m/1 came");
  assert.ok(!(await text(page, "#feed")).includes("lost"));
  await close(page);
}));

test("what a replica did is forgotten when it goes", () => withStand(async (stand) => {
  const page = await open(`${stand.url}/`);
  const shows = (id, there) => page.waitForFunction((i, t) => [...document.querySelectorAll(".replica")].some((n) => n.title === i) === t, {}, id, there);
  await shows("m/0", true);
  for (const crashes of [1, 2]) {
    stand.tell({ replicas: [replica("m/1", "m", "", { crashes })] });
    await shows("m/1", true);
    assert.equal(await page.$(".struck"), null, "it came, and did not die here");
    stand.tell({ gone: ["replica m/1"] });
    await shows("m/1", false);
  }
  stand.tell({ replicas: [replica("m/0", "m", "", { crashes: 1 })] });
  await page.waitForSelector(".struck");
  await close(page);
}));

test("a key is asked for, kept in the tab, and asked for again when it has expired", () => withStand(async (stand) => {
  stand.key = "first";
  const page = await open(`${stand.url}/`);
  await page.waitForSelector("#key-dialog[open]");
  await has(page, "#health", "Needs a key");
  await page.type("#key-value", "wrong");
  await page.keyboard.press("Enter");
  await has(page, "#key-why", "refuses this key");
  await page.type("#key-value", "first");
  await page.keyboard.press("Enter");
  await has(page, "#health", "All ready");
  assert.deepEqual(await page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage).includes("first"), document.cookie]), [["first"], false, ""]);
  await view(page, "play");
  await has(page, ".column option", "m");
  await page.click("#copy-curl");
  assert.match(await text(page, "#copy-text"), /-H "authorization: Bearer \$SHOAL_API_KEY" \\\n/);
  await page.reload({ waitUntil: "load" });
  await has(page, "#health", "All ready");
  stand.key = "second";
  stand.hangUp();
  await page.waitForSelector("#key-dialog[open]");
  await page.type("#key-value", "second");
  await page.keyboard.press("Enter");
  await has(page, "#health", "All ready");
  await close(page, ["401", "net::ERR"]);
}));

test("a key that may use models and not look at the cluster still has the playground", () => withStand(async (stand) => {
  stand.refuse = { "/v1/events": 403, "/v1/requests": 403 };
  stand.chat = (res) => {
    stand.chunk(res, { content: "hello to you" });
    res.end("data: [DONE]\n\n");
  };
  const page = await open(`${stand.url}/`);
  await has(page, "#banner", "admin rights");
  await has(page, "#health", "Models only");
  await view(page, "play");
  await has(page, ".column option", "m");
  await say(page, "hello");
  await has(page, ".msg.assistant", "hello to you");
  await idle(page);
  await view(page, "models");
  await has(page, ".model-card h2", "m");
  await page.waitForSelector("#load-form[hidden]");
  assert.ok(await page.$eval(".model-card button", (n) => n.hidden), "a button that the key does not allow");
  await close(page, ["403"]);
}));

test("models are loaded and unloaded, with their progress and their errors", () => withStand(async (stand) => {
  const page = await open(`${stand.url}/#/models`);
  await has(page, ".model-card h2", "m");
  stand.load = (res, body) => {
    assert.deepEqual(body, { model: "hf:someone/small", stream: true });
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(`data: ${JSON.stringify({ status: "fetching", file: "small.gguf", total: 200e6, completed: 50e6 })}\n\n`);
    stand.go = () => res.end(`data: ${JSON.stringify({ id: "small" })}\n\ndata: [DONE]\n\n`);
  };
  await page.type("#load-what", "hf:someone/small");
  await page.keyboard.press("Enter");
  await has(page, "#load-said", "fetching small.gguf  25 % of 200 MB");
  stand.go();
  await has(page, "#load-said", "hf:someone/small is loaded.");
  stand.load = (res) => res.end(`data: ${JSON.stringify({ error: { message: "the disk is full" } })}\n\n`);
  await page.click("#load-form .main");
  await has(page, "#load-said", "the disk is full");
  await page.click(".model-card button");
  await has(page, "#load-said", "does not load models while it serves");
  await close(page, ["404"]);
}));

test("50 machines and 200 models fit, on a phone too", () => withStand(async (stand) => {
  const nodes = Array.from({ length: 50 }, (_, i) => ({ name: `rack-${i % 5}-machine-with-a-rather-long-name-${i}`, cores: 64, load: i / 3, memory_bytes: 256e9, memory_free_bytes: 1e9 * i, site: "north" }));
  stand.status.nodes = nodes;
  stand.models = Array.from({ length: 200 }, (_, i) => model(`organisation/some-model-of-many-${i}-instruct-q8`, { task: i % 3 ? "generate" : "classify" }));
  stand.status.replicas = stand.models.flatMap((m, i) => [replica(`${m.id}/0`, m.id, nodes[i % 50].name), replica(`${m.id}/1`, m.id, nodes[(i + 7) % 50].name)]);
  for (const size of [{}, { width: 390, height: 844, mobile: true }]) {
    const page = await open(`${stand.url}/`, size);
    await has(page, "h1", "200 models on 50 machines, all ready.");
    assert.equal((await page.$$(".machine")).length, 50);
    await shot(page, `many-${size.width ?? 1280}`);
    stand.tell({ replicas: [{ ...stand.status.replicas[3], state: "down", reason: "killed", crashes: 1 }], gone: [`node ${nodes[9].name}`] });
    await has(page, "h1", "is down");
    await has(page, ".happened.bad", `${nodes[9].name} is gone`);
    await view(page, "models");
    await page.waitForFunction(() => document.querySelectorAll(".model-card").length === 200);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), size.width ?? 1280);
    await close(page);
  }
}));

// A page of another origin, in the browser. What is served at its own address is an empty page.
async function elsewhere(host, use) {
  const http = (await import("node:http")).createServer((_, res) => res.setHeader("content-type", "text/html").end("<title>app</title>"));
  await new Promise((r) => http.listen(0, "127.0.0.1", r));
  const page = await open(`http://${host}:${http.address().port}/`);
  try {
    await use(page);
  } finally {
    http.close();
    http.closeAllConnections();
  }
}

test("a page of this machine uses the API without configuration; one of another site reads why not", async () => {
  const asked = { model: "home-intent", input: "turn on the kitchen light" };
  for (const host of ["localhost", "127.0.0.1"]) {
    await elsewhere(host, async (page) => {
      const got = await page.evaluate(async (base, body) => {
        const models = await (await fetch(`${base}/v1/models`)).json();
        const plain = await fetch(`${base}/v1/classify`, { method: "POST", body }); // as text/plain
        const json = await fetch(`${base}/v1/classify`, { method: "POST", headers: { "content-type": "application/json", "x-app": "1" }, body });
        return [models.object, plain.status, (await plain.json()).model, json.status, json.headers.get("x-request-id") !== null];
      }, url, JSON.stringify(asked));
      assert.deepEqual(got, ["list", 200, "home-intent", 200, true]);
      await close(page);
    });
  }
  await elsewhere("evil.example", async (page) => {
    const got = await page.evaluate(async (base, body) => {
      const r = await fetch(`${base}/v1/classify`, { method: "POST", headers: { "content-type": "application/json" }, body });
      return [r.status, (await r.json()).error.message];
    }, url, JSON.stringify(asked));
    assert.equal(got[0], 403);
    assert.match(got[1], /pages of 'http:\/\/evil\.example:\d+' may not use this server; .*allow_origins/);
    await close(page, ["403"]);
  });
});
