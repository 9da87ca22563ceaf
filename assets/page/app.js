// The page: which view shows, the key, the colours, and what the server's state means for the header.

import { hasKey, onRefused, setKey } from "/assets/page/api.js";
import { openCluster } from "/assets/page/cluster.js";
import { $, say, set } from "/assets/page/dom.js";
import { onChange, watch } from "/assets/page/live.js";
import { openLog } from "/assets/page/log.js";
import { openModels } from "/assets/page/models.js";
import { openPlay } from "/assets/page/play.js";
import { openRequests } from "/assets/page/requests.js";

const VIEWS = { cluster: openCluster, play: openPlay, requests: openRequests, models: openModels };
const shown = {};

function show() {
  const [, name = "cluster", rest] = /^#\/(\w+)\/?(.*)$/.exec(location.hash) ?? [];
  const view = name in VIEWS ? name : "cluster";
  for (const other of Object.keys(VIEWS)) $(`view-${other}`).hidden = other !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${document.querySelector(`nav a[data-view=${view}]`).textContent} · Shoal`;
  shown[view] ??= VIEWS[view]();
  shown[view]?.show?.(rest ?? "");
}

openLog();

// ---- the key --------------------------------------------------------------------------------------

function openKey(why) {
  const dialog = $("key-dialog");
  if (dialog.open) return;
  if (why) say($("key-why"), why);
  $("key-value").value = "";
  dialog.showModal();
}

$("key-button").addEventListener("click", () => openKey());
$("key-dialog").addEventListener("close", () => {
  const { returnValue } = $("key-dialog");
  if (returnValue === "use" && $("key-value").value) setKey($("key-value").value);
  if (returnValue === "forget") setKey("");
  $("key-dialog").returnValue = "";
  $("key-value").value = "";
  say($("key-button"), hasKey() ? "Key: set" : "Key");
});
$("key-value").addEventListener("keydown", (e) => {
  if (e.key !== "Enter") return;
  e.preventDefault();
  $("key-dialog").close("use");
});
onRefused((had) => openKey(had ? "The server refuses this key: it is wrong or has expired." : "This server needs an API key. The key is kept in this tab and removed when you close it."));
say($("key-button"), hasKey() ? "Key: set" : "Key");

// ---- the colours ----------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  say($("theme-name"), `Theme: ${theme}`);
  try {
    localStorage.setItem("shoal-theme", theme);
  } catch {
    // It holds until the page is closed.
  }
}

const theme = () => document.documentElement.dataset.theme ?? "auto";
$("theme-button").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
say($("theme-name"), `Theme: ${theme()}`);

// ---- the header -----------------------------------------------------------------------------------

function health(state) {
  if (state.refused === "key") return ["bad", "Needs a key"];
  if (state.refused === "admin") return ["rest", "Models only"];
  if (!state.known) return ["unknown", "Connecting"];
  if (!state.online) return ["bad", "Not reachable"];
  if (state.gateway.status === "draining") return ["warn", "Shutting down"];
  if (state.replicas.size === 0) return ["rest", "No models"];
  const out = [...state.replicas.values()].filter((r) => r.state !== "ready" && r.state !== "standby").length;
  return out ? ["warn", `${out} not ready`] : ["good", "All ready"];
}

onChange((state) => {
  const [kind, text] = health(state);
  set(document.querySelector("#health .dot"), "data-state", kind);
  say(document.querySelector("#health .health-text"), text);
  if (state.gateway.version) say($("version"), `Shoal ${state.gateway.version}`);
  const away = state.gateway.away ?? [];
  const lost = state.known && !state.online && !state.refused;
  const blind = state.refused === "admin";
  $("banner").hidden = !lost && !blind && away.length === 0;
  say($("banner"), blind ? "This key may use models in the playground. The cluster and its requests need a key with admin rights." : lost ? "The gateway does not answer. The page shows its last state and keeps trying."
    : away.length ? `No contact with ${away.join(", ")}: its last known state is shown.` : "");
});

// ---- begin ----------------------------------------------------------------------------------------

addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault();
  $("main").focus();
});
show();
watch();
