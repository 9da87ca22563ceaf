#!/usr/bin/env bash
# Two gateways without etcd: the machine of the one that is killed goes on at the other, where another machine joins
# meanwhile in vain. When the first is back, it goes home: not under a stream, but when that is over.
source "$(dirname "$0")/lib.sh"
declare -A pids=() urls=() control=()
end_all() {
    end "${pids[@]}"
    cleanup
}
trap end_all EXIT
until_true() {
    local what=$1
    shift
    for _ in $(seq 800); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass: $(tail -n 8 "$work"/{a,b,pi}.log)"
}
gateway() { # NAME MODELS
    cat >"$work/$1.yaml" <<YAML
cluster: {listen: "${control[$1]}", name: $1, state: $work/$1}
cache: {mb: 0}
manifest: $PWD/models/models.json
models: [$2]
YAML
    "$SHOAL_BIN" serve -c "$work/$1.yaml" --port "${urls[$1]##*:}" >"$work/$1.out" 2>>"$work/$1.log" &
    pids[$1]=$!
    for _ in $(seq 400); do
        curl -s "${urls[$1]}/healthz" | grep -q ok && return
        kill -0 "${pids[$1]}" 2>/dev/null || fail "$1 ended: $(tail -3 "$work/$1.log")"
        sleep 0.05
    done
    fail "$1 does not listen"
}
urls=([a]=http://127.0.0.1:$(free_port) [b]=http://127.0.0.1:$(free_port 1))
control=([a]=127.0.0.1:$(free_port 2) [b]=127.0.0.1:$(free_port 3))
agent() {
    "$SHOAL_BIN" agent --state "$work/$1" --no-measure -l 127.0.0.1:0 "${@:2}" >"$work/$1.out" 2>>"$work/$1.log" &
    pids[$1]=$!
}
token() { "$SHOAL_BIN" token create --state "$work/a" "$@"; }
worker() { pgrep -P "${pids[pi]}" -f 'shoal worker'; }
is_at() { sed -n 's/.*component=attach event=attached.* gateway=\([^ ]*\).*/\1/p' "$work/pi.log" | tail -1 | grep -qx "$1"; }
chats() {
    curl -s -m 20 "$1/v1/chat/completions" -d '{"model":"chat","max_tokens":4,"messages":[{"role":"user","content":"hi"}]}' |
        grep -q '"content"'
}

"$SHOAL_BIN" ca init --state "$work/a" >/dev/null
chat="{name: chat, path: $PWD/models/home-chat-s.gguf, place: {nodes: [pi]}}"
gateway a "$chat"
"$SHOAL_BIN" agent --state "$work/b" --join "${control[a]}" --token "$(token --role gateway --name b)" --name b >/dev/null || fail "b does not join"
gateway b "{name: home-intent}"
agent pi --join "${control[b]},${control[a]}" --token "$(token --name pi)" --name pi # b passes it on to a
until_true "pi is attached to b" is_at b
kill "${pids[pi]}"
wait "${pids[pi]}" 2>/dev/null
spare=$(token --name cat)
agent pi --join "${control[a]}" # without a token: it has joined, and goes elsewhere
until_true "pi is attached to a" is_at a
serves() { worker | grep -q .; }
until_true "pi serves chat" serves
until_true "a chats" chats "${urls[a]}"
until_true "pi has heard of b" grep -qx "b ${control[b]}" "$work/pi/gateways"
before=$(worker)

kill -9 "${pids[a]}"
wait "${pids[a]}" 2>/dev/null
until_true "pi is attached to b" is_at b
until_true "b chats with pi" chats "${urls[b]}"
"$SHOAL_BIN" agent --state "$work/cat" --join "${control[b]}" --token "$spare" --name cat >"$work/cat.out" 2>&1 && fail "cat joined without the CA"
grep -q "this gateway has no CA, and the one that has, at ${control[a]}, does not answer now" "$work/cat.out" || fail "$(cat "$work/cat.out")"

# One stream after the other, of several at once: pi is never without one.
touch "$work/busy"
streams() {
    while [ -e "$work/busy" ]; do
        curl -sN -m 120 "${urls[b]}/v1/chat/completions" -d '{"model":"chat","stream":true,"max_tokens":1500,"temperature":2,
            "seed":'"$RANDOM"',"messages":[{"role":"user","content":"say a lot about lights"}]}' | grep -c DONE
    done >"$work/stream.$1"
}
for i in 1 2 3 4; do
    streams $i &
    pids[stream$i]=$!
done
gateway a "$chat"
b_is_back() { tac "$work/a.log" | sed '/component=control event=listening/q' | grep -q 'event=node_attached node=b'; }
until_true "b follows a again" b_is_back
sleep 13 # longer than a machine rests before it goes home
is_at b || fail "pi went home under a stream"
rm "$work/busy"
for i in 1 2 3 4; do
    wait "${pids[stream$i]}"
    [ "$(sort -u "$work/stream.$i")" = 1 ] || fail "streams were cut: $(sort "$work/stream.$i" | uniq -c)"
done
until_true "pi goes home" is_at a
until_true "a chats again" chats "${urls[a]}"
[ "$(worker)" = "$before" ] || fail "the worker was started again: $before, now $(worker)"
agent cat --join "${control[b]}" --token "$spare" --name cat
until_true "cat joins at b, with the token that was refused" grep -q "^attached as cat" "$work/cat.out"
echo "a machine went to the other gateway, and home when nobody there needed it"
