#!/usr/bin/env bash
# Build one preset and run every test in it:
#
#   tests/run.sh release|asan|tsan|debug [FILTER]     FILTER: part of a test program's name
#
# C tests (cmocka), seeds of the fuzz targets, end-to-end scripts (tests/e2e/*.sh) and Node.js clients
# (tests/node/*.test.mjs). `release` also runs the C tests under both sanitizers unless
# SHOAL_CHECK_SANITIZERS=0. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
filter=${2:-}
[ "$preset" = release ] && dir=build || dir=build/$preset
jobs=${JOBS:-$(nproc)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
failures=() skips=()

cmake --preset "$preset" >"$log" 2>&1 || { cat "$log"; echo "0 passed, 1 failed"; exit 1; }
cmake --build "$dir" -j "$jobs" >"$log" 2>&1 || { tail -60 "$log"; echo "0 passed, 1 failed"; exit 1; }
grep -E 'warning:' "$log" | sort -u | head -20

# Count the cases of one cmocka program by its own closing lines.
run_c_test() {
    local name=$1 bin=$2 rc
    timeout "${TEST_TIMEOUT:-300}" "$bin" >"$log" 2>&1
    rc=$?
    local ok bad sk
    ok=$(grep -c '^\[       OK \]' "$log")
    # cmocka names each failed case twice (when it fails, and in the summary).
    bad=$(grep '^\[  FAILED  \] [a-zA-Z]' "$log" | grep -v 'test(s)' | sort -u | wc -l)
    sk=$(grep '^\[  SKIPPED \] [a-zA-Z]' "$log" | grep -v 'test(s)' | sort -u | wc -l)
    if [ $rc -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + sk))
    while IFS= read -r line; do skips+=("$line"); done < <(grep '^SKIP ' "$log" | sort -u)
    if [ "$bad" -ne 0 ]; then
        failures+=("$name (rerun: $bin)")
        printf 'FAIL %s: %d of %d failed\n' "$name" "$bad" $((ok + bad))
        grep -vE '^\[( RUN      |       OK |==========)' "$log" | tail -40 | sed 's/^/    /'
    else
        printf 'ok   %s: %d passed%s\n' "$name" "$ok" "$([ "$sk" -gt 0 ] && echo ", $sk skipped")"
    fi
}

# Anything else passes by its exit status: 0 passed, 77 skipped (its last line says why).
run_script() {
    local name=$1
    shift
    timeout "${TEST_TIMEOUT:-300}" "$@" >"$log" 2>&1
    local rc=$?
    if [ $rc -eq 0 ]; then
        passed=$((passed + 1))
        printf 'ok   %s: %s\n' "$name" "$(tail -1 "$log")"
    elif [ $rc -eq 77 ]; then
        skipped=$((skipped + 1))
        skips+=("SKIP $name: $(tail -1 "$log")")
        printf 'skip %s: %s\n' "$name" "$(tail -1 "$log")"
    else
        failed=$((failed + 1))
        failures+=("$name (rerun: $*)")
        printf 'FAIL %s (exit %d)\n' "$name" $rc
        tail -40 "$log" | sed 's/^/    /'
    fi
}

export SHOAL_BIN=$PWD/$dir/shoal
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

for bin in "$dir"/tests/*_test_*; do
    [ -x "$bin" ] && [[ $bin == *"$filter"* ]] && run_c_test "$(basename "$bin")" "$bin"
done
for bin in "$dir"/fuzz/fuzz_*; do
    name=$(basename "$bin")
    [ -x "$bin" ] && [[ $name == *"$filter"* ]] && run_script "$name" "$bin" "tests/fuzz/seeds/$name"
done
if [ "$preset" = release ]; then
    for script in tests/e2e/*.sh; do
        name=$(basename "$script" .sh)
        [ "$name" != lib ] && [[ $name == *"$filter"* ]] && run_script "$name" bash "$script"
    done
    if [ -z "$filter" ] && [ "${SHOAL_CHECK_SANITIZERS:-1}" = 1 ]; then
        for s in asan tsan; do
            echo "--- $s"
            out=$("$0" $s 2>&1)
            echo "$out" | grep -vE '^[0-9]+ passed, ' | grep -vE '^ok   '
            last=$(echo "$out" | tail -1)
            echo "$s: $last"
            read -r p f k < <(echo "$last" | sed -E 's/([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?.*/\1 \2 \4/')
            passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${k:-0}))
        done
    fi
fi

[ ${#skips[@]} -gt 0 ] && { echo; printf '%s\n' "${skips[@]}" | sort -u; }
[ ${#failures[@]} -gt 0 ] && { echo; printf 'failed: %s\n' "${failures[@]}"; }
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
