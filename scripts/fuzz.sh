#!/usr/bin/env bash
# Fuzz every parser for SECONDS each with libFuzzer, AddressSanitizer and UBSan:
#
#   scripts/fuzz.sh 60 [FILTER]
#
# New inputs stay in build/fuzz/corpus; a crash is written to build/fuzz/crashes and fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
filter=${2:-}
command -v clang >/dev/null || { echo "fuzz: clang is needed (Debian: apt-get install clang libclang-rt-14-dev)" >&2; exit 1; }
targets=()
for source in tests/fuzz/fuzz_*"$filter"*.c; do
    [ -e "$source" ] && targets+=("$(basename "$source" .c)")
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target is named like '$filter'" >&2; exit 1; }

mkdir -p build/fuzz/crashes
log=build/fuzz/build.log
{ scripts/configure.sh fuzz && cmake --build build/fuzz -j "$(nproc)" --target "${targets[@]}"; } >"$log" 2>&1 ||
    { tail -40 "$log" >&2; echo "fuzz: the targets do not build, see $log" >&2; exit 1; }

# What failed in one line, and how to see it again: each artifact is one input.
explain() {
    local name=$1 log=$2
    echo "FAIL $name: $(grep -m1 -E '^SUMMARY|runtime error|ERROR: ' "$log" || tail -1 "$log")"
    echo "     log:   $log"
    grep -o 'build/fuzz/crashes/[^ ]*' "$log" | sort -u | sed "s|^|     rerun: build/fuzz/fuzz/$name |"
}

status=0
for name in "${targets[@]}"; do
    log=build/fuzz/$name.log
    mkdir -p "build/fuzz/corpus/$name"
    if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/crashes/$name-" "build/fuzz/corpus/$name" "tests/fuzz/seeds/$name" \
        >"$log" 2>&1; then
        stat() { sed -n "s/^stat::$1: *//p" "$log"; }
        echo "ok   $name: $(stat number_of_executed_units) runs, $(stat new_units_added) new inputs, slowest" \
            "$(stat slowest_unit_time_sec) s"
    else
        explain "$name" "$log"
        status=1
    fi
done
exit $status
