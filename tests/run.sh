#!/usr/bin/env bash
# Build one preset and run every test in it:
#
#   tests/run.sh release|asan|tsan|debug|sanitizers|long [FILTER]     FILTER: part of a test program's name
#
# C tests (cmocka), seeds of the fuzz targets, end-to-end scripts (tests/e2e/*.sh) and Node.js clients
# (tests/node/*.test.mjs), as many at a time as there are cores, and up to six more while these stand idle: many scripts
# mostly wait (JOBS=N: N, and no more). A script that says "# alone: why" runs when nothing else does, one that says
# "# early: why" is started first. `long` runs the scripts that say "# long: why", which `release` leaves to it.
# A program may take 30 minutes. `sanitizers` is asan and tsan in one run without what
# they see twice: the C tests and seeds under AddressSanitizer, and the C tests of layers that have threads under
# ThreadSanitizer, whose tree is built behind the tests, with what these leave of the cores. On a terminal one line
# shows where the run is; elsewhere each program is a line, in the order of the list. The last line is "N passed, N
# failed, N skipped"; before it stand the dozen programs that took the most of the cores, where more than a dozen ran,
# and with SHOAL_CHECK_TIMES=1 all that took long and what each kind took.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
filter=${2:-}
jobs=${JOBS:-$(nproc)}
work=$(mktemp -d)
passed=0 failed=0 skipped=0 # cases
n_run=0 n_bad=0             # programs
failures=() skips=()
builder= ticker=
slots=() # the shells of the programs that run, by the program's number

long=false
[ "$preset" != long ] || long=true preset=release
presets=("$preset") reduced=false
[ "$preset" != sanitizers ] || presets=(asan tsan) reduced=true

