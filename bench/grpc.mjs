// grpc.mjs URL [ROUNDS] [CALLS]: what a call of gRPC costs beside the same request over HTTP/2, from one client that writes
// frames itself (node:http2), one request at a time, alternating; the median of each round, then the median of rounds.
//
//     node bench/grpc.mjs http://127.0.0.1:8080 15 400
import http2 from "node:http2";
import process from "node:process";

const [url, rounds = 15, calls = 400] = process.argv.slice(2);
const session = http2.connect(url);
const field = (number, text) => Buffer.concat([Buffer.from([number << 3 | 2, text.length]), Buffer.from(text)]);
const frame = (message) => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};
const ask = (headers, body) => new Promise((done, failed) => {
  const from = process.hrtime.bigint(), s = session.request({ ":method": "POST", ...headers });
  s.on("data", () => {}).on("error", failed).on("end", () => done(Number(process.hrtime.bigint() - from) / 1e6));
  s.end(body);
});
const text = (i) => `turn on the light number ${i % 977}`;
const ways = (calm) => ({
  "HTTP/2": (i) => ask({ ":path": "/v1/classify", "content-type": "application/json", ...calm }, JSON.stringify({ model: "home-intent", input: [text(i)], top_k: 3 })),
  gRPC: (i) => ask({ ":path": "/shoal.v1.Shoal/Classify", "content-type": "application/grpc", te: "trailers", ...calm }, frame(Buffer.concat([field(1, "home-intent"), field(2, text(i)), Buffer.from([4 << 3, 3])]))),
});
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
for (const [what, calm] of [["computed (no-store)", { "cache-control": "no-store" }], ["from the cache", {}]]) {
  const both = ways(calm), seen = { "HTTP/2": [], gRPC: [] };
  for (let r = 0; r <= rounds; r++)
    for (const name of r % 2 ? ["HTTP/2", "gRPC"] : ["gRPC", "HTTP/2"]) {
      const times = [];
      for (let i = 0; i < calls; i++) times.push(await both[name](calm["cache-control"] ? i : i % 20));
      if (r > 0) seen[name].push(median(times)); // the first warms up
    }
  for (const name of ["HTTP/2", "gRPC"]) {
    const all = [...seen[name]].sort((a, b) => a - b);
    console.log(`${what}, ${name}: p50 ${median(seen[name]).toFixed(3)} ms (rounds ${all[0].toFixed(3)} to ${all.at(-1).toFixed(3)})`);
  }
}
session.close();
