#!/usr/bin/env bash
# A machine that is attached to a gateway: the gateway process crashes, then the agent's. The machine attaches again by
# itself, its worker stays the same process, and nothing is left when both are stopped.
source "$(dirname "$0")/lib.sh"
agent=
end_agent() { end $agent; cleanup; }
trap end_agent EXIT
until_true() {
    local what=$1
    shift
    for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
    fail "not in a minute: $what: $(tail -5 "$work/agent.log")"
}
answers() {
    curl -s -m 20 "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz '"$RANDOM"'"}' | grep -q play_music
}
agent_process() { pgrep -P "$agent" -x shoal-agent; }
worker() { pgrep -P "$agent" -f 'shoal worker'; }
another() { local now; now=$("$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
attached() { [ "$(grep -c 'component=attach event=attached' "$work/agent.log")" -ge "$1" ]; }

printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" >"$work/node.yaml"
"$SHOAL_BIN" ca init --state "$work/gw" >/dev/null
cat >"$work/shoal.yaml" <<YAML
cluster: {listen: "127.0.0.1:0", name: boss, state: $work/gw}
manifest: $PWD/models/models.json
cache: {mb: 0}
models: [{name: home-embed}]
YAML
start_shoal "$work/shoal.yaml"
control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
"$SHOAL_BIN" token create --state "$work/gw" >"$work/token"
# The token comes by a pipe, which the next life finds empty.
"$SHOAL_BIN" agent --state "$work/pi" --no-measure -c "$work/node.yaml" -l 127.0.0.1:0 --join "$control" --token-file - --name pi \
    < <(cat "$work/token") >"$work/agent.out" 2>"$work/agent.log" &
agent=$!
until_true "an answer of the attached machine" answers
far=$(worker) near=$(pgrep -P "$server" -f 'shoal worker')

for n in 1 2 3; do
    was=$(gateway)
    kill -SEGV "$was"
    until_true "another gateway" another gateway "$was"
    until_true "the machine attaches again" attached $((n + 1))
    until_true "an answer after the gateway's crash" answers
done
[ "$(worker)" = "$far" ] || fail "the machine's worker is another one"
[ "$(pgrep -P "$server" -f 'shoal worker')" = "$near" ] || fail "the gateway's worker is another one"

for n in 1 2 3; do
    was=$(agent_process)
    kill -SEGV "$was"
    until_true "another agent" another agent_process "$was"
    until_true "it attaches again" attached $((n + 4))
    until_true "an answer after the agent's crash" answers
    [ "$(worker)" = "$far" ] || fail "the machine's worker is another one after its agent's crash"
done
[ "$(grep -c event=agent_crashed "$work/agent.log")" = 3 ] || fail "three crashes are not in the log"
grep -q 'component=agent event=crash .*signal=11' "$work/agent.log" || fail "no crash report"
[ "$(grep -c '^attached' "$work/agent.out")" = 1 ] || fail "attached was said again: $(cat "$work/agent.out")"

family="$(agent_process) $far"
kill "$agent"
wait "$agent"
[ $? = 0 ] || fail "the agent ended with an error"
for pid in $family; do kill -0 "$pid" 2>/dev/null && fail "a process of the agent is left"; done
agent=
stop_shoal
[ "$stopped" = 0 ] || fail "the server ended with $stopped"
echo "three crashes of the gateway and three of the agent: the same workers"
