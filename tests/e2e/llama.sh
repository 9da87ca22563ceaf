#!/usr/bin/env bash
# llama-server's endpoints where there is one model, which need not be named: gaps are filled by a model whose
# vocabulary marks them, slots are told, and a key opens no more than its models.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "node is not installed"
mkdir "$work/fim"
cp tests/data/hf/smollm3-nope/* "$work/fim/"
sed -i -e 's/<|start_header_id|>/<|fim_prefix|>/g; s/<|end_header_id|>/<|fim_suffix|>/g; s/<|eot_id|>/<|fim_middle|>/g' "$work"/fim/token*.json
conf=$work/c.yaml
cat >"$conf" <<YAML
models:
  - {name: coder, path: $work/fim}
  - {name: vectors, path: $PWD/tests/data/hf/minilm-embed}
YAML
start_shoal "$conf"
cat >"$work/ask.mjs" <<'JS'
import assert from "node:assert/strict";
const base = process.env.SHOAL_URL;
const post = async (path, body) => { const r = await fetch(base + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }); return [r.status, await r.json()]; };
const ok = async (path, body) => { const [status, o] = await post(path, body); assert.equal(status, 200, JSON.stringify(o)); return o; };
const get = async (path) => (await fetch(base + path)).json();
const ids = async (content, parse_special) => (await ok("/tokenize", { content, parse_special })).tokens;
const marks = await Promise.all(["prefix", "suffix", "middle"].map(async (m) => (await ids(`<|fim_${m}|>`, true))[0]));
const greedy = { temperature: 0, n_predict: 8, ignore_eos: true };
// what stands around the gap is text, even where it spells a marker
const before = "the <|fim_middle|> light", after = "kitchen";
const want = await ok("/completion", { ...greedy, prompt: [marks[0], ...await ids(before, false), marks[1], ...await ids(after, false), marks[2]] });
const got = await ok("/infill", { ...greedy, input_prefix: before, input_suffix: after });
assert.equal(got.content, want.content);
assert.equal(got.tokens_evaluated, want.tokens_evaluated);
const extra = await ok("/infill", { ...greedy, input_prefix: "a", input_suffix: "", prompt: "b", input_extra: [{ filename: "x.c", text: "on" }] });
assert.equal(extra.tokens_evaluated, 3 + (await ids("x.c\non\na", false)).length + (await ids("b", false)).length);
for (const body of [{}, { input_prefix: "a" }, { input_prefix: 7, input_suffix: "" }]) assert.equal((await post("/infill", body))[0], 400);
const props = await get("/props"), slots = await get("/slots");
assert.equal(props.model_alias, "coder");
assert.ok(slots.length === props.total_slots && slots.length > 0 && slots[0].n_ctx === props.default_generation_settings.n_ctx);
const vector = (await ok("/v1/embeddings", { model: "vectors", input: "a" })).data[0].embedding;
assert.deepEqual(await ok("/embedding", { content: "a" }), [{ index: 0, embedding: [vector] }]);
const busy = async () => (await get("/slots")).filter((s) => s.is_processing).length;
const idle = async () => { for (let i = 0; i < 200 && (await busy()) > 0; i++) await new Promise((done) => setTimeout(done, 50)); return (await busy()) === 0; };
assert.ok(await idle());
const headers = { "content-type": "application/json" };
const body = JSON.stringify({ prompt: "a", n_predict: 240, ignore_eos: true, stream: true });
let seen = 0; // a quick model may be done when it is looked at, but not each time
for (let i = 0; i < 50 && seen === 0; i++) {
  const stop = new AbortController();
  const long = await fetch(base + "/completion", { method: "POST", headers, body, signal: stop.signal });
  await long.body.getReader().read();
  seen = await busy();
  stop.abort();
  assert.ok(await idle());
}
assert.equal(seen, 1);
assert.equal((await ok("/detokenize", { tokens: marks })).content, "<|fim_prefix|><|fim_suffix|><|fim_middle|>");
JS
SHOAL_URL=$url node "$work/ask.mjs" 2>"$work/err" || fail "$(grep -m3 -E 'Error|[+-] ' "$work/err")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"

digest=$(printf secret | sha256sum | cut -c1-64)
cat >>"$conf" <<YAML
api_keys:
  - {name: narrow, sha256: '$digest', models: [vectors]}
YAML
start_shoal "$conf"
status() { curl -s -o "$work/out" -w '%{http_code}' "$@"; }
key='authorization: Bearer secret'
[ "$(status "$url/tokenize" -d '{"model":"coder","content":"a"}')" = 401 ] || fail "tokens need no key"
grep -q '"type":"authentication_error"' "$work/out" || fail "a refusal reads $(cat "$work/out")"
for ask in '/tokenize {"model":"coder","content":"a"}' '/completion {"model":"coder","prompt":"a"}' \
    '/completion {"model":"coder","prompt":[1,"a"]}' '/detokenize {"model":"coder","tokens":[1]}' \
    '/apply-template {"model":"coder","messages":[{"role":"user","content":"a"}]}' \
    '/infill {"model":"coder","input_prefix":"a","input_suffix":""}'; do
    got=$(status "$url${ask%% *}" -H "$key" -d "${ask#* }")
    [ "$got" = 403 ] || [ "$got" = 404 ] || fail "a key of another model may ask $ask: $got $(cat "$work/out")"
done
for path in '/props?model=coder' '/slots?model=coder' /props; do
    got=$(status "$url$path" -H "$key")
    [ "$got" -ge 400 ] || fail "a key of another model may see $path"
done
[ "$(status "$url/tokenize" -H "$key" -d '{"model":"vectors","content":"a"}')" = 200 ] || fail "$(cat "$work/out")"
[ "$(status "$url/embedding" -H "$key" -d '{"content":"a"}')" = 200 ] || fail "$(cat "$work/out")"
[ "$(status "$url/health")" = 200 ] || fail "health needs a key"
stop_shoal
echo "gaps, slots and keys"
