// Draws /openapi.json: a list to the left, operations to the right, a search over both, and GETs that can be tried.
// Everything is text nodes, so that nothing of the document can become markup.
"use strict";

const $ = (id) => document.getElementById(id);

/** An element with attributes and children (text, elements, or nothing). */
function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== undefined && c !== null));
  return e;
}

let doc;
const resolve = (o) => (o?.$ref ? o.$ref.slice(2).split("/").reduce((at, key) => at[key], doc) : o);
const refName = (o) => o?.$ref?.split("/").at(-1);

/* ---- schemas ---- */

/** A schema's type in a few words: "string or null, 1 to 32". */
function typeOf(schema) {
  const s = resolve(schema);
  if (!s) return "anything";
  if (s.const !== undefined) return JSON.stringify(s.const);
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(", ");
  if (s.anyOf) return s.anyOf.map(typeOf).join(" or ");
  const types = [s.type ?? []].flat();
  let text = types.join(" or ") || (s.properties ? "object" : "anything");
  if (types.includes("array") && s.items) text = text.replace("array", `array of ${refName(s.items) ?? typeOf(s.items)}`);
  const ranged = [["minimum", "from"], ["exclusiveMinimum", "over"], ["maximum", "to"], ["minItems", "at least"],
    ["maxItems", "at most"], ["maxLength", "up to"]].filter(([key]) => s[key] !== undefined);
  return text + ranged.map(([key, word]) => `, ${word} ${s[key]}`).join("");
}

function describe(schema) {
  const s = resolve(schema) ?? {};
  const parts = [s.description, s.default !== undefined ? `Default: ${JSON.stringify(s.default)}` : undefined];
  return parts.filter(Boolean).join(". ");
}

/** A table of a schema's fields; those with fields of their own open, to a depth where schemas end or repeat. */
function fieldsOf(schema, must = "needed", depth = 0) {
  const s = resolve(schema) ?? {};
  const inner = s.properties ? s : resolve(s.items) ?? s.anyOf?.map(resolve).find((a) => a?.properties) ?? {};
  if (!inner.properties) return el("p", {}, describe(s) || typeOf(s));
  const rows = Object.entries(inner.properties).map(([name, value]) => {
    const v = resolve(value), holds = v?.properties ?? resolve(v?.items)?.properties ??
      v?.anyOf?.map((a) => resolve(resolve(a)?.items) ?? resolve(a)).find((a) => a?.properties)?.properties;
    return el("tr", {},
      el("td", {}, el("code", {}, name), inner.required?.includes(name) ? el("span", { class: "must" }, ` ${must}`) : null),
      el("td", {}, typeOf(value)),
      el("td", {}, describe(value),
        holds && depth < 3
          ? el("details", {}, el("summary", {}, "fields"), v.anyOf
            ? v.anyOf.map((a) => resolve(a)).filter((a) => a?.properties || resolve(a?.items)?.properties).map((a) => fieldsOf(a, must, depth + 1))
            : fieldsOf(v, must, depth + 1))
          : null));
  });
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Fields" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "field"), el("th", { scope: "col" }, "type"), el("th", { scope: "col" }, "what it is"))),
    el("tbody", {}, rows)));
}

/* ---- an operation ---- */

const pretty = (value) => JSON.stringify(value, null, 2);
const block = (text, label) => el("pre", { tabindex: "0", "aria-label": label }, text);

function parametersOf(parameters) {
  if (!parameters.length) return null;
  return [el("h3", {}, "Parameters"), el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Parameters" }, el("table", {},
    el("thead", {}, el("tr", {}, ["name", "in", "type", "what it is"].map((t) => el("th", { scope: "col" }, t)))),
    el("tbody", {}, parameters.map((p) => el("tr", {},
      el("td", {}, el("code", {}, p.name), p.required ? el("span", { class: "must" }, " needed") : null),
      el("td", {}, p.in), el("td", {}, typeOf(p.schema)), el("td", {}, p.description ?? describe(p.schema)))))))];
}