# The processes given and all that came of them.
family() {
    local all
    all=$(sed -n 's/^\([0-9]*\) (.*) . \([0-9]*\) .*/\2 \1/p' /proc/[0-9]*/stat 2>/dev/null)
    awk -v roots="$*" '{ kids[$1] = kids[$1] " " $2 }
        function tell(pid, n, own, i) { print pid; n = split(kids[pid], own); for (i = 1; i <= n; i++) tell(own[i]) }
        END { n = split(roots, root); for (j = 1; j <= n; j++) tell(root[j]) }' <<<"$all"
}
# Each slot's group goes gently; what is left of a program, in groups and sessions of its own, goes surely.
leave() {
    local all
    [ -z "$ticker" ] || kill "$ticker" 2>/dev/null
    [ -z "$builder" ] || kill -- -"$builder" 2>/dev/null # it leads a group of its own
    if [ ${#slots[@]} -gt 0 ]; then
        mapfile -t all < <(family "${slots[@]}")
        kill "${slots[@]}" 2>/dev/null
        for _ in $(seq 50); do kill -0 "${all[@]}" 2>/dev/null || break; sleep 0.1; done
        kill -9 "${all[@]}" 2>/dev/null
    fi
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT TERM

dir_of() { [ "$1" = release ] && echo build || echo "build/$1"; }

# ---- what will run, from the sources: PRESET KIND NAME, in order ------------------------------------------

c_tests() {
    for source in tests/*/*/test_*.c; do
        echo "$(basename "${source%/*}")_$(basename "$source" .c)"
    done | sort
}
# What `sanitizers` leaves to `tests/run.sh asan` and `tests/run.sh tsan`, which run all. Two programs are long
# and only compare figures, those of docs/families.md and of the home models; others take the same paths. Only where
# there are threads has ThreadSanitizer something to see: not in layers, nor in programs of the others, that have one;
# of speech it sees what worker_test_transcribe does, with more of them.
figures='^(infer_test_table|library_test_home_agreement)$'
threaded='^(compute|net|infer|library|backend|worker|wire|http|join|agent|control|retrieve)_|^load_test_client$|^lab_test_relay$'
one_thread='^(compute_test_(amx|dtype|vec)|infer_test_(attention|sampling)|net_test_(distance|kv|rope|tagging)'
one_thread+='|agent_test_rundir|control_test_(artifact|drained_set|join_burst|member_table|placer_hold|residency)|retrieve_test_(piece|plain)|wire_test_env|worker_test_delta)$'
tests_of() {
    if ! $reduced; then
        c_tests
    elif [ "$1" = tsan ]; then
        c_tests | grep -E "$threaded" | grep -vE "$one_thread|$figures"
    else
        c_tests | grep -vE "$figures"
    fi
}

# End-to-end scripts that say "# WORD: why".
say() { grep -l "^# $1: " tests/e2e/*.sh | sed 's|.*/\(.*\)\.sh$|\1|'; }
scripts() { ls tests/e2e/*.sh | sed 's|.*/\(.*\)\.sh$|\1|' | grep -vxFf <(echo lib; say alone; say long); }

list_programs() {
    if $long; then
        say long | grep -vxFf <(say alone) | sed 's/^/release script /'
        say long | grep -xFf <(say alone) | sed 's/^/release alone /'
        return
    fi
    for p in "${presets[@]}"; do
        tests_of "$p" | sed "s/^/$p c /"
        if ! $reduced || [ "$p" != tsan ]; then ls tests/fuzz | sed -n "s/^\(fuzz_.*\)\.c$/$p seeds \1/p"; fi
        [ "$p" != release ] || scripts | sed 's/^/release script /'
    done
    [ "$preset" != release ] || say alone | grep -vxFf <(say long) | sed 's/^/release alone /'
}
mapfile -t programs < <(list_programs | awk -v f="$filter" 'f == "" || index($3, f)')
total=${#programs[@]}
count() { printf '%s\n' "${programs[@]}" | grep -c "^$1 "; }

announce() {
    local first=${presets[0]} more
    ! $long || { echo "long: $total end-to-end scripts" && return; }
    more="$(($(count "$first script") + $(count "$first alone"))) end-to-end scripts"
    ! $reduced || more="all under asan; $(count "tsan c") of the first again under tsan"
    echo "$preset: $total programs: $(count "$first c") of C tests, $(count "$first seeds") of fuzz seeds, $more"
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
    $reduced && [ "$name" = tsan ] && mapfile -t targets < <(tests_of tsan)
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

# The trees behind the first, one after the other, with what the tests leave of the cores.
build_behind() {
    renice -n 19 $BASHPID >/dev/null 2>&1
    for p in "${presets[@]:1}"; do
        if build "$p"; then : >"$work/built-$p"; else : >"$work/broken-$p"; fi
    done
}
# Wait for one of them, and take what ends meanwhile; false when it does not build.
await_build() {
    local p=$1 at said=$SECONDS
    while [ ! -e "$work/built-$p" ] && [ ! -e "$work/broken-$p" ]; do
        at="building $p $(grep -oE '^\[[0-9]+/[0-9]+\]' "$work/build-$p" 2>/dev/null | tail -1 | tr -d '[]')"
        now "$(where)  $at"
        [ $((SECONDS - said)) -lt 15 ] || { plain "$at" && said=$SECONDS; }
        kill -0 "$builder" 2>/dev/null || break
        take 0.5
    done
    [ -e "$work/built-$p" ]
}

# ---- telling ----------------------------------------------------------------------------------------------

# Count the cases of one cmocka program by its own closing lines.
tell_c_test() {
    local name=$1 log=$2 rc=$3 rerun=$4
    local ok bad sk how=
    ok=$(grep -c '^\[       OK \]' "$log")
    # cmocka names each failed case twice (when it fails, and in the summary).
    bad=$(grep '^\[  FAILED  \] [a-zA-Z]' "$log" | grep -v 'test(s)' | sort -u | wc -l)
    sk=$(grep '^\[  SKIPPED \] [a-zA-Z]' "$log" | grep -v 'test(s)' | sort -u | wc -l)
    if [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1 how=" (exit $rc)"; fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + sk))
    while IFS= read -r said; do skips+=("$said"); done < <(grep '^SKIP ' "$log" | sort -u)
    if [ "$bad" -ne 0 ]; then
        n_bad=$((n_bad + 1))
        failures+=("$name (rerun: $rerun)")
        line "FAIL $name: $bad of $((ok + bad)) failed$how"
        grep -vE '^\[( RUN      |       OK |==========)' "$log" | tail -40 | sed 's/^/    /'
    else
        plain "ok   $name: $ok passed$([ "$sk" -gt 0 ] && echo ", $sk skipped")"
    fi
}

# Anything else passes by its exit status: 0 passed, 77 skipped (its last line says why).
tell_script() {
    local name=$1 log=$2 rc=$3 rerun=$4
    if [ "$rc" -eq 0 ]; then
        passed=$((passed + 1))
        plain "ok   $name: $(tail -1 "$log")"
    elif [ "$rc" -eq 77 ]; then
        skipped=$((skipped + 1))
        skips+=("SKIP $name: $(tail -1 "$log")")
        plain "skip $name: $(tail -1 "$log")"
    else
        failed=$((failed + 1)) n_bad=$((n_bad + 1))
        failures+=("$name (rerun: $rerun)")
        line "FAIL $name (exit $rc)"
        { head -n -40 "$log" | grep '^FAILED: '; tail -40 "$log"; } | sed 's/^/    /'
    fi
}

# ---- running ----------------------------------------------------------------------------------------------

command_of() {
    local dir
    dir=$(dir_of "$1")
    case $2 in
    c) echo "$dir/tests/$3" ;;
    seeds) echo "$dir/fuzz/$3 tests/fuzz/seeds/$3" ;;
    *) echo "bash tests/e2e/$3.sh" ;;
    esac
}
# Its name for people, with its preset where that is another than the run's.
shown() {
    local p kind name
    read -r p kind name <<<"${programs[$1]}"
    [ "$p" = "$preset" ] && echo "$name" || echo "$p $name"
}

# What runs in a slot, with $0 a file name to begin with: a program, then "STATUS MS" into a file, and a ring of the
# bell. At its time limit the whole group gets SIGTERM, which this shell outlives to say so.
one='trap "late=124" TERM
    began=${EPOCHREALTIME/[.,]/}
    "$@"
    rc=$?
    times >"$0.times"
    echo "${late:-$rc} $(((${EPOCHREALTIME/[.,]/} - began) / 1000))" >"$0.ended"
    echo >"${0%/*}/bell"'
mkfifo "$work/bell"
exec {bell}<>"$work/bell"

# `timeout` leads the group. A program that is started behind without a group would ignore Ctrl-C for good, and some
# try what it does to them.
start() {
    local i=$1 p kind name
    read -r p kind name <<<"${programs[i]}"
    set -m
    (
        exec {bell}>&-
        SHOAL_BIN=$PWD/$(dir_of "$p")/shoal
        export SHOAL_BIN
        # shellcheck disable=SC2046 # a command's words
        exec timeout "${TEST_TIMEOUT:-1800}" bash -c "$one" "$work/$i" $(command_of "$p" "$kind" "$name")
    ) </dev/null >"$work/$i.log" 2>&1 &
    slots[i]=$!
    set +m
}

# Does nothing more go now? While less than seven tenths of the cores' last second went to work that is not gentle
# (what builds behind is), there is room for one more.
extra=0 looked_at=0 worked=0 ticks=0
full() {
    local most user nice system idle iowait irq softirq steal work_ all at=${EPOCHREALTIME/[.,]/}
    if [ -z "${JOBS:-}" ] && [ $((at - looked_at)) -ge 1000000 ]; then
        read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
        work_=$((user + system + irq + softirq + steal))
        all=$((work_ + nice + idle + iowait))
        if [ $((10 * (work_ - worked))) -gt $((9 * (all - ticks))) ]; then
            [ $extra -eq 0 ] || extra=$((extra - 1))
        elif [ $((10 * (work_ - worked))) -lt $((7 * (all - ticks))) ] && [ $extra -lt 6 ]; then
            [ ${#slots[@]} -lt $((jobs + extra)) ] || extra=$((extra + 1))
        fi
        looked_at=$at worked=$work_ ticks=$all
    fi
    most=$((jobs + extra))
    [ "$1" != alone ] || most=1
    [ ${#slots[@]} -ge $most ]
}

# Wait until one ends, at most a second, and tell of all whose turn it is: `told` is the first of the list not told of.
rcs=() told=0
reap() {
    ! $live || now "$(where)  $(for i in "${!slots[@]}"; do shown "$i"; done | paste -sd '|' | sed 's/|/, /g')"
    take 1
}
# The pipe only wakes: a read that meets its time limit loses what it has read of a line.
take() { # SECONDS
    local i rc ms _
    read -r -t "$1" _ <&"$bell"
    for i in "${!slots[@]}"; do
        rc= ms=0
        kill -0 "${slots[i]}" 2>/dev/null || rc=137 # unless it has said more: something killed all of it
        [ ! -s "$work/$i.ended" ] || read -r rc ms <"$work/$i.ended"
        [ -n "$rc" ] || continue
        wait "${slots[i]}" 2>/dev/null
        unset 'slots[i]'
        rcs[i]=$rc
        times_of "$i" "$ms" >>"$work/times" 2>/dev/null
        n_run=$((n_run + 1))
        tell_of
    done
}
tell_of() {
    local p kind name how
    while [ -n "${rcs[told]:-}" ]; do
        read -r p kind name <<<"${programs[told]}"
        [ "$kind" = c ] && how=tell_c_test || how=tell_script
        [ "${rcs[told]}" = left ] ||
            $how "$(shown "$told")" "$work/$told.log" "${rcs[told]}" "$(command_of "$p" "$kind" "$name")"
        rm -f "$work/$told.log"
        told=$((told + 1))
    done
}

# "SECONDS CPU_SECONDS PRESET KIND NAME" of an ended program; the shell's `times` says the children's in its second line.
times_of() {
    awk -v wall="$2" -v program="${programs[$1]}" 'function s(t) { split(t, a, /[ms]/); return 60 * a[1] + a[2] }
        NR == 2 { printf "%.1f %.1f %s\n", wall / 1000, s($1) + s($2), program }' "$work/$1.times"
}
tell_most() { # N, by which column of `times`
    sort -k"$2","$2"rn "$work/times" | head -"$1" | awk '{ printf "%7.1f %7.1f  %s %s\n", $1, $2, $3, $5 }'
}
tell_times() {
    echo
    echo "seconds, of CPU; what took the most of the cores:"
    tell_most 12 2
    [ "${SHOAL_CHECK_TIMES:-0}" = 1 ] || return 0
    echo "the longest:"
    tell_most 25 1
    echo "all of a kind:"
    awk '{ k = $3 " " $4; n[k]++; w[k] += $1; c[k] += $2 }
        END { for (k in n) printf "%7.1f %7.1f  %s (%d)\n", w[k], c[k], k, n[k] }' "$work/times" | sort -k3
}

# Scripts start Python some thousand times. Where python3 is a script that looks for the right one (pyenv), each start takes
# 0.12 s of CPU instead of 0.04: the right one's folder goes first.
if command -v python3 >/dev/null && [ "$(head -c 2 "$(command -v python3)" | tr -d '\0')" = '#!' ]; then
    PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp}

announce
build_shown "${presets[0]}" || { build_failed "${presets[0]}"; echo "0 passed, 1 failed"; exit 1; }
warnings "${presets[0]}"
if [ ${#presets[@]} -gt 1 ]; then
    set -m
    build_behind &
    builder=$!
    set +m
fi
broken=
mapfile -t early < <(say early)
mapfile -t order < <(printf '%s\n' "${programs[@]}" | awk -v early=" ${early[*]} " '$2 == "" { next }
    $2 == "script" && index(early, " " $3 " ") { print NR - 1; next } { rest = rest (NR - 1) "\n" } END { printf "%s", rest }')
for i in "${order[@]}"; do
    read -r p kind name <<<"${programs[i]}"
    if [ "$p" != "${presets[0]}" ] && [ ! -e "$work/built-$p" ] && [[ $broken != *$p* ]] && ! await_build "$p"; then
        build_failed "$p"
        broken+=" $p"
    fi
    [[ $broken != *$p* ]] || { rcs[i]=left && continue; }
    while full "$kind"; do reap; done
    start "$i"
done
while [ ${#slots[@]} -gt 0 ]; do reap; done
tell_of
now "$(where)"
if $live; then
    kill "$ticker" 2>/dev/null
    wait "$ticker" 2>/dev/null
    printf '\r\033[K'
fi

[ ${#skips[@]} -gt 0 ] && { echo; printf '%s\n' "${skips[@]}" | sort -u; }
[ "$n_run" -le 12 ] || tell_times
[ ${#failures[@]} -gt 0 ] && { echo; printf 'failed: %s\n' "${failures[@]}"; }
echo "$n_run programs in $(clock)"
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
