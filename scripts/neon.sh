#!/usr/bin/env bash
# The AArch64 kernels on another kind of machine: build for it (preset aarch64) and run compute's tests under
# qemu's processors, each with fewer or more instructions than the next; then compare what whole models say
# there with what they say here, byte by byte.
#
# make neon runs it, and make long as tests/e2e/neon.sh.
#
# scripts/sysroot.sh unpacks the libraries' arm64 packages. Exit 77: it cannot run here; the last line says why.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/aarch64
root=$dir/sysroot
unset SHOAL_ISA
jobs=${JOBS:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() { echo "$*"; exit 77; }
fail() { [ ! -s "$work/log" ] || tail -40 "$work/log"; echo "FAILED: $*"; exit 1; }

# A processor, and the best kernels that it must choose. All run the tests of the kernels, the last one the others.
processors=("cortex-a53 neon" "neoverse-n1 neondot" "max neoni8mm")
kernel_tests=(compute_test_mul compute_test_vec compute_test_team)
# Not compute_test_arbiter: qemu-user has no robust mutexes, which the arbiter's repair stands on.
other_tests=(compute_test_dtype compute_test_measure infer_test_attention base_test_base)

# ---- what it takes -----------------------------------------------------------------------------------------

[ "$(uname -m)" != aarch64 ] || skip "this machine is AArch64: its own tests run these kernels"
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    scripts/setup.sh --cross || skip "no aarch64-linux-gnu-gcc and qemu-aarch64 (apt-get install gcc-aarch64-linux-gnu qemu-user)"
fi

rc=0
scripts/sysroot.sh >"$work/log" 2>&1 || rc=$?
[ $rc -ne 77 ] || skip "$(tail -1 "$work/log")"
[ $rc -eq 0 ] || fail "the arm64 libraries are not unpacked"

# ---- build -------------------------------------------------------------------------------------------------

native=$(dirname "${SHOAL_BIN:-build/shoal}")
if [ -z "${SHOAL_BIN:-}" ]; then
    { scripts/configure.sh release && cmake --build build -j "$jobs" --target shoal library_bits; } >"$work/log" 2>&1 ||
        fail "shoal does not build"
fi
targets=("${kernel_tests[@]}" "${other_tests[@]}" gguf_fixtures library_bits shoal)
{ scripts/configure.sh aarch64 && cmake --build "$dir" -j "$jobs" --target "${targets[@]}"; } >"$work/log" 2>&1 ||
    fail "the aarch64 tree does not build"
grep -hE 'warning:' "$work/log" | sort -u | head -20 || true
: >"$work/log"

# ---- run ---------------------------------------------------------------------------------------------------

on() { # PROCESSOR COMMAND...
    local cpu=$1
    shift
    qemu-aarch64 -cpu "$cpu" -L "$root" "$@"
}
models=(tests/data/quant/*.gguf "$dir"/tests/gguf/llama-*.gguf models/home-{intent,embed,chat-s}.gguf)
text="turn the lamp in the kitchen on, please"
cases=0
run_test() { # PROCESSOR TEST
    on "$1" "$dir/tests/$2" >"$work/log" 2>&1 || fail "$2 (rerun: qemu-aarch64 -cpu $1 -L $root $dir/tests/$2)"
    ok=$(grep -c '^\[       OK \]' "$work/log") || fail "$2 ran nothing on $1"
    cases=$((cases + ok))
}
for row in "${processors[@]}"; do
    read -r cpu best <<<"$row"
    for t in "${kernel_tests[@]}"; do run_test "$cpu" "$t"; done
    echo "ok   $cpu: ${kernel_tests[*]}"
    said=$(on "$cpu" "$dir/shoal" version | sed -n 's/^kernels: //p')
    [ "${said%% *}" = "$best" ] || fail "$cpu chose the kernels $said, not $best"
done
for t in "${other_tests[@]}"; do run_test "$cpu" "$t"; done

# same PROGRAM ARGS...: the same bytes here and there, on every processor
same() {
    local program=$1
    shift
    "$native/$program" "$@" >"$work/here" 2>"$work/log" || fail "$program here"
    for row in "${processors[@]}"; do
        read -r cpu best <<<"$row"
        on "$cpu" "$dir/$program" "$@" >"$work/there" 2>"$work/log" || fail "$program with $best"
        chosen=$(sed -n 's/^kernels: //p' "$work/log" | sort -u) # library_bits says so
        [ "${chosen:-$best}" = "$best" ] || fail "$cpu chose the kernels $chosen, not $best"
        cmp "$work/here" "$work/there" >"$work/differ" || {
            diff "$work/here" "$work/there" | cut -c 1-200 | tail -40
            fail "$program $*: $best differs from this machine's kernels"
        }
        cases=$((cases + 1))
    done
    echo "same $program ${*: -2}"
}
same tests/library_bits "$text" "${models[@]}"
same shoal classify --json -t 2 models/home-intent.gguf "$text"
same shoal run -t 2 --temp 0.8 --seed 3 -n 24 models/home-chat-s.gguf "$text"
echo "$cases cases on ${#processors[@]} processors; compute_test_arbiter is left out (qemu-user has no robust mutexes)"
