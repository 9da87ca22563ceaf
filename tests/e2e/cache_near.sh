#!/usr/bin/env bash
# Answers to what was asked in other words: which may serve and which may not, whose they are, what happens without the
# embedder, purges, and the audit.
source "$(dirname "$0")/lib.sh"
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat >"$work/c.yaml" <<EOF
api_keys: [sha256:$(sum one), sha256:$(sum two)]
cache:
  mb: 4
  semantic: {model: home-embed, of: [home-chat-m, p], min_similarity: 0.6, audit_share: 1, timeout_ms: 10000}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-embed}, {name: home-chat-s}, {name: home-chat-m}]
pipelines:
  - name: p
    stages: [{name: intent, kind: classify, model: home-intent}]
EOF
start_shoal "$work/c.yaml"

# ask PATH BODY [CURL-ARGS...]: x-shoal-cache of the answer and, behind a slash, x-shoal-cache-near, without numbers
ask() {
    curl -s -m 20 -o "$work/a" -D "$work/h" -H "Authorization: Bearer ${key:-one}" "${@:3}" "$url$1" -d "$2" || fail "$1: no answer"
    tr -d '\r' <"$work/h" | sed -n 's/^x-shoal-cache: \([a-z]*\).*/\1/p; s#^x-shoal-cache-near: \([a-z]*\( [a-z]*\)\{0,1\}\).*#/\1#p' | tr -d '\n' | sed 's/ $//'
}
# chat TEXT [MEMBERS] [CURL-ARGS...]
chat() {
    ask /v1/chat/completions "{\"model\":\"home-chat-m\",\"temperature\":0,\"max_tokens\":16,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]${2:-}}" "${@:3}"
}
want() { [ "$1" = "$2" ] || fail "$3: '$1', wanted '$2' ($(cat "$work/a"))"; }

want "$(chat "turn on the kitchen light")" "miss/none" "the first"
answer=$(grep -o '"content":"[^"]*"' "$work/a")
want "$(chat "turn on the kitchen light")" "hit" "the same again"
want "$(chat "Please turn the kitchen light on!")" "near" "the same in other words"
[ "$(grep -o '"content":"[^"]*"' "$work/a")" = "$answer" ] || fail "another answer than was kept: $(cat "$work/a")"
grep -qi '^x-shoal-cache: near 0\.[0-9]*' "$work/h" || fail "no similarity: $(cat "$work/h")"
want "$(chat "Please turn the kitchen light on!" ',"stream":true')" "near" "streamed"
grep -q 'data: \[DONE\]' "$work/a" || fail "the stream did not end: $(cat "$work/a")"
want "$(chat "turn on the hall light")" "miss/refused words" "another room"
want "$(chat "turn on kitchen light 2")" "miss/refused numbers" "another number"
want "$(chat "turn on the kitchen light, not the fan")" "miss/refused negation" "a negation"
want "$(chat "turn on \\\"the kitchen light\\\"")" "miss/refused quotes" "quoted text"
# Everything but the last words is the same, or it is not looked at.
kind="kindly turn on the kitchen light"
want "$(chat "$kind" ',"top_p":1,"stop":["x"]')" "miss/none" "another stop string"
want "$(chat "$kind" ',"logprobs":true')" "miss" "probabilities"
want "$(chat "$kind" ',"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]')" "miss" "tools"
want "$(chat "$kind" "" -H 'cache-control: no-store')" "" "who wants it fresh"
want "$(chat "$kind" "" -H 'cache-control: only-if-cached')" "" "only what is kept"
grep -q not_cached "$work/a" || fail "a likeness was taken for the thing: $(cat "$work/a")"
messages='"messages":[{"role":"system","content":"x"},{"role":"user","content":"kindly turn on the kitchen light"}]'
want "$(ask /v1/chat/completions "{\"model\":\"home-chat-m\",\"temperature\":0,\"max_tokens\":16,$messages}")" "miss/none" "another system message"
want "$(ask /v1/chat/completions "{\"model\":\"home-chat-m\",\"temperature\":0.5,\"seed\":3,\"max_tokens\":16,$messages}")" "miss" "a draw with a seed"
want "$(ask /v1/chat/completions "{\"model\":\"home-chat-s\",\"temperature\":0,\"max_tokens\":16,$messages}")" "miss" "a model that is not among them"
# One key's questions are nobody else's.
want "$(key=two chat "$kind")" "miss/none" "another key"
want "$(chat "$kind")" "near" "its own key"

