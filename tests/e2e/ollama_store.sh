#!/usr/bin/env bash
# Models that Ollama's client fetches from a registry on loopback, asks, keeps alive and deletes; and what becomes of
# downloads that fail, stop, or fill the disk.
source "$(dirname "$0")/lib.sh"
npm_clients
unset HF_TOKEN HF_ENDPOINT SHOAL_MODELS http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export SHOAL_STATE=$work/state
store=$work/store
mkdir -p "$work/hub" "$store"
node tests/node/hub.mjs "$work/hub" models/home-chat-s.gguf >"$work/ports" 2>"$work/hub.err" &
hub=$!
trap 'kill $hub 2>/dev/null; cleanup' EXIT
for _ in $(seq 200); do [ -s "$work/ports" ] && break; sleep 0.05; done
read -r hubport other <"$work/ports" || fail "the hub does not start: $(cat "$work/hub.err")"
cat >"$work/shoal.yaml" <<Y
manifest: $PWD/models/models.json
models: [{name: home-intent}]
library: {store: $store, fetch_from: ["127.0.0.1:$hubport"], registry: "http://127.0.0.1:$hubport"}
Y
start_shoal "$work/shoal.yaml"
cp tests/node/ollama_store.mjs "$modules/"
(cd "$modules" && SHOAL_URL=$url timeout 120 node --test --test-reporter=tap ./ollama_store.mjs) >"$work/node.log" 2>&1 || {
    grep -A25 '^not ok' "$work/node.log" | head -60
    tail -5 "$work/node.log"; fail "the client failed"
}
grep -q 'home-s' "$store/models.json" && fail "what was deleted is listed: $(cat "$store/models.json")"
ls "$store" | grep -qE '[.](gguf|template)$' && fail "files are left: $(ls "$store")"

# ---- our own words for the same
load() { curl -s -m 60 "$url/v1/models/load" -H content-type:application/json -d "$1"; }
curl -sN -m 100 -D "$work/heads" "$url/models/sse" >"$work/events" &
events=$!
for _ in $(seq 200); do grep -q event-stream "$work/heads" 2>/dev/null && break; sleep 0.05; done
load '{"model":"ollama:home:s","stream":true}' >"$work/out"
for word in resolving '"status":"fetching".*"completed"' starting '"status":"ready","model":"home-s"'; do
    grep -q "$word" "$work/out" || fail "no $word: $(cat "$work/out")"
done
load '{"model":"ollama:home:s"}' | grep -q '"state":"ready"' || fail "it is not found again"

# ---- as the router of llama-server tells it
curl -s "$url/v1/models/unload" -H content-type:application/json -d '{"model":"home-s"}' | grep -q unloaded || fail "it is not unloaded"
load '{"model":"ollama:home:s"}' | grep -q '"state":"ready"' || fail "it is not loaded again"
for _ in $(seq 200); do [ "$(grep -c '"loaded"' "$work/events")" -ge 2 ] && break; sleep 0.05; done
kill $events
sed -n 's/^data: //p' "$work/events" | python3 -c '
import json, sys
seen, done = [], {}
for e in map(json.loads, sys.stdin):
    if e["model"] == "ollama:slow": continue # the end of one that the clients above stopped
    if e["event"] == "download_progress":
        assert e["model"] == "ollama:home:s", e
        for file, p in e["data"].items():
            assert done.get(file, 0) <= p["done"] <= p["total"], e
            done[file] = p["done"]
        word = "download_progress"
    else: word = e["data"]["status"] if e["event"] == "model_status" else e["event"]
    if not seen or seen[-1] != word: seen.append(word)
assert done["home-s.gguf"] > 0, done
assert seen == ["download_progress", "download_finished", "loading", "loaded", "unloaded", "loading", "loaded"], seen' ||
    fail "the events: $(cat "$work/events")"
