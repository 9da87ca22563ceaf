#!/usr/bin/env bash
# deploy/ray on a real Ray cluster of three raylets: while clients stream through a Ray Serve ingress, workers are scaled, updated and
# killed, certificates are renewed, the controller is killed, and a raylet is lost with all that it started. Every stream comes to its
# end with the bytes of an undisturbed one. Then Ray's own autoscaler starts nodes for requests that wait, and ends them.
# long: Ray is installed from PyPI (half a minute), and it runs for minutes
# alone: a node of Ray has half a minute to start
source "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "openssl is not installed"
command -v setpriv >/dev/null || skip "setpriv is not installed"
venv=$(scripts/ray_env.sh 2>"$work/install") || skip "Ray: $(tail -1 "$work/install")"
here=$PWD
export HOME=$work/home RAY_USAGE_STATS_ENABLED=0 RAY_DEDUP_LOGS=0 PYTHONPATH=$here/deploy/ray PYTHONPYCACHEPREFIX=$venv/pycache
export RAY_TMPDIR=$work PATH=$venv/bin:$PATH
unset PYTHONDONTWRITEBYTECODE # Ray starts a dozen interpreters, which all import it
mkdir "$HOME"
cluster= clients=
end_cluster() { # its end of standard input ends it
    exec 8>&-
    [ -z "$cluster" ] || wait "$cluster"
    cluster=
}
stop_all() {
    [ -z "$clients" ] || end "$clients"
    end_cluster
    cleanup
}
trap stop_all EXIT

start_cluster() { # Ray gives a raylet 30 s to start, which a busy machine may not have
    for _ in 1 2 3; do
        rm -f "$work/orders"
        mkfifo "$work/orders"
        : >"$work/said"
        python "$here/tests/ray/cluster.py" "$@" <"$work/orders" >"$work/said" 2>"$work/cluster.log" &
        cluster=$!
        exec 8>"$work/orders"
        while kill -0 "$cluster" 2>/dev/null && [ ! -s "$work/said" ]; do sleep 0.1; done
        address=$(head -1 "$work/said")
        [ -n "$address" ] && return
        end_cluster
    done
    skip "no node of Ray starts here in half a minute: $(tail -1 "$work/cluster.log")"
}
order() {
    local before
    before=$(wc -l <"$work/said")
    echo "$*" >&8
    for _ in $(seq 600); do [ "$(wc -l <"$work/said")" -gt "$before" ] && return; sleep 0.1; done
    fail "the cluster does not obey: $*: $(tail -5 "$work/cluster.log")"
}
ray_shoal() { timeout 300 python -m shoal_ray --address "$address" "$@" 2>"$work/err"; }
status() { ray_shoal status --json >"$work/status" && python - "$work/status" "$1" <<'PY'
import json, sys
o = json.load(open(sys.argv[1]))
chat, gateways = o.get("worker/home-chat-s", {}), o["gateway"]
actors = [a for k in o.values() for a in k["actors"]]
print(eval(sys.argv[2]))
PY
}
until_true() { # WHAT EXPRESSION of the status
    local end=$((SECONDS + 180))
    while [ $SECONDS -lt $end ]; do [ "$(status "$2")" = True ] && return; done
    fail "$1: never came to pass: $(ray_shoal status)$(cat "$work/err")"
}
whole='all(k["ready"] == k["wanted"] == len(k["actors"]) for k in o.values())'

deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh"
python tests/ray/test_pure.py "$work/tls" || fail "test_pure.py"
port=$(free_port)
spec() { # MORE: keys of home-chat-s
    cat <<YAML
program: $SHOAL_BIN
tls: tls
ports: $((port + 100))-$((port + 180))
gateways: {replicas: 2, port: $((port + 20)), cpus: 0.2, config: {api_keys: ["sha256:$(printf %s sk-ray | sha256sum | cut -d' ' -f1)"]}}
models:
  home-intent: {path: $PWD/models/home-intent.gguf, cpus: 0.2, threads: 1}
  home-chat-s: {path: $PWD/models/home-chat-s.gguf, cpus: 0.5, threads: 1, $1}
YAML
}

