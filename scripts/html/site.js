/* Search of make html's pages. search-index.js is loaded when somebody searches: a script, since pages of file: may not fetch.
   A section matches if each word of the query begins one of its words; those with whole words and words in headings come first. */
"use strict";
let searchIndex = null;
let names = [];
const root = document.documentElement.dataset.root;
const field = document.getElementById("search");
const results = document.getElementById("results");
const article = document.querySelector("article");
const MOST = 40;

function load(then) {
  if (searchIndex) return then();
  if (load.waiting) { load.waiting = then; return; }
  load.waiting = then;
  const script = document.createElement("script");
  script.src = root + "search-index.js";
  script.onload = () => { names = Object.keys(searchIndex.words); load.waiting(); };
  document.head.append(script);
}

function scoresOf(word) {
  const scores = new Map();
  for (const name of names) {
    if (!name.startsWith(word)) continue;
    const list = searchIndex.words[name], factor = name === word ? 4 : 1;
    for (let i = 0; i < list.length; i += 2) scores.set(list[i], Math.max(scores.get(list[i]) || 0, list[i + 1] * factor));
  }
  return scores;
}

function find(query) {
  const words = (query.toLowerCase().match(/[\p{L}\p{N}_-]+/gu) || []).flatMap(w => w.split("-")).filter(w => w.length > 1);
  let found = null;
  for (const word of words) {
    const scores = scoresOf(word);
    if (!found) found = scores;
    else for (const [n, score] of found) scores.has(n) ? found.set(n, score + scores.get(n)) : found.delete(n);
  }
  return { words, list: [...(found || [])].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([n]) => searchIndex.sections[n]) };
}

function excerpt(text, words) {
  const at = Math.min(...words.map(w => text.toLowerCase().indexOf(w)).filter(i => i >= 0), text.length);
  const from = at < text.length ? Math.max(0, at - 80) : 0, p = document.createElement("p");
  const piece = (from ? "… " : "") + text.slice(from, from + 240) + (text.length > from + 240 ? " …" : "");
  const pattern = new RegExp(words.map(w => w.replace(/[-\\^$*+?.()|[\]{}]/g, "\\$&")).join("|"), "gi");
  let end = 0;
  for (const m of piece.matchAll(pattern)) {
    const mark = document.createElement("mark");
    mark.textContent = m[0];
    p.append(piece.slice(end, m.index), mark);
    end = m.index + m[0].length;
  }
  p.append(piece.slice(end));
  return p;
}

function show() {
  const query = field.value.trim(), { words, list } = find(query);
  results.hidden = !query;
  article.hidden = !!query;
  const heading = document.createElement("h1"), rows = document.createElement("ol");
  heading.textContent = list.length ? `${list.length} sections` : "nothing found";
  for (const [page, anchor, title, text] of list.slice(0, MOST)) {
    const [url, name] = searchIndex.pages[page], row = document.createElement("li"), link = document.createElement("a");
    const of = document.createElement("small");
    link.href = root + url + (anchor ? "#" + anchor : "");
    link.textContent = title;
    link.addEventListener("click", () => { field.value = ""; show(); });
    of.textContent = title === name ? "" : "  " + name;
    row.append(link, of, excerpt(text, words));
    rows.append(row);
  }
  results.replaceChildren(heading, rows);
}

field.addEventListener("input", () => load(show));
field.addEventListener("keydown", event => { if (event.key === "Escape") { field.value = ""; load(show); } });
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== field && !event.ctrlKey && !event.metaKey) { event.preventDefault(); field.focus(); }
});
document.querySelector("nav").addEventListener("click", () => { document.getElementById("menu").checked = false; });
document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "center" });
const asked = new URLSearchParams(location.search).get("q");
if (asked) { field.value = asked; load(show); }
