// Tests that are rows of docs/clients.md, too: what a client was asked, and whether Shoal answered as it expects.
//
//     import { client } from "./calls.mjs";
//     const call = client("openai");
//     call("chat.completions.create", "a reply", async () => { assert...; });
//     call.differs("images.generate", "a picture", "no model here draws", async () => { assert what comes instead });
//
// Each is a test of node:test. When it has passed, its row is appended to the file $SHOAL_CALLS; clients_table.mjs
// makes the table of them. A client that is no package of npm comes with its version: client("curl", "8.5.0").
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import buffer from "node:buffer";
import { webcrypto } from "node:crypto";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

// What clients look for and Node.js 18 keeps in its modules; openai's uploads and LangChain's tools say so, too.
globalThis.File ??= buffer.File;
globalThis.crypto ??= webcrypto;

let n = 0; // rows keep the order of their file

/** The version of an installed package. Its own file is read: "exports" may hide it from import. */
function version_of(name) {
  for (let at = dirname(fileURLToPath(import.meta.url)); ; at = dirname(at)) {
    const file = join(at, "node_modules", name, "package.json");
    if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")).version;
    if (at === dirname(at)) throw new Error(`${name} is not installed`);
  }
}

/** Calls of one client: a package, or packages that are used together ("ai", "@ai-sdk/openai"). */
export function client(name, version = version_of(name)) {
  const file = basename(process.argv[1] ?? "");
  const row = (call, what, why, run) => {
    const at = n++;
    return test(`${name}: ${call}: ${what}`, async (t) => {
      await run(t);
      if (process.env.SHOAL_CALLS)
        appendFileSync(process.env.SHOAL_CALLS, JSON.stringify({ client: name, version, file, at, call, what, why }) + "\n");
    });
  };
  const call = (name_, what, run) => row(name_, what, null, run);
  call.differs = (name_, what, why, run) => row(name_, what, why, run);
  return call;
}