function bodyOf(content, title) {
  return Object.entries(content ?? {}).map(([type, media]) => {
    const schema = media["x-itemSchema"] ?? media.schema, name = refName(schema), s = resolve(schema);
    return [el("h3", {}, `${title}: ${type}`, media["x-itemSchema"] ? `, ${media.schema.description?.toLowerCase() ?? "a stream"}` : "",
      name ? ` (${name})` : ""), fieldsOf(schema, title === "Body" ? "needed" : "always"),
      ...(title === "Body" && type === "application/json" ? (s?.examples ?? []).slice(0, 3).map((e) => block(pretty(e), "An example")) : [])];
  }).flat();
}

function errorsOf(responses) {
  const codes = Object.keys(responses).filter((code) => !code.startsWith("2") && !code.startsWith("1"));
  if (!codes.length) return null;
  const media = resolve(responses[codes[0]]).content["application/json"];
  return [el("h3", {}, `Errors: ${codes.join(", ")} (${refName(media.schema)})`), fieldsOf(media.schema, "always")];
}

function headers() {
  const key = $("key").value;
  return key ? { authorization: `Bearer ${key}` } : {};
}

/** Ask and show: for GETs whose answer ends. */
function tryOf(path, operation, parameters) {
  const asked = parameters.filter((p) => p.in !== "header"), streams = !operation.responses[200]?.content?.["application/json"] &&
    Object.keys(operation.responses[200]?.content ?? {}).some((t) => t === "text/event-stream");
  if (!operation.responses[200] || streams) return null;
  const out = el("div", { role: "status" });
  const inputs = asked.map((p) => [p, el("input", { name: p.name, required: p.required, autocomplete: "off" })]);
  async function send(event) {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    for (const [p, input] of inputs) {
      const value = input.value.trim();
      if (p.in === "path") url = url.replace(`{${p.name}}`, encodeURIComponent(value).replaceAll("%2F", "/").replaceAll("%3A", ":"));
      else if (value) query.set(p.name, value);
    }
    if (query.size) url += `?${query}`;
    out.replaceChildren(el("p", {}, `GET ${url} …`));
    const from = performance.now();
    try {
      const answer = await fetch(url, { headers: headers() });
      if (answer.headers.get("content-type")?.startsWith("text/event-stream")) {
        await answer.body.cancel();
        out.replaceChildren(el("p", {}, "This answer is a stream without an end: take the command for it."));
        return;
      }
      const text = await answer.text();
      let shown = text;
      try { shown = pretty(JSON.parse(text)); } catch { /* it is no JSON */ }
      out.replaceChildren(
        el("p", {}, `${answer.status} ${answer.statusText}, ${Math.round(performance.now() - from)} ms, ${answer.headers.get("content-type") ?? ""}`),
        block(shown.length > 100000 ? `${shown.slice(0, 100000)}\n… ${shown.length} characters` : shown, "The answer"));
    } catch (error) {
      out.replaceChildren(el("p", {}, `The server does not answer: ${error.message}`));
    }
  }
  return [el("h3", {}, "Try it"),
    el("form", { class: "try", onsubmit: send }, inputs.map(([p, input]) => el("label", {}, `${p.name}${p.required ? "" : " (may be empty)"}`, input)),
      el("button", {}, "Send")), out];
}

