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
echo "cut by time: what there is, not kept, and whole without the limit"
