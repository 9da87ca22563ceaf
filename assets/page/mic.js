// The microphone: recorded here as 16-bit WAV, since the server reads no WebM; transcribed by a served speech model; and what it
// says is given on. The button shows where there is such a model and the browser lends its microphone (https, or this machine).

import { ask } from "/assets/page/api.js";
import { catalogue, onCatalogue } from "/assets/page/catalogue.js";
import { $, say } from "/assets/page/dom.js";

const LONGEST_S = 60;

// chunks: Float32Arrays of one channel.
export function wav(chunks, rate) {
  const n = chunks.reduce((sum, c) => sum + c.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * n));
  const text = (at, s) => [...s].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * n, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * n, true);
  let at = 44;
  for (const c of chunks) for (const v of c) view.setInt16((at += 2) - 2, Math.max(-1, Math.min(1, v)) * 32767, true);
  return new Blob([view.buffer], { type: "audio/wav" });
}

async function record() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  const context = new AudioContext();
  try {
    await context.audioWorklet.addModule("/assets/page/mic_worklet.js");
  } catch (e) {
    stream.getTracks().forEach((t) => t.stop());
    await context.close();
    throw e;
  }
  const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
  const chunks = [];
  node.port.onmessage = (e) => chunks.push(e.data);
  context.createMediaStreamSource(stream).connect(node);
  return async () => {
    stream.getTracks().forEach((t) => t.stop());
    const rate = context.sampleRate;
    await context.close();
    return wav(chunks, rate);
  };
}

const model = () => catalogue.models.find((m) => m.task === "transcribe");
let stop = null; // of the recording that runs
let timer = 0;

async function end(use) {
  clearTimeout(timer);
  const finish = stop;
  stop = null;
  show("Transcribing");
  const body = new FormData();
  body.append("model", model()?.id ?? "");
  body.append("file", await finish(), "speech.wav");
  const { text } = await (await ask("/v1/audio/transcriptions", { body })).json();
  if (text.trim()) use(text.trim());
  show(text.trim() ? "" : "No speech was recognised.");
}

function show(note) {
  say($("mic"), stop ? "Stop recording" : "Microphone");
  $("mic").setAttribute("aria-pressed", String(stop !== null));
  say($("mic-note"), note);
}

async function press(use) {
  $("mic").disabled = true;
  try {
    if (stop) {
      await end(use);
    } else {
      stop = await record();
      timer = setTimeout(() => press(use), LONGEST_S * 1000);
      show("Recording: the sound goes to this server only.");
    }
  } catch (e) {
    show(e.name === "NotAllowedError" ? "The browser does not allow the microphone." : `The microphone cannot be used: ${e.message}`);
  }
  $("mic").disabled = false;
}

// use: takes the text.
export function openMic(use) {
  const can = globalThis.isSecureContext && navigator.mediaDevices?.getUserMedia && globalThis.AudioWorkletNode;
  onCatalogue(() => ($("mic").hidden = !can || (!model() && !stop)));
  $("mic").addEventListener("click", () => press(use));
}