function curlOf(path, method, operation) {
  const json = resolve(operation.requestBody?.content?.["application/json"]?.schema);
  const parts = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${location.origin}${path}`];
  if (operation.security) parts.push(`-H "Authorization: Bearer $SHOAL_API_KEY"`);
  if (json?.examples) parts.push(`-H "Content-Type: application/json"`, `-d '${JSON.stringify(json.examples[0]).replaceAll("'", "'\\''")}'`);
  return parts.join(" \\\n  ");
}

function fill(inside, path, method, operation) {
  const parameters = (operation.parameters ?? []).map(resolve);
  inside.append(...[
    el("p", {}, operation.security ? "Needs a key, where the server has keys." : "Needs no key."),
    parametersOf(parameters),
    bodyOf(operation.requestBody?.content, "Body"),
    Object.entries(operation.responses).filter(([code]) => code.startsWith("2")).map(([, r]) => bodyOf(r.content, "Answer")),
    errorsOf(operation.responses),
    [el("h3", {}, "With curl"), block(curlOf(path, method, operation), "A command")],
    method === "get" ? tryOf(path, operation, parameters) : null,
  ].flat(3).filter(Boolean));
}

/* ---- the whole ---- */

/** Everything that the search looks through. */
function wordsOf(path, method, operation) {
  const seen = new Set(), words = [method, path, operation.summary, operation.operationId, ...operation.tags];
  (function walk(o, depth) {
    if (!o || typeof o !== "object" || depth > 7) return;
    if (o.$ref) {
      if (seen.has(o.$ref) || o.$ref.endsWith("/Error")) return;
      seen.add(o.$ref);
      walk(resolve(o), depth + 1);
    } else {
      if (o.properties) words.push(...Object.keys(o.properties));
      if (typeof o.name === "string") words.push(o.name);
      if (typeof o.description === "string") words.push(o.description);
      Object.values(o).forEach((v) => walk(v, depth + 1));
    }
  })({ ...operation, responses: operation.responses[200] }, 0);
  return words.join(" ").toLowerCase();
}

const shown = [];

function operationOf(path, method, operation) {
  const inside = el("div", { class: "inside" }), id = operation.operationId;
  const box = el("details", { class: "operation", id, ontoggle: () => {
    if (box.open && !inside.childNodes.length) fill(inside, path, method, operation);
  } },
  el("summary", {}, el("span", { class: `method ${method}` }, method), el("span", { class: "path" }, path), el("span", { class: "say" }, operation.summary)),
  inside);
  const link = el("li", {}, el("a", { href: `#${id}` }, el("span", { class: `method ${method}` }, method), path));
  shown.push({ box, link, words: wordsOf(path, method, operation) });
  return { box, link };
}

function draw() {
  const narrow = matchMedia("(max-width: 760px)").matches; // the list beside them does not show: groups are folded
  const main = $("operations"), list = $("list");
  main.replaceChildren();
  for (const tag of doc.tags) {
    const own = Object.entries(doc.paths).flatMap(([path, methods]) => Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag.name)).map(([method, operation]) => operationOf(path, method, operation)));
    if (!own.length) continue;
    const section = el("section", { "aria-labelledby": `tag-${tag.name}` }, el("details", { class: "group", open: !narrow },
      el("summary", {}, el("h2", { id: `tag-${tag.name}` }, tag.name), el("span", {}, `${tag.description} (${own.length})`)), own.map((o) => o.box)));
    const part = el("div", {}, el("h2", {}, tag.name), el("ul", {}, own.map((o) => o.link)));
    main.append(section);
    list.append(part);
  }
  $("version").textContent = doc.info.version;
}

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  for (const s of shown) {
    const fits = words.every((w) => s.words.includes(w));
    s.box.hidden = s.link.hidden = !fits;
    n += fits;
  }
  for (const group of [...$("operations").querySelectorAll("section"), ...$("list").children])
    group.hidden = ![...group.querySelectorAll("details.operation, li")].some((e) => !e.hidden);
  if (words.length) for (const group of document.querySelectorAll(".group")) group.open = true;
  $("hits").textContent = words.length ? `${n} of ${shown.length}` : `${shown.length} endpoints`;
}

function openNamed() {
  const box = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!box?.matches("details.operation")) return;
  box.hidden = false;
  box.closest(".group").open = true;
  box.open = true;
  box.scrollIntoView();
  box.querySelector("summary").focus({ preventScroll: true });
}

async function start() {
  try {
    const answer = await fetch("/openapi.json");
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    doc = await answer.json();
  } catch (error) {
    $("wait").textContent = `/openapi.json cannot be read: ${error.message}`;
    return;
  }
  draw();
  search();
  $("search").addEventListener("input", search);
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", openNamed);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      event.preventDefault();
      $("search").focus();
    } else if (event.key === "Escape" && event.target === $("search")) {
      $("search").value = "";
      search();
    }
  });
  openNamed();
}

start();
