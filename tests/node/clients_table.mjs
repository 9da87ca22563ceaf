// docs/clients.md from what a run of the tests wrote (see calls.mjs):
//
//     node clients_table.mjs SCRIPT ROWS PAGE            exits with 1 when PAGE says otherwise, and shows the lines
//     node clients_table.mjs SCRIPT ROWS PAGE --write    writes PAGE
//
// A page has a block of each script that tries clients, between `<!-- SCRIPT -->` and `<!-- end of SCRIPT -->`. Before the
// first block a table of people's has a row for each client, `| client | npm or PyPI | version |...`: of it the version is
// ours. The rest is for people to write.
import { readFileSync, writeFileSync } from "node:fs";

const [script, rows_file, page_file, write] = process.argv.slice(2);
const rows = readFileSync(rows_file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
rows.sort((a, b) => order(a.client, b.client) || order(a.file, b.file) || a.at - b.at);

// A call that several versions of a client passed is one row.
const merged = new Map();
for (const r of rows) {
  const key = JSON.stringify([r.client, r.call, r.what, r.why]), had = merged.get(key);
  if (!had) merged.set(key, { ...r, versions: [r.version] });
  else if (!had.versions.includes(r.version)) had.versions.push(r.version);
}
const lines = [...merged.values()];

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
const line = (r) => `| ${cell(r.client)} | ${r.versions.join(", ")} | \`${cell(r.call)}\` | ${cell(r.what)} | ${r.why ? `differs: ${cell(r.why)}` : "passes"} |`;
const differ = lines.filter((r) => r.why).length;
const block = [
  `${lines.length} rows: ${lines.length - differ} pass, ${differ} differ.`,
  "",
  "| client | version | call | what is tried | result |",
  "|---|---|---|---|---|",
  ...lines.map(line),
  "",
];

const versions = new Map(); // of each client, in the order of its rows
for (const r of lines) versions.set(r.client, [...new Set([...(versions.get(r.client) ?? []), ...r.versions])]);
const from_where = script.includes("python") ? "PyPI" : "npm";

const page = readFileSync(page_file, "utf8").split("\n");
const from = page.indexOf(`<!-- ${script} -->`), to = page.indexOf(`<!-- end of ${script} -->`);
if (from < 0 || to < from) throw new Error(`${page_file} has no block <!-- ${script} --> ... <!-- end of ${script} -->`);
const had = page.slice(from + 1, to);
const behind = []; // rows of the first table with other versions
const head = page.findIndex((l) => l.startsWith("<!-- "));
for (const [client, seen] of versions) {
  const at = page.slice(0, head).findIndex((l) => l.startsWith(`| ${client} | ${from_where} | `));
  if (at < 0) throw new Error(`the first table of ${page_file} has no row "| ${client} | ${from_where} | ..."`);
  const cells = page[at].split(" | ");
  if (cells[2] === seen.join(", ")) continue;
  cells[2] = seen.join(", ");
  behind.push({ at, line: cells.join(" | ") });
}
if (write === "--write") {
  for (const { at, line } of behind) page[at] = line;
  page.splice(from + 1, to - from - 1, ...block);
  writeFileSync(page_file, page.join("\n"));
} else if (behind.length || had.join("\n") !== block.join("\n")) {
  const gone = [...behind.map((b) => page[b.at]), ...had.filter((l) => !block.includes(l))];
  const come = [...behind.map((b) => b.line), ...block.filter((l) => !had.includes(l))];
  console.log([...gone.map((l) => `- ${l}`), ...come.map((l) => `+ ${l}`)].slice(0, 40).join("\n") || "the order of its rows");
  process.exitCode = 1;
}
