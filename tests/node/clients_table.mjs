// docs/clients.md from what a run of the tests wrote (see calls.mjs):
//
//     node clients_table.mjs SCRIPT ROWS PAGE            exits with 1 when PAGE says otherwise, and shows the lines
//     node clients_table.mjs SCRIPT ROWS PAGE --write    writes PAGE
//
// A page has a block of each script that tries clients, between `<!-- SCRIPT -->` and `<!-- end of SCRIPT -->`; what
// stands outside is for people to write.
import { readFileSync, writeFileSync } from "node:fs";

const [script, rows_file, page_file, write] = process.argv.slice(2);
const rows = readFileSync(rows_file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
rows.sort((a, b) => order(a.client, b.client) || order(a.file, b.file) || a.at - b.at);

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
const line = (r) => `| ${cell(r.client)} | ${r.version} | \`${cell(r.call)}\` | ${cell(r.what)} | ${r.why ? `differs: ${cell(r.why)}` : "passes"} |`;
const differ = rows.filter((r) => r.why).length;
const block = [
  `${rows.length} rows: ${rows.length - differ} pass, ${differ} differ.`,
  "",
  "| client | version | call | what is tried | result |",
  "|---|---|---|---|---|",
  ...rows.map(line),
  "",
];

const page = readFileSync(page_file, "utf8").split("\n");
const from = page.indexOf(`<!-- ${script} -->`), to = page.indexOf(`<!-- end of ${script} -->`);
if (from < 0 || to < from) throw new Error(`${page_file} has no block <!-- ${script} --> ... <!-- end of ${script} -->`);
const had = page.slice(from + 1, to);
if (write === "--write") {
  page.splice(from + 1, to - from - 1, ...block);
  writeFileSync(page_file, page.join("\n"));
} else if (had.join("\n") !== block.join("\n")) {
  const gone = had.filter((l) => !block.includes(l)), come = block.filter((l) => !had.includes(l));
  console.log([...gone.map((l) => `- ${l}`), ...come.map((l) => `+ ${l}`)].slice(0, 40).join("\n") || "the order of its rows");
  process.exitCode = 1;
}