# A text that the embedder cannot hold, and a client without time, are passed by alone: the next is looked up at once.
for word in a b c; do
    want "$(chat "$(for _ in $(seq 140); do printf '%s ' "$word"; done)")" "miss/absent embed" "more tokens than the embedder holds"
    want "$(chat "$kind")" "near" "behind a text that is too long"
    chat "turn on the lamp $word" "" -H 'x-shoal-deadline-ms: 1' >/dev/null
    want "$(chat "$kind")" "near" "behind a client without time"
done

# Pipelines act: one lamp is not all lamps, devices and their states are the rest.
p() { ask /v1/process "{\"pipeline\":\"p\",\"input\":\"$1\"${2:-}}"; }
want "$(p "turn the lamp off")" "miss/none" "a pipeline"
want "$(p "please turn the lamp off")" "near" "a pipeline in other words"
want "$(p "turn the lamps off")" "miss/refused words" "one lamp, all lamps"
want "$(p "kindly turn the lamp off" ',"devices":[{"id":"light.a","name":"A","state":"on"}]')" "miss/none" "other devices"

# What is purged is not found; what went out is made anew and compared.
curl -s -X DELETE -H 'Authorization: Bearer one' "$url/v1/cache?model=home-chat-m" | grep -q purged || fail "no purge"
want "$(chat "please turn on the kitchen light")" "miss/none" "after a purge"
for _ in $(seq 400); do
    seen=$(curl -s -H 'Authorization: Bearer one' "$url/v1/cache")
    [[ $seen =~ '"audited":'[1-9] ]] && break
    sleep 0.05
done
[[ $seen =~ '"false_hit_rate":' ]] || fail "nothing was audited: $seen"
grep -q 'event=audited of=home-chat-m' "$log" || fail "no audit in the log"
"$SHOAL_BIN" cache show --url "$url" --key one | grep -q '^likeness: ' || fail "cache show: $("$SHOAL_BIN" cache show --url "$url" --key one)"

# The measure of it: what of a file of pairs would have been served.
measured=$("$SHOAL_BIN" cache measure eval/near-pairs.jsonl --url "$url" --key one --json) || fail "no measure: $measured"
[[ $measured =~ '"pairs":293,"same":110,' ]] || fail "other pairs: $measured"
[[ $measured =~ '"verified_false_hit_rate":0.0' ]] || fail "the rule lets others through: $measured"
echo '{"a":"x","b":"y"}' >"$work/pairs"
"$SHOAL_BIN" cache measure "$work/pairs" --url "$url" --key one 2>&1 | grep -q 'pairs:1: a pair has' || fail "a pair that is none"

# A burst of the same thing in other words, from clients that leave.
for i in $(seq 40); do
    curl -s -m "0.0$((i % 9 + 1))" -o /dev/null -H 'Authorization: Bearer one' "$url/v1/chat/completions" \
        -d "{\"model\":\"home-chat-m\",\"temperature\":0,\"max_tokens\":60,\"messages\":[{\"role\":\"user\",\"content\":\"please tell me story $((i % 4))\"}]}" &
    burst+=($!)
done
wait "${burst[@]}"
want "$(chat "tell me about the moon" ',"stop":["y"]')" "miss/none" "after a burst"

# Without the embedder nothing is found so, and nothing fails.
stop_shoal
sed -i 's/timeout_ms: 10000/timeout_ms: 20/' "$work/c.yaml"
start_shoal "$work/c.yaml"
worker=$(pgrep -P "$server" -f home-embed | head -1)
[ -n "$worker" ] || fail "no worker of home-embed"
kill -STOP "$worker"
want "$(chat "who is there")" "miss/absent embed" "a frozen embedder"
want "$(chat "who is there")" "hit" "by its key it is found"
kill -CONT "$worker" 2>/dev/null
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
# A cross-encoder in place of the words' verdict: its score decides, but numbers are still numbers.
sed -i -e "s#audit_share: 1, timeout_ms: 20#timeout_ms: 10000, verify: {model: judge, min: 0.000001}#" \
    -e "s#{name: home-intent},#{name: home-intent}, {name: judge, path: $PWD/tests/data/hf/cross-encoder-rerank},#" "$work/c.yaml"
start_shoal "$work/c.yaml"
want "$(chat "turn on the kitchen light")" "miss/none" "with a judge"
want "$(chat "switch on the kitchen light")" "near" "what the judge lets pass"
want "$(chat "switch on kitchen light 2")" "miss/refused numbers" "what it is not asked"
stop_shoal
sed -i "s/min: 0.000001/min: 1/" "$work/c.yaml"
start_shoal "$work/c.yaml"
want "$(chat "turn on the kitchen light")" "miss/none" "with a strict judge"
want "$(chat "switch on the kitchen light")" "miss/refused score" "what the judge refuses"
stop_shoal
echo "near answers served where words allow, were refused, audited and missed"
