// Markdown as elements: headings, paragraphs, lists, quotes, tables, code, emphasis, links. What a model writes is only ever the
// text of a node; HTML in it shows as text, links lead to http and https alone, and an image is a link to it, since the page
// loads nothing from elsewhere.

import { el } from "/assets/page/dom.js";

// ---- within a line --------------------------------------------------------------------------------

const DEPTH_MAX = 6; // of emphasis in emphasis, of quotes and lists in each other: what is deeper is text

function link(text, address) {
  let url = null;
  try {
    url = new URL(address);
  } catch {
    // No address: its text remains.
  }
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return [text].flat();
  return [el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: url.href }, text)];
}

// Each: a pattern that is looked for, and what it makes. The leftmost match wins, of equals the first. Lengths are bounded, so that
// no text makes the search slow.
const INLINE = [
  [/(?<!`)(`{1,4})(?!`)([^]{0,2000}?[^`])\1(?!`)/g, (m) => [el("code", null, m[2].replace(/^ (.+) $/, "$1"))]],
  [/\\([!-/:-@[-`{-~])/g, (m) => [m[1]]],
  [/!?\[([^\]\n]{0,300})\]\(<?([^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200})?)>?(?:\s+"[^"\n]{0,200}")?\)/g, (m, depth) => link(m[1] ? inline(m[1], depth) : m[2], m[2])],
  [/<?(\bhttps?:\/\/[^\s<>"'`]{0,2000}[^\s<>"'`.,;:!?)\]}*_])>?/g, (m) => link(m[1], m[1])],
  [/(\*\*|__)(?=\S)([^]{0,1000}?\S)\1/g, (m, depth) => [el("strong", null, inline(m[2], depth))]],
  [/~~(?=\S)([^]{0,1000}?\S)~~/g, (m, depth) => [el("del", null, inline(m[1], depth))]],
  [/\*(?=[^\s*])([^*]{0,1000}?[^\s*])\*|(?<![\p{L}\p{N}_])_(?=[^\s_])([^_]{0,1000}?[^\s_])_(?![\p{L}\p{N}_])/gu, (m, depth) => [el("em", null, inline(m[1] ?? m[2], depth))]],
];

function search(pattern, text, from) {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

function inline(text, depth = 0) {
  if (depth > DEPTH_MAX) return [text];
  const out = [];
  const next = INLINE.map(([pattern]) => search(pattern, text, 0));
  for (let from = 0; ; ) {
    INLINE.forEach(([pattern], i) => {
      if (next[i] && next[i].index < from) next[i] = search(pattern, text, from);
    });
    const first = next.reduce((best, m, i) => (m && !(next[best]?.index <= m.index) ? i : best), 0);
    if (!next[first]) return [...out, text.slice(from)].filter((part) => part !== "");
    out.push(text.slice(from, next[first].index), ...INLINE[first][1](next[first], depth + 1));
    from = next[first].index + next[first][0].length;
  }
}

// ---- lines ----------------------------------------------------------------------------------------

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ROW = /^\s*\|?(.+?)\|?\s*$/;
const UNDER = /^\s*\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$/;

function codeBlock(lines, language) {
  const text = lines.join("\n");
  const copy = el("button", { type: "button", class: "quiet", onclick: () => copyText(copy, text) }, "Copy");
  return el("figure", { class: "code" }, el("figcaption", null, el("span", null, language || "code"), copy), el("pre", { tabindex: "0" }, el("code", null, text)));
}

export async function copyText(button, text) {
  const was = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = was), 1500);
}

const cells = (line) => ROW.exec(line)[1].split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
const isTable = (lines, i) => lines[i].includes("|") && lines[i + 1]?.includes("-") && UNDER.test(lines[i + 1]) && cells(lines[i]).length === cells(lines[i + 1]).length;
const begins = (lines, i) => FENCE.test(lines[i]) || HEADING.test(lines[i]) || RULE.test(lines[i]) || QUOTE.test(lines[i]) || ITEM.test(lines[i]) || isTable(lines, i);

function takeFence(lines, i) {
  const [, mark, language] = FENCE.exec(lines[i]);
  const end = lines.findIndex((l, k) => k > i && l.trim().startsWith(mark) && !l.trim().replaceAll(mark[0], ""));
  const to = end < 0 ? lines.length : end;
  return [codeBlock(lines.slice(i + 1, to), language), to + 1];
}

function takeTable(lines, i) {
  const head = cells(lines[i]);
  let to = i + 2;
  while (to < lines.length && lines[to].includes("|")) to++;
  const row = (name, list) => el("tr", null, head.map((_, k) => el(name, null, inline(list[k] ?? ""))));
  const body = lines.slice(i + 2, to).map((l) => row("td", cells(l)));
  return [el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", null, el("thead", null, row("th", head)), el("tbody", null, body))), to];
}

function takeQuote(lines, i, depth) {
  let to = i;
  while (to < lines.length && QUOTE.test(lines[to])) to++;
  return [el("blockquote", null, blocks(lines.slice(i, to).map((l) => QUOTE.exec(l)[1]), depth + 1)), to];
}

// Without the signs that close it, which stand behind a space: "C#" is a name. No pattern, whose search would take a time that
// grows with the square of the line.
function headingText(text) {
  const whole = text.trimEnd();
  let end = whole.length;
  while (whole[end - 1] === "#") end--;
  return (end && whole[end - 1] !== " " ? whole : whole.slice(0, end)).trim();
}

// An item goes on with lines that are indented, and with those that begin nothing else.
function takeList(lines, i, depth) {
  const numbered = /\d/.test(ITEM.exec(lines[i])[2]);
  const start = numbered ? parseInt(ITEM.exec(lines[i])[2], 10) : undefined;
  const items = [];
  let at = i;
  for (let m; at < lines.length && (m = ITEM.exec(lines[at])) && /\d/.test(m[2]) === numbered && !RULE.test(lines[at]); ) {
    const indent = m[1].length + m[2].length + (m[3].length || 1);
    const inside = [m[4]];
    for (at++; at < lines.length; at++) {
      const line = lines[at];
      const deep = line.search(/\S/);
      const blank = deep < 0;
      if (blank && !/^\s{2,}\S/.test(lines[at + 1] ?? "") && !ITEM.test(lines[at + 1] ?? "")) break;
      if (!blank && deep < Math.min(indent, 2) && (begins(lines, at) || !lines[at - 1].trim())) break;
      inside.push(line.slice(Math.min(Math.max(deep, 0), indent)));
    }
    items.push(el("li", null, blocks(inside, depth + 1, true)));
  }
  return [el(numbered ? "ol" : "ul", { start: start > 1 && start }, items), at];
}

function paragraph(lines, bare) {
  const parts = lines.flatMap((l, i) => (i ? [el("br"), ...inline(l.trim())] : inline(l.trim())));
  return bare ? parts : [el("p", null, parts)];
}

function blocks(lines, depth, bare) {
  const out = [];
  for (let i = 0; i < lines.length; ) {
    const heading = HEADING.exec(lines[i]);
    let made;
    if (!lines[i].trim()) {
      i++;
      continue;
    }
    if (FENCE.test(lines[i])) [made, i] = takeFence(lines, i);
    else if (heading) [made, i] = [el(`h${Math.min(heading[1].length + 3, 6)}`, null, inline(headingText(heading[2]))), i + 1];
    else if (RULE.test(lines[i])) [made, i] = [el("hr"), i + 1];
    else if (QUOTE.test(lines[i]) && depth < DEPTH_MAX) [made, i] = takeQuote(lines, i, depth);
    else if (ITEM.test(lines[i]) && depth < DEPTH_MAX) [made, i] = takeList(lines, i, depth);
    else if (isTable(lines, i)) [made, i] = takeTable(lines, i);
    else {
      let to = i + 1;
      while (to < lines.length && lines[to].trim() && !begins(lines, to)) to++;
      [made, i] = [paragraph(lines.slice(i, to), bare), to];
    }
    out.push(made);
  }
  return out.flat();
}

export const markdown = (text) => blocks(text.replaceAll("\r", "").split("\n"), 0);

// ---- while it is written --------------------------------------------------------------------------

const TAIL_MAX = 16000; // characters that are rendered anew with each frame

// Where the part ends that later text cannot change: before a line behind an empty one, outside of code and lists. And the line
// that opened the code in which the text ends, "" outside of code.
function settled(text) {
  const lines = text.split("\n");
  let open = "";
  let opener = "";
  let end = 0;
  let at = 0;
  lines.forEach((line, i) => {
    const whole = i < lines.length - 1 || line.length > 12; // a shorter one may still become an item
    if (!open && i && !lines[i - 1].trim() && whole && /^\S/.test(line) && !ITEM.test(line)) end = at;
    const fence = FENCE.exec(line);
    if (open && line.trim().startsWith(open) && !line.trim().replaceAll(open[0], "")) open = opener = "";
    else if (!open && fence && i < lines.length - 1) [open, opener] = [fence[1], line];
    at += line.length + 1;
  });
  return { end, opener };
}

export class Markdown {
  constructor() {
    this.node = el("div", { class: "text md" });
    this.last = null; // the block of what is not settled
    this.tail = "";
  }

  draw(block, text) {
    block.replaceChildren(...markdown(text));
  }

  add(text) {
    this.tail += text;
    if (!this.scheduled) requestAnimationFrame(() => this.flush());
    this.scheduled = true;
  }

  settle(end, next) {
    this.draw(this.block(), this.tail.slice(0, end));
    this.last = null;
    this.tail = next;
  }

  block() {
    if (!this.last) this.node.append((this.last = el("div", { class: "block" })));
    return this.last;
  }

  flush() {
    this.scheduled = false;
    const { end } = settled(this.tail);
    if (end > 0) this.settle(end, this.tail.slice(end));
    while (this.tail.length > TAIL_MAX) this.cut();
    if (this.tail.trim()) this.draw(this.block(), this.tail);
  }

  // A paragraph or a piece of code without an end: after a line, a word, or a character; code goes on as code.
  cut() {
    const head = this.tail.slice(0, TAIL_MAX);
    const line = head.lastIndexOf("\n") + 1;
    const word = head.lastIndexOf(" ") + 1;
    const half = /[\ud800-\udbff]$/.test(head) ? 1 : 0;
    const end = line > TAIL_MAX / 2 ? line : word || TAIL_MAX - half;
    const { opener } = settled(this.tail.slice(0, end));
    this.settle(end, `${opener ? `${opener}\n` : ""}${this.tail.slice(end)}`);
  }
}
