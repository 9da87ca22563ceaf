// One request: where its time was spent, which replica answered, why.

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
  return `${r.moves === 1 ? "once" : `${r.moves} times`} to another replica (${r.move_cause}); paused for ${ms(r.move_gap_ms)}`;
}

// A stream that breaks off does so behind its 200; a client that left is no failure of the server, but no success either.
export const failed = (r) => r.status >= 400 || r.code !== undefined;

// Tokens per second of the decode; undefined where it is not known.
export const speedOf = (r) => (r.completion_tokens > 1 && r.decode_ms > 0 ? Math.round(((r.completion_tokens - 1) / r.decode_ms) * 1000) : undefined);

function factsOf(r) {
  return [
    ["Answered by", [r.replica, r.version && `version ${r.version}`, r.quantisation, r.adapter && `adapter ${r.adapter}`].filter(Boolean).join(", ")],
    ["Pipeline", r.pipeline],
    ["First token", r.first_token_ms === undefined ? undefined : ms(r.first_token_ms)],
    ["Prompt tokens", r.prompt_tokens || undefined],
    ["Completion tokens", r.completion_tokens ? `${r.completion_tokens}${speedOf(r) ? `, ${speedOf(r)} tokens/s` : ""}` : undefined],
    ["Route", r.route],
    ["Ensemble", r.ensemble],
    ["Fallback for", r.degraded],
    ["Moved", moved(r)],
    ["Cache", [r.cache, r.cache_near].filter(Boolean).join(", ")],
    ["Error code", r.code],
    ["Request id", r.id],
    ["Request", r.asked],
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
