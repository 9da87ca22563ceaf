#!/usr/bin/env bash
# Build one preset and run every test in it:
#
#   tests/run.sh release|asan|tsan|debug [FILTER]     FILTER: part of a test program's name
#
# C tests (cmocka), seeds of the fuzz targets, end-to-end scripts (tests/e2e/*.sh) and Node.js clients
# (tests/node/*.test.mjs). `release` without a filter also runs the C tests and seeds under AddressSanitizer, and the C
# tests of layers that have threads under ThreadSanitizer, unless SHOAL_CHECK_SANITIZERS=0; their trees are built beside the tests that use one core, and the
# end-to-end scripts come last, when nothing else runs. On a terminal one line shows where the run is;
# elsewhere each program is a line when it ends. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
filter=${2:-}
jobs=${JOBS:-$(nproc)}
work=$(mktemp -d)
log=$work/log
passed=0 failed=0 skipped=0 # cases
n_run=0 n_bad=0             # programs
failures=() skips=()
builder= ticker=

presets=("$preset")
[ "$preset" = release ] && [ -z "$filter" ] && [ "${SHOAL_CHECK_SANITIZERS:-1}" = 1 ] && presets+=(asan tsan)

leave() {
    [ -z "$ticker" ] || kill "$ticker" 2>/dev/null
    [ -z "$builder" ] || kill -- -"$builder" 2>/dev/null # it leads a group of its own
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT TERM

dir_of() { [ "$1" = release ] && echo build || echo "build/$1"; }

# ---- what will run, from the sources: PRESET KIND NAME, in order ------------------------------------------

c_tests() {
    for source in tests/*/test_*.c; do
        local layer=${source#tests/}
        echo "${layer%%/*}_$(basename "$source" .c)"
    done | sort
}
# Layers without threads have nothing for ThreadSanitizer to see; `tests/run.sh tsan` runs them all the same.
beside_tsan() { [ "$1" = tsan ] && [ "$preset" != tsan ]; }
threaded='^(compute|infer|speech|worker|wire|cluster|discovery|join|calls|process|gateway|cli)_'

list_programs() {
    for p in "${presets[@]}"; do
        if beside_tsan "$p"; then
            c_tests | grep -E "$threaded" | sed "s/^/$p c /"
            continue
        fi
        c_tests | sed "s/^/$p c /"
        ls tests/fuzz | sed -n "s/^\(fuzz_.*\)\.c$/$p seeds \1/p"
    done
    [ "$preset" != release ] || ls tests/e2e | grep -vx 'lib\.sh' | sed -n 's/\.sh$//; s/^/release script /p'
}
mapfile -t programs < <(list_programs | awk -v f="$filter" 'f == "" || index($3, f)')
total=${#programs[@]}
count() { printf '%s\n' "${programs[@]}" | grep -c "^$1 "; }

announce() {
    local again=
    [ ${#presets[@]} -eq 1 ] || again="; the first two again under asan, those with threads under tsan"
    echo "$preset: $total programs: $(count "$preset c") of C tests, $(count "$preset seeds") of fuzz seeds," \
        "$(count "$preset script") end-to-end scripts$again"
}

# ---- where the run is -------------------------------------------------------------------------------------

live=false
[ -t 1 ] && live=true
clock() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# The live line; its text is what now() last said, the clock goes on by itself.
now() {
    $live || return 0
    echo "$*" >"$work/now.new" && mv "$work/now.new" "$work/now"
    draw
}
draw() {
    local text
    read -r text <"$work/now" 2>/dev/null || return 0
    printf '\r\033[K%s' "$(printf '%s  %s' "$(clock)" "$text" | cut -c "1-$((${COLUMNS:-80} - 1))")"
}
# A line that stays.
line() {
    $live && printf '\r\033[K'
    printf '%s\n' "$*"
}
# A line that a terminal need not keep.
plain() { $live || printf '%s\n' "$*"; }
where() {
    local bad=
    [ $n_bad -eq 0 ] || bad=", $n_bad failed"
    echo "$n_run/$total programs$bad"
}
if $live; then
    COLUMNS=$(tput cols 2>/dev/null || echo 80)
    : >"$work/now"
    (while sleep 1; do draw; done) &
    ticker=$!
fi

# ---- building ---------------------------------------------------------------------------------------------

# Ninja's "[12/345] ..." as the live line, or as a plain line at each quarter.
show_build() {
    local name=$1 said=0 done_ all line_
    while IFS= read -r line_; do
        echo "$line_"
        [[ $line_ =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        done_=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        now "building $name $done_/$all" >&3
        [ $((4 * done_ / all)) -gt $said ] || continue
        said=$((4 * done_ / all))
        plain "building $name $done_/$all" >&3
    done
}
build() {
    local name=$1 out=$work/build-$1
    scripts/configure.sh "$name" >"$out" 2>&1 || return 1
    local targets=()
    beside_tsan "$name" && mapfile -t targets < <(c_tests | grep -E "$threaded")
    [ ${#targets[@]} -eq 0 ] || targets=(--target shoal "${targets[@]}") # some tests start workers
    cmake --build "$(dir_of "$name")" -j "$jobs" "${targets[@]}" >>"$out" 2>&1
}
build_shown() {
    local name=$1 out=$work/build-$1
    now "configuring $name"
    scripts/configure.sh "$name" >"$out" 2>&1 || return 1
    cmake --build "$(dir_of "$name")" -j "$jobs" 2>&1 | show_build "$name" 3>&1 >"$out"
}
build_failed() {
    line "FAIL the $1 tree does not build:"
    tail -60 "$work/build-$1"
    failures+=("$1 (rerun: cmake --build $(dir_of "$1"))")
    failed=$((failed + 1)) n_bad=$((n_bad + 1))
}
warnings() { grep -hE 'warning:' "$work/build-$1" | sort -u | head -20; }

# The sanitizers' trees, one after the other, with what the tests leave of the cores.
build_behind() {
    renice -n 19 $BASHPID >/dev/null 2>&1
    for p in "${presets[@]:1}"; do
        if build "$p"; then : >"$work/built-$p"; else : >"$work/broken-$p"; fi
    done
}
# Wait for one of them; false when it does not build.
await_build() {
    local p=$1 at said=$SECONDS
    while [ ! -e "$work/built-$p" ] && [ ! -e "$work/broken-$p" ]; do
        at="building $p $(grep -oE '^\[[0-9]+/[0-9]+\]' "$work/build-$p" 2>/dev/null | tail -1 | tr -d '[]')"
        now "$(where)  $at"
        [ $((SECONDS - said)) -lt 15 ] || { plain "$at" && said=$SECONDS; }
        kill -0 "$builder" 2>/dev/null || break
        sleep 0.2
    done
    [ -e "$work/built-$p" ]
}

# ---- running ----------------------------------------------------------------------------------------------

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
    while IFS= read -r said; do skips+=("$said"); done < <(grep '^SKIP ' "$log" | sort -u)
    if [ "$bad" -ne 0 ]; then
        n_bad=$((n_bad + 1))
        failures+=("$name (rerun: $bin)")
        line "FAIL $name: $bad of $((ok + bad)) failed"
        grep -vE '^\[( RUN      |       OK |==========)' "$log" | tail -40 | sed 's/^/    /'
    else
        plain "ok   $name: $ok passed$([ "$sk" -gt 0 ] && echo ", $sk skipped")"
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
        plain "ok   $name: $(tail -1 "$log")"
    elif [ $rc -eq 77 ]; then
        skipped=$((skipped + 1))
        skips+=("SKIP $name: $(tail -1 "$log")")
        plain "skip $name: $(tail -1 "$log")"
    else
        failed=$((failed + 1)) n_bad=$((n_bad + 1))
        failures+=("$name (rerun: $*)")
        line "FAIL $name (exit $rc)"
        tail -40 "$log" | sed 's/^/    /'
    fi
}

run_program() {
    local p=$1 kind=$2 name=$3 dir shown
    dir=$(dir_of "$p")
    shown=$name
    [ "$p" = "$preset" ] || shown="$p $name"
    now "$(where)  $shown"
    export SHOAL_BIN=$PWD/$dir/shoal
    case $kind in
    c) run_c_test "$shown" "$dir/tests/$name" ;;
    seeds) run_script "$shown" "$dir/fuzz/$name" "tests/fuzz/seeds/$name" ;;
    script) run_script "$shown" bash "tests/e2e/$name.sh" ;;
    esac
    n_run=$((n_run + 1))
}

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

announce
build_shown "$preset" || { build_failed "$preset"; echo "0 passed, 1 failed"; exit 1; }
warnings "$preset"
if [ ${#presets[@]} -gt 1 ]; then
    set -m
    build_behind &
    builder=$!
    set +m
fi
broken=
for program in "${programs[@]}"; do
    read -r p kind name <<<"$program"
    if [ "$p" != "$preset" ] && [ ! -e "$work/built-$p" ] && [[ $broken != *$p* ]] && ! await_build "$p"; then
        build_failed "$p"
        broken+=" $p"
    fi
    [[ $broken == *$p* ]] || run_program "$p" "$kind" "$name"
done
now "$(where)"
if $live; then
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null
    printf '\r\033[K'
fi

[ ${#skips[@]} -gt 0 ] && { echo; printf '%s\n' "${skips[@]}" | sort -u; }
[ ${#failures[@]} -gt 0 ] && { echo; printf 'failed: %s\n' "${failures[@]}"; }
echo "$n_run programs in $(clock)"
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
