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
cmake --preset fuzz >/dev/null
targets=()
for source in tests/fuzz/fuzz_*"$filter"*.c; do targets+=("$(basename "$source" .c)"); done
cmake --build build/fuzz -j "$(nproc)" --target "${targets[@]}" >/dev/null
mkdir -p build/fuzz/crashes
status=0
for name in "${targets[@]}"; do
    mkdir -p "build/fuzz/corpus/$name"
    if "build/fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/crashes/$name-" "build/fuzz/corpus/$name" "tests/fuzz/seeds/$name" \
        >"build/fuzz/$name.log" 2>&1; then
        echo "ok   $name: $(grep -o 'stat::number_of_executed_units: *[0-9]*' "build/fuzz/$name.log" | grep -o '[0-9]*$') runs"
    else
        echo "FAIL $name: see build/fuzz/$name.log and build/fuzz/crashes"
        status=1
    fi
done
exit $status
