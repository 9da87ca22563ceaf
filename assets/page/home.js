// A home that the page plays: with a pipeline as partner it offers functions for the services of the lexicon, and each call of one
// succeeds. Nothing is switched anywhere; the devices keep the states that the configuration gives them.

import { catalogue } from "/assets/page/catalogue.js";
import { $ } from "/assets/page/dom.js";

const SERVICES = ["turn_on", "turn_off", "toggle", "lock", "unlock", "open_cover", "close_cover", "stop_cover", "set_temperature", "set_hvac_mode", "set_humidity", "set_fan_mode", "increase_speed", "decrease_speed",
  "media_play", "media_pause", "media_stop", "media_next_track", "media_previous_track", "volume_up", "volume_down", "volume_mute", "start", "pause", "stop", "cancel", "return_to_base", "add_item"];

const VALUES = { turn_on: ["brightness", "color"], set_temperature: ["temperature"], set_hvac_mode: ["hvac_mode"], set_humidity: ["humidity"], set_fan_mode: ["fan_mode"], start: ["duration"], add_item: ["item"] };

const properties = (name) => Object.fromEntries([["target", { type: "string" }], ...(VALUES[name] ?? []).map((value) => [value, {}])]);
export const HOME_TOOLS = SERVICES.map((name) => ({ type: "function", function: { name, parameters: { type: "object", properties: properties(name) } } }));

// Where the person offers no tools, and the pipeline has devices of its own.
export const playsHome = (model) => !$("set-tools").value.trim() && catalogue.models.some((m) => m.id === model && m.kind === "pipeline") &&
  catalogue.pipelines.some((p) => p.id === model && p.devices.length > 0);

export const results = (calls) => calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: '{"success":true}' }));
