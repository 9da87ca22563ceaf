#!/usr/bin/env bash
# How it starts and stops: a taken port, a lost terminal, SIGTERM to all processes at once, and kill -9.
source "$(dirname "$0")/lib.sh"
mkdir -m 700 "$work/run"
export XDG_RUNTIME_DIR=$work/run
real=$SHOAL_BIN
printf '#!/bin/sh\nexec setsid "%s" "$@"\n' "$real" >"$work/in_own_group" # its pid is its group's number
chmod +x "$work/in_own_group"
SHOAL_BIN=$work/in_own_group
stream() { # a running answer in $work/stream; returns when it has begun
    curl -sN -m 30 "$url/v1/chat/completions" -d '{"model":"home-chat-m","stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":400,"messages":[{"role":"user","content":"tell me everything"}]}' >"$work/stream" &
    stream=$!
    for _ in $(seq 200); do grep -q content "$work/stream" 2>/dev/null && break; sleep 0.01; done
}
stopped_well() {
    wait "$stream"
    grep -q 'data: \[DONE\]' "$work/stream" || fail "$1 cut the running stream: $(tail -c 300 "$work/stream")"
    wait "$server"
    stopped=$?
    server=
    [ "$stopped" -eq 0 ] || fail "$1: exit status $stopped"
    [ -z "$(ls "$work/run")" ] || fail "$1 left behind: $(ls "$work/run")"
    grep -E 'level=(warn|error)' "$log" && fail "$1 is no reason for a warning"
}

# A taken port: said at once, as the last line, with what to do; no worker was started for it.
start_shoal
"$real" serve -c shoal.yaml --port "$port" >"$work/second" 2>&1
second=$?
[ "$second" -eq 1 ] || fail "a taken port: exit status $second"
tail -1 "$work/second" | grep -q "cannot listen on .*:$port: address already in use; .* -p PORT" || fail "a taken port: $(tail -1 "$work/second")"
grep -q worker_started "$work/second" && fail "workers were started for a port that is taken"

stream
kill -HUP "$server"
kill -HUP "$server"
stopped_well "a lost terminal"

start_shoal
stream
kill -TERM -- "-$server"
stopped_well "SIGTERM to the group"

# nohup: the terminal's end is nobody's business.
printf '#!/bin/sh\ntrap "" HUP\nexec "%s" "$@"\n' "$real" >"$work/in_own_group"
start_shoal
kill -HUP "$server"
sleep 0.3
[ "$(curl -s -o /dev/null -w '%{http_code}' -m 5 "$url/healthz")" = 200 ] || fail "a SIGHUP that nohup ignores ended it"

kill -9 "$server"
wait "$server" 2>/dev/null
[ -n "$(ls "$work/run")" ] || fail "nothing was left behind, so there is nothing to sweep"
old=$(ls "$work/run")
start_shoal
[ -e "$work/run/$old" ] && fail "$old of a killed gateway is still there"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
[ -z "$(ls "$work/run")" ] || fail "left behind: $(ls "$work/run")"
echo "port, HUP, TERM to all and KILL: nothing lost, nothing left"
