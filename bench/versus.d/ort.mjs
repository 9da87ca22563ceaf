// ort.mjs DIR FILE THREADS SHAPES REPEAT: tokens a second of an ONNX encoder in ONNX Runtime, as {"enc 1x32": ...}. DIR is where
// onnxruntime-node was installed; the encoder takes input_ids, and attention_mask and token_type_ids where it has them.
// As many runs as `shoal bench -r REPEAT` takes, and as many before them: REPEAT at least, a second or fifty times as many.
import { createRequire } from "node:module";
import path from "node:path";

const [dir, file, threads, shapes, repeat] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(dir), "package.json"));
let ort;
try { ort = require("onnxruntime-node"); } catch { ort = require(path.resolve(dir)); }

const session = await ort.InferenceSession.create(file,
  { intraOpNumThreads: +threads, interOpNumThreads: 1, executionMode: "sequential", graphOptimizationLevel: "all", logSeverityLevel: 3 });
const vocabulary = 20000;
function feeds(batch, n, salt) {
  const int64 = (make) => new ort.Tensor("int64", BigInt64Array.from({ length: batch * n }, (_, i) => BigInt(make(i))), [batch, n]);
  const all = {
    input_ids: () => int64((i) => 1000 + (Math.imul(i + 1, 2654435761) + salt * 7919 >>> 0) % vocabulary),
    attention_mask: () => int64(() => 1), token_type_ids: () => int64(() => 0),
  };
  return Object.fromEntries(session.inputNames.map((name) => {
    if (!all[name]) throw new Error(`${file} takes "${name}", which is not known here`);
    return [name, all[name]()];
  }));
}
const out = {};
for (const shape of shapes.split(",")) {
  const [batch, n] = shape.split("x").map(Number), ms = [];
  for (let i = 0; i < 8; i++) await session.run(feeds(batch, n, i));
  for (const start = performance.now(); ms.length < 50 * repeat && (ms.length < +repeat || performance.now() - start < 1000);) {
    const given = feeds(batch, n, ms.length + 8), from = performance.now();
    await session.run(given);
    ms.push(performance.now() - from);
  }
  ms.sort((a, b) => a - b);
  out[`enc ${shape}`] = batch * n * 1000 / ms[ms.length >> 1];
}
console.log(JSON.stringify(out));
