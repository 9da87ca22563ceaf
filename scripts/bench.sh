#!/usr/bin/env bash
# Measure this machine and write bench/DATE-COMMIT.md: kernels, models, the home cluster over HTTP.
#
#   make bench            or: scripts/bench.sh [ROUNDS]
#
# The cluster's scenarios run ROUNDS times (3), one after the other, so that a noisy minute hits all of
# them; the table shows each round.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}
bin=${SHOAL_BIN:-$PWD/build/shoal}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
git diff --quiet HEAD 2>/dev/null || commit=$commit-modified
out=bench/$(date -u +%Y-%m-%d)-$commit.md
source scripts/serving.sh
trap 'echo "bench: line $LINENO failed; $out is not complete" >&2' ERR

say() { echo "$@" | tee -a "$out"; }
block() {
    say '```'
    "$@" 2>&1 | tee -a "$out"
    say '```'
}
pids_rss_mb() {
    local total=0 kb
    for pid in "$server" $(pgrep -P "$server"); do
        kb=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
        total=$((total + kb))
    done
    echo $((total / 1024))
}

: >"$out"
say "# Shoal $("$bin" version | head -1 | cut -d' ' -f2), commit $commit"
say
say "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | sed 's/^ //'), $(nproc) cores, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(. /etc/os-release && echo "$PRETTY_NAME"), $(date -u +'%Y-%m-%d %H:%M UTC')."
say "Load average before: $(cut -d' ' -f1-3 /proc/loadavg). The machine is virtual and noisy: compare rows of one run."
say
say "## Kernels"
block "$bin" bench
say
say "## Models in process"
for m in home-chat-s home-chat-m home-intent home-embed; do
    for t in 1 $(nproc); do
        say
        say "$m, $t thread(s):"
        block "$bin" bench "$m" --threads "$t"
        [ "$t" = "$(nproc)" ] && break
    done
done
say
say "## Home cluster"
say
starts=()
for _ in 1 2 3 4 5; do
    begin=$(date +%s%N)
    serving_start shoal.yaml
    starts+=($((($(date +%s%N) - begin) / 1000000)))
    idle=$(pids_rss_mb)
    [ ${#starts[@]} -eq 5 ] || serving_stop
done
say "Cold start, process start to ready, five times: ${starts[*]} ms."
say "Resident memory of all processes, idle: $idle MB."
for r in $(seq "$rounds"); do
    say
    say "Round $r:"
    block "$bin" bench --url "$url"
done
say
say "Resident memory of all processes, after the load: $(pids_rss_mb) MB."
serving_stop
echo "written to $out"
