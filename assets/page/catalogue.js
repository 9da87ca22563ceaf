// What can be asked: models, ensembles, routes and pipelines, and models that could be loaded; asked for once and again when
// replicas come or go.

import { getJson, onKey } from "/assets/page/api.js";
import { onChange } from "/assets/page/live.js";

export const catalogue = { models: [], loadable: [], pipelines: [] };
const listeners = new Set();
let known = false;
export function onCatalogue(f) {
  listeners.add(f);
  if (known) f(catalogue);
}

let asked = 0;
async function refresh() {
  const mine = ++asked;
  try {
    const [models, pipelines] = await Promise.all([getJson("/v1/models?loadable=true"), getJson("/v1/pipelines")]);
    if (mine !== asked) return;
    catalogue.models = models.data.filter((m) => m.state !== "loadable");
    catalogue.loadable = models.data.filter((m) => m.state === "loadable");
    catalogue.pipelines = pipelines.data;
    known = true;
    for (const f of listeners) f(catalogue);
  } catch {
    // With the next change of the cluster.
  }
}

let last = null;
onChange((state) => {
  if (!state.online && state.refused !== "admin") {
    last = null;
    return;
  }
  const is = state.refused ??  [...state.replicas.values()].map((r) => `${r.id} ${r.state === "ready"}`).join();
  if (is !== last) refresh();
  last = is;
});
onKey(refresh);

export const writes = (m) => m.task === "generate" || m.kind !== undefined || m.task === "route";
export const isModel = (m) => m.kind === undefined && m.task !== "route" && !m.parent;

// Who can answer a chat, in groups for a select.
export function chatGroups({ models }) {
  const value = (m) => ({ value: m.id });
  return [
    ["Models", models.filter((m) => writes(m) && (isModel(m) || m.parent)).map(value)],
    ["Pipelines", models.filter((m) => m.kind === "pipeline").map(value)],
    ["Ensembles", models.filter((m) => m.kind !== undefined && m.kind !== "pipeline").map((m) => ({ value: m.id, text: `${m.id} (${m.kind})` }))],
    ["Routes", models.filter((m) => m.task === "route").map(value)],
  ].filter(([, list]) => list.length);
}

// Whom a chat begins with: the home's chat model, which acts for the home and refuses what it cannot do, else the first that writes;
// beside another one, the second.
export function preferred({ models }, nth = 0) {
  const all = models.filter((m) => writes(m) && m.kind === undefined && m.task !== "route");
  const home = models.find((m) => m.id === "home" && writes(m));
  return [home, ...all.filter((m) => m !== home)].filter(Boolean)[nth]?.id ?? all[0]?.id;
}
