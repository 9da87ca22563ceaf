#!/usr/bin/env bash
# Let allocations fail in a served cluster, in the gateway or in a worker, while it answers requests of each kind:
#
#     tests/fail/serve.sh [MAX [OFFSET [KIND ...]]]      MAX: places a kind (0: all of them); OFFSET: which of them
#
# The process must answer rightly or with an error, and the next request rightly; it must not crash, hang, leak.
source "$(dirname "$0")/../e2e/lib.sh"
max=${1:-0} offset=${2:-0}
shift $(($# > 2 ? 2 : $#))
kinds=${*:-chat cached stream tools schema completions embeddings classify tag process models metrics readyz}
fail_dir=$(dirname "$SHOAL_BIN")/fail
control=$work/control
faults=0
# What a refusal looks like: an error with its status, an error in a stream that has begun, a closed connection.
refusal='^closed|"error":|^status (500|503)'

# sweep LABEL KIND CURL-OPTIONS...
sweep() {
    local label=$1 kind=$2 any=
    shift 2
    case $kind in metrics | readyz) any=-a ;; esac
    "$fail_dir/fail_sweep" -l "$label" -c "$control" -r "$refusal" -m "$max" -b "$offset" -t 12 $any -- \
        tests/fail/ask.sh "$kind" "$url" "$@" || faults=$((faults + 1))
}

# serve_under WHOM CONFIG: the process whose command line contains WHOM is the one under test
serve_under() {
    local plain=$SHOAL_BIN
    cat >"$work/shoal" <<EOF
#!/bin/sh
SHOAL_FAIL_CONTROL=$control SHOAL_FAIL_PROCESS='$1' MALLOC_PERTURB_=165 \\
    LD_PRELOAD=$fail_dir/libfail_interpose.so exec $plain "\$@"
EOF
    chmod +x "$work/shoal"
    rm -f "$control"
    SHOAL_BIN=$work/shoal
    start_shoal "$2"
    SHOAL_BIN=$plain
}

# What the process held when it ended: a request that was not given back shows here.
live() { od -A n -t d8 -j 56 -N 8 "$control" | tr -d ' '; }

# stop LABEL
stop() {
    stop_shoal
    [ "$stopped" -eq 0 ] && [ "$(live)" -le "$held" ] && return
    echo "FAIL $1: the server ended with $stopped and $(live) blocks, $held without failures"
    grep -E 'level=error' "$log" | tail -3
    faults=$((faults + 1))
}

serve_under ' serve ' shoal.yaml
for kind in $kinds; do tests/fail/ask.sh "$kind" "$url" >/dev/null; done
held=999999
stop "gateway"
held=$(live)
for kind in $kinds; do
    serve_under ' serve ' shoal.yaml
    sweep "gateway $kind" "$kind"
    stop "gateway $kind"
done
echo "$faults faults"
[ "$faults" -eq 0 ]
