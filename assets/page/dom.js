// Elements, and how numbers are said. What comes from servers and models is only ever text: nothing here parses HTML.

export const $ = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

// el("p", {class: "note", onclick: f, hidden: true}, "text", child, [more]). Attributes with a false value are left out.
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === undefined || value === null) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

// Changes nothing that is as it was, so that selections and readers are left in peace.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function set(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Children of a list by key: kept ones stay where they are, with their state.
export function keyed(parent, keys, make, update) {
  const had = parent.keyed ?? (parent.keyed = new Map());
  for (const [key, node] of had) {
    if (keys.includes(key)) continue;
    node.remove();
    had.delete(key);
  }
  keys.forEach((key, i) => {
    let node = had.get(key);
    if (!node) had.set(key, (node = make(key)));
    update?.(node, key);
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
  });
}

export function options(select, groups, chosen) {
  const before = chosen ?? select.value;
  const made = groups.map(([label, items]) => {
    const list = items.map((i) => el("option", { value: i.value }, i.text ?? i.value));
    return label ? el("optgroup", { label }, list) : list;
  });
  select.replaceChildren(...made.flat());
  if ([...select.options].some((o) => o.value === before)) select.value = before;
}

// ---- numbers --------------------------------------------------------------------------------------

export function bytes(n) {
  if (!(n > 0)) return "0 MB";
  if (n < 1e9) return `${n < 1e7 ? (n / 1e6).toFixed(1) : Math.round(n / 1e6)} MB`;
  if (n < 1e12) return `${(n / 1e9).toFixed(n < 1e10 ? 1 : 0)} GB`;
  return `${(n / 1e12).toFixed(1)} TB`;
}

export function ms(v) {
  if (!Number.isFinite(v)) return "–";
  if (v < 1) return `${v.toFixed(2)} ms`;
  if (v < 10) return `${v.toFixed(1)} ms`;
  if (v < 1000) return `${Math.round(v)} ms`;
  return `${(v / 1000).toFixed(v < 10000 ? 2 : 1)} s`;
}

export function count(n) {
  if (!Number.isFinite(n)) return "–";
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} M`;
  if (n >= 1e4) return `${Math.round(n / 1e3)} k`;
  return n >= 100 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
}

// A replica's name without its machine's, which is said beside it: "kitchen/home-slots/0" is home-slots/0 on kitchen.
export const plain = (r) => (r.node && r.id.startsWith(`${r.node}/`) ? r.id.slice(r.node.length + 1) : r.id);

const SPELT = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
export const some = (n, one, many = `${one}s`) => `${SPELT[n] ?? n} ${n === 1 ? one : many}`;
export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
export const percent = (v) => `${Math.round(v * 100)} %`;
