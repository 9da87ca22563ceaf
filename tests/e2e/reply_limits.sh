#!/usr/bin/env bash
# A reply that takes longer than reply_ms ends with what there is, in every API, and is not kept as an answer.
source "$(dirname "$0")/lib.sh"
write() {
    cat >"$work/c.yaml" <<EOF
deadline_ms: 1 # of all but replies
$1
manifest: $PWD/models/models.json
models: [{name: home-chat-s}]
EOF
}
write "reply_ms: 20"
start_shoal "$work/c.yaml"
# It has more tokens than 20 ms are enough for, on any machine.
more='"temperature":0,"max_tokens":1900,"logit_bias":{"2":-100}'
ask() { curl -s -m 120 -D "$work/head" "$url$1" -H 'content-type: application/json' -d "$2" >"$work/body" || fail "no answer to $1"; }
tokens() { sed -n 's/.*"completion_tokens":\([0-9]*\).*/\1/p' "$work/body"; }

chat="{\"model\":\"home-chat-s\",$more,\"messages\":[{\"role\":\"user\",\"content\":\"go on\"}]}"
for turn in first second; do
    ask /v1/chat/completions "$chat"
    grep -q '"finish_reason":"length"' "$work/body" || fail "the $turn: $(tail -c 300 "$work/body")"
    [ "$(tokens)" -gt 0 ] && [ "$(tokens)" -lt 1900 ] || fail "the $turn has $(tokens) tokens"
    grep -qi '^x-shoal-cache: hit' "$work/head" && fail "the $turn came from the cache, though it was cut"
done
grep 'endpoint=chat_completions' "$log" | grep -q 'version=[0-9]' || fail "the log does not say which file wrote a reply that was cut"

ask /v1/chat/completions "${chat%\}},\"stream\":true}"
grep -q '"finish_reason":"length"' "$work/body" && grep -q 'DONE' "$work/body" || fail "a stream: $(tail -c 300 "$work/body")"
ask /v1/responses "{\"model\":\"home-chat-s\",\"input\":\"go on\",\"temperature\":0,\"logit_bias\":{\"2\":-100}}"
grep -q '"status":"incomplete"' "$work/body" || fail "a response: $(head -c 300 "$work/body")"
ask /api/chat '{"model":"home-chat-s","stream":false,"messages":[{"role":"user","content":"go on"}],"options":{"temperature":2,"num_predict":1900}}'
grep -qE '"done_reason":"(length|stop)"' "$work/body" || fail "Ollama: $(head -c 300 "$work/body")"

# Read again: the limit counts for new requests at once.
write "reply_ms: 0"
kill -HUP "$server"
for _ in $(seq 600); do grep -q 'key=reply_ms' "$log" && break; sleep 0.1; done
ask /v1/chat/completions "$chat"
[ "$(tokens)" = 1900 ] || fail "without a limit it has $(tokens) tokens: $(tail -c 300 "$work/body")"

# A deadline of the client's is one: 504, and no client tries again by itself.
curl -s -m 120 -D "$work/head" -H 'x-shoal-deadline-ms: 1' -H 'cache-control: no-cache' "$url/v1/chat/completions" -d "$chat" >"$work/body"
grep -q '504' "$work/head" && grep -qi '^x-should-retry: false' "$work/head" || fail "a deadline: $(cat "$work/head" "$work/body")"
stop_shoal

# Limits of a route, in place of the server's: for replies whole and streamed, in each API, by an alias and in a pipeline.
write "token_gap_ms: 0"
cat >>"$work/c.yaml" <<EOF
routes:
  - {name: short, reply_ms: 20, rules: [{model: home-chat-s}]}
  - {name: outer, rules: [{model: short}]}
  - {name: long, reply_ms: 300, rules: [{model: home-chat-s}]}
  - {name: late, first_token_ms: 1, rules: [{model: home-chat-s}]}
aliases: {gpt-short: short}
pipelines:
  - {name: tell, stages: [{name: say, kind: generate, model: short, max_tokens: 1900, temperature: 1}]}
EOF
start_shoal "$work/c.yaml"
cut() { grep -q "$1" "$work/body" || fail "$2: $(tail -c 300 "$work/body")"; }
for name in short gpt-short; do
    ask /v1/chat/completions "${chat/home-chat-s/$name}"
    cut '"finish_reason":"length"' "$name"
    [ "$(tokens)" -gt 0 ] && [ "$(tokens)" -lt 1900 ] || fail "$name gives $(tokens) tokens"
    named=${chat/home-chat-s/$name}
    ask /v1/chat/completions "${named%\}},\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
    cut '"finish_reason":"length"' "a stream of $name"
    cut 'DONE' "a stream of $name"
    [ "$(tokens)" -gt 0 ] && [ "$(tokens)" -lt 1900 ] || fail "a stream of $name has $(tokens) tokens"
done
ask /v1/responses "{\"model\":\"short\",\"input\":\"go on\",\"temperature\":0,\"logit_bias\":{\"2\":-100}}"
cut '"status":"incomplete"' "a response"
ask /v1/completions "{\"model\":\"short\",\"prompt\":\"go on\",$more}"
cut '"finish_reason":"length"' "a completion"
curl -s -m 120 -H 'x-shoal-deadline-ms: 100000' "$url/v1/process" -d '{"pipeline":"tell","input":"tell me everything"}' >"$work/body"
cut '"text":"[^"]' "a pipeline"
# The route that is named counts: what it leads to does not change it.
ask /v1/chat/completions "${chat/home-chat-s/outer}"
[ "$(tokens)" = 1900 ] || fail "outer gives $(tokens) tokens: $(tail -c 300 "$work/body")"
# Without a token in time it is a 504 that says why.
long=$(printf 'turn on the light %.0s' $(seq 200))
ask /v1/chat/completions "{\"model\":\"late\",\"messages\":[{\"role\":\"user\",\"content\":\"$long\"}]}"
grep -q '504' "$work/head" && cut 'first_token_ms of the route' "late"
# The same request without limits does not share the reply that is going to be cut.
other=${chat/\"temperature\":0/\"temperature\":2,\"seed\":7} # no token is guessed, so it takes its time
named=${other/home-chat-s/long}
curl -sN -m 120 "$url/v1/chat/completions" -d "${named%\}},\"stream\":true}" >"$work/first" &
first=$!
for _ in $(seq 3000); do grep -q '"content"' "$work/first" && break; sleep 0.01; done
grep -q '"content"' "$work/first" || fail "no token: $(cat "$work/first")"
ask /v1/chat/completions "$other"
wait "$first"
[ "$(tokens)" = 1900 ] || fail "a request without limits has $(tokens) tokens of another's: $(tail -c 300 "$work/body")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server exited with $stopped"
echo "cut by time: what there is, not kept, and whole without the limit"
