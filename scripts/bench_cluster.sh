#!/usr/bin/env bash
# Measure a cluster on this machine and write bench/runs/DATE-cluster-COMMIT.md: joining, what TLS between machines costs, a
# gateway's memory a remote replica, and, as root, the fault lab's storm and silences.
#
#   scripts/bench_cluster.sh [ROUNDS]      STORM_S=500 SILENCES_S=40: how long the labs run; 0: not
#
# Every row is measured ROUNDS times (5). A gateway and one agent run here, over the loopback interface.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
bin=${SHOAL_BIN:-$PWD/build/shoal}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
git diff --quiet HEAD 2>/dev/null || commit=$commit-modified
out=bench/runs/$(date -u +%Y-%m-%d)-cluster-$commit.md
source scripts/serving.sh
work=$(mktemp -d)
agent=
trap 'agent_stop; serving_done; rm -rf "$work"' EXIT
trap 'echo "bench_cluster: line $LINENO failed; $out is not complete" >&2' ERR

say() { echo "$@" | tee -a "$out"; }
load() { cut -d' ' -f1 /proc/loadavg; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# gateway MODELS: one with a CA, whose control-plane listener is $control; it is asked at $url.
gateway() {
    cat >"$work/gateway.yaml" <<YAML
manifest: $PWD/models/models.json
cluster: {listen: "127.0.0.1:0", name: boss, state: $work/ca}
cache: {mb: 0}
models: $1
YAML
    serving_start "$work/gateway.yaml"
    control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$serving_log" | head -1)
}
# join MODELS [ARGS...]: a machine that has never been here, with these models of its own; "": it has none.
join() {
    local own=(-c "$work/pi.yaml")
    [ -n "$1" ] || own=()
    rm -rf "$work/pi"
    printf 'manifest: %s\nmodels: %s\n' "$PWD/models/models.json" "$1" >"$work/pi.yaml"
    token=$("$bin" token create --state "$work/ca" --name pi --replace)
    begun=$(now_ms)
    "$bin" agent --state "$work/pi" -l 127.0.0.1:0 --join "$control" --token "$token" --name pi "${own[@]}" \
        "${@:2}" >/dev/null 2>"$work/agent.log" &
    agent=$!
}
agent_stop() {
    [ -z "$agent" ] || { kill "$agent"; wait "$agent"; } 2>/dev/null || true
    agent=
}
ask() { curl -s -o /dev/null -w '%{http_code}' "$url/v1/classify" -d '{"model":"home-intent","input":"turn off the light"}'; }
until_answered() {
    local give_up=$((SECONDS + 60))
    until [ "$(ask)" = 200 ]; do
        [ $SECONDS -lt $give_up ] || { echo "no answer in 60 s: $(tail -3 "$work/agent.log")" >&2; return 1; }
        sleep 0.002
    done
}
n_ready() { curl -s "$url/readyz" | grep -o '"id":"pi/home-intent/[0-9]*","model":"home-intent","state":"ready"' | wc -l; }
heap_kb() { awk '/^RssAnon/ { print $2 }' "/proc/$(pgrep -P "$server" -x shoal-gateway)/status"; }

# joined NAME GATEWAY_MODELS OWN_MODELS [ARGS...]: from the start of `shoal agent --join` to the first answer.
joined() {
    local times=()
    for _ in $(seq "$rounds"); do
        gateway "$2"
        join "$3" "${@:4}"
        until_answered
        times+=($(($(now_ms) - begun)))
        agent_stop
        serving_stop
    done
    say "| $1 | $(median "${times[@]}") | ${times[*]} | $(load) |"
}

: >"$out"
say "# A cluster, commit $commit"
say
say "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | sed 's/^ //'), $(nproc) cores, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(. /etc/os-release && echo "$PRETTY_NAME"), $(date -u +'%Y-%m-%d %H:%M UTC')."
say
"$bin" ca init --state "$work/ca" >/dev/null

say "## From \`shoal agent --join\` to the first answer"
say
say "| the model | median ms | each | load |"
say "|---|---|---|---|"
joined "its own, file present" '[{name: home-embed}]' '[{name: home-intent}]'
joined "its own, without measuring the machine" '[{name: home-embed}]' '[{name: home-intent}]' --no-measure
joined "placed by the gateway, file present" '[{name: home-intent, place: {nodes: [pi]}}]' ''

say
say "## A unary call: a worker here (Unix socket) and one of another machine (TCP, mutual TLS, relay)"
say
say "| call | here p50 ms | there p50 ms | difference of medians | load |"
say "|---|---|---|---|---|"
p50() { "$bin" bench --url "$url" --only "$1" --json | grep -o '"p50_ms":[0-9.]*' | cut -d: -f2; }
for call in overhead intent; do
    here=() there=()
    for _ in $(seq "$rounds"); do
        gateway '[{name: home-intent}]'
        here+=("$(p50 $call)")
        serving_stop
        gateway '[{name: home-embed}]'
        join '[{name: home-intent}]' --no-measure
        until_answered
        there+=("$(p50 $call)")
        agent_stop
        serving_stop
    done
    a=$(median "${here[@]}") b=$(median "${there[@]}")
    say "| $call | $a (${here[*]}) | $b (${there[*]}) | $(awk "BEGIN { printf \"%.3f\", $b - $a }") | $(load) |"
done

say
say "## A gateway's memory"
say
say "| remote replicas | anonymous resident KB |"
say "|---|---|"
for n in 1 64; do
    gateway '[{name: home-embed}]'
    join "[{name: home-intent, replicas: $n}]" --no-measure
    give_up=$((SECONDS + 120))
    until [ "$(n_ready)" = "$n" ]; do
        [ $SECONDS -lt $give_up ] || { echo "of $n replicas $(n_ready) came up" >&2; exit 1; }
        sleep 0.1
    done
    for _ in $(seq 2000); do ask >/dev/null; done
    sleep 3
    kb[n]=$(heap_kb)
    say "| $n | ${kb[n]} |"
    agent_stop
    serving_stop
done
say
say "$(((kb[64] - kb[1]) / 63)) KB a replica, each with its own TLS connection, after 2,000 calls and some polls."

if [ "$(id -u)" = 0 ]; then
    for lab in "storm ${STORM_S:-500}" "silences ${SILENCES_S:-40}"; do
        read -r name seconds <<<"$lab"
        [ "$seconds" != 0 ] || continue
        before=$(load)
        "$bin" lab run "$name" --seconds "$seconds" --out "$work/$name" >/dev/null 2>"$work/lab.err" || [ $? = 3 ] ||
            { tail -1 "$work/lab.err" >&2; false; }
        say
        say "## \`shoal lab run $name --seconds $seconds\`; load before and after: $before, $(load)"
        say
        say '```'
        sed '/^faults$/,$d' "$work/$name/report.txt" | tee -a "$out"
        say '```'
    done
fi
echo "written to $out"
