#!/usr/bin/env bash
# A model that cannot come back is answered for by its stand-in, which every answer says, and no cache keeps; a stand-in
# that cannot be one is refused with its line.
source "$(dirname "$0")/lib.sh"
cp models/home-chat-m.gguf "$work/large.gguf"
cp models/home-intent.gguf "$work/intent.gguf"
cat >"$work/shoal.yaml" <<YAML
models:
  - name: large
    path: $work/large.gguf
    sha256: $(sha256sum "$work/large.gguf" | cut -d' ' -f1)
    fallback: [small]
  - name: small
    path: $PWD/models/home-chat-s.gguf
  - name: intent
    path: $work/intent.gguf
    fallback: [intent-2]
  - name: intent-2
    path: $PWD/models/home-intent.gguf
pipelines:
  - name: home
    stages:
      - name: intent
        kind: classify
        model: intent
YAML
start_shoal "$work/shoal.yaml"
post() { curl -s -D "$work/head" -o "$work/body" -w '%{http_code}' "$url$1" -H 'content-type: application/json' -d "$2"; }
expect() { grep -q "$1" "$work/$2" || fail "no $1 in: $(cat "$work/$2")"; }
lacks() { ! grep -q "$1" "$work/$2" || fail "$1 in: $(cat "$work/$2")"; }
chat='{"model":"large","temperature":0,"max_tokens":12,"messages":[{"role":"user","content":"hello"}]'
[ "$(post /v1/chat/completions "$chat}")" = 200 ] || fail "no answer: $(cat "$work/body")"
lacks x-shoal-degraded head
lacks degraded body

# The files are no models any more, and their workers die.
for model in large intent; do
    pid=$(curl -s "$url/readyz" | grep -o "\"model\":\"$model\"[^}]*\"pid\":[0-9]*" | grep -o '[0-9]*$')
    echo "no model" >"$work/$model.tmp" && mv "$work/$model.tmp" "$work/$model.gguf"
    kill -9 "$pid"
done
other='{"model":"large","temperature":0,"max_tokens":12,"messages":[{"role":"user","content":"good morning"}]'
for _ in 1 2; do # none of them from a cache
    [ "$(post /v1/chat/completions "$other}")" = 200 ] || fail "no stand-in: $(cat "$work/body")"
    expect '^x-shoal-degraded: large' head
    expect '"degraded":{"wanted":"large","answered_by":"small","why":"[^"]*","confidence":0\.' body
    expect '"model":"large"' body
    lacks 'x-shoal-cache: hit' head
done
[ "$(post /v1/chat/completions "$other,\"stream\":true}")" = 200 ] || fail "no stand-in of a stream: $(cat "$work/body")"
expect '^x-shoal-degraded: large' head
head -1 "$work/body" | grep -q '"degraded":{"wanted":"large"' || fail "the first chunk does not say it: $(head -2 "$work/body")"
lacks '^id: ' body
[ "$(grep -c '"degraded"' "$work/body")" = 2 ] || fail "not said at the end: $(cat "$work/body")"
[ "$(post /v1/classify '{"model":"intent","input":"turn on the light"}')" = 200 ] || fail "$(cat "$work/body")"
expect '^x-shoal-degraded: intent' head
expect '"degraded":{"wanted":"intent","answered_by":"intent-2",.*"confidence":0\.' body
[ "$(post /v1/process '{"pipeline":"home","input":"turn on the light"}')" = 200 ] || fail "$(cat "$work/body")"
expect '^x-shoal-degraded: intent' head
expect '"degraded":{"wanted":"intent","answered_by":"intent-2"' body
[ "$(post /v1/chat/completions "$chat}")" = 200 ] || fail "what was cached is lost: $(cat "$work/body")"
lacks degraded body
sleep 1.1 # /metrics is made once a second
curl -s "$url/metrics" | grep -q '^shoal_degraded_total{model="large",answered_by="small"} 3' || fail "$(curl -s "$url/metrics" | grep degraded)"
stop_shoal

check() { # CONFIG LINES, WHAT IS SAID
    printf 'models:\n%b' "$1" >"$work/bad.yaml"
    "$SHOAL_BIN" serve --check -c "$work/bad.yaml" >"$work/said" 2>&1 && fail "taken: $(cat "$work/bad.yaml")"
    grep -q "$2" "$work/said" || fail "not '$2': $(cat "$work/said")"
}
s="path: $PWD/models/home-chat-s.gguf" i="path: $PWD/models/home-intent.gguf" e="path: $PWD/models/home-embed.gguf"
check "  - name: a\n    $s\n    fallback: [b]\n" "bad.yaml:4: models\[0\].fallback\[0\]: 'b' is not among the models"
check "  - name: a\n    $s\n    fallback: [a]\n" "bad.yaml:4: .*cannot stand in for itself"
check "  - name: a\n    $s\n    fallback: [b, b]\n  - name: b\n    $s\n" "bad.yaml:4: .*already fallback\[0\]"
check "  - name: a\n    $s\n    fallback: [b]\n  - name: b\n    $s\n    fallback: [c]\n  - name: c\n    $s\n    fallback: [a]\n" "bad.yaml:4: .*stand in for each other"
check "  - name: a\n    $s\n    fallback: [b]\n  - name: b\n    $i\n" "bad.yaml:4: .*'b' is a model to classify"
check "  - name: a\n    $e\n    fallback: [b]\n  - name: b\n    $e\n" "bad.yaml:4: .*vectors of another model"
echo "stand-ins answer and say so"
