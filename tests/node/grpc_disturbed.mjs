// grpc_disturbed.mjs URL MODEL KILLS: ChatStream again and again while workers of MODEL are killed at random moments.
// Each answer has to be the one that was given undisturbed.
import process from "node:process";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [url, model, kills] = process.argv.slice(2);
const definition = loader.loadSync("shoal/v1/shoal.proto", { includeDirs: [process.env.SHOAL_PROTO], keepCase: true, longs: Number });
const shoal = new (grpc.loadPackageDefinition(definition).shoal.v1.Shoal)(url.slice(7), grpc.credentials.createInsecure());
const calm = new grpc.Metadata();
calm.set("cache-control", "no-store");
const user = (content) => [{ role: "user", content }];
const cases = [
  { temperature: 0, ignore_eos: true, max_tokens: 400, messages: user("tell me everything") },
  { temperature: 1, seed: 7, ignore_eos: true, max_tokens: 400, presence_penalty: 1.2, messages: user("and then?") },
];
const ask = async (request) => {
  let text = "";
  for await (const c of shoal.ChatStream({ model, ...request }, calm)) text += c.choices?.[0]?.delta?.content ?? "";
  return text;
};
const expected = [];
for (const c of cases) expected.push(await ask(c));

let over = false, hits = 0, n = 0, bad = 0;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
async function disturb() {
  while (hits < Number(kills)) {
    await sleep(100 + Math.random() * 600);
    const { replicas } = await (await fetch(`${url}/readyz`)).json();
    const mine = replicas.filter((r) => r.model === model);
    if (mine.some((r) => r.state !== "ready")) continue;
    try {
      process.kill(mine[Math.floor(Math.random() * mine.length)].pid, "SIGKILL");
      hits++;
    } catch {
      // it had died already
    }
  }
}
const disturbing = disturb().then(() => (over = true));
await Promise.all([0, 1, 2, 3].map(async (k) => {
  for (let i = k; !over; i++, n++) {
    const got = await ask(cases[i % cases.length]).catch((e) => `failed: ${e.message}`);
    if (got !== expected[i % cases.length] && bad++ === 0) console.log(`got ${got}\nexpected ${expected[i % cases.length]}`);
  }
}));
await disturbing;
console.log(`${n} streams, ${bad} lost or different, ${hits} workers killed`);
process.exit(bad || !hits ? 1 : 0);
