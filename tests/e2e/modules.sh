#!/usr/bin/env bash
# CMakeLists.txt names just the modules that the files of each include, an include too many or too few is told, and few files
# read a clock.
. "$(dirname "$0")/lib.sh"

scripts/modules.sh --check || fail "CMakeLists.txt and the includes differ"

mkdir -p "$work/tree"
cp -r src CMakeLists.txt "$work/tree/"
sed -i 's/^shoal_module(sql USES base/shoal_module(sql USES base yaml/' "$work/tree/CMakeLists.txt"
echo '#include "wire/loop.h"' >>"$work/tree/src/core/yaml/yaml.c"
SHOAL_TREE=$work/tree scripts/modules.sh --check >"$work/said" && fail "differences pass"
grep -q 'shoal_module(sql USES ... yaml): no file of sql includes it' "$work/said" || fail "a module too many is not told"
grep -q 'shoal_module(yaml USES ...) lacks wire, which its files include' "$work/said" || fail "a missing module is not told"
[ "$(wc -l <"$work/said")" = 2 ] || fail "told: $(cat "$work/said")"

# Above core, time and timers come from an env (time/env.h). These files read a clock all the same:
allowed=(
    src/cluster/agent/agent.c               # generations rise from one run of the program to the next: the time of day
    src/cluster/agent/agent_life.c          # the time of day, which is in the names of crash reports
    src/cluster/agent/agent_lines.c         # no time: pipes are read at most every 20 ms
    src/cluster/control/control.c           # certificates: OpenSSL checks them by the time of day
    src/cluster/control/control_pass.c      # a deadline of gRPC, which takes points in the machine's time
    src/cluster/fetch/pull_http.c           # `shoal pull`: blocks on a loop of its own
    src/cluster/fetch/pull_meter.c          # as pull_http.c
    src/cluster/join/attach.c               # certificates, generations and a deadline of gRPC, as above
    src/cluster/join/join.c                 # `shoal join`: blocking, and certificates
    src/server/manager/manager.c            # no time: work for the next turn of the loop
    src/server/manager/manager_fetch.c      # a program that was told to stop
    src/server/manager/manager_job.c        # as manager.c
    src/server/sessions/session_redis.c     # a thread that waits for a socket
)
clocks='clock_ns\(\)|clock_ms_since\(|clock_gettime\(|gettimeofday\(|uv_now\(|uv_hrtime\(|[^a-z_]time\(NULL\)|uv_timer_(init|start)\('
reads=$(grep -rlE --include='*.c' "$clocks" src/cluster src/server src/home | LC_ALL=C sort)
[ "$reads" = "$(printf '%s\n' "${allowed[@]}")" ] ||
    fail "files that read a clock (<: they do, and may not; >: they may, and do not): $(diff <(echo "$reads") <(printf '%s\n' "${allowed[@]}"))"
