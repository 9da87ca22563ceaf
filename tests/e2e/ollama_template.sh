#!/usr/bin/env bash
# A model of Ollama's registry whose file has no chat template is served with the registry's.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "Node.js is not installed"
unset HF_TOKEN HF_ENDPOINT SHOAL_MODELS http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export SHOAL_STATE=$work/state
mkdir -p "$work/hub" "$work/store"
file=${SHOAL_BUILD:-build}/tests/gguf/llama-gqa.gguf
[ -f "$file" ] || skip "no GGUF fixture"
node tests/node/hub.mjs "$work/hub" "$file" >"$work/ports" 2>"$work/hub.err" &
hub=$!
trap 'kill $hub 2>/dev/null; cleanup' EXIT
for _ in $(seq 200); do [ -s "$work/ports" ] && break; sleep 0.05; done
read -r hubport other <"$work/ports" || fail "the hub does not start: $(cat "$work/hub.err")"
cat >"$work/shoal.yaml" <<Y
manifest: $PWD/models/models.json
models: [{name: home-intent}]
library: {store: $work/store, fetch_from: ["127.0.0.1:$hubport"], registry: "http://127.0.0.1:$hubport"}
Y
start_shoal "$work/shoal.yaml"
ask() { curl -s -m 60 "$url$1" -H content-type:application/json -d "$2"; }
ask /v1/models/load '{"model": "ollama:home:s"}' | grep -q '"state":"ready"' || fail "it is not loaded"
talk='[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]'
[ "$(ask /apply-template "{\"model\": \"home-s\", \"messages\": $talk}")" = '{"prompt":"S[a] b[c] "}' ] ||
    fail "another template: $(ask /apply-template "{\"model\": \"home-s\", \"messages\": $talk}")"
shown=$(curl -s "$url/v1/models/home-s")
grep -q '"chat_template":"default"' <<<"$shown" && fail "it has the default template: $shown"
grep -q 'precision=file,template=[0-9a-f]\{12\};' <<<"$shown" || fail "its identity does not know the template: $shown"
ask /api/chat "{\"model\": \"home:s\", \"messages\": $talk, \"stream\": false, \"options\": {\"num_predict\": 2}}" | grep -q '"done":true' || fail "no chat"
curl -s -X DELETE "$url/v1/models/home-s?force=true" | grep -q '"files":2' || fail "the template is not counted"
ls "$work/store"/home* >/dev/null 2>&1 && fail "files are left: $(ls "$work/store")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped"
echo "a template of the registry"
