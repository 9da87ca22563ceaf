// Small charts in SVG: a filled line over the last minutes, dots, and bars of time.

import { el, ms, svg } from "/assets/page/dom.js";

const W = 240;
const H = 56;

const place = (points, now, span, top) =>
  points.map((p) => [((p.t - (now - span)) / span) * W, H - 2 - (Math.min(p.v, top) / top) * (H - 6)]);

// A round number over v: what the axis ends with.
export function ceiling(v, least = 1) {
  let top = least;
  for (let i = 0; top < v && i < 60; i++) top *= i % 3 === 1 ? 2.5 : 2;
  return top;
}

// points: {t, v} with t in seconds, oldest first. Returns an element with update(points, top).
export function area(name) {
  const fill = svg("path", { class: "chart-area" });
  const line = svg("path", { class: "chart-line" });
  const frame = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": name }, fill, line);
  frame.update = (points, top, span) => {
    const at = place(points, Date.now() / 1000, span, top).filter(([x]) => x > -5);
    const path = at.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    line.setAttribute("d", path);
    fill.setAttribute("d", at.length > 1 ? `${path}L${at.at(-1)[0].toFixed(1)} ${H}L${at[0][0].toFixed(1)} ${H}Z` : "");
  };
  return frame;
}

// One dot an answer; failed ones stand out.
export function dots(name) {
  const good = svg("path", { class: "chart-dots" });
  const bad = svg("path", { class: "chart-dots bad" });
  const frame = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": name }, good, bad);
  frame.update = (points, top, span) => {
    const draw = (list) => place(list, Date.now() / 1000, span, top).filter(([x]) => x > 0).map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");
    good.setAttribute("d", draw(points.filter((p) => !p.bad)));
    bad.setAttribute("d", draw(points.filter((p) => p.bad)));
  };
  return frame;
}

// parts: [{kind, ms}] behind each other, beginning at `from` of `total` milliseconds.
export function bar(parts, from, total) {
  const all = Math.max(total, 0.001);
  let x = (from / all) * 1000;
  const rects = parts.filter((p) => p.ms > 0).map((p) => {
    const width = Math.max((p.ms / all) * 1000, 3);
    const rect = svg("rect", { class: `part ${p.kind}`, x: Math.min(x, 997).toFixed(1), y: 0, width: width.toFixed(1), height: 10 });
    x += (p.ms / all) * 1000;
    return rect;
  });
  const words = parts.filter((p) => p.ms > 0).map((p) => `${NAMES[p.kind] ?? p.kind} ${ms(p.ms)}`).join(", ");
  return svg("svg", { class: "bar-svg", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": words || "no time" }, rects);
}

export const NAMES = { before: "overhead before", queue: "queue", prefill: "prefill", decode: "decode", after: "overhead after", busy: "computing" };

export function legend(parts) {
  return el("p", { class: "legend" }, parts.filter((p) => p.ms > 0).map((p) =>
    el("span", { class: "legend-item" }, el("span", { class: `swatch ${p.kind}` }), `${NAMES[p.kind] ?? p.kind} ${ms(p.ms)}`)));
}
