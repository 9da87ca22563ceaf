#!/usr/bin/env bash
# A client comes back to another gateway with Last-Event-ID and gets the rest: behind any event, when its gateway was
# killed, and not when the request, the model's file or the id is another.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "node is not installed"
serve_chat() { printf 'manifest: %s/models/models.json\nmodels:\n  - name: home-chat-s\n%s' "$PWD" "$2" >"$work/$1.yaml"; }
serve_chat chat ''
sed "s|name: home-chat-s|name: home-chat-s\n    path: $PWD/models/home-chat-m.gguf|" "$work/chat.yaml" >"$work/replaced.yaml"

start_shoal "$work/chat.yaml"
first=$url first_pid=$server
trap 'end $first_pid; cleanup' EXIT
start_shoal "$work/chat.yaml"
second=$url
saw=$(node tests/node/resumed.mjs "$first" "$second" home-chat-s) || fail "$saw"

ask() { curl -s -o "$work/answer" -w '%{http_code}' "$1/v1/chat/completions" -H 'content-type: application/json' ${3:+-H "last-event-id: $3"} \
    -d "{\"model\":\"home-chat-s\",\"stream\":true,\"max_tokens\":20,\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}"; }
[ "$(ask "$first" hello)" = 200 ] || fail "no answer: $(cat "$work/answer")"
id=$(sed -n 's/^id: //p' "$work/answer" | sed -n 3p)
[ "$(ask "$second" hello "$id")" = 200 ] || fail "not resumed: $(cat "$work/answer")"
[ "$(ask "$second" goodbye "$id")" = 409 ] || fail "another request was taken for this one"
grep -q other_request "$work/answer" || fail "what is wrong was not said: $(cat "$work/answer")"
[ "$(ask "$second" hello "x${id#?}")" = 400 ] || fail "a forged id was taken"
grep -q 'without Last-Event-ID' "$work/answer" || fail "what to do was not said: $(cat "$work/answer")"
curl -s "$second/metrics" | grep -q '^shoal_streams_resumed_total{model="home-chat-s"} [1-9]' || fail "no metric of resumed streams"

killed=$(node tests/node/resumed.mjs "$first" "$second" home-chat-s "$first_pid") || fail "$killed"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
start_shoal "$work/replaced.yaml"
[ "$(ask "$url" hello "$id")" = 409 ] || fail "another model went on with the answer: $(cat "$work/answer")"
grep -q model_replaced "$work/answer" || fail "what is wrong was not said: $(cat "$work/answer")"
stop_shoal
echo "$saw; $killed"
