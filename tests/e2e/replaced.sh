#!/usr/bin/env bash
# The program's file is replaced and removed while it serves, as an upgrade does: workers start again, models load, and
# the gateway process starts again, all of them from the program that serves.
source "$(dirname "$0")/lib.sh"
cp "$SHOAL_BIN" "$work/shoal" || fail "no copy"
SHOAL_BIN=$work/shoal
printf 'manifest: %s/models/models.json\nmodels: [{name: home-intent}]\n' "$PWD" >"$work/shoal.yaml"
export SHOAL_STATE=$work/state
worker() { pgrep -P "$server" -f "shoal worker --name $1 "; }
classify() { curl -s -m 60 "$url/v1/classify" -d "{\"model\":\"$1\",\"input\":\"play jazz\"}" | grep -q play_music; }
# shellcheck disable=SC2329
another_worker() { local now; now=$(worker home-intent) && [ "$now" != "$1" ]; }
# shellcheck disable=SC2329
another_gateway() { local now; now=$(gateway) && [ "$now" != "$1" ]; }
until_true() {
    local what=$1
    shift
    for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
    fail "never: $what; $(tail -n 3 "$log")"
}

start_shoal "$work/shoal.yaml"
classify home-intent || fail "no answer before"
round() { # WHAT
    local was
    was=$(worker home-intent)
    kill -KILL "$was"
    until_true "another worker, the program is $1" another_worker "$was"
    until_true "an answer, the program is $1" classify home-intent
    curl -s -m 60 "$url/v1/models/load" -d "{\"model\":\"home-intent\",\"name\":\"$1\"}" | grep -q '"state":"ready"' ||
        fail "no load, the program is $1: $(tail -n 3 "$log")"
    classify "$1" || fail "no answer of the loaded model, the program is $1"
    curl -s -m 60 "$url/v1/models/load" -d '{"model":"https://127.0.0.1:1/model.gguf"}' >"$work/fetch"
    grep -q 'cannot start' "$work/fetch" && fail "no fetch, the program is $1: $(cat "$work/fetch")"
    grep -q '"error"' "$work/fetch" || fail "a fetch from nobody: $(cat "$work/fetch")"
    was=$(gateway)
    kill -KILL "$was"
    until_true "another gateway, the program is $1" another_gateway "$was"
    until_true "an answer of the next gateway, the program is $1" classify "$1"
}
printf '#!/bin/sh\necho another version >&2\nexit 3\n' >"$work/next"
chmod +x "$work/next"
mv "$work/next" "$work/shoal"
round replaced
rm "$work/shoal"
round removed
stop_shoal
[ "$stopped" = 0 ] || fail "stopped with $stopped"
echo "the program that serves goes on from its own image"
