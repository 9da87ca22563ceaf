#!/usr/bin/env bash
# What a token costs alone and in a vote, on this machine:
#
#   scripts/vote_gap.sh [RUNS]
#
# Replies of 32 and of 232 tokens, one at a time, each member and each vote taking turns; a token costs the difference over
# 200, so that prompts and HTTP do not count: of the medians of RUNS [15], and of the least times, which a busy machine disturbs
# the least. The gap is what a token of the vote takes longer than one of its slowest member.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-15}
bin=build/shoal
. scripts/serving.sh
work=$(mktemp -d)
trap 'serving_done; rm -rf "$work"' EXIT
at=$PWD/models
cat >"$work/shoal.yaml" <<EOF
manifest: $at/models.json
cache: {mb: 0}
log: {level: warn}
models: [{name: home-chat-s}, {name: home-chat-m}, {name: twin, path: $at/home-chat-s.gguf}]
ensembles:
  - {name: vote-s-s, kind: vote, members: [{model: home-chat-s}, {model: twin}]}
  - {name: vote-s-m, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
EOF
serving_start "$work/shoal.yaml"

ms() { # MODEL TOKENS
    curl -s -o "$work/answer" -w '%{time_total}\n' "$url/v1/chat/completions" -d '{"model":"'"$1"'","temperature":0,"ignore_eos":true,
        "max_tokens":'"$2"',"messages":[{"role":"user","content":"tell me everything about the lamps"}]}' | awk '{print $1 * 1000}'
    grep -q '"completion_tokens":'"$2" "$work/answer" || { echo "no reply of $2 tokens: $(cat "$work/answer")" >&2; exit 1; }
}
at_rank() { sort -g "$work/$1" | awk -v share="$2" '{v[NR] = $1} END {print v[int((NR - 1) * share) + 1]}'; }
token() { echo "$(at_rank "$1.232" "$2") $(at_rank "$1.32" "$2")" | awk '{print ($1 - $2) / 200}'; }

names='home-chat-s home-chat-m vote-s-s vote-s-m'
for run in $(seq 0 "$runs"); do # the first one warms up
    for name in $names; do
        for n in 32 232; do
            took=$(ms $name $n)
            [ "$run" = 0 ] || echo "$took" >>"$work/$name.$n"
        done
    done
done

row() { printf '%-12s %10.3f %10.3f\n' "$1" "$2" "$3"; }
gap() { echo "$(token "$1" "$3") $(token "$2" "$3")" | awk '{print $1 - $2}'; }
echo "ms a token       MEDIAN      LEAST"
for name in $names; do row $name "$(token $name 0.5)" "$(token $name 0)"; done
row "gap of s-s" "$(gap vote-s-s home-chat-s 0.5)" "$(gap vote-s-s home-chat-s 0)"
row "gap of s-m" "$(gap vote-s-m home-chat-m 0.5)" "$(gap vote-s-m home-chat-m 0)"
