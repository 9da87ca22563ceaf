#!/usr/bin/env bash
# Two machines under load while kill -9 meets their workers and their agents at random: every answer has the bytes of an
# undisturbed run, and none is lost. SHOAL_STORM_SEED and SHOAL_STORM_S (8 s) may be given; a failure prints the former.
source "$(dirname "$0")/machines.bash"
seed=${SHOAL_STORM_SEED:-$((RANDOM + 1))}
RANDOM=$seed

clues() { echo "SHOAL_STORM_SEED=$seed: $(curl -s "$url/readyz"); $(tail -n 5 "$work"/*.log)"; }
# What was said, without when, and how it ended.
stream() {
    local raw=$work/raw.$BASHPID
    curl -s -m 120 "$url/v1/chat/completions" -d "{\"model\":\"chat\",\"stream\":true,\"max_tokens\":$2,\"temperature\":1,
        \"seed\":$3,\"ignore_eos\":true,\"stream_options\":{\"include_usage\":true},
        \"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}" >"$raw"
    sed -n 's/.*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$raw" | tr -d '\n'
    grep -o '"finish_reason":"[a-z_]*"\|"prompt_tokens":[0-9]*\|"completion_tokens":[0-9]*\|\[DONE\]\|"error".*' "$raw"
}
unary() {
    curl -s -m 120 "$url/v1/classify" -d "{\"model\":\"intent\",\"input\":\"$1\"}" | grep -o '"label":"[^"]*","score":[0-9.e-]*\|"error".*'
}
# shellcheck disable=SC2329
ready() { curl -s "$url/readyz" | grep -q "\"id\":\"$1\",\"model\":\"[a-z]*\",\"state\":\"ready\""; }
prompts=("turn on the kitchen light" "is the front door locked?" "make it warmer in the bedroom" "good night")
tokens=(600 1500 1200 1000)

models="models:
  - {name: chat, path: $PWD/models/home-chat-s.gguf, threads: 1"
intent="  - {name: intent, path: $PWD/models/home-intent.gguf, threads: 1"
printf 'cache: {mb: 0}\n%s}\n%s}\n' "$models" "$intent" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
for i in "${!prompts[@]}"; do
    stream "${prompts[$i]}" "${tokens[$i]}" "$i" >"$work/want.$i"
    unary "${prompts[$i]}" >"$work/label.$i"
    [ "$(wc -c <"$work/want.$i")" -gt 400 ] && [ -s "$work/label.$i" ] || fail "alone: $(cat "$work/want.$i" "$work/label.$i")"
done
stop_shoal

"$SHOAL_BIN" ca init --state "$gw" >/dev/null
place="replicas: 2, place: {nodes: [pi, attic]}"
printf 'cluster: {listen: "127.0.0.1:0", name: boss, state: %s}\ncache: {mb: 0}\n%s, %s}\n%s, %s}\n' "$gw" "$models" "$place" \
    "$intent" "$place" >"$work/c.yaml"
start_shoal "$work/c.yaml"
control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
for node in pi attic; do
    join $node
    until_true "$node serves" ready $node/chat/0
    until_true "$node serves both" ready $node/intent/0
done

# Each asks one thing after the other, until the storm is over; what differs is kept.
ask_on() {
    local n=0 i
    while [ ! -e "$work/enough" ]; do
        i=$(((n + $1) % 4))
        stream "${prompts[$i]}" "${tokens[$i]}" "$i" >"$work/got.$1"
        cmp -s "$work/got.$1" "$work/want.$i" || { cp "$work/got.$1" "$work/bad.$1"; echo "prompt $i" >>"$work/bad.$1"; }
        unary "${prompts[$i]}" >"$work/got.$1"
        cmp -s "$work/got.$1" "$work/label.$i" || { cp "$work/got.$1" "$work/bad.$1"; echo "label $i" >>"$work/bad.$1"; }
        n=$((n + 1))
        echo $n >"$work/asked.$1"
    done
}
for k in 1 2 3 4 5 6; do
    ask_on $k &
    asking+=($!)
done

# ---- the storm
kills=0
nodes=(pi attic)
began=$SECONDS
moves() { curl -s "$url/metrics" | awk '/^shoal_moves_total/ {n += $2} END {print n + 0}'; }
# Longer, where chance has only met what rested.
while [ $((SECONDS - began)) -lt "${SHOAL_STORM_S:-8}" ] || { [ "$(moves)" -eq 0 ] && [ $((SECONDS - began)) -lt 60 ]; }; do
    sleep "0.$((RANDOM % 8 + 1))"
    node=${nodes[RANDOM % 2]}
    if [ $((RANDOM % 3)) -gt 0 ]; then # a worker, if one runs just now
        mapfile -t workers < <(pgrep -P "${agents[$node]}" -f 'shoal worker')
        [ ${#workers[@]} -gt 0 ] && kill -9 "${workers[RANDOM % ${#workers[@]}]}" 2>/dev/null && kills=$((kills + 1))
    else
        kill -9 "${agents[$node]}"
        wait "${agents[$node]}" 2>/dev/null
        sleep "0.$((RANDOM % 5))"
        start_agent "$node"
        kills=$((kills + 1))
    fi
done 2>"$work/killed"
touch "$work/enough"
wait "${asking[@]}"
asking=()

cat "$work"/bad.* 2>/dev/null && fail "an answer differs (SHOAL_STORM_SEED=$seed)"
asked=$(cat "$work"/asked.* | awk '{n += $1} END {print n + 0}')
moved=$(moves)
[ "$moved" -gt 0 ] || fail "nothing has moved in $kills kills (SHOAL_STORM_SEED=$seed)"
[ "$asked" -ge 4 ] || fail "only $asked answers (SHOAL_STORM_SEED=$seed)"
for node in pi attic; do until_true "$node is back" ready $node/chat/0; done
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$asked streams and as many unary calls, none lost, all the same, $moved moved, over $kills kills of workers and agents"
