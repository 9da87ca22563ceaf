// The page at /docs in a real browser: what it shows, its search, the keyboard, a GET that is tried, and axe-core.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";

const url = process.env.SHOAL_URL, shots = process.env.SHOAL_SHOTS;
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const doc = await (await fetch(`${url}/openapi.json`)).json();
const count = Object.values(doc.paths).reduce((n, methods) => n + Object.keys(methods).length, 0);
let browser, page, complaints;

before(async () => {
  browser = await puppeteer.launch({ executablePath: process.env.SHOAL_CHROMIUM, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  page = await browser.newPage();
  complaints = [];
  page.on("console", (m) => m.type() === "error" && complaints.push(m.text()));
  page.on("pageerror", (e) => complaints.push(e.message));
  await page.evaluateOnNewDocument(() => document.addEventListener("securitypolicyviolation", (e) => console.error(`${e.violatedDirective} ${e.blockedURI}`)));
});
after(() => browser?.close());

const open = async (hash = "") => {
  await page.goto("about:blank");
  await page.goto(`${url}/docs${hash}`);
  await page.waitForSelector("details.operation");
};
const visible = () => page.$$eval("details.operation", (all) => all.filter((e) => e.checkVisibility()).map((e) => e.id));
const shot = (name) => shots && page.screenshot({ path: `${shots}/docs-${name}.png` });

test("every operation is there, in the list and by its name", async () => {
  await open();
  assert.equal((await visible()).length, count);
  assert.equal((await page.$$("#list li")).length, count);
  await shot("light");
});

test("the search finds paths, words and fields, and says how many", async () => {
  await open();
  await page.keyboard.press("/");
  await page.keyboard.type("repetition_penalty chat");
  assert.ok((await visible()).includes("chat_completions"));
  assert.ok(!(await visible()).includes("healthz"));
  assert.equal(await page.$eval("#hits", (e) => e.textContent), `${(await visible()).length} of ${count}`);
  await page.keyboard.press("Escape");
  assert.equal((await visible()).length, count);
});

test("an operation opens by its address and by the keyboard, with its fields and an example", async () => {
  await open("#embeddings");
  await page.waitForSelector("#embeddings[open] table");
  const text = await page.$eval("#embeddings", (e) => e.textContent);
  for (const part of ["encoding_format", "needed", "Embeddings", "curl -X POST", "413"]) assert.ok(text.includes(part), part);
  assert.match(text, /Errors: 400, 401/);
  assert.equal(await page.evaluate(() => document.activeElement.parentElement.id), "embeddings");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.querySelector("#embeddings").open);
});

test("a GET is tried, with what its path needs, and an error is shown as one", async () => {
  await open("#model");
  await page.waitForSelector("#model form input");
  await page.type("#model form input", "no-such-model");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /404/.test(document.querySelector("#model [role=status]").textContent));
  assert.match(await page.$eval("#model [role=status]", (e) => e.textContent), /no-such-model/);
  assert.ok(complaints.every((c) => c.includes("404")), complaints.join("\n"));
  complaints.length = 0;
});

test("on a phone the groups are folded, the search opens them, and a link leads back", async () => {
  await page.setViewport({ width: 390, height: 844 });
  await open();
  assert.equal((await visible()).length, 0);
  assert.ok(await page.$eval("header", (h) => h.offsetHeight) <= 100, "the header takes too much of a phone");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await shot("phone");
  await page.type("#search", "embeddings");
  assert.ok((await visible()).includes("embeddings"));
  await open("#embeddings");
  await page.waitForSelector("#embeddings[open] table");
  assert.match(await page.$eval("#embeddings", (e) => e.textContent), /\$SHOAL_API_KEY/);
  await Promise.all([page.waitForNavigation(), page.click(".back")]);
  await page.waitForSelector("#view-cluster");
  await page.setViewport({ width: 1200, height: 800 });
});

test("axe finds nothing, light or dark, wide or narrow, everything open", async () => {
  for (const scheme of ["light", "dark"])
    for (const width of [1200, 390]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.setViewport({ width, height: 800 });
      await open();
      await page.$$eval("details.group, details.operation", (all) => all.slice(0, 15).forEach((e) => { e.open = true; }));
      await page.waitForSelector("#chat_completions table");
      await shot(`${scheme}-${width}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${width}: the page scrolls sideways`);
      await page.evaluate(axe); // the protocol's evaluate is no script of the page's
      const found = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(found.violations.map((v) => `${scheme} ${width} ${v.id}: ${v.nodes[0].html.slice(0, 200)}`), []);
    }
});

test("the browser had nothing to complain of", () => assert.deepEqual(complaints, []));
