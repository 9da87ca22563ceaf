#!/usr/bin/env bash
# Two gateways share conversations through the real Redis: each goes on with what the other began; bounds, times,
# deletion and keys hold there too; and while Redis is away, requests with a session say so and others are answered.
source "$(dirname "$0")/lib.sh"
command -v redis-server >/dev/null || skip "redis-server is not installed (scripts/setup.sh --test)"
redis=
trap 'end $redis ${first:-}; cleanup' EXIT
redis_port=$(free_port)
start_redis() {
    redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$work" --appendonly yes --appendfsync always \
        --requirepass hunter2 --save '' >"$work/redis.log" 2>&1 &
    redis=$!
    for _ in $(seq 400); do redis ping 2>/dev/null | grep -q PONG && return; sleep 0.05; done
    fail "redis-server does not start: $(tail -3 "$work/redis.log")"
}
redis() { redis-cli --no-auth-warning -a hunter2 -p "$redis_port" "$@"; }
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
ask() { curl -s -m 30 "$1/v1/chat/completions" -d '{"model":"home-chat-s","temperature":0,"max_tokens":8,"ignore_eos":true,"messages":[{"role":"user","content":"'"$3"'"}],"session":"'"$2"'"}'; }
users() { field "$(curl -s "$1/v1/sessions/$2")" '[m["content"] for m in d["messages"] if m["role"]=="user"]'; }
code() { field "$1" 'd["error"]["code"]'; }

(umask 077; openssl rand -hex 32 >"$work/keys")
printf 'sessions: {redis: "redis://:hunter2@127.0.0.1:%s/3", key_file: %s, max_turns: 3, ttl_s: %s}\nmanifest: %s\nmodels: [{name: home-chat-s}]\n' \
    "$redis_port" "$work/keys" 600 "$PWD/models/models.json" >"$work/shoal.yaml"
start_redis
start_shoal "$work/shoal.yaml"
first=$server a=$url
start_shoal "$work/shoal.yaml"
b=$url

ask "$a" room "one zaphodine" >/dev/null
ask "$b" room "two" >/dev/null
want "$(users "$a" room)" "['one zaphodine', 'two']" "what both have said"
want "$(users "$b" room)" "$(users "$a" room)" "what the other has"
for i in 3 4; do ask "$a" room "$i" >/dev/null; done
want "$(users "$b" room)" "['two', '3', '4']" "the bound"
# turns of both at once: none is lost
for i in 1 2 3; do
    if [ $((i % 2)) = 0 ]; then ask "$a" many "m$i" >/dev/null & else ask "$b" many "m$i" >/dev/null & fi
    asking[i]=$!
done
wait "${asking[@]}"
want "$(field "$(curl -s "$a/v1/sessions/many")" 'sorted(m["content"] for m in d["messages"] if m["role"]=="user")')" "['m1', 'm2', 'm3']" "turns at once"
r=$(curl -s "$a/v1/responses" -d '{"model":"home-chat-s","input":"hello","max_output_tokens":4,"temperature":0}')
want "$(curl -s "$b/v1/responses/$(field "$r" 'd["id"]')")" "$r" "a response at the other gateway"
want "$(field "$(curl -s "$b/v1/responses" -d '{"model":"home-chat-s","input":"and","max_output_tokens":4,"previous_response_id":"'"$(field "$r" 'd["id"]')"'"}')" 'd["object"]')" response "one that goes on there"
# nothing readable lies there, and all of it ends
[ "$(redis -n 3 dbsize)" -ge 4 ] || fail "Redis has $(redis -n 3 dbsize) conversations"
grep -qa zaphodine "$work"/appendonly* "$work"/appendonlydir/* 2>/dev/null && fail "what was said can be read in Redis"
for key in $(redis -n 3 --raw keys '*'); do
    left=$(redis -n 3 ttl "$key")
    [ "$left" -gt 0 ] && [ "$left" -le 600 ] || fail "$key ends in $left s"
done
# keys
openssl rand -hex 32 >>"$work/keys"
users "$a" room >/dev/null
sed -i 1d "$work/keys"
want "$(users "$b" room)" "['two', '3', '4']" "with the second key alone"
want "$(field "$(curl -s -X DELETE "$a/v1/sessions/room")" 'd["deleted"]')" True "deletion"
want "$(code "$(curl -s "$b/v1/sessions/room")")" session_not_found "what the other has deleted"

# Redis dies, and comes back with all that was acknowledged
ask "$a" crash "before" | grep -q finish_reason || fail "no answer"
kill -9 "$redis"; wait "$redis" 2>/dev/null; redis=
want "$(code "$(ask "$a" crash "while")")" sessions_unavailable "a session without Redis"
curl -s "$a/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":4,"messages":[{"role":"user","content":"hi"}]}' | grep -q finish_reason ||
    fail "chat does not answer without Redis"
start_redis
want "$(users "$b" crash)" "['before']" "what Redis had acknowledged"
ask "$b" crash "after" | grep -q finish_reason || fail "no answer after Redis came back"
want "$(users "$a" crash)" "['before', 'after']" "the other gateway after Redis came back"
# Redis stands still: a crowd is told so together, not one after the other, a deadline holds, and others are answered
kill -STOP "$redis"
crowd=()
for i in $(seq 16); do
    ask "$a" crash "crowd $i" >"$work/crowd.$i" &
    crowd+=($!)
done
want "$(code "$(curl -s -m 30 -H 'x-shoal-deadline-ms: 300' "$a/v1/chat/completions" -d '{"model":"home-chat-s","session":"late","messages":[{"role":"user","content":"hi"}]}')")" \
    deadline_exceeded "a deadline while Redis stands still"
curl -s -m 30 "$a/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}' | grep -q finish_reason ||
    fail "chat does not answer while Redis stands still"
wait "${crowd[@]}"
for i in $(seq 16); do want "$(code "$(cat "$work/crowd.$i")")" sessions_unavailable "request $i of a crowd while Redis stands still"; done
kill -CONT "$redis"
ask "$a" crash "again" | grep -q finish_reason || fail "no answer after Redis went on"
grep -q hunter2 "$log" && fail "the password is in the log"
stop_shoal
kill "$first"; wait "$first"
echo ok
