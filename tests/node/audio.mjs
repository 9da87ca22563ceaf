// The official openai client's audio calls, unmodified: SHOAL_URL serves home-ears, SHOAL_WAV is a folder.
// And @grpc/grpc-js, which sends its worker (SHOAL_SOCKETS, SHOAL_PROTO) a file piece by piece.
import assert from "node:assert/strict";
import fs from "node:fs";
import OpenAI from "openai";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const client = new OpenAI({ baseURL: `${process.env.SHOAL_URL}/v1`, apiKey: "none", maxRetries: 0 });
const file = () => fs.createReadStream(`${process.env.SHOAL_WAV}/05-heat-the-house-to-sixty-one-degrees.wav`);
const words = "heat the house to sixty one degrees";
const ask = (more) => client.audio.transcriptions.create({ file: file(), model: "home-ears", ...more });

assert.equal((await ask({})).text, words);
assert.equal((await ask({ language: "en", temperature: 0 })).text, words);
assert.equal(typeof (await ask({ prompt: "the house" })).text, "string"); // home-ears knows no prompts
assert.equal(await ask({ response_format: "text" }), `${words}\n`);
assert.match(await ask({ response_format: "srt" }), /^1\n00:00:00,000 --> 00:00:03,\d{3}\nheat the house/);
assert.match(await ask({ response_format: "vtt" }), /^WEBVTT\n/);

const verbose = await ask({ response_format: "verbose_json", timestamp_granularities: ["segment"] });
assert.equal(verbose.language, "english");
assert.equal(verbose.segments.length, 1);
assert.equal(verbose.segments[0].text, ` ${words}`);
assert.ok(verbose.segments[0].avg_logprob < 0 && verbose.duration > 3 && verbose.duration < 4);

let text = "";
let done;
for await (const ev of await ask({ stream: true })) {
  if (ev.type === "transcript.text.delta") text += ev.delta;
  if (ev.type === "transcript.text.done") done = ev.text;
}
assert.equal(text.trim(), words);
assert.equal(done, words);

const refused = { language: /klingon/, response_format: /response_format/, timestamp_granularities: /segment/ };
const wrong = { language: "klingon", response_format: "pdf", timestamp_granularities: ["word"] };
for (const [field, said] of Object.entries(refused))
  await assert.rejects(ask({ [field]: wrong[field] }), (e) => e.status === 400 && said.test(e.message));
await assert.rejects(
  client.audio.transcriptions.create({ file: await OpenAI.toFile(Buffer.from("no sound"), "a.wav"), model: "home-ears" }),
  (e) => e.status === 400,
);

const proto = loader.loadSync("shoal/v1/worker.proto", { includeDirs: [process.env.SHOAL_PROTO], keepCase: true });
const { Worker } = grpc.loadPackageDefinition(proto).shoal.v1;
const socket = fs.readdirSync(process.env.SHOAL_SOCKETS).find((f) => f.startsWith("home-ears") && f.endsWith(".sock"));
const ears = new Worker(`unix:${process.env.SHOAL_SOCKETS}/${socket}`, grpc.credentials.createInsecure());
const call = ears.Transcribe();
let heard = "", first = true;
call.on("data", (ev) => (heard += ev.segment?.text ?? ""));
for await (const audio of file()) {
  for (let at = 0; at < audio.length; at += 3000)
    call.write({ audio: audio.subarray(at, at + 3000), ...(first ? { language: "en" } : {}) });
  first = false;
}
call.end();
await new Promise((resolve, reject) => call.on("end", resolve).on("error", reject));
assert.equal(heard.trim(), words);
ears.close();
console.log("audio: all as the client expects");
