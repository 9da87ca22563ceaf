#!/usr/bin/env bash
# A gateway whose event loop computes without end in one turn: the supervisor aborts it with a crash report, and the next
# one serves with the same workers.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state # reports of crashes are kept there
hold=$PWD/build/fail/libfail_hold.so
[ -f "$hold" ] || skip "$hold is not built"
while_file=$work/held
printf '#!/bin/sh\nHOLD=accept4 HOLD_SPINS=1 HOLD_WHILE=%s LD_PRELOAD=%s exec "%s" "$@"\n' "$while_file" "$hold" "$SHOAL_BIN" >"$work/held_shoal"
chmod +x "$work/held_shoal"
SHOAL_BIN=$work/held_shoal
printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" >"$work/shoal.yaml"
wait_log() {
    for _ in $(seq 12000); do grep -q "$1" "$log" && return; sleep 0.05; done
    fail "the log does not say $1"
}
classify() { curl -s -m 60 "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz"}' | grep -q play_music; }

start_shoal "$work/shoal.yaml"
before=$(pgrep -P "$server" -f 'shoal worker') was=$(gateway)
classify || fail "no answer before"
: >"$while_file"
curl -s -m 600 "$url/healthz" >"$work/health" &
wait_log event=gateway_hangs
rm "$while_file"
wait_log 'event=gateway_crashed .*signal=6'
wait $!
for _ in $(seq 1200); do classify && break; sleep 0.05; done
classify || fail "no answer afterwards"
[ "$(gateway)" != "$was" ] || fail "the gateway is the same process"
[ "$(pgrep -P "$server" -f 'shoal worker')" = "$before" ] || fail "the worker is another one"
[ "$(grep -c event=gateway_hangs "$log")" = 1 ] || fail "it was found more than once"
if ! nm -D "$PWD/build/shoal" 2>/dev/null | grep -q __asan; then # which has reports of its own
    grep -q 'component=gateway event=crash .*signal=6 name=ABRT .*backtrace=".*accept4' "$log" || fail "the crash report does not say where"
fi
stop_shoal
[ "$stopped" = 0 ] || fail "stopped with $stopped"
echo "a gateway that hangs was aborted, and the next one serves"
