#!/usr/bin/env bash
# Two gateways over the same three workers share conversations through the real Redis: whichever is asked, a turn goes to the
# worker that holds its pages; when that one dies, both go on with the same other one.
source "$(dirname "$0")/lib.sh"
command -v redis-server >/dev/null || skip "redis-server is not installed (scripts/setup.sh --test)"
redis= first= workers=()
trap 'end $redis $first "${workers[@]}"; cleanup' EXIT
redis_port=$(free_port)
redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$work" --save '' >"$work/redis.log" 2>&1 &
redis=$!
for i in 0 1 2; do
    "$SHOAL_BIN" worker --name chat --model "$PWD/models/home-chat-s.gguf" --address "unix:$work/$i.sock" --threads 1 --log-level off &
    workers[i]=$!
done
(umask 077; openssl rand -hex 32 >"$work/keys")
cat >"$work/shoal.yaml" <<CONFIG
sessions: {redis: "redis://127.0.0.1:$redis_port", key_file: $work/keys}
cache: {mb: 0}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
discovery:
  workers:
    - {model: chat, address: "unix:$work/0.sock"}
    - {model: chat, address: "unix:$work/1.sock"}
    - {model: chat, address: "unix:$work/2.sock"}
CONFIG
start_shoal "$work/shoal.yaml"
first=$server a=$url
start_shoal "$work/shoal.yaml"
b=$url
ready() { curl -s "$1/readyz" | tr '{' '\n' | grep '"model":"chat"' | grep -c '"state":"ready"'; }
for _ in $(seq 400); do [ "$(ready "$a")" = 3 ] && [ "$(ready "$b")" = 3 ] && break; sleep 0.05; done
[ "$(ready "$a")" = 3 ] && [ "$(ready "$b")" = 3 ] || fail "three workers are not ready: $(curl -s "$b/readyz")"

# turn GATEWAY SESSION TEXT: how many tokens came from pages, or an error
turn() {
    curl -s -m 30 "$1/v1/chat/completions" -d '{"model":"chat","temperature":0,"max_tokens":12,"ignore_eos":true,"session":"'"$2"'","messages":[{"role":"user","content":"'"$3"'"}]}' |
        python3 -c 'import json,sys; u=json.load(sys.stdin)["usage"]; print(u["prompt_tokens_details"]["cached_tokens"])' || fail "no answer: $2 $3"
}
words="the lamp is bright and the kettle is warm and the door of the garage is open again, says"
for s in 1 2 3 4 5 6; do turn "$a" "s$s" "$words $s" >/dev/null; done
for s in 1 2 3 4 5 6; do
    [ "$(turn "$b" "s$s" "and then, $s")" -ge 16 ] || fail "the other gateway did not find the pages of s$s"
    [ "$(turn "$a" "s$s" "and again, $s")" -ge 32 ] || fail "the first gateway did not find the pages of s$s"
done
kill -9 "${workers[1]}"
wait "${workers[1]}" 2>/dev/null
for s in 1 2 3 4 5 6; do turn "$a" "s$s" "it is late, $s" >/dev/null; done
for s in 1 2 3 4 5 6; do
    [ "$(turn "$b" "s$s" "good night, $s")" -ge 48 ] || fail "after a death the other gateway did not find the pages of s$s"
done
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "six conversations of two gateways stayed with their workers"