load "{\"model\":\"oci://127.0.0.1:$hubport/library/tiny:1b\"}" | grep -q 'does not load' || fail "a file that is no model"
grep -q tiny "$store/models.json" && fail "what was fetched for a load that failed is listed: $(cat "$store/models.json")"
ls "$store"/tiny* >/dev/null 2>&1 && fail "what was fetched for a load that failed is kept: $(ls "$store")"
load '{"model":"oci://127.0.0.1:1/library/tiny:1b"}' | grep -q 'nothing is fetched from 127.0.0.1:1 ' || fail "another port is another host"
load '{"model":"ollama:127.0.0.1:1/library/tiny"}' | grep -q 'nothing is fetched' || fail "another registry"
load '{"model":"ollama:nothing"}' | grep -q '"error"' || fail "what is not there"
load '{"model":"ollama:a/../b"}' | grep -q '"error"' || fail "a path that climbs"

# ---- two at once are one download; one that is stopped leaves nothing that runs
for i in 1 2 3; do load '{"model":"ollama:tiny"}' >"$work/same.$i" & pids[i]=$!; done
wait "${pids[@]}"
grep -q '"error"' "$work/same.1" || fail "random bytes are a model: $(cat "$work/same.1")"
ls "$store"/tiny* >/dev/null 2>&1 && fail "three loads that failed keep a file: $(ls "$store")"
pulls() { ps -o args= --ppid "$(gateway)" | grep -c 'shoal pull'; }
curl -s -m 1 "$url/api/pull" -H content-type:application/json -d '{"model":"slow"}' >/dev/null
for _ in $(seq 400); do [ "$(pulls)" -eq 0 ] && break; sleep 0.05; done
[ "$(pulls)" -eq 0 ] || fail "a download that nobody waits for goes on"

# ---- a server that is killed leaves no download behind, and the next one goes on with the part
curl -s -m 20 "$url/api/pull" -H content-type:application/json -d '{"model":"slow"}' >/dev/null &
for _ in $(seq 400); do puller=$(ps -o pid=,args= --ppid "$(gateway)" | awk '/shoal pull/ { print $1 }') && [ -n "$puller" ] && break; sleep 0.05; done
[ -n "${puller:-}" ] || fail "no download has begun"
kill -KILL "$server"
wait "$server" 2>/dev/null
for _ in $(seq 400); do kill -0 "$puller" 2>/dev/null || break; sleep 0.05; done
kill -0 "$puller" 2>/dev/null && fail "the download outlives its server"
"$SHOAL_BIN" pull --to "$store" --parent 1 ollama:tiny 2>"$work/e" && fail "a parent that is another is taken"
grep -q 'process 1, for which' "$work/e" || fail "another parent: $(cat "$work/e")"
start_shoal "$work/shoal.yaml"

# ---- a folder that cannot be written, a disk that is full
stop_shoal
if [ "$(id -u)" -eq 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=1m none "$work/small" 2>/dev/null; then
    sed "s#store: $store#store: $work/small#" "$work/shoal.yaml" >"$work/full.yaml"
    start_shoal "$work/full.yaml"
    load '{"model":"ollama:home:s"}' | grep -qE 'are needed and .* are free' || fail "a full disk: $(load '{"model":"ollama:home:s"}')"
    curl -s "$url/api/pull" -H content-type:application/json -d '{"model":"home:s"}' | tail -1 | grep -q '"error":".*free' || fail "a full disk, for Ollama"
    stop_shoal
    umount "$work/small"
fi
: >"$work/file"
sed "s#store: $store#store: $work/file#" "$work/shoal.yaml" >"$work/file.yaml"
start_shoal "$work/file.yaml"
load '{"model":"ollama:home:s"}' | grep -q '"error"' || fail "a file in place of the store"
kill $hub
load '{"model":"ollama:home:s"}' | grep -q '"error"' || fail "no registry"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped"
grep -E '^# (pass|fail)' "$work/node.log" | tr '\n' ' '
echo
