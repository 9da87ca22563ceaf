#!/usr/bin/env bash
# shoal plan: this machine, a cluster from a file, what has no place, and wrong files.
source "$(dirname "$0")/lib.sh"
n=0
has() { grep -qF -- "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"; n=$((n + 1)); }
plan() {
    local want=$1
    shift
    "$SHOAL_BIN" plan "$@" >"$work/out" 2>&1
    local rc=$?
    [ $rc -eq "$want" ] || fail "plan $*: exit $rc, wanted $want: $(cat "$work/out")"
}

plan 0 shoal.yaml
has "$(hostname)"
has "replica  only this machine is available"

echo "manifest: $PWD/models/models.json
models:
  - {name: home-intent, replicas: 2, standby: 1}
  - {name: home-chat-s, place: {labels: [big], on_battery: never}}" >"$work/c.yaml"
cat >"$work/nodes.yaml" <<'NODES'
nodes:
  - {name: attic, site: home, cores: 4, memory_mb: 4096, gb_per_s: 10}
  - {name: nas, site: home, cores: 8, memory_mb: 16384, gb_per_s: 30, labels: [big]}
  - {name: laptop, cores: 8, memory_mb: 8192, gb_per_s: 40, labels: [big], on_battery: true, battery_percent: 80}
now:
  - {model: home-intent, node: attic}
  - {model: gone, node: nas}
NODES
plan 0 "$work/c.yaml" --nodes "$work/nodes.yaml"
has "attic                replica  it is there already"
has "nas                  replica  no other replica of the model is as near"
has "stop gone on nas: fewer are wanted"
plan 0 "$work/c.yaml" --nodes "$work/nodes.yaml" --json
has '{"model":"home-intent","node":"nas","standby":true,"why":"the most speed is left there"}'
has '"stopping":[{"model":"gone","node":"nas","why":"fewer are wanted"}],"missing":[]'

# The plan as input gives itself, from JSON too.
python3 - "$work" <<'PY' 2>/dev/null || skip "python3 is not there"
import json, sys
w = sys.argv[1]
p = json.load(open(w + "/out"))
now = [{k: s[k] for k in ("model", "node", "standby")} for s in p["placements"]]
text = open(w + "/nodes.yaml").read().split("now:")[0]
open(w + "/again.yaml", "w").write(text + "now: " + json.dumps(now) + "\n")
PY
plan 0 "$work/c.yaml" --nodes "$work/again.yaml" --json
grep -q '"stopping":\[\]' "$work/out" || fail "the plan does not settle: $(cat "$work/out")"
[ "$(grep -o '"why":"it is there already"' "$work/out" | wc -l)" = 4 ] || fail "something moved: $(cat "$work/out")"

# What if: a machine goes, drains or joins. The file stays as it is.
plan 0 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if gone:attic
has "nas                  replica"
grep -q attic "$work/out" && fail "attic is there though it is gone: $(cat "$work/out")"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if gone:nas
has "not on laptop"
plan 0 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if drains:attic
grep -qE "^  attic " "$work/out" && fail "attic keeps a replica though it drains: $(cat "$work/out")"
echo 'nodes: [{name: cellar, site: home, cores: 8, memory_mb: 16384, gb_per_s: 30, labels: [big]}]' >"$work/joins.yaml"
plan 0 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if gone:nas --what-if "joins:$work/joins.yaml"
has "cellar"
plan 2 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if gone:nobody
has "--what-if gone:nobody: there is no such node"
plan 2 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if away:nas
has "--what-if wants gone:NODE, drains:NODE or joins:FILE, not 'away:nas'"
plan 2 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if "joins:$work/nodes.yaml"
has "'attic' is in the cluster already"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml" --what-if "joins:$work/nowhere.yaml"

# One model over several machines: split by speed and memory, what a token costs, and the plan gives itself.
echo "manifest: $PWD/models/models.json
models: [{name: home-chat-m, shards: 2, wire: f16, place: {labels: [big]}}]" >"$work/cut.yaml"
cat >"$work/two.yaml" <<'NODES'
nodes:
  - {name: nas, cores: 8, memory_mb: 16384, gb_per_s: 30, gmul_per_s: 1000, rtt_ms: 0.5, labels: [big]}
  - {name: pi, cores: 4, memory_mb: 4096, gb_per_s: 6, gmul_per_s: 200, rtt_ms: 1.5, labels: [big]}
