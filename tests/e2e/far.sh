#!/usr/bin/env bash
# A model that only another machine has: its answers are those of a local one, and its worker, its agent and its
# gateway may die.
source "$(dirname "$0")/lib.sh"
agent=
end_agent() { end $agent; cleanup; }
trap end_agent EXIT
gw=$work/gw

until_true() {
    local what=$1
    shift
    for _ in $(seq 600); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass: $(curl -s "$url/readyz"); $(tail -5 "$work/agent.log")"
}
ask() {
    curl -s -m 20 "$url/v1/classify" -d '{"model":"home-intent","input":"turn off the kitchen light"}' |
        sed 's/"id":"[^"]*"//; s/"created":[0-9]*//'
}
answers() { ask | grep -q '"label"'; }
start_agent() {
    "$SHOAL_BIN" agent --state "$work/pi" --no-measure -c "$work/node.yaml" -l 127.0.0.1:0 "$@" \
        >"$work/agent.out" 2>>"$work/agent.log" &
    agent=$!
}

printf 'manifest: %s\nmodels: [{name: home-intent}]\n' "$PWD/models/models.json" | tee "$work/node.yaml" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
want=$(ask)
stop_shoal
[[ $want = *'"label"'* ]] || fail "alone: $want"

"$SHOAL_BIN" ca init --state "$gw" >/dev/null
cat >"$work/c.yaml" <<YAML
cluster: {listen: "127.0.0.1:0", name: boss, state: $gw}
manifest: $PWD/models/models.json
cache: {mb: 0}
models: [{name: home-embed}]
YAML
start_shoal "$work/c.yaml"
control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
ask | grep -q 'model_not_found\|no_model\|"error"' || fail "a model that nobody has answers: $(ask)"
start_agent --join "$control" --token "$("$SHOAL_BIN" token create --state "$gw")" --name pi
until_true "pi answers for home-intent" answers
[ "$(ask)" = "$want" ] || fail "from afar: $(ask), alone: $want"
lists_it() { "$SHOAL_BIN" nodes --server "$url" --json | grep -q '"replicas":\[{"id":"home-intent/0","model":"home-intent","state":"ready"'; }
until_true "nodes lists pi's worker" lists_it
curl -s "$url/readyz" | grep -q '"id":"pi/home-intent/0"' || fail "readyz: $(curl -s "$url/readyz")"

# ---- the relay is for gateways: not for nodes, and not for those who show nothing
relay=$(sed -n 's/.*component=supervisor event=started.* port=\([0-9]*\).*/\1/p' "$work/agent.log" | head -1)
if command -v openssl >/dev/null; then
    for who in "" "-cert $work/pi/member.pem -key $work/pi/member.pem"; do
        # shellcheck disable=SC2086
        (sleep 0.5; printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0'; sleep 0.5) | timeout 10 openssl s_client -quiet \
            -connect "127.0.0.1:$relay" -servername home-intent/0 -alpn h2 $who >"$work/got" 2>"$work/err"
        [ ! -s "$work/got" ] || fail "the relay speaks to \"$who\""
    done
    grep -q 'component=relay event=connection_refused.*only gateways, and first stages of the models here, call workers' "$work/agent.log" ||
        fail "$(grep relay "$work/agent.log")"
fi

# ---- its worker dies, then its agent, then the gateway
worker=$(pgrep -P "$agent" -f 'home-intent' | head -1)
kill -9 "$worker"
until_true "pi answers after its worker died" answers
[ "$(ask)" = "$want" ] || fail "after its worker died: $(ask)"
kill -9 "$agent"
wait "$agent" 2>/dev/null
until_true "its model is gone" sh -c "! curl -s '$url/readyz' | grep -q pi/home-intent"
start_agent
until_true "pi answers after its agent died" answers
kill "$agent"
wait "$agent" || fail "the agent ends with $?"
agent=
start_agent
until_true "pi answers after it was stopped" answers
[ "$(ask)" = "$want" ] || fail "in the end: $(ask)"
"$SHOAL_BIN" ca revoke pi --state "$gw" >/dev/null
until_true "the revoked machine's model is gone" sh -c "! curl -s '$url/readyz' | grep -q pi/home-intent"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "another machine answers as this one would, and comes back three times"
