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

# under WHOM COMMAND...: the process whose command line contains WHOM is the one under test
under() {
    local whom=$1
    shift
    rm -f "$control"
    SHOAL_FAIL_CONTROL=$control SHOAL_FAIL_PROCESS=$whom LD_PRELOAD=$fail_dir/libfail_interpose.so MALLOC_PERTURB_=165 "$@"
}

# sweep LABEL KIND CURL-OPTIONS...
sweep() {
    local label=$1 kind=$2 any=
    shift 2
    case $kind in metrics | readyz) any=-a ;; esac
    "$fail_dir/fail_sweep" -l "$label" -c "$control" -r "$refusal" -m "$max" -b "$offset" -t 12 $any -- \
        tests/fail/ask.sh "$kind" "$url" "$@" || faults=$((faults + 1))
}

serve_under() {
    whom=$1 config=$2
    SHOAL_BIN_PLAIN=$SHOAL_BIN
    cat >"$work/shoal" <<EOF
#!/bin/sh
SHOAL_FAIL_CONTROL=$control SHOAL_FAIL_PROCESS='$whom' MALLOC_PERTURB_=165 LD_PRELOAD=$fail_dir/libfail_interpose.so exec $SHOAL_BIN_PLAIN "\$@"
EOF
    chmod +x "$work/shoal"
    rm -f "$control"
    SHOAL_BIN=$work/shoal start_shoal "$config"
}
stop_and_check() {
    stop_shoal
    [ "$stopped" -eq 0 ] || { echo "FAIL: the server ended with $stopped"; faults=$((faults + 1)); }
}

serve_under ' serve ' shoal.yaml
for kind in $kinds; do sweep "gateway $kind" "$kind"; done
stop_and_check
echo "$faults faults"
[ "$faults" -eq 0 ]
