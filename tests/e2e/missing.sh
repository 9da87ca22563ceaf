#!/usr/bin/env bash
# Models that no machine may have: /readyz names them with the placement's reason, requests for them fail at once in
# every dialect instead of waiting for their deadline, and lists show them. With a label that no machine has, with too
# little memory, and with the only machine of a model lost, whose return mends it.
source "$(dirname "$0")/machines.bash"

ready() { curl -s -o "$work/ready.json" -w '%{http_code}' "$url/readyz${1:+?model=$1}"; }
# want STATUS TEXT [MODEL]
want() {
    local status
    status=$(ready "${3:-}")
    [ "$status" = "$1" ] && grep -qF "$2" "$work/ready.json" || fail "/readyz ${3:-}: $status $(cat "$work/ready.json"), wanted $1 and $2"
}
# shellcheck disable=SC2329
is() { [ "$(ready "$2")" = "$1" ] && grep -qF "$3" "$work/ready.json"; }
# post PATH BODY: the answer with its head, never after the deadline (30 s)
post() { curl -s -i -m 25 "$url$1" -d "$2" || fail "$1 does not answer before its deadline"; }

make_ca
cat >"$work/c.yaml" <<YAML
manifest: $PWD/models/models.json
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
deadline_ms: 30000
models:
  - {name: home-intent}
  - {name: home-embed, place: {labels: [nowhere]}}
  - {name: home-chat-s, place: {nodes: [pi]}}
  - {name: home-chat-m, kv_mb: 1000000}
  - {name: spare, path: $PWD/models/home-chat-s.gguf, place: {labels: [nowhere]}, fallback: [home-chat-s]}
pipelines:
  - {name: both, stages: [{name: intent, kind: classify, model: home-intent}, {name: say, kind: generate, model: home-chat-s}]}
  - {name: one, stages: [{name: intent, kind: classify, model: home-intent}, {name: say, kind: generate, model: home-chat-s, optional: true}]}
  - {name: two, stages: [{name: say, kind: generate, model: spare}]}
routes:
  - {name: any, rules: [{model: home-chat-m}], fallback: [home-chat-s]}
ensembles:
  - {name: many, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
YAML
start_shoal "$work/c.yaml"
label='no machine may have it: it lacks a label (boss)'
until_true "the reason of the label" is 503 "" "{\"model\":\"home-embed\",\"reason\":\"$label\"}"
want 503 '{"model":"home-chat-m","reason":"no machine may have it: its memory is taken (boss)"}'
want 503 '{"model":"home-chat-s","reason":"no machine may have it: the model names other nodes (boss); it is not attached (pi)"}'
want 503 "\"model\":\"home-embed\",\"reason\":\"$label\"" home-embed
want 200 '"status":"ready"' home-intent
want 404 "the model 'nobody' does not exist here" nobody
want 503 'home-chat-s: no machine may have it' both
want 200 '"ready"' one
want 503 'no machine may have it' two
want 503 'no machine may have it' any
want 503 'no machine may have it' many

# ---- every dialect says so, at once
embed='{"model": "home-embed", "input": "hello"}'
chat='"model": "home-chat-s", "messages": [{"role": "user", "content": "hello"}]'
post /v1/embeddings "$embed" >"$work/a"
grep -q '^HTTP/1.1 503' "$work/a" && grep -qF "the model home-embed is not served now: $label" "$work/a" || fail "embeddings: $(cat "$work/a")"
grep -qi '^retry-after' "$work/a" && fail "nothing mends a label by itself: $(cat "$work/a")"
for body in "{$chat}" "{$chat, \"stream\": true}"; do
    post /v1/chat/completions "$body" >"$work/a"
    grep -qF "it is not attached (pi)" "$work/a" && grep -qi '^retry-after' "$work/a" || fail "chat: $(cat "$work/a")"
done
post /api/embed "$embed" >"$work/a"
grep -q '^HTTP/1.1 503' "$work/a" && grep -qF "{\"error\":\"the model home-embed is not served now: $label" "$work/a" || fail "Ollama: $(cat "$work/a")"
curl -s -o "$work/a" -w '%{http_code}' "$url/v2/models/home-embed/ready" | grep -qx 400 || fail "KServe: $(cat "$work/a")"
curl -s -o "$work/a" -w '%{http_code}' "$url/v2/models/home-intent/ready" | grep -qx 200 || fail "KServe: $(cat "$work/a")"
curl -s -o "$work/a" -w '%{http_code}' "$url/v2/health/ready" | grep -qx 400 || fail "KServe: $(cat "$work/a")"
post /v1/process '{"pipeline": "both", "input": "turn on the light"}' >"$work/a"
grep -qF "it is not attached (pi)" "$work/a" || fail "pipeline: $(cat "$work/a")"
post /v1/chat/completions '{"model": "any", "messages": [{"role": "user", "content": "hello"}]}' >"$work/a"
grep -q '^HTTP/1.1 503' "$work/a" || fail "route: $(cat "$work/a")"

# ---- lists mark them
curl -s "$url/v1/models" >"$work/a"
grep -qF '{"id":"home-embed","object":"model","created":0,"owned_by":"shoal","state":"missing","reason":"no machine may have it: it lacks a label (boss)"' "$work/a" || fail "models: $(cat "$work/a")"
"$SHOAL_BIN" ps --server "$url" >"$work/a" || fail "ps: $?"
grep -qE '^home-embed +missing +0/0' "$work/a" && grep -qF "  $label" "$work/a" || fail "ps: $(cat "$work/a")"
"$SHOAL_BIN" top --once --server "$url" >"$work/a" || fail "top: $?"
grep -qE "^home-embed +- +missing +no machine may have it" "$work/a" || fail "top: $(cat "$work/a")"

# ---- pi comes, is lost for good, and comes back
start_agent pi --join "$control" --token "$("$SHOAL_BIN" token create --state "$gw")" --name pi
until_true "pi serves" is 200 home-chat-s '"ready"'
want 200 '"ready"' both
want 200 '"ready"' two
want 200 '"ready"' any
post /v1/chat/completions "{$chat, \"max_tokens\": 4}" >"$work/a"
grep -q '^HTTP/1.1 200' "$work/a" || fail "chat: $(cat "$work/a")"
workers=$(pgrep -P "${agents[pi]}")
# shellcheck disable=SC2086
kill -9 "${agents[pi]}" $workers
wait "${agents[pi]}" 2>/dev/null
until_true "pi is missed" is 503 "" 'it is not attached (pi); pi, which served it, is gone'
post /v1/chat/completions "{$chat}" >"$work/a"
grep -qF "it is not attached (pi); pi, which served it, is gone" "$work/a" && grep -qi '^retry-after' "$work/a" || fail "chat: $(cat "$work/a")"
start_agent pi
until_true "pi serves again" is 200 home-chat-s '"ready"'
post /v1/chat/completions "{$chat, \"max_tokens\": 4}" >"$work/a"
grep -q '^HTTP/1.1 200' "$work/a" || fail "chat: $(cat "$work/a")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "models without a machine are named with the reason, and requests for them fail at once"
