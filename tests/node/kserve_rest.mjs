// A stream of ModelStreamInfer between whose requests more time passes than limits.request_timeout_ms, which grpc.sh sets to 300
// ms, goes on. Run by tests/e2e/grpc.sh.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const definition = loader.loadSync("inference/open_inference.proto", { includeDirs: [process.env.SHOAL_PROTO], keepCase: true, longs: Number });
const client = new (grpc.loadPackageDefinition(definition).inference.GRPCInferenceService)(process.env.SHOAL_URL.slice(7), grpc.credentials.createInsecure());
const call = client.ModelStreamInfer();
after(() => {
  call.on("error", () => {}).cancel();
  client.close();
});
const live = () => new Promise((done, failed) => client.ServerLive({}, (e, r) => (e ? failed(e) : done(r))));

test("a stream rests between its requests", async () => {
  const input = { name: "text", datatype: "BYTES", shape: [1] };
  const next = () => new Promise((done, failed) => call.once("data", done).once("error", failed));
  for (let i = 0; i < 3; i++) {
    const answer = next();
    call.write({ model_name: "home-embed", id: String(i), inputs: [{ ...input, contents: { bytes_contents: [Buffer.from(`light ${i}`)] } }] });
    const { error_message, infer_response } = await answer;
    assert.deepEqual([error_message ?? "", infer_response?.id], ["", String(i)]);
    for (const began = Date.now(); Date.now() - began < 900;) await live(); // three times the limit
  }
});