# ---- three nodes
start_cluster 3 2
spec "min: 3, max: 5, group: STRICT_SPREAD" >"$work/cluster.yaml"
ray_shoal up --wait-s 240 "$work/cluster.yaml" >"$work/up" || fail "up: $(cat "$work/up" "$work/err")"
[ "$(status "$whole")" = True ] || fail "not whole: $(cat "$work/status")"
[ "$(status 'len({a["node"] for a in chat["actors"]}) == 3')" = True ] || fail "the group is not spread: $(cat "$work/status")"
ray_shoal ingress --port "$port" >"$work/ingress" || fail "ingress: $(cat "$work/ingress" "$work/err")"
url=http://127.0.0.1:$port
[ "$(curl -s -o "$work/body" -w '%{http_code}' "$url/v1/models")" = 401 ] || fail "nobody asks for the key: $(cat "$work/body")"
key='authorization: Bearer sk-ray'
curl -s -m 60 -H "$key" "$url/v1/classify" -d '{"model": "home-intent", "input": "turn on the light"}' | grep -q light || fail "no class through the ingress"
[ "$(curl -s -H "$key" -o "$work/body" -w '%{http_code} %{content_type}' "$url/v1/chat/completions" -d '{"model": "nobody", "messages": [{"role": "user", "content": "hello"}]}')" = "404 application/json" ] ||
    fail "an error is another one: $(cat "$work/body")"
gateway=$(status 'gateways["actors"][0]["address"]')
curl -s -H "$key" "http://$gateway/metrics" | grep -q '^shoal_model_replicas_ready{model="home-chat-s"} 3' || fail "the gateway sees other workers"
# A stream comes in its parts, not at its end.
parts=
for _ in $(seq 10); do
    : >"$work/parts"
    curl -sN -m 100 -H "$key" -H 'cache-control: no-store' "$url/v1/chat/completions" -d '{"model":"home-chat-s","stream":true,"ignore_eos":true,"max_tokens":1900,"messages":[{"role":"user","content":"hello"}]}' >"$work/parts" &
    part=$!
    for _ in $(seq 3000); do grep -q content "$work/parts" && break; sleep 0.005; done
    grep -q 'data: \[DONE\]' "$work/parts" || parts=yes
    wait "$part"
    grep -q 'data: \[DONE\]' "$work/parts" || fail "a stream through the ingress: $(tail -c 300 "$work/parts")"
    [ -n "$parts" ] && break
done
[ -n "$parts" ] || fail "streams come as a whole"
echo "three nodes, four workers, two gateways and an ingress"

# ---- streams during all of it
export SHOAL_KEY=sk-ray
python3 tests/kubernetes/streams.py record "$url" "$work/replies" || fail "no replies to compare with"
python3 tests/kubernetes/streams.py run "$url" "$work/replies" 6 "$work/report" >"$work/streams.out" 2>&1 &
clients=$!
streaming() { kill -0 "$clients" 2>/dev/null || fail "the clients ended: $(tail -3 "$work/streams.out")"; }

ray_shoal scale home-chat-s 5 || fail "scale: $(cat "$work/err")"
until_true "five workers" "$whole and chat['ready'] == 5"
streaming
ray_shoal scale home-chat-s 3 || fail "scale: $(cat "$work/err")"
until_true "three workers" "$whole and chat['ready'] == 3"
streaming
ray_shoal scale home-chat-s 6 && fail "more workers than the most"
grep -q 'may have 3 to 5' "$work/err" || fail "$(cat "$work/err")"
echo "scaled from 3 to 5 workers and back"

pid=$(status 'chat["actors"][0]["pid"]')
kill -9 "$pid"
until_true "the killed worker again" "$whole and $pid not in [a['pid'] for a in chat['actors']]"
streaming
pid=$(status 'gateways["actors"][0]["pid"]')
kill -9 "$pid" # the supervisor, and the gateway with it
until_true "the killed gateway again" "$whole and $pid not in [a['pid'] for a in gateways['actors']]"
streaming
pids=$(status 'sorted(a["pid"] for a in actors)')
controller=$(pgrep -f 'ray::Controller' | while read -r p; do tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "HOME=$HOME" && echo "$p"; done)
[ -n "$controller" ] || fail "there is no controller"
kill -9 $controller
until_true "the controller again" "$whole"
[ "$(status 'sorted(a["pid"] for a in actors)')" = "$pids" ] || fail "another controller started others: $(cat "$work/status")"
streaming
echo "a worker, a gateway and the controller were killed"

