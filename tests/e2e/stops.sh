#!/usr/bin/env bash
# SIGTERM ends a server and an agent whatever their threads do: one is held in fdatasync (a dead disk), one in
# getaddrinfo (no name server), one in open (a dead network file system). And a configuration that is a pipe.
source "$(dirname "$0")/lib.sh"
hold=$PWD/build/fail/libfail_hold.so
[ -f "$hold" ] || skip "$hold is not built"
export SHOAL_STATE=$work/state
real=$SHOAL_BIN
while_file=$work/held
# serve_held FUNCTION: a server whose calls of it are held from the moment that $while_file is there
serve_held() {
    rm -f "$while_file"
    printf '#!/bin/sh\nHOLD=%s HOLD_WHILE=%s HOLD_PATH=%s LD_PRELOAD=%s exec "%s" "$@"\n' \
        "$1" "$while_file" "$work/shoal.yaml" "$hold" "$real" >"$work/held_shoal"
    chmod +x "$work/held_shoal"
    SHOAL_BIN=$work/held_shoal
    start_shoal "$work/shoal.yaml"
}
# wait_held: a thread is held
wait_held() {
    for _ in $(seq 2000); do [ -s "$while_file" ] && return; sleep 0.02; done
    fail "no thread is held in $1"
}
wait_log() {
    for _ in $(seq 2000); do grep -q "$1" "$log" && return; sleep 0.02; done
    fail "the log does not say $1"
}
# ends STATUS FORCED: the server ends with the status; FORCED is yes or no
ends() {
    wait "$server"
    stopped=$?
    server=
    rm -f "$while_file"
    [ "$stopped" = "$1" ] || fail "$3: exit status $stopped, wanted $1"
    grep -oE 'event=(stopping|drain_cut|exit_forced|stopped)' "$log" | tr '\n' ' ' >"$work/order"
    case $2 in
    yes) grep -q 'stopping .*exit_forced $' "$work/order" || fail "$3: $(cat "$work/order")" ;;
    no) grep -q exit_forced "$work/order" && fail "$3: $(cat "$work/order")" ;;
    esac
}

cat >"$work/shoal.yaml" <<END
drain_ms: 100
manifest: $PWD/models/models.json
models: [{name: home-intent}]
END

# ---- the store's writer is held in the midst of a commit
for signals in 1 2 3; do
    serve_held fdatasync
    curl -s "$url/v1/collections" -d '{"name":"before","model":"none"}' >/dev/null
    curl -s -X DELETE "$url/v1/collections/before" >/dev/null
    : >"$while_file"
    curl -s -m 300 "$url/v1/collections" -d '{"name":"kept'$signals'","model":"none"}' >"$work/made" &
    client=$!
    wait_held fdatasync
    curl -s "$url/v1/collections" | grep -q '"object":"list"' || fail "a list waits for the writer"
    kill "$server"
    wait_log event=stopping
    [ $signals -gt 1 ] && { wait_log event=drain_cut; sleep 0.3; kill "$server"; } # within 250 ms they would count as one
    # A third ends it in the signal's handler: it is sent until the process is gone, since the second may be taken
    # together with it.
    [ $signals -gt 2 ] && while kill -0 "$server" 2>/dev/null; do kill "$server" 2>/dev/null; sleep 0.02; done
    case $signals in
    1) ends 0 yes "a held writer, one signal" ;;
    2) ends 143 yes "a held writer, two signals" ;;
    3) ends 143 any "a held writer, three signals" ;;
    esac
    wait "$client"
done

# ---- a name that is not resolved
cat >>"$work/shoal.yaml" <<END
discovery: {etcd: {endpoints: ['http://etcd.invalid:2379']}}
END
: >"$work/empty"
serve_held getaddrinfo
: >"$while_file"
wait_held getaddrinfo
kill "$server"
ends 0 yes "a held look-up"
sed -i '/^discovery/d' "$work/shoal.yaml"

