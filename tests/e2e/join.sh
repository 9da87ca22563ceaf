#!/usr/bin/env bash
# A gateway and machines with state folders of their own: init, token, join, nodes, a gateway that is killed, revoke.
source "$(dirname "$0")/lib.sh"
agents=()
end_agents() { end "${agents[@]}"; cleanup; }
trap end_agents EXIT
gw=$work/gw

# until WHAT COMMAND...: wait until it succeeds.
until_true() {
    local what=$1
    shift
    for _ in $(seq 600); do
        "$@" && return 0
        sleep 0.05
    done
    fail "$what: never came to pass; nodes: $("$SHOAL_BIN" nodes --server "$url" 2>&1); $(tail -q -n 3 "$work"/*.agent 2>/dev/null)"
}
nodes() { "$SHOAL_BIN" nodes --server "$url" --json; }
is_there() { nodes | grep -q "\"name\":\"$1\""; }
is_gone() { ! is_there "$1"; }
says() { grep -q -- "$1" "$2"; }

# gateway PORT: serve with a cluster port; $control is its address.
gateway() {
    cat >"$work/c.yaml" <<YAML
cluster: {listen: "127.0.0.1:$1", name: boss, state: $gw}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
YAML
    start_shoal "$work/c.yaml"
    control=127.0.0.1:$(sed -n 's/.*component=control event=listening.* port=\([0-9]*\).*/\1/p' "$log" | head -1)
}

# agent NAME ARGS...: start it in the background with a state folder of its own; $agent is its pid.
agent() {
    local name=$1
    shift
    "$SHOAL_BIN" agent --state "$work/$name" --no-measure "$@" >"$work/$name.out" 2>"$work/$name.agent" &
    agent=$!
    agents+=("$agent")
}

# refused PATTERN ARGS...: an agent that ends with an error that says so.
refused() {
    local pattern=$1
    shift
    timeout 30 "$SHOAL_BIN" agent --no-measure "$@" >/dev/null 2>"$work/err" && fail "shoal agent $* was let in"
    grep -qE -- "$pattern" "$work/err" || fail "shoal agent $* says: $(cat "$work/err")"
}

# ---- before there is a CA
cat >"$work/c.yaml" <<YAML
cluster: {listen: "127.0.0.1:0", state: $gw}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
YAML
"$SHOAL_BIN" serve -c "$work/c.yaml" --port 0 >/dev/null 2>"$work/err" && fail "a gateway without a CA has started"
grep -q 'make one with: shoal ca init' "$work/err" || fail "without a CA: $(cat "$work/err")"
"$SHOAL_BIN" ca init --state "$gw" --cluster attic >/dev/null || fail "no CA"
gateway "$(free_port)"
"$SHOAL_BIN" nodes --server "$url" | grep -q '^no machine is attached' || fail "shoal nodes does not say that there is none"

