#!/usr/bin/env bash
# What a token costs alone and in a vote, on this machine:
#
#   scripts/vote_gap.sh [RUNS]
#
# Replies of 32 and of 232 tokens, one at a time, each of both members and of votes of them taking turns; a token costs the
# difference over 200, so that prompts and HTTP do not count. Medians of RUNS [15]. The gap is what a token of the vote takes
# longer than one of its slowest member. Nothing else should run.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-15}
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server"; rm -rf "$work"' EXIT
at=$PWD/models
cat >"$work/shoal.yaml" <<EOF
manifest: $at/models.json
cache: {mb: 0}
log: {level: warn}
models: [{name: home-chat-s}, {name: home-chat-m}, {name: twin, path: $at/home-chat-s.gguf}]
ensembles:
  - {name: vote-s-m, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
  - {name: vote-s-s, kind: vote, members: [{model: home-chat-s}, {model: twin}]}
EOF
build/shoal serve -c "$work/shoal.yaml" --port 0 >"$work/ready" &
server=$!
for _ in $(seq 200); do
    url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/ready" | head -1) || true
    [ -n "$url" ] && break
    sleep 0.05
done

ms() { # MODEL TOKENS
    curl -s -o "$work/answer" -w '%{time_total}\n' "$url/v1/chat/completions" -d '{"model":"'"$1"'","temperature":0,"ignore_eos":true,
        "max_tokens":'"$2"',"messages":[{"role":"user","content":"tell me everything about the lamps"}]}' | awk '{print $1 * 1000}'
    grep -q '"completion_tokens":'"$2" "$work/answer" || { echo "no reply of $2 tokens: $(cat "$work/answer")" >&2; exit 1; }
}
median() { sort -g "$1" | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }

names='home-chat-s home-chat-m vote-s-s vote-s-m'
for run in $(seq 0 "$runs"); do # the first one warms up
    for name in $names; do
        short=$(ms $name 32)
        long=$(ms $name 232)
        [ "$run" = 0 ] || echo "$short $long" | awk '{print ($2 - $1) / 200}' >>"$work/$name"
    done
done
for name in $names; do printf '%-12s %.3f ms a token\n' $name "$(median "$work/$name")"; done
echo "vote-s-s: $(echo "$(median "$work/vote-s-s") $(median "$work/home-chat-s")" | awk '{printf "%.3f", $1 - $2}') ms over its slowest member"
echo "vote-s-m: $(echo "$(median "$work/vote-s-m") $(median "$work/home-chat-m")" | awk '{printf "%.3f", $1 - $2}') ms over its slowest member"
