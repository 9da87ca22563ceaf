#!/usr/bin/env bash
# Measure this machine and write bench/runs/DATE-home-COMMIT.md: its limits and the kernels, models in this process, the home
# cluster over HTTP. What is written and where it is comes on standard error as it goes.
#
#   make bench            or: scripts/bench.sh [ROUNDS]
#
# The cluster's scenarios run ROUNDS times (3), one after the other, so that a noisy minute hits all of
# them; the table shows each round. BENCH_PARTS="kernels models cluster" leaves out what it does not name, BENCH_OUT
# names another file to write.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}
parts=" ${BENCH_PARTS:-kernels models cluster} "
bin=${SHOAL_BIN:-$PWD/build/shoal}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
git diff --quiet HEAD 2>/dev/null || commit=$commit-modified
out=${BENCH_OUT:-bench/runs/$(date -u +%Y-%m-%d)-home-$commit.md}
cores=$("$bin" version | sed -n 's/^cores: *//p')
threads=(1)
[ "$cores" -eq 1 ] || threads+=("$cores")
source scripts/serving.sh
made=$(mktemp -d)
leave() {
    serving_done
    rm -rf "$made"
}
trap leave EXIT
trap 'echo "bench: line $LINENO failed; $out is not complete" >&2' ERR

# ---- what will be measured, in order: "KIND ARGUMENTS..."

shipped=(home-chat-s home-chat-m home-intent home-embed)
shaped=("llama-135m q8_0" "llama-135m q4_0" "minilm q8_0")
steps=()
part() { [[ $parts == *" $1 "* ]]; }
part kernels && steps+=(kernels)
if part models; then
    for m in "${shipped[@]}"; do for t in "${threads[@]}"; do steps+=("model $m $t"); done; done
    for m in "${shaped[@]}"; do for t in "${threads[@]}"; do steps+=("made $m $t"); done; done
fi
if part cluster; then
    steps+=(starts)
    for r in $(seq "$rounds"); do steps+=("round $r"); done
fi
[ ${#steps[@]} -gt 0 ] || { echo "bench: BENCH_PARTS names none of kernels, models, cluster" >&2; exit 2; }

# ---- how

say() { echo "$@" >>"$out"; }
section() { # once each
    [ "${last_section:-}" = "$1" ] && return
    last_section=$1
    say
    say "## $1"
}
block() {
    say '```'
    "$@" >>"$out" 2>&1
    say '```'
}
# Of the server and the workers it has now; one that leaves meanwhile counts nothing.
pids_rss_mb() {
    local pid
    for pid in "$server" $(pgrep -P "$server" || true); do
        cat "/proc/$pid/status" 2>/dev/null || true
    done | awk '/^VmRSS/ { kb += $2 } END { printf "%.0f", kb / 1024 }'
}

do_kernels() {
    section "Kernels and limits"
    block "$bin" bench
}
do_model() {
    section "Models in process"
    say
    say "$1, $2 thread(s):"
    block "$bin" bench "$1" -d 512 --streams 1,4,16 --threads "$2"
}
do_made() {
    local file=$made/$1-$2.gguf
    section "Models of the usual shapes, random weights"
    [ -f "$file" ] || "$bin" debug make-model --shape "$1" --type "$2" -o "$file" >/dev/null 2>&1
    say
    say "$1 $2, $3 thread(s):"
    block "$bin" bench "$file" -p 128,512 -d 1024 --threads "$3"
}
do_starts() {
    local starts=() begin i
    section "Home cluster"
    for i in 1 2 3 4 5; do
        begin=$(date +%s%N)
        serving_start shoal.yaml
        starts+=($((($(date +%s%N) - begin) / 1000000)))
        [ "$i" -eq 5 ] || serving_stop
    done
    say
    say "Cold start, process start to ready, five times: ${starts[*]} ms."
    say "Resident memory of all processes, idle: $(pids_rss_mb) MB."
}
do_round() {
    say
    say "Round $1:"
    block "$bin" bench --url "$url"
    [ "$1" -eq "$rounds" ] || return 0
    say
    say "Resident memory of all processes, after the load: $(pids_rss_mb) MB."
    serving_stop
}

: >"$out"
say "# Shoal $("$bin" version | head -1 | cut -d' ' -f2), commit $commit"
say
say "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $cores cores, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(. /etc/os-release && echo "$PRETTY_NAME"), $(date -u +'%Y-%m-%d %H:%M UTC')."
say "Load average before: $(cut -d' ' -f1-3 /proc/loadavg). The machine may be noisy: compare rows of one run."
began=$SECONDS n=0
for step in "${steps[@]}"; do
    n=$((n + 1))
    lines=$(wc -l <"$out")
    printf '[%d/%d] %s\n' "$n" "${#steps[@]}" "$step" >&2
    # shellcheck disable=SC2086 # a step's words
    do_$step # "model home-embed 2" is do_model home-embed 2
    tail -n "+$((lines + 1))" "$out"
done
say
say "Load average after: $(cut -d' ' -f1-3 /proc/loadavg)."
echo "bench: $((SECONDS - began)) s, written to $out" >&2
