// How one request went: where its time was spent, who answered, why.

import { getJson } from "/assets/page/api.js";
import { bar, legend } from "/assets/page/chart.js";
import { el, ms } from "/assets/page/dom.js";

// The parts of a request's time, in their order. What the worker does not account for is the way there and back.
export function partsOf(r) {
  const queue = r.queue_ms ?? 0;
  const prefill = r.prefill_ms ?? 0;
  const decode = r.decode_ms ?? 0;
  const known = queue + prefill + decode;
  const rest = Math.max(r.ms - known, 0);
  if (!known) return [{ kind: "busy", ms: r.ms }];
  const before = r.first_token_ms === undefined ? rest / 2 : Math.min(Math.max(r.first_token_ms - queue - prefill, 0), rest);
  return [{ kind: "before", ms: before }, { kind: "queue", ms: queue }, { kind: "prefill", ms: prefill }, { kind: "decode", ms: decode }, { kind: "after", ms: rest - before }];
}

export const timeBar = (r, total = r.ms) => bar(partsOf(r), 0, total);

function moved(r) {
  if (!r.moves) return undefined;
  return `${r.moves === 1 ? "once" : `${r.moves} times`} (${r.move_cause}); nothing came for ${ms(r.move_gap_ms)}`;
}

const speed = (r) => (r.completion_tokens > 1 && r.decode_ms > 0 ? `, ${Math.round(((r.completion_tokens - 1) / r.decode_ms) * 1000)} a second` : "");

function factsOf(r) {
  return [
    ["Answered by", [r.replica, r.version && `version ${r.version}`, r.quantisation, r.adapter && `adapter ${r.adapter}`].filter(Boolean).join(", ")],
    ["First token", r.first_token_ms === undefined ? undefined : `after ${ms(r.first_token_ms)}`],
    ["Tokens", r.prompt_tokens || r.completion_tokens ? `${r.prompt_tokens} read, ${r.completion_tokens} written${speed(r)}` : undefined],
    ["Why", r.route],
    ["Several models", r.ensemble],
    ["Stands in for", r.degraded],
    ["Moved", moved(r)],
    ["Cache", [r.cache, r.cache_near].filter(Boolean).join(", ")],
    ["Failed with", r.code],
    ["Request id", r.id],
    ["Asked", r.asked],
  ].filter(([, value]) => value);
}

export function traceView(r) {
  return el("div", { class: "trace" }, timeBar(r), legend(partsOf(r)),
    el("dl", { class: "facts" }, factsOf(r).map(([name, value]) => [el("dt", null, name), el("dd", null, value)])));
}

// The entry of a request that has just ended; null when nobody may know.
export async function entryOf(id) {
  try {
    return (await getJson(`/v1/requests?limit=1&id=${encodeURIComponent(id)}`)).data[0] ?? null;
  } catch {
    return null;
  }
}
