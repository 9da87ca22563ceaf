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
# say GATEWAY SESSION LEAST TEXT WHAT: a turn, with at least so many tokens from pages. Where a worker was given no core
# for so long that another one went on with the turn, the pages are there; that conversation is judged no more.
moves() { for g in "$a" "$b"; do curl -s "$g/metrics" | sed -n 's/^shoal_moves_total{cause="silent"} //p'; done | awk '{n += $1} END {print n + 0}'; }
moved=()
say() {
    local before n
    before=$(moves)
    n=$(turn "$1" "s$2" "$4, $2") || fail "$n"
    [ "$(moves)" = "$before" ] || moved[$2]=1
    [ -n "${moved[$2]:-}" ] || [ "$n" -ge "$3" ] || fail "$5 did not find the pages of s$2, but $n tokens of them"
}
words="the lamp is bright and the kettle is warm and the door of the garage is open again, says"
for s in 1 2 3 4 5 6; do say "$a" $s 0 "$words" "the first gateway"; done
for s in 1 2 3 4 5 6; do
    say "$b" $s 16 "and then" "the other gateway"
    say "$a" $s 32 "and again" "the first gateway"
done
kill -9 "${workers[1]}"
wait "${workers[1]}" 2>/dev/null
for s in 1 2 3 4 5 6; do say "$a" $s 0 "it is late" "the first gateway"; done
for s in 1 2 3 4 5 6; do say "$b" $s 48 "good night" "after a death the other gateway"; done
[ ${#moved[@]} -le 3 ] || fail "${#moved[@]} of six conversations were moved by a worker's silence: too few are left to judge by"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$((6 - ${#moved[@]})) of six conversations of two gateways stayed with their workers"
