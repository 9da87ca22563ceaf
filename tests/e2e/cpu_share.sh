#!/usr/bin/env bash
# cpu of shoal.yaml: each thread of gateway and workers has the nice level and the policy, workers leave cores to others,
# also those that are started later; a user without privileges serves all the same, with one warning.
source "$(dirname "$0")/lib.sh"
agent=
end_agent() { end $agent; cleanup; }
trap end_agent EXIT
[ "$(id -u)" = 0 ] || skip "another user's processes need root"
command -v setpriv >/dev/null || skip "setpriv is not installed"
chat='{"model":"home-chat-s","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}'
cat >"$work/cpu.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s, threads: 3}]
cpu: {reserve: 1, nice: 5, sched: batch}
END

workers() { pgrep -P "$server" -x shoal-worker; } # children of the supervisor
# has NICE POLICY PID...: each thread of these has them: fields 19 and 41 of proc(5), behind the name in brackets.
has() {
    local want="$1 $2" pid n=0 stat
    shift 2
    for pid in "$@"; do
        for stat in /proc/"$pid"/task/*/stat; do
            # shellcheck disable=SC2046 # fields
            set -- $(sed 's/.*) //' "$stat")
            [ "${17} ${39}" = "$want" ] || fail "$stat has nice and policy ${17} ${39}, not $want"
            n=$((n + 1))
        done
    done
    [ "$n" -gt 0 ] || fail "there are no threads"
}
# threads MODEL: what its worker said last.
threads() { grep -E "event=ready .*model=$1 " "$log" | tail -1 | grep -o ' threads=[0-9]*'; }
answers() { curl -s -m 60 "$url/v1/chat/completions" -d "$chat" | grep -q '"finish_reason"' || fail "no reply"; }

export SHOAL_CORES=4 # on any machine
start_shoal "$work/cpu.yaml"
grep -q cpu_refused "$log" && fail "root was refused"
[ "$(workers | wc -l)" = 2 ] || fail "workers: $(workers)"
# shellcheck disable=SC2046 # pids
has 5 3 "$(gateway)" $(workers) # SCHED_BATCH
has 0 0 "$server"
[ "$(threads home-intent)" = " threads=3" ] || fail "four cores less one are:$(threads home-intent)"
[ "$(threads home-chat-s)" = " threads=3" ] || fail "three threads as asked are:$(threads home-chat-s)"
answers

# ---- once the gateway, then a worker, was started again: the reserve counts once
was=$(gateway)
kill -SEGV "$was"
for _ in $(seq 400); do g=$(gateway); [ -n "$g" ] && [ "$g" != "$was" ] && curl -sf -m 5 -o "$work/ok" "$url/readyz" && break; sleep 0.05; done
[ "$g" != "$was" ] || fail "no other gateway"
n=$(grep -c 'event=ready .*model=home-intent ' "$log")
for pid in $(workers); do grep -aq home-intent "/proc/$pid/cmdline" && kill -9 "$pid"; done
for _ in $(seq 400); do [ "$(grep -c 'event=ready .*model=home-intent ' "$log")" -gt "$n" ] && break; sleep 0.05; done
[ "$(grep -c 'event=ready .*model=home-intent ' "$log")" = $((n + 1)) ] || fail "no new worker"
[ "$(threads home-intent)" = " threads=3" ] || fail "the new worker has$(threads home-intent)"
# shellcheck disable=SC2046 # pids
has 5 3 "$(gateway)" $(workers)
answers

# ---- a reload leaves it as it is, and says so
sed -i 's/nice: 5/nice: 6/' "$work/cpu.yaml"
kill -HUP "$server"
for _ in $(seq 400); do grep -q 'event=reloaded' "$log" && break; sleep 0.05; done
grep -q 'event=left key=cpu.nice from=5 to=6 needs="a restart"' "$log" || fail "the reload: $(grep -E 'key=cpu' "$log")"
has 5 3 "$(gateway)"
stop_shoal

# ---- as a user without privileges
mkdir "$work/nobody" && chown 65534:65534 "$work/nobody" && chmod 755 "$work"
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
$nobody test -x "$SHOAL_BIN" -a -r models/models.json 2>/dev/null ||
    { echo "the refusal was not tried: this tree is not everybody's"; exit 0; }
as_nobody() { # PREFIX...: as start_shoal, through these commands
    cat >"$work/start" <<END
#!/bin/sh
export HOME="$work/nobody" SHOAL_STATE="$work/nobody" XDG_RUNTIME_DIR="$work/nobody"
exec $* "$SHOAL_BIN" "\$@"
END
    chmod 755 "$work/start"
    SHOAL_BIN=$work/start start_shoal "$work/cpu.yaml"
}
sed -i 's/^cpu:.*/cpu: {nice: -5, sched: rr}/' "$work/cpu.yaml"
as_nobody prlimit --nice=0 --rtprio=0 "$nobody"
[ "$(grep -c 'level=warn' "$log")" = 1 ] || fail "warnings: $(grep 'level=warn' "$log")"
grep -q 'level=warn component=serve event=cpu_refused nice=-5 sched=rr refused="nice and sched" .*what_to_do=' "$log" || fail "$(grep 'level=warn' "$log")"
# shellcheck disable=SC2046 # pids
has 0 0 "$(gateway)" $(workers)
answers
stop_shoal

# ---- with the limits of deploy/systemd/shoal-priority.conf; where root may not raise limits, with its other way
nice=$(sed -n 's/^LimitNICE=-\([0-9]*\)$/\1/p' deploy/systemd/shoal-priority.conf)
limits="--nice=$((20 + nice)) --rtprio=$(sed -n 's/^LimitRTPRIO=//p' deploy/systemd/shoal-priority.conf)"
# shellcheck disable=SC2086 # words
if prlimit $limits true 2>/dev/null; then
    as_nobody prlimit "$limits" "$nobody"
else
    echo "root may not raise limits here: with the capability"
    as_nobody "$nobody --inh-caps=+sys_nice --ambient-caps=+sys_nice"
fi
grep 'level=warn' "$log" && fail "a warning with what the drop-in gives"
# shellcheck disable=SC2046 # pids
has -5 2 "$(gateway)" $(workers) # SCHED_RR
answers
stop_shoal

# ---- an agent has the same as options, and reports as many cores as it uses
"$SHOAL_BIN" agent --no-supervise --cpu-sched idle >"$work/said" 2>&1 && fail "an agent with --cpu-sched idle"
grep -q 'cpu-sched wants fair, batch, rr or fifo, not "idle"' "$work/said" || fail "$(cat "$work/said")"
"$SHOAL_BIN" agent --cpu-nice 20 >"$work/said" 2>&1 && fail "an agent with --cpu-nice 20"
grep -q 'cpu-nice wants a whole number from -20 to 19' "$work/said" || fail "$(cat "$work/said")"
"$SHOAL_BIN" ca init --state "$work/gw" >/dev/null
cat >"$work/boss.yaml" <<END
cluster: {listen: "127.0.0.1:0", name: boss, state: $work/gw}
manifest: $PWD/models/models.json
models: [{name: home-embed}]
END
printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" >"$work/node.yaml"
start_shoal "$work/boss.yaml"
control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
"$SHOAL_BIN" token create --state "$work/gw" >"$work/token"
"$SHOAL_BIN" agent --state "$work/pi" --no-measure -c "$work/node.yaml" -l 127.0.0.1:0 --join "$control" --token-file "$work/token" --name pi \
    --cpu-reserve 2 --cpu-nice -3 --cpu-sched batch >"$work/agent.out" 2>"$work/agent.log" &
agent=$!
for _ in $(seq 400); do
    curl -s -m 20 "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz"}' | grep -q play_music && break
    sleep 0.05
done
# shellcheck disable=SC2046 # pids
has -3 3 $(pgrep -P "$agent" -x shoal-agent) $(pgrep -P "$agent" -x shoal-worker)
[ "$(pgrep -P "$agent" | wc -l)" = 2 ] || fail "children of the agent: $(pgrep -P "$agent" -l)"
grep -q 'event=ready .* threads=2 ' "$work/agent.log" || fail "four cores less two are: $(grep event=ready "$work/agent.log")"
"$SHOAL_BIN" nodes --server "$url" --json | grep -q '"name":"pi".*"cores":2,' || fail "the agent reports: $("$SHOAL_BIN" nodes --server "$url" --json)"