NODES
plan 0 "$work/cut.yaml" --nodes "$work/two.yaml"
has "so many layers its speed and memory are worth"
has "of 1 round trip with 1024 bytes each way"
grep -qE "a token takes [0-9.]+ ms: [0-9.]+ of computing, 2.00 of" "$work/out" || fail "price: $(cat "$work/out")"
has "in one piece it would take"
plan 0 "$work/cut.yaml" --nodes "$work/two.yaml" --json
has '"hops":1,"hop_ms":2,"hop_bytes":1024,"whole_ms":'
python3 - "$work" <<'PY' || fail "the stages of the plan: $(cat "$work/out")"
import json, sys
w = sys.argv[1]
p = json.load(open(w + "/out"))
at = {s["node"]: s["end_layer"] - s["first_layer"] for s in p["placements"]}
assert at["nas"] + at["pi"] == 8 and at["nas"] > 2 * at["pi"], at
s = p["shards"][0]
assert abs(s["token_ms"] - s["compute_ms"] - s["hop_ms"]) < 1e-3 and s["slowest_ms"] <= s["compute_ms"], s
now = [{k: s[k] for k in ("model", "node", "first_layer", "end_layer")} for s in p["placements"]]
open(w + "/two.again.yaml", "w").write(open(w + "/two.yaml").read() + "now: " + json.dumps(now) + "\n")
PY
plan 0 "$work/cut.yaml" --nodes "$work/two.again.yaml" --json
[ "$(grep -o '"why":"it is there already"' "$work/out" | wc -l)" = 2 ] || fail "a stage moved: $(cat "$work/out")"
sed -i 's/shards: 2/shards: {pi: 3, nas: 4}/' "$work/cut.yaml"
plan 2 "$work/cut.yaml" --nodes "$work/two.yaml"
has "cut.yaml:2: models[0].shards: names 7 layers, but 'home-chat-m' has 8"
sed -i 's/shards: {[^}]*}/shards: 2/; s/home-chat-m/home-intent/' "$work/cut.yaml"
plan 2 "$work/cut.yaml" --nodes "$work/two.yaml"
has "cut.yaml:2: models[0].shards: 'home-intent' cannot be cut: only networks that generate from their prompt alone"

sed -i 's/labels: \[big\]/labels: [small]/' "$work/nodes.yaml"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml"
has "missing 1 replica"
has "not on nas                  it lacks a label"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml" --json
has '"missing":[{"model":"home-chat-s","replicas":1,"standby":0,"refused":[{"node":"attic","why":"it lacks a label"}'

sed -i 's/name: nas/name: attic/' "$work/nodes.yaml"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml"
has "nodes.yaml:3: nodes[1].name: 'attic' is already the name of nodes[0]"
echo 'nodes: [{name: a, memory_mb: 12, core: 4}]' >"$work/nodes.yaml"
plan 1 "$work/c.yaml" --nodes "$work/nodes.yaml"
has "nodes.yaml:1: nodes[0]: there is no key 'core' here; did you mean 'cores'?"
echo 'nodes: [{name: a, memory_mb: 1200}]' >"$work/nodes.yaml"
sed -i 's/standby: 1/place: {nodes: [b]}/' "$work/c.yaml"
plan 2 "$work/c.yaml" --nodes "$work/nodes.yaml"
has "c.yaml:3: models[0].place.nodes[0]: there is no node 'b'"
plan 1 "$work/c.yaml" --nodes "$work/absent.yaml"
plan 2
# The gateway is there before the others: it keeps what need not move.
echo "manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s, replicas: 2}]" >"$work/grown.yaml"
cat >"$work/grown.nodes" <<'NODES'
nodes:
  - {name: nas, cores: 8, memory_mb: 16384, gb_per_s: 30}
  - {name: boss, cores: 2, memory_mb: 4096, gb_per_s: 5, gateway: true}
NODES
plan 0 "$work/grown.yaml" --nodes "$work/grown.nodes" --json
has '{"model":"home-intent","node":"boss","standby":false,"why":"only this machine is available"}'
has '{"model":"home-chat-s","node":"nas","standby":false,"why":'

# What a running gateway would do: what runs stays, what is new is placed, what is not in the file goes.
agent=
trap 'end $agent; cleanup' EXIT
"$SHOAL_BIN" ca init --state "$work/gw" >/dev/null
control=127.0.0.1:$(free_port)
cat >"$work/run.yaml" <<YAML
manifest: $PWD/models/models.json
cluster: {listen: "$control", name: boss, state: $work/gw}
models: [{name: home-intent}, {name: home-chat-s, replicas: 2}]
YAML
start_shoal "$work/run.yaml"
"$SHOAL_BIN" agent --state "$work/pi" --no-measure -l 127.0.0.1:0 --join "$control" \
    --token "$("$SHOAL_BIN" token create --state "$work/gw")" --name pi >"$work/pi.out" 2>"$work/pi.log" &
agent=$!
for _ in $(seq 1200); do curl -s "$url/readyz" | grep -q '"id":"pi/home-chat-s/0","model":"home-chat-s","state":"ready"' && break; sleep 0.05; done
plan 0 "$work/run.yaml" --server "$url"
[ "$(grep -c 'replica  it is there already' "$work/out")" = 3 ] || fail "the plan is not what runs: $(cat "$work/out")"
plan 0 "$work/run.yaml" --server "$url" --json
has '{"model":"home-intent","node":"boss","standby":false,"why":"it is there already"}'
has '{"model":"home-chat-s","node":"pi","standby":false,"why":"it is there already"}'
has '"stopping":[],"missing":[]'
cat >"$work/next.yaml" <<YAML
manifest: $PWD/models/models.json
models: [{name: home-intent, replicas: 2}, {name: home-embed, place: {nodes: [attic]}}]
YAML
plan 1 "$work/next.yaml" --server "$url"
has "boss                 replica  it is there already"
has "pi                   replica  no other replica of the model is as near"
has "stop home-chat-s on pi: fewer are wanted"
has "missing 1 replica"
stop_shoal
printf 'models: [{name: alone, path: %s}]\n' "$PWD/models/home-intent.gguf" >"$work/single.yaml"
start_shoal "$work/single.yaml"
plan 1 "$work/single.yaml" --server "$url"
has "this gateway has no port for other machines"
stop_shoal
echo "$n plans as they should be"