# ---- join, and be seen
token=$("$SHOAL_BIN" token create --state "$gw")
agent pi --join "$control" --token "$token" --name kitchen-pi --site house -L kitchen --device cuda:0=24576
until_true "kitchen-pi attaches" is_there kitchen-pi
until_true "it says so" says '^attached as kitchen-pi to boss$' "$work/pi.out"
nodes | grep -q '"site":"house".*"cores":[1-9].*"labels":\["kitchen"\]' || fail "facts: $(nodes)"
nodes | grep -q '"devices":\[{"name":"cpu",.*{"name":"cuda:0","kind":"cuda","memory_bytes":25769803776}\]' || fail "devices: $(nodes)"
"$SHOAL_BIN" nodes --server "$url" | grep -qx 'kitchen-pi has the device cuda:0 with 24.0 GiB' || fail "shoal nodes shows no device"
until_true "it reports" sh -c "'$SHOAL_BIN' nodes --server '$url' --json | grep -q '\"memory_free_bytes\":[1-9]'"
"$SHOAL_BIN" nodes --server "$url" | grep -qE '^kitchen-pi +node +house +[1-9]' || fail "$("$SHOAL_BIN" nodes --server "$url")"
[ "$(stat -c %a "$work/pi/member.pem")" = 600 ] || fail "others may read the key"
if command -v openssl >/dev/null; then
    for kind in certificate:member.pem ca:ca.crt; do
        end=$(date -d "$(openssl x509 -in "$gw/${kind#*:}" -noout -enddate | cut -d= -f2)" +%s)
        curl -s "$url/metrics" | grep -qx "shoal_certificate_expiry_timestamp_seconds{use=\"cluster\",kind=\"${kind%:*}\"} $end" ||
            fail "${kind#*:} ends at $end: $(curl -s "$url/metrics" | grep certificate)"
    done
    openssl verify -CAfile "$gw/ca/ca.crt" "$work/pi/member.pem" >/dev/null 2>&1 || fail "openssl does not believe it"
    openssl x509 -in "$work/pi/member.pem" -noout -ext subjectAltName | grep -q 'URI:shoal://attic/node/kitchen-pi' ||
        fail "$(openssl x509 -in "$work/pi/member.pem" -noout -text)"
fi

# ---- who must stay out
refused 'is used by kitchen-pi' --state "$work/thief" --join "$control" --token "$token" --name thief
[ ! -e "$work/thief/member.pem" ] || fail "a refused machine has a certificate"
fresh=$("$SHOAL_BIN" token create --state "$gw")
refused 'is taken' --state "$work/thief" --join "$control" --token "$fresh" --name kitchen-pi
"$SHOAL_BIN" ca init --state "$work/other" >/dev/null
alien=$("$SHOAL_BIN" token create --state "$work/other")
refused 'its CA has another key' --state "$work/thief" --join "$control" --token "$alien" --name thief
refused 'this is no token' --state "$work/thief" --join "$control" --token abc --name thief
refused 'this is no token: it is as long as one' --state "$work/thief" --join "$control" --token "${fresh//./x}" --name thief
refused 'nowhere.invalid:7080: its name cannot be resolved: is the host spelled right' --state "$work/thief" --join nowhere.invalid:7080 --token "$fresh"
refused '127.0.0.1:1: it cannot be reached: does shoal serve run there' --state "$work/thief" --join 127.0.0.1:1 --token "$fresh"
refused 'does not speak TLS: machines join at the port .* cluster.listen' --state "$work/thief" --join "127.0.0.1:$port" --token "$fresh"
refused 'is HOST:PORT, with nothing before it' --state "$work/thief" --join "http://$control" --token "$fresh"
touch "$work/plain"
refused 'plain/x: Not a directory: the state folder must be one that this user can write; say where with --state' \
    --state "$work/plain/x" --join "$control" --token "$fresh"
mkdir "$work/full"
if mount -t tmpfs -o size=16k tmpfs "$work/full" 2>/dev/null; then
    refused 'No space left on device: the state folder must be one .* with room in it.* The token is still good' \
        --state "$work/full/s" --join "$control" --token "$fresh" --name thief
    umount "$work/full"
fi
refused 'has not joined a cluster: give --join' --state "$work/thief"
refused 'needs a token' --state "$work/thief" --join "$control"
refused 'cannot be the name of a node' --state "$work/thief" --join "$control" --token "$fresh" --name 'A B'
grep -q "$token\|$fresh" "$log" && fail "a token is in the log"
short=$("$SHOAL_BIN" token create --state "$gw" --ttl 1s)
sleep 2.1
refused 'is expired' --state "$work/thief" --join "$control" --token "$short" --name thief

# ---- a machine started again, without its token and with it; one more by a token in a file
kill "$agent"
wait "$agent" || fail "the agent ends with $?"
until_true "kitchen-pi is gone" is_gone kitchen-pi
agent pi
until_true "kitchen-pi is back" is_there kitchen-pi
kill "$agent"
wait "$agent"
agent pi --join "$control" --token "$token" --name kitchen-pi
until_true "kitchen-pi is back with its old token" is_there kitchen-pi
printf '%s\n' "$fresh" >"$work/token"
agent cellar --join "$control" --token-file "$work/token" --name cellar
until_true "cellar attaches" is_there cellar
kill "$agent"
wait "$agent"
until_true "cellar is gone" is_gone cellar
rm "$work/token" # it was used: who has tidied up need not change the command line
agent cellar --join "$control" --token-file "$work/token" --name cellar
cellar=$agent
until_true "cellar is back without the file of its token" is_there cellar

# ---- a copy of its disk, on another machine
cp -r "$work/cellar" "$work/copy"
agent copy -l 127.0.0.1:0
copy=$agent
until_true "a copy is refused and told why" says 'another machine is attached as cellar, from 127.0.0.1' "$work/copy.agent"
kill -0 "$copy" || fail "the agent of a copy has ended: $(cat "$work/copy.agent")"
says 'event=identity_twice node=cellar attached_from=127.0.0.1 refused_from=127.0.0.1' "$log" || fail "the gateway says nothing of the copy"
"$SHOAL_BIN" nodes --server "$url" | grep -q '^cellar is attached from 127.0.0.1, and a second machine with its certificate' ||
    fail "nodes does not show the copy: $("$SHOAL_BIN" nodes --server "$url")"
kill "$copy"
wait "$copy"

# ---- the gateway dies and comes back
kill -9 "$server"
wait "$server" 2>/dev/null
port_was=${control##*:}
cp "$log" "$work/first.log"
gateway "$port_was"
until_true "kitchen-pi finds the gateway again" is_there kitchen-pi
until_true "cellar finds the gateway again" is_there cellar

# ---- revoked
"$SHOAL_BIN" ca revoke kitchen-pi --state "$gw" | grep -q 'kitchen-pi is out: 1 certificate' || fail "not revoked"
until_true "kitchen-pi is detached" is_gone kitchen-pi
until_true "it is told why" says 'revoked' "$work/pi.agent"
until_true "it is refused when it connects" says 'event=connection_refused.*revoked' "$log"
is_there cellar || fail "cellar was disturbed"
kill -0 "$cellar" || fail "cellar has ended"
again=$("$SHOAL_BIN" token create --state "$gw")
agent pi2 --join "$control" --token "$again" --name kitchen-pi
until_true "the name is free for who has a new token" is_there kitchen-pi

# ---- a gateway's role comes by a gateway's token
boss=$("$SHOAL_BIN" token create --state "$gw" --role gateway)
"$SHOAL_BIN" agent --state "$work/second" --no-measure --join "$control" --token "$boss" --name second >"$work/out" 2>&1 ||
    fail "$(cat "$work/out")"
grep -q 'joined attic as the gateway second' "$work/out" || fail "$(cat "$work/out")"
"$SHOAL_BIN" ca show --state "$gw" | grep -qE '^second +gateway +valid' || fail "$("$SHOAL_BIN" ca show --state "$gw")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "joined, came back, and was revoked; fifteen tries stayed out"
