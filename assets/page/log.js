// The server's log, its workers' lines among it: the last lines of a level, read again while it is open.

import { getJson } from "/assets/page/api.js";
import { $, el, say } from "/assets/page/dom.js";

const SHOWN = 200;
const AGAIN_MS = 2000;
const HEAD = ["time", "level", "component", "event", "replica"];

const value = (v) => (typeof v === "string" && /[\s"=]|^$/.test(v) ? JSON.stringify(v) : String(v));

function line(l) {
  const rest = Object.entries(l).filter(([key, v]) => !HEAD.includes(key) && v !== "");
  return el("li", { class: `line ${l.level}` }, el("time", { title: l.time }, new Date(l.time).toLocaleTimeString([], { hour12: false })), el("span", { class: "level" }, l.level),
    el("span", { class: "from" }, l.replica ? `${l.component} ${l.replica}` : l.component), el("span", { class: "what" }, el("strong", null, l.event), rest.map(([key, v]) => ` ${key}=${value(v)}`).join("")));
}

export function openLog() {
  let due = 0;
  let had = "";
  const refresh = async () => {
    clearTimeout(due);
    if (!$("log").open) return;
    const level = $("log-level").value;
    if (!$("view-cluster").hidden && !document.hidden) {
      try {
        const said = await getJson(`/v1/logs?lines=${SHOWN}&level=${level}`);
        if (had !== `${level} ${said.last}`) $("log-lines").replaceChildren(...said.lines.reverse().map(line));
        had = `${level} ${said.last}`;
        say($("log-note"), said.lines.length ? "The newest first." : "There are no such lines.");
      } catch (e) {
        say($("log-note"), e.message);
      }
    }
    due = setTimeout(refresh, AGAIN_MS);
  };
  $("log").addEventListener("toggle", refresh);
  $("log-level").addEventListener("change", refresh);
}