# ---- a configuration on a dead file system
serve_held open
: >"$while_file"
kill -HUP "$server"
wait_held open
kill -HUP "$server"
wait_log event=reload_waits
curl -s "$url/healthz" >/dev/null || fail "the server waits for its configuration"
kill "$server"
ends 0 yes "a held reload"

# ---- a configuration that is a pipe: refused, and the next one is read
SHOAL_BIN=$real
start_shoal "$work/shoal.yaml"
mv "$work/shoal.yaml" "$work/good.yaml"
mkfifo "$work/shoal.yaml"
kill -HUP "$server"
wait_log 'event=reload_refused.*not a regular file'
rm "$work/shoal.yaml"
mv "$work/good.yaml" "$work/shoal.yaml"
kill -HUP "$server"
wait_log event=reloaded
kill "$server"
ends 0 no "after a pipe"
# ---- an agent whose gateway's name is not resolved any more
gw=$work/gw
"$real" ca init --state "$gw" --cluster attic >/dev/null || fail "no CA"
cat >"$work/gate.yaml" <<END
drain_ms: 100
cluster: {listen: "127.0.0.1:0", name: boss, state: $gw}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
END
start_shoal "$work/gate.yaml"
control=$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
token=$("$real" token create --state "$gw")
HOLD=getaddrinfo HOLD_WHILE=$while_file LD_PRELOAD=$hold "$real" agent --state "$work/agent" --no-measure --name a \
    --join "localhost:$control" --token "$token" >"$work/agent.out" 2>"$work/agent.log" &
agent=$!
for _ in $(seq 2000); do grep -q 'attached as a' "$work/agent.out" && break; sleep 0.02; done
grep -q 'attached as a' "$work/agent.out" || fail "the agent: $(tail -3 "$work/agent.log")"
: >"$while_file"
stop_shoal
wait_held "the agent's getaddrinfo"
kill "$agent"
wait "$agent"
stopped=$?
rm -f "$while_file"
[ "$stopped" = 0 ] || fail "the agent: exit status $stopped"
grep -oE 'event=(stopping|exit_forced)' "$work/agent.log" | tr '\n' ' ' | grep -q 'stopping event=exit_forced $' ||
    fail "the agent: $(tail -3 "$work/agent.log")"

# ---- a worker that an operator started
"$real" worker -n alone -m models/home-intent.gguf -a "unix:$work/alone" 2>"$work/worker.log" >/dev/null &
worker=$!
for _ in $(seq 2000); do [ -S "$work/alone" ] && break; sleep 0.02; done
kill "$worker"
wait "$worker"
stopped=$?
[ "$stopped" = 0 ] || fail "the worker: exit status $stopped: $(tail -2 "$work/worker.log")"

# ---- told to stop before it listens to signals, where whoever started it has them ignored (as `&` in a script does)
for signal in INT TERM; do
    printf '#!/bin/sh\ntrap "" %s\nHOLD=open HOLD_WHILE=%s HOLD_PATH=%s LD_PRELOAD=%s exec "%s" "$@"\n' \
        "$signal" "$while_file" "$work/shoal.yaml" "$hold" "$real" >"$work/held_shoal"
    : >"$while_file"
    "$work/held_shoal" serve -c "$work/shoal.yaml" --port 0 >"$work/ready" 2>"$log" &
    server=$!
    wait_held "open, before SIG$signal"
    kill "-$signal" "$server"
    for _ in $(seq 2000); do # until the supervisor has taken it
        grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$server/status" || break
        sleep 0.02
    done
    rm "$while_file"
    for _ in $(seq 3000); do kill -0 "$server" 2>/dev/null || break; sleep 0.02; done
    kill -0 "$server" 2>/dev/null && fail "SIG$signal during the start is lost: $(tail -n 2 "$log")"
    ends 0 no "SIG$signal during the start"
done
echo "held in a commit, in a look-up, in a read: the process ends; a pipe is refused"