serial() { openssl s_client -connect "$1" -tls1_3 -alpn h2 -cert "$work/tls/gateway/tls.crt" -key "$work/tls/gateway/tls.key" -CAfile "$work/tls/ca.crt" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
worker=$(status 'chat["actors"][0]["address"]')
before=$(serial "$worker")
[ -n "$before" ] || fail "a worker shows no certificate"
deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh again"
ray_shoal up --wait-s 240 "$work/cluster.yaml" >"$work/up" || fail "up again: $(cat "$work/up" "$work/err")"
[ "$(status 'sorted(a["pid"] for a in actors)')" = "$pids" ] || fail "new certificates restarted something: $(cat "$work/status")"
for _ in $(seq 200); do [ "$(serial "$worker")" != "$before" ] && break; sleep 0.1; done
[ "$(serial "$worker")" != "$before" ] || fail "the worker shows its old certificate"
streaming
echo "renewed all certificates"

spec "min: 3, max: 5, args: [--max-queue, '64']" >"$work/cluster.yaml"
ray_shoal up --wait-s 240 "$work/cluster.yaml" >"$work/up" || fail "the update: $(cat "$work/up" "$work/err")"
[ "$(status "$whole and not set(a['pid'] for a in chat['actors']) & set($pids)")" = True ] || fail "old workers run: $(cat "$work/status")"
streaming
echo "updated the workers"

lost=$(status 'chat["actors"][0]["node"]')
nodes=$(python - "$address" <<'PY' 2>/dev/null
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
print(*[n["NodeID"] for n in ray.nodes() if n["Alive"] and "node:__internal_head__" not in n["Resources"]])
PY
)
[ "$(wc -w <<<"$nodes")" = 2 ] || fail "not two further nodes: $nodes"
case $nodes in *"$lost"*) ;; *) lost=$(status 'next(a["node"] for a in chat["actors"] if a["node"] in "'"$nodes"'")') ;; esac
there=$(status "sum(a['node'] == '$lost' for a in actors)")
order kill "$lost"
until_true "all of it on two nodes" "$whole and not [a for a in actors if a['node'] == '$lost']"
streaming
echo "lost a node; its $there actors are elsewhere"
sleep 5

kill "$clients"
wait "$clients"
ended=$?
clients=
cat "$work/report"
echo
[ $ended = 0 ] || fail "streams: $(cat "$work/report") $(head -c 600 "$work/streams.out")"
[ "$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["streams"] >= 20)' "$work/report")" = True ] || fail "hardly a stream"
pids=$(status '" ".join(str(a["pid"]) for a in actors)')
ray_shoal down || fail "down: $(cat "$work/err")"
for pid in $pids; do kill -0 "$pid" 2>/dev/null && fail "process $pid is there still"; done
ray_shoal status && fail "a controller is there still"
end_cluster
echo "every stream is whole, and nothing is left"

# ---- Ray's autoscaler
(exec 3<>/dev/tcp/127.0.0.1/6379) 2>/dev/null && { echo "port 6379 is taken: Ray's autoscaler was not tried"; exit 0; }
start_cluster autoscaled 2 1
cat >"$work/cluster.yaml" <<YAML
program: $SHOAL_BIN
tls: tls
ports: $((port + 100))-$((port + 180))
gateways: {port: $((port + 20)), cpus: 0}
models:
  home-chat-s: {path: $PWD/models/home-chat-s.gguf, cpus: 1, threads: 1, min: 0, max: 2, target: 2, down_s: 3}
YAML
ray_shoal up --wait-s 240 "$work/cluster.yaml" >"$work/up" || fail "up: $(cat "$work/up" "$work/err")"
url=http://$(status 'gateways["actors"][0]["address"]')
[ "$(status 'len(actors)')" = 1 ] || fail "not the gateway alone: $(cat "$work/status")"
curl -s -m 120 "$url/v1/chat/completions" -d '{"model": "home-chat-s", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": "turn off the kitchen light"}]}' |
    grep -q '"content":"Turning off' || fail "a request for a model without a worker: $(ray_shoal status; tail -5 "$work/cluster.log")"
echo "from no node and no worker to an answer"
python3 tests/kubernetes/streams.py record "$url" "$work/replies" || fail "no replies to compare with"
python3 tests/kubernetes/streams.py run "$url" "$work/replies" 6 "$work/report" >"$work/streams.out" 2>&1 &
clients=$!
until_true "two workers on two nodes" "$whole and len({a['node'] for a in chat['actors']}) == 2"
sleep 3
kill "$clients"
wait "$clients" || fail "streams: $(cat "$work/report") $(head -c 600 "$work/streams.out")"
clients=
until_true "no worker" "$whole and chat['wanted'] == 0"
echo "to two nodes and back to none: $(cat "$work/report")"
ray_shoal down || fail "down: $(cat "$work/err")"
end_cluster
