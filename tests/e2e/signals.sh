#!/usr/bin/env bash
# How it starts and stops: a taken port, SIGHUP with and without a terminal, SIGTERM to all processes at once, and kill -9.
source "$(dirname "$0")/lib.sh"
mkdir -m 700 "$work/run"
export XDG_RUNTIME_DIR=$work/run
real=$SHOAL_BIN
printf '#!/bin/sh\nexec setsid "%s" "$@"\n' "$real" >"$work/in_own_group" # its pid is its group's number
chmod +x "$work/in_own_group"
SHOAL_BIN=$work/in_own_group
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

# Without a terminal, and with one that is still there, SIGHUP has the file read again; a lost one ends it.
start_stream
kill -HUP "$server"
for _ in $(seq 400); do grep -q event=reloaded "$log" && break; sleep 0.05; done
grep -q event=reloaded "$log" || fail "SIGHUP without a terminal did not read the file again"
wait "$stream"
grep -q 'data: \[DONE\]' "$work/stream" || fail "SIGHUP cut the running stream"
stop_shoal
cat >"$work/terminal.py" <<'END'
import os, pty, signal, sys, time
log = sys.argv[1]
open(log, "w").close()
pid, master = pty.fork()
if pid == 0:
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    os.execv(sys.argv[2], sys.argv[2:])
def wait_for(what, seconds=20):
    for _ in range(int(seconds * 50)):
        if what in open(log).read(): return
        time.sleep(0.02)
    sys.exit(f"no {what}: {open(log).read()[-500:]}")
wait_for("event=ready url")
os.kill(pid, signal.SIGHUP)
wait_for("event=reloaded")
os.close(master)                # the terminal is closed
wait_for("event=stopped")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
if command -v python3 >/dev/null; then
    timeout 60 python3 "$work/terminal.py" "$work/terminal.log" "$real" serve -c shoal.yaml --port 0 ||
        fail "in a terminal: $(grep -a component=serve "$work/terminal.log")"
    grep -q 'event=stopping signal=1' "$work/terminal.log" || fail "not the hangup ended it"
fi

start_shoal
start_stream
kill -TERM -- "-$server"
stopped_well "SIGTERM to the group"

# Two within a moment, as timeout sends them to the process and to its group, are one.
start_shoal
start_stream
kill -TERM "$server"
sleep 0.05
kill -TERM "$server"
stopped_well "SIGTERM twice within a moment"

# nohup: the terminal's end is nobody's business.
printf '#!/bin/sh\ntrap "" HUP\nexec "%s" "$@"\n' "$real" >"$work/in_own_group"
start_shoal
kill -HUP "$server"
sleep 0.3
[ "$(curl -s -o /dev/null -w '%{http_code}' -m 5 "$url/healthz")" = 200 ] || fail "a SIGHUP that nohup ignores ended it"

kill -9 "$server"
wait "$server" 2>/dev/null
[ -n "$(ls "$work/run")" ] || fail "nothing was left behind, so there is nothing to sweep"
old=$(cd "$work/run" && echo shoal-* shoal.*/*)
start_shoal
for name in $old; do [ -e "$work/run/$name" ] && fail "$name of a killed gateway is still there"; done
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
[ -z "$(ls "$work/run")" ] || fail "left behind: $(ls "$work/run")"
# A model that may not be read: said once, not at each of endless restarts, and the others are served.
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && $as_nobody test -x "$real" 2>/dev/null; then
    mkdir "$work/site" "$work/site/state"
    cp -r tests/data/hf/bert-intent "$work/site/closed"
    cp models/home-embed.gguf "$work/site"
    chmod -R a+rX "$work"
    chmod 600 "$work/site/closed/model.safetensors"
    chown 65534 "$work/site/state"
    printf 'models: [{name: closed, path: closed}, {name: open, path: home-embed.gguf}]\n' >"$work/site/c.yaml"
    printf '#!/bin/sh\nexport XDG_STATE_HOME=%s XDG_RUNTIME_DIR=\nexec %s "%s" "$@"\n' "$work/site/state" "$as_nobody" "$real" >"$work/as_nobody"
    chmod +x "$work/as_nobody"
    SHOAL_BIN=$work/as_nobody
    start_shoal "$work/site/c.yaml"
    grep -q 'replicas=1 failed=1' "$work/ready" || fail "the other model is not served: $(cat "$work/ready")"
    sleep 1
    stop_shoal
    [ "$(grep -c 'event=worker_started replica=closed/0' "$log")" -eq 1 ] || fail "it is tried for ever: $(grep closed "$log")"
    grep -q 'closed/0 cannot serve: .*model.safetensors: Permission denied' "$log" || fail "nothing sums it up: $(cat "$log")"
fi
echo "port, HUP, TERM to all and KILL: nothing lost, nothing left"
