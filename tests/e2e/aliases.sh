#!/usr/bin/env bash
# Aliases: names of other services stand for models, adapters, routes, ensembles and pipelines in every API.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
conf=$work/c.yaml silero=../shared/borrowed/silero-vad/silero_vad_16k.safetensors
cat >"$conf" <<YAML
manifest: $PWD/models/models.json
models:
  - {name: home-intent}
  - {name: home-slots}
  - {name: home-embed}
  - {name: home-chat-s, kv_mb: 32}
  - {name: home-chat-m, kv_mb: 32}
  - {name: home-ears}
  - {name: ranker, path: $PWD/tests/data/hf/cross-encoder-rerank}
  - {name: speaks, path: $PWD/$silero}
ensembles:
  - {name: pair, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
routes:
  - {name: auto, rules: [{model: home-chat-s}]}
pipelines:
  - {name: home, stages: [{name: what, kind: classify, model: home-intent}]}
  - {name: writes, use: short replies, stages: [{name: reply, kind: generate, model: home-chat-s, max_tokens: 8}]}
moderation: {model: home-intent, min_score: 0.4}
api_keys:
  - sha256:$(sum sk-root)
  - {name: chat, sha256: $(sum sk-chat), models: [home-chat-s]}
  - {name: embed, sha256: $(sum sk-embed), models: [home-embed]}
  - {name: wild, sha256: $(sum sk-wild), models: ['gpt-*']}
aliases:
  gpt-4o-mini: home-chat-s
  openai/gpt-4o: home-chat-m
  llama3.2:1b: home-chat-s
  "llama3:latest": home-chat-s
  bare: home-chat-s
  gpt-route: auto
  gpt-pair: pair
  whisper-1: home-ears
  text-embedding-3-small: home-embed
  rerank-english-v3.0: ranker
  intents: home-intent
  slots: home-slots
  voice: speaks
  do-it: home
  gpt-writes: writes
YAML
[ -f "$silero" ] || sed -i '/speaks/d' "$conf"
start_shoal "$conf"
head=$work/head body=$work/body key=sk-root

# ask PATH [CURL OPTIONS...]: the status; headers in $head, the reply in $body.
ask() { curl -sS -m 60 -D "$head" -o "$body" -w '%{http_code}' -H "authorization: Bearer $key" "${@:2}" "$url$1"; }
# ok PATH BODY PATTERN...: 200, and the reply has each
ok() {
    local pattern status
    status=$(ask "$1" -H 'content-type: application/json' -d "$2")
    [ "$status" = 200 ] || fail "$1 $2: $status: $(cat "$body")"
    for pattern in "${@:3}"; do grep -qE -- "$pattern" "$body" || fail "$1 $2: no '$pattern' in $(cat "$body")"; done
}
# real MODEL: the last reply's header names the model that answered
real() { grep -qi "^x-shoal-model: $1"$'\r' "$head" || fail "x-shoal-model is not $1: $(cat "$head")"; }
messages='"temperature":0,"max_tokens":4,"messages":[{"role":"user","content":"hello"}]'

# OpenAI's API: generation, for a model, a route and an ensemble; the name is the one that was asked for
for name in gpt-4o-mini llama3.2:1b llama3:latest bare; do
    ok /v1/chat/completions "{\"model\":\"$name\",$messages}" "\"model\":\"$name\""
    real home-chat-s
done
ok /v1/messages "{\"model\":\"gpt-4o-mini\",$messages}" '"type":"message"' '"model":"gpt-4o-mini"'
real home-chat-s
ok /v1/messages/count_tokens "{\"model\":\"gpt-4o-mini\",$messages}" '"input_tokens":[1-9]'
ok /v1/chat/completions "{\"model\":\"openai/gpt-4o\",$messages}" '"model":"openai/gpt-4o"'
real home-chat-m
ok /v1/chat/completions "{\"model\":\"gpt-route\",$messages}" '"model":"gpt-route"'
real home-chat-s
grep -qi '^x-shoal-route: auto; home-chat-s' "$head" || fail "the route is not named: $(cat "$head")"
ok /v1/chat/completions "{\"model\":\"gpt-pair\",$messages}" '"model":"gpt-pair"'
grep -qi '^x-shoal-ensemble:' "$head" || fail "the ensemble is not named: $(cat "$head")"
ok /v1/chat/completions "{\"model\":\"gpt-writes\",$messages}" '"model":"gpt-writes"' '"completion_tokens":[1-8],'
real writes
ok /v1/chat/completions "{\"model\":\"gpt-4o-mini\",\"stream\":true,$messages}" '"model":"gpt-4o-mini"'
grep -q '"model":"home-chat-s"' "$body" && fail "an event of the stream has another name: $(cat "$body")"
real home-chat-s
ok /v1/completions '{"model":"gpt-4o-mini","prompt":"hello","max_tokens":4}' '"model":"gpt-4o-mini"'
ok /v1/responses '{"model":"gpt-4o-mini","input":"hello","max_output_tokens":16}' '"model":"gpt-4o-mini"'
first=$(grep -o 'resp_[0-9a-f]*' "$body" | head -1)
ok /v1/responses "{\"model\":\"gpt-4o-mini\",\"input\":\"again\",\"max_output_tokens\":16,\"previous_response_id\":\"$first\"}" '"model":"gpt-4o-mini"'
ok /v1/responses/input_tokens '{"model":"gpt-4o-mini","input":"hello"}' '"input_tokens":[1-9]'

# encoders, speech
ok /v1/embeddings '{"model":"text-embedding-3-small","input":"hello"}' '"model":"text-embedding-3-small"' '"embedding":\['
real home-embed
ok /v1/rerank '{"model":"rerank-english-v3.0","query":"a","documents":["a","b"]}' relevance_score
real ranker
ok /v1/classify '{"model":"intents","input":"turn on the light"}' '"model":"intents"'
ok /v1/tag '{"model":"slots","input":"turn on the light"}' '"model":"slots"'
ok /v1/moderations '{"model":"intents","input":"turn on the light"}' '"model":"intents"'
wav=tests/data/speech/wav/08-lights-on.wav
[ "$(ask /v1/audio/transcriptions -F model=whisper-1 -F file=@$wav)" = 200 ] || fail "transcriptions: $(cat "$body")"
grep -qi 'lights on' "$body" || fail "transcriptions: $(cat "$body")"
real home-ears
[ "$(ask /v1/audio/transcriptions -F file=@$wav -F model=whisper-1)" = 200 ] || fail "a model behind the file: $(cat "$body")"
if grep -q speaks "$conf"; then
    [ "$(ask /v1/vad -F model=voice -F file=@$wav)" = 200 ] || fail "vad: $(cat "$body")"
    real speaks
fi

# Ollama's: NAME and NAME:latest are one name, and the reply has the one that was sent
for name in gpt-4o-mini llama3.2:1b llama3 llama3:latest bare bare:latest; do
    ok /api/chat "{\"model\":\"$name\",\"stream\":false,\"options\":{\"num_predict\":4},\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}" "\"model\":\"$name\""
    real home-chat-s
done
ok /api/chat '{"model":"gpt-route","options":{"num_predict":4},"messages":[{"role":"user","content":"hello"}]}' '"model":"gpt-route"' '"done":true'
ok /api/generate '{"model":"llama3:latest","prompt":"hello","stream":false,"options":{"num_predict":4}}' '"model":"llama3:latest"'
ok /api/embed '{"model":"text-embedding-3-small","input":"hello"}' '"model":"text-embedding-3-small"' '"embeddings":\['
ok /api/embeddings '{"model":"text-embedding-3-small","prompt":"hello"}' '"embedding":\['
ok /api/show '{"model":"llama3.2:1b"}' '"family":"llama"'
ok /api/pull '{"model":"llama3.2:1b","stream":false}' success
# llama-server's
ok /completion '{"model":"gpt-4o-mini","prompt":"hello","n_predict":4}' '"model":"gpt-4o-mini"'
ok /completion '{"model":"gpt-4o-mini","prompt":["hello",5],"n_predict":4}' '"model":"gpt-4o-mini"'
ok /tokenize '{"model":"gpt-4o-mini","content":"hello"}' '"tokens":\['
ok /apply-template "{\"model\":\"gpt-4o-mini\",$messages}" '"prompt":"'
ok /embedding '{"model":"text-embedding-3-small","content":"hello"}' embedding
[ "$(ask '/props?model=gpt-4o-mini')" = 200 ] || fail "/props: $(cat "$body")"
grep -q '"model_alias":"gpt-4o-mini"' "$body" || fail "/props: $(cat "$body")"
# KServe's, with the name encoded where it has a slash
tensor='{"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["turn on the light"]}]}'
ok /v2/models/text-embedding-3-small/infer "$tensor" '"model_name":"text-embedding-3-small"'
real home-embed
ok /v2/models/openai%2Fgpt-4o/infer '{"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"data":["hello"]}],"parameters":{"max_tokens":4}}' '"model_name":"openai/gpt-4o"'
for path in /v2/models/text-embedding-3-small /v2/models/text-embedding-3-small/ready /v2/models/text-embedding-3-small/config; do
    [ "$(ask $path)" = 200 ] || fail "$path: $(cat "$body")"
    grep -q '"name":"text-embedding-3-small"' "$body" || fail "$path: $(cat "$body")"
done
[ "$(ask /v2/models/text-embedding-3-small/stats)" = 200 ] || fail "stats: $(cat "$body")"
grep -q '"name":"text-embedding-3-small".*"inference_count":[1-9]' "$body" || fail "stats: $(cat "$body")"
# Shoal's own
ok /v1/process '{"pipeline":"do-it","input":"turn on the light"}' '"pipeline":"home"'
ok /v1/route '{"route":"gpt-route","input":"hello"}' '"route":"auto"'
[ "$(ask '/readyz?model=gpt-4o-mini')" = 200 ] || fail "readyz: $(cat "$body")"
ok /v1/collections '{"name":"notes","model":"text-embedding-3-small"}' '"model":"home-embed"'

# lists: a row for each, with what it stands for
[ "$(ask /v1/models)" = 200 ] || fail "the list: $(cat "$body")"
python3 - "$body" <<'PY' || fail "the list is wrong: $(cat "$body")"
import json, sys
rows = {m["id"]: m for m in json.load(open(sys.argv[1]))["data"]}
for name, root in {"gpt-4o-mini": "home-chat-s", "openai/gpt-4o": "home-chat-m", "llama3.2:1b": "home-chat-s",
                   "gpt-route": "auto", "gpt-pair": "pair", "gpt-writes": "writes", "whisper-1": "home-ears"}.items():
    row = rows[name]
    assert row["root"] == root and row["object"] == "model", row
    assert {k: v for k, v in row.items() if k not in ("id", "root", "memory_bytes")} == \
        {k: v for k, v in rows[root].items() if k not in ("id", "root", "memory_bytes")}, row
assert "do-it" not in rows and all(m["root"] == n for n, m in rows.items() if n.startswith("home-"))
PY
for name in openai/gpt-4o openai%2Fgpt-4o; do
    [ "$(ask /v1/models/$name)" = 200 ] || fail "$name: $(cat "$body")"
    grep -q '"id":"openai/gpt-4o".*"root":"home-chat-m"' "$body" || fail "$name: $(cat "$body")"
done
[ "$(ask /v1/models/gpt-route)" = 200 ] && grep -q '"id":"gpt-route".*"root":"auto"' "$body" || fail "a route's alias: $(cat "$body")"
[ "$(ask /api/tags)" = 200 ] || fail "tags: $(cat "$body")"
grep -q '"name":"llama3.2:1b","model":"llama3.2:1b"[^}]*"parent_model":"home-chat-s"' "$body" || fail "tags: $(cat "$body")"
[ "$(ask /api/ps)" = 200 ] || fail "ps: $(cat "$body")"
grep -q '"name":"home-chat-s"' "$body" || fail "ps lacks the model: $(cat "$body")"
grep -q '"name":"gpt-4o-mini"' "$body" && fail "an alias is loaded beside its model: $(cat "$body")"

# metrics and the log name the model that answered; the cache is the model's
[ "$(ask /metrics)" = 200 ] || fail "metrics: $(cat "$body")"
grep -q 'shoal_requests_total{endpoint="chat_completions",model="home-chat-s"' "$body" || fail "metrics lack the model"
grep -E 'gpt-|llama3|whisper-1' "$body" | grep -v '^#' && fail "metrics name an alias"
grep -q 'endpoint=chat_completions .*model=home-chat-s alias=gpt-4o-mini' "$log" || fail "the log does not name the alias"
same='"temperature":0,"max_tokens":5,"messages":[{"role":"user","content":"the same"}]'
ok /v1/chat/completions "{\"model\":\"home-chat-s\",$same}" '"model":"home-chat-s"'
grep -qi '^x-shoal-model' "$head" && fail "a header repeats the name: $(cat "$head")"
ok /v1/chat/completions "{\"model\":\"gpt-4o-mini\",$same}" '"model":"gpt-4o-mini"'
grep -qi '^x-shoal-cache: hit' "$head" || fail "the alias has another cache: $(cat "$head")"
for _ in 1 2; do ok /v1/embeddings '{"model":"home-embed","input":"twice"}' '"model":"home-embed"'; done
for want in miss hit; do
    ok /v1/embeddings '{"model":"text-embedding-3-small","input":"twice"}' '"model":"text-embedding-3-small"'
    grep -qi "^x-shoal-cache: $want" "$head" || fail "not a $want: $(cat "$head")"
done

# a key may use an alias as it may use what the alias stands for
key=sk-chat
ok /v1/chat/completions "{\"model\":\"gpt-4o-mini\",$messages}" '"model":"gpt-4o-mini"'
ok /api/chat '{"model":"llama3","stream":false,"options":{"num_predict":4},"messages":[{"role":"user","content":"hello"}]}' '"model":"llama3"'
[ "$(ask /v1/embeddings -d '{"model":"text-embedding-3-small","input":"a"}')" = 403 ] || fail "a key passes its list: $(cat "$body")"
grep -q home-embed "$body" || fail "the refusal does not name the model: $(cat "$body")"
[ "$(ask /v1/models)" = 200 ] || fail "the list: $(cat "$body")"
grep -q '"id":"gpt-4o-mini"' "$body" || fail "the list lacks an alias that the key may use: $(cat "$body")"
grep -qE 'text-embedding-3-small|gpt-route' "$body" && fail "the list has an alias that the key may not use: $(cat "$body")"
[ "$(ask /v1/models/whisper-1)" = 403 ] || fail "a key sees an alias: $(cat "$body")"
[ "$(ask /v2/models/text-embedding-3-small)" = 403 ] || fail "KServe passes the list: $(cat "$body")"
key=sk-wild
[ "$(ask /v1/chat/completions -d "{\"model\":\"gpt-4o-mini\",$messages}")" = 403 ] || fail "a pattern that fits the alias opens the model: $(cat "$body")"
key=sk-root

# the real clients, WebSocket and gRPC
if command -v node >/dev/null; then
    npm_clients aliases.mjs 2>/dev/null
    (cd "$modules" && SHOAL_URL=$url SHOAL_KEY=sk-root SHOAL_PROTO=$OLDPWD/proto SHOAL_WAV=$OLDPWD/$wav timeout 100 node --test --test-reporter=tap aliases.mjs) >"$work/node.log" 2>&1 || {
        grep -A25 '^not ok' "$work/node.log" | grep -vE '^ +(duration_ms|type):' | head -60
        fail "a client failed"
    }
fi

# a reload takes and gives names at once; one with a mistake changes nothing
hup() {
    local before
    before=$(grep -cE 'event=(reloaded|reload_refused)' "$log")
    kill -HUP "$server"
    for _ in $(seq 1000); do
        [ "$(grep -cE 'event=(reloaded|reload_refused)' "$log")" -gt "$before" ] && return
        sleep 0.02
    done
    fail "a SIGHUP was not heard"
}
sed -i 's/^  gpt-4o-mini: home-chat-s/  gpt-5: home-chat-m/; s/^  bare: .*/  bare: home-chat-m/' "$conf"
hup
grep -qE 'key=aliases\.bare from=.*home-chat-s.* to=.*home-chat-m' "$log" || fail "the change is not logged: $(grep event=changed "$log")"
ok /v1/chat/completions "{\"model\":\"gpt-5\",$messages}" '"model":"gpt-5"'
real home-chat-m
ok /v1/chat/completions "{\"model\":\"bare\",$messages}" '"model":"bare"'
real home-chat-m
[ "$(ask /v1/chat/completions -d "{\"model\":\"gpt-4o-mini\",$messages}")" = 404 ] || fail "an alias that is gone is served: $(cat "$body")"
grep -q 'these do ."generate.": home-chat-s, home-chat-m, pair, auto, writes; .*aliases' "$body" || fail "the 404 does not say what to do: $(cat "$body")"
sed -i 's/^  gpt-5: .*/  gpt-5: home-chat-x/' "$conf"
hup
grep -q "aliases.gpt-5: 'home-chat-x' is no model, ensemble, route or pipeline of this file; did you mean 'home-chat-" "$log" || fail "the mistake is not named: $(grep reload_refused "$log")"
ok /v1/chat/completions "{\"model\":\"gpt-5\",$messages}" '"model":"gpt-5"'
"$SHOAL_BIN" config check "$conf" >"$work/check" 2>&1 && fail "config check takes it"
grep -qE "c.yaml:[0-9]+: aliases.gpt-5: " "$work/check" || fail "config check: $(cat "$work/check")"

# a model that is loaded by request cannot take an alias's name
sed -i 's/^  gpt-5: .*/  gpt-5: home-chat-m/' "$conf"
[ "$(ask /v1/models/load -d "{\"model\":\"$PWD/models/home-chat-s.gguf\",\"name\":\"whisper-1\"}")" = 409 ] || fail "a loaded model takes the alias's name: $(cat "$body")"
grep -q "'whisper-1' is an alias" "$body" || fail "the refusal: $(cat "$body")"

# nor is an alias deleted
[ "$(ask /v1/models/whisper-1 -X DELETE)" = 409 ] || fail "an alias is deleted: $(cat "$body")"
grep -q "'whisper-1' is an alias of shoal.yaml: take it out there" "$body" || fail "the refusal: $(cat "$body")"
[ "$(ask /api/delete -X DELETE -d '{"model":"whisper-1:latest"}')" = 409 ] || fail "an alias is deleted by /api: $(cat "$body")"
[ "$(ask /api/embed -d '{"model":"home-chat-s","input":"a"}')" = 400 ] || fail "a chat model embeds: $(cat "$body")"
grep -q 'which is asked at /api/chat or /api/generate"' "$body" || fail "OpenAI's path to a client of Ollama: $(cat "$body")"

# Ollama's clients write the tag at every API.
[ "$(ask /v1/completions -d '{"model":"home-chat-s:latest","prompt":"a","max_tokens":1,"temperature":0}')" = 200 ] || fail "NAME:latest: $(cat "$body")"
grep -q '"model":"home-chat-s:latest"' "$body" || fail "NAME:latest is answered by $(cat "$body")"
for path in /v1/models/home-chat-s:latest /v1/models/pair:latest '/readyz?model=home-embed:latest'; do
    [ "$(ask "$path")" = 200 ] || fail "$path: $(cat "$body")"
done
[ "$(ask /v1/models/load -d '{"model":"home-embed:latest"}')" = 200 ] || fail "a load of NAME:latest: $(cat "$body")"
[ "$(ask /v1/models/unload -d '{"model":"nobody:latest"}')" = 404 ] && grep -q "'nobody'" "$body" || fail "an unload of NAME:latest: $(cat "$body")"
route=$(sed -n '/^routes:/,/^[a-q]/ s/.*name: \([a-z-]*\).*/\1/p' "$conf" | head -1) pipeline=$(sed -n '/^pipelines:/,$ s/^ *- *{*name: \([a-z-]*\).*/\1/p' "$conf" | head -1)
[ "$(ask /v1/route -d "{\"route\":\"$route:latest\",\"input\":\"a\"}")" = 200 ] || fail "the route $route:latest: $(cat "$body")"
[ "$(ask /v1/process -d "{\"pipeline\":\"$pipeline:latest\",\"input\":\"turn off the kitchen light\"}")" = 200 ] || fail "the pipeline $pipeline:latest: $(cat "$body")"
ask /v1/completions -d '{"model":"home-chat-s:other","prompt":"a","max_tokens":1}' >/dev/null
grep -q 'has no adapter' "$body" || fail "NAME:other: $(cat "$body")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
