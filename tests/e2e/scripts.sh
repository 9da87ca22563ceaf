#!/usr/bin/env bash
# What scripts/ promises: a start is not mistaken for an earlier one, a copied tree builds.
source "$(dirname "$0")/lib.sh"

# ---- serving_start gives the address of the server that it started, not what the file held before
(
    set -e
    bin=$SHOAL_BIN
    source scripts/serving.sh
    for _ in 1 2 3 4 5; do
        echo "ready http://127.0.0.1:1 replicas=5" >"$serving_ready"
        serving_start shoal.yaml
        curl -sf "$url/readyz" >/dev/null || { echo "$url does not answer"; exit 1; }
        serving_stop
    done
    : >"$work/broken.yaml" && echo 'models: 7' >"$work/broken.yaml"
    ! serving_start "$work/broken.yaml" 2>"$work/said" || { echo "a broken configuration starts"; exit 1; }
    grep -q 'broken.yaml' "$work/said" || { echo "a failed start says: $(cat "$work/said")"; exit 1; }
) || fail "scripts/serving.sh"

# ---- a tree that was copied with its build folder is configured for its new place
mkdir "$work/tree"
cp -r CMakeLists.txt CMakePresets.json cmake include proto scripts src tests "$work/tree" 2>/dev/null
mkdir -p "$work/tree/build/fuzz/corpus"
cp build/CMakeCache.txt "$work/tree/build/" || fail "no build folder to copy"
cp -r build/inc "$work/tree/build/"
: >"$work/tree/build/fuzz/corpus/kept"
"$work/tree/scripts/configure.sh" release >"$work/said" 2>&1 || fail "a copied tree: $(tail -3 "$work/said")"
grep -q 'build was made for .* building afresh' "$work/said" || fail "a copied tree says: $(cat "$work/said")"
grep -qF "CMAKE_HOME_DIRECTORY:INTERNAL=$work/tree" "$work/tree/build/CMakeCache.txt" || fail "still the old place"
[ "$(readlink "$work/tree/build/inc/base/base")" = "$work/tree/src/core/base" ] || fail "includes from the old place"
[ -f "$work/tree/build/fuzz/corpus/kept" ] || fail "the corpus is gone"
"$work/tree/scripts/configure.sh" release >"$work/said" 2>&1 && [ ! -s "$work/said" ] || fail "the second time: $(cat "$work/said")"
# ---- tests/run.sh: what will run, a line a program in a pipe, one line on a terminal, failures in both
run=("$PWD/tests/run.sh" release cli_test_options)
"${run[@]}" >"$work/said" 2>&1 || fail "tests/run.sh: $(tail -5 "$work/said")"
grep -q '^release: 1 programs: 1 of C tests, 0 of fuzz seeds, 0 end-to-end scripts$' "$work/said" || fail "it does not say what will run: $(cat "$work/said")"
grep -q '^ok   cli_test_options: [0-9]* passed$' "$work/said" || fail "no line for the program: $(cat "$work/said")"
tail -1 "$work/said" | grep -qE '^[0-9]+ passed, 0 failed$' || fail "its last line: $(tail -1 "$work/said")"
grep -q $'\r' "$work/said" && fail "a pipe gets lines that move"
"${run[0]}" release no_such_test >"$work/said" 2>&1 && fail "no tests pass"
tail -1 "$work/said" | grep -qx '0 passed, 0 failed' || fail "where there is no such test: $(tail -3 "$work/said")"
TEST_TIMEOUT=0.01 "$PWD/tests/run.sh" release compute_test_mul >"$work/said" 2>&1 && fail "a test that is cut off passes"
grep -q '^FAIL compute_test_mul: [0-9]* of [0-9]* failed (exit [0-9]*)$' "$work/said" && grep -q '^failed: compute_test_mul (rerun: ' "$work/said" ||
    fail "a failure is not shown: $(cat "$work/said")"
"${run[0]}" release compute_test_mul >"$work/said" 2>&1 & all=$!
for _ in $(seq 600); do one=$(pgrep -x timeout -P "$all") && break; sleep 0.05; done
kill -9 -- "-$one" || fail "no test ran: $(cat "$work/said")"
wait "$all" && fail "a test passes that was killed with all that watched it"
grep -q '^FAIL compute_test_mul: .* (exit 137)$' "$work/said" || fail "of a killed test it says: $(cat "$work/said")"
if command -v script >/dev/null; then
    script -qefc "stty cols 80; '${run[0]}' ${run[*]:1}" "$work/said" </dev/null >/dev/null 2>&1 || fail "on a terminal"
    grep -qE $'\r\033\\[K[0-9]+:[0-9]{2}  0/1 programs  cli_test_options' "$work/said" || fail "no live line: $(cat -v "$work/said")"
    grep -q '^ok ' "$work/said" && fail "a terminal keeps the lines of what passed"
fi
echo "five starts, one copied tree, three runs of one test"
