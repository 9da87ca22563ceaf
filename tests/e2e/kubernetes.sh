#!/usr/bin/env bash
# The chart in a cluster of a real kube-apiserver, kube-scheduler, kube-controller-manager and CoreDNS, with three nodes whose kubelets
# tests/kubernetes/kubelet.py plays. While clients stream through the gateways' Service: workers are scaled up and down, workers and
# gateways are updated, certificates are renewed, a node is lost. Every stream comes to its end with the bytes of an undisturbed one.
# Then a worker that is not there is started by a HorizontalPodAutoscaler for a request that waits.
# long: it builds Kubernetes' control plane once (eight minutes of two cores), and runs for minutes
# early: the others need no such time
source "$(dirname "$0")/../kubernetes/cluster.bash"
command -v go >/dev/null || skip "Go is not installed"
command -v etcd >/dev/null || skip "etcd is not installed"
command -v openssl >/dev/null || skip "openssl is not installed"
[ "$SHOAL_BIN" = "$PWD/build/shoal" ] || skip "the image is of build/shoal"
made() { tests/kubernetes/build.sh "$1" 2>"$work/go.log" || skip "$1 cannot be fetched or built: $(tail -1 "$work/go.log")"; }
control=$(made control-plane) || { echo "$control"; exit 77; }
coredns=$(made coredns) || { echo "$coredns"; exit 77; }
helm=$(made helm)/helm || { echo "$helm"; exit 77; }
inside "$@"
export HOME=$work/home

start_cluster "$control" "$coredns"
for n in 1 2 3; do start_node "node-$n" "$n"; done
until_true "three nodes" eval '[ "$(kube "sum(c[\"status\"] == \"True\" for n in o[\"items\"] for c in n[\"status\"][\"conditions\"] if c[\"type\"] == \"Ready\")" /api/v1/nodes)" = 3 ]'

# ---- what docs/kubernetes.md says, with the API in place of kubectl
create() { api POST "$1" "$2" | grep -q '"status": *"Failure"' && fail "POST $1"; true; }
create /api/v1/namespaces '{"metadata": {"name": "shoal", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}'
secret() { # METHOD PATH-SUFFIX OF
    local f data=
    for f in tls.crt tls.key ca.crt; do data+="${data:+, }\"$f\": \"$(base64 -w0 "$work/tls/$3/$f")\""; done
    api "$1" "/api/v1/namespaces/shoal/secrets$2" "{\"metadata\": {\"name\": \"shoal-$3-tls\"}, \"data\": {$data}}" "${4:-}" | grep -q '"Failure"' &&
        fail "the Secret of $3"
    true
}
deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh"
secret POST "" worker
secret POST "" gateway
cat >"$work/values.yaml" <<YAML
models:
  home-intent: {replicas: 1, threads: 1, resources: {requests: {cpu: 100m}}}
  home-chat-s: {replicas: 2, threads: 1, resources: {requests: {cpu: 100m}}}
workers: {minReadySeconds: 6}
gateway: {readyModel: home-chat-s, resources: {requests: {cpu: 100m}}, drainMs: 30000}
YAML
given=()
deployed() { # ARGS...: helm's, on top of those before
    given+=("$@")
    "$helm" upgrade --install shoal deploy/helm/shoal --namespace shoal -f "$work/values.yaml" "${given[@]}" >"$work/helm.out" 2>&1 ||
        fail "helm: $(cat "$work/helm.out")"
}
# Each Deployment has all its pods in their newest form, and no other: as `kubectl rollout status` waits for it.
rolled_out() {
    [ "$(kube 'len(o["items"]) > 0 and all(d["status"].get("observedGeneration") == d["metadata"]["generation"] and
        d["status"].get("replicas", 0) == d["status"].get("updatedReplicas", 0) == d["status"].get("availableReplicas", 0) == d["spec"]["replicas"]
        for d in o["items"])' /apis/apps/v1/namespaces/shoal/deployments)" = True ] &&
        [ "$(kube "any('deletionTimestamp' in p['metadata'] and p['spec'].get('nodeName') != '${lost:-}' for p in o['items'])" /api/v1/namespaces/shoal/pods)" = False ]
}
deployed
until_true "the chart's pods" rolled_out
address=$(kube 'o["spec"]["clusterIP"]' /api/v1/namespaces/shoal/services/shoal)
url=http://$address
chats() {
    curl -s -m 30 "$url/v1/chat/completions" -d '{"model": "home-chat-s", "max_tokens": 8, "messages": [{"role": "user", "content": "turn off the kitchen light"}]}' |
        grep -q '"content":"Turning off'
}
until_true "a reply by the gateways' Service" chats # its endpoints are known some time after its pods are ready
curl -s -m 30 "$url/v1/classify" -d '{"model": "home-intent", "input": "turn on the light"}' | grep -q light || fail "no class: $(clues)"
echo "installed; a chat is answered through the Service at $address"

# ---- streams during all of it
python3 "$here/streams.py" record "$url" "$work/replies" || fail "no replies to compare with"
python3 "$here/streams.py" run "$url" "$work/replies" 8 "$work/report" >"$work/streams.out" 2>&1 &
clients=$!
streaming() { kill -0 "$clients" 2>/dev/null || fail "the clients ended: $(tail -3 "$work/streams.out")"; }

deployed --set models.home-chat-s.replicas=4
until_true "four workers" rolled_out
# Each gateway has found them, by their SRV records.
until_true "four workers at the gateways" eval '[ "$(curl -s "$url/v1/status" | python3 -c "import json, sys; print(sum(r[\"model\"] == \"home-chat-s\" and r[\"state\"] == \"ready\" for r in json.load(sys.stdin)[\"replicas\"]))")" = 4 ]'
streaming
deployed --set models.home-chat-s.replicas=2
until_true "two workers" rolled_out
streaming
echo "scaled from 2 to 4 workers and back"

deployed --set-string models.home-chat-s.podAnnotations.version=2
until_true "the workers' update" rolled_out
streaming
echo "updated the workers"

deployed --set gateway.config.deadline_ms=61000
until_true "the gateways' update" rolled_out
streaming
echo "updated the gateways"

deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh again"
seen() { grep -h volume_changed "$work"/nodes/*.out | grep -c tls; }
before=$(seen)
secret PATCH /shoal-worker-tls worker application/merge-patch+json
secret PATCH /shoal-gateway-tls gateway application/merge-patch+json
until_true "the new certificates at all pods" eval '[ "$(seen)" -ge $((before + 5)) ]'
sleep 3
deployed --set models.home-chat-s.replicas=3 # who connects now shows the new one
until_true "a third worker" rolled_out
streaming
echo "renewed all certificates"

# The node that has fewest gateways but a worker; the clients' own connections may be to one of them.
lost=$(kube 'max((sum(p["spec"]["nodeName"] == n and "chat" in p["metadata"]["name"] for p in o["items"]), n) for n in ("node-1", "node-2", "node-3"))[1]' \
    /api/v1/namespaces/shoal/pods)
lose_node "$lost" "${lost#node-}"
until_true "the pods of $lost elsewhere" eval '[ "$(kube "sum(p[\"spec\"].get(\"nodeName\") != \"$lost\" and any(c[\"type\"] == \"Ready\" and c[\"status\"] == \"True\" for c in p[\"status\"].get(\"conditions\", [])) for p in o[\"items\"])" /api/v1/namespaces/shoal/pods)" -ge 6 ]'
streaming
sleep 5
echo "lost $lost; its pods are elsewhere"

kill "$clients"
wait "$clients"
status=$?
cat "$work/report"
echo
[ $status = 0 ] || fail "streams: $(cat "$work/report") $(head -c 600 "$work/streams.out")"
[ "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["streams"] >= 20)' "$work/report")" = True ] || fail "hardly a stream"
# Pods that were told to end did so by themselves, and none crashed.
grep -h '"killed' "$work"/nodes/*.out && fail "a pod did not end in its grace period, or failed a probe"
grep -h '"exited"' "$work"/nodes/*.out | grep -v '"code": 0' && fail "a container crashed"
echo "every stream is whole"

# ---- a model without a worker: a request waits, a HorizontalPodAutoscaler sees it, the worker starts, the request is answered
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/metrics.key" -out "$work/metrics.crt" -days 1 -subj /CN=metrics 2>/dev/null
background metrics python3 "$here/metrics.py" 10.244.0.1 6444 "$work/metrics.crt" "$work/metrics.key" shoal shoal
create /api/v1/namespaces/kube-system/services '{"metadata": {"name": "metrics"}, "spec": {"ports": [{"port": 443}]}}'
create /api/v1/namespaces/kube-system/endpoints '{"metadata": {"name": "metrics"}, "subsets": [{"addresses": [{"ip": "10.244.0.1"}], "ports": [{"port": 6444}]}]}'
create /apis/apiregistration.k8s.io/v1/apiservices '{"metadata": {"name": "v1beta1.external.metrics.k8s.io"}, "spec": {"group": "external.metrics.k8s.io",
    "version": "v1beta1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100, "versionPriority": 100,
    "service": {"namespace": "kube-system", "name": "metrics", "port": 443}}}'
cat >"$work/embed.yaml" <<YAML
models:
  home-embed:
    path: /usr/share/shoal/models/home-embed.gguf
    threads: 1
    resources: {requests: {cpu: 100m}}
    autoscaling: {kind: hpa, minReplicas: 0, maxReplicas: 2, queue: 1}
YAML
deployed -f "$work/embed.yaml"
until_true "a gateway that knows the third model" rolled_out
until_true "the autoscaler" eval '[ "$(kube "any(c[\"type\"] == \"ScalingActive\" and c[\"status\"] == \"True\" for h in o[\"items\"] for c in h[\"status\"].get(\"conditions\", []))" \
    /apis/autoscaling/v2/namespaces/shoal/horizontalpodautoscalers)" = True ]'
pods_of() { kube "sum(p['metadata']['name'].startswith('shoal-home-embed') for p in o['items'])" /api/v1/namespaces/shoal/pods; }
for round in 1 2 3; do
    api PATCH /apis/apps/v1/namespaces/shoal/deployments/shoal-home-embed/scale '{"spec": {"replicas": 0}}' application/merge-patch+json >/dev/null
    until_true "no worker of home-embed" eval '[ "$(pods_of)" = 0 ]'
    sleep $((5 + round)) # at another time of the autoscaler's round, with the old worker's record gone
    asked=$(date +%s.%3N)
    curl -s -m 60 "$url/v1/embeddings" -d "{\"model\": \"home-embed\", \"input\": \"good morning $round\"}" >"$work/embedding"
    answered=$(date +%s.%3N)
    grep -q '"embedding"' "$work/embedding" || fail "a request for a model without a worker: $(head -c 300 "$work/embedding"); $(clues)"
    python3 - "$asked" "$answered" "$work/metrics.out" "$work"/nodes/*.out <<'PY' || fail "its times: $(clues)"
import json, sys
asked, answered = map(float, sys.argv[1:3])
seen = min(o["at"] for o in map(json.loads, open(sys.argv[3])) if o["at"] >= asked and o["model"] == "home-embed" and o["value"] >= 1)
at = {}
for path in sys.argv[4:]:
    for o in map(json.loads, open(path)):
        if o["at"] >= asked and "home-embed" in o.get("pod", ""): at.setdefault(o["event"], o["at"])
steps = [("poll", seen), ("scale and schedule", at["bound"]), ("start", at["started"]), ("load and probe", at["ready"]), ("find and answer", answered)]
last, words = asked, []
for name, t in steps:
    words.append(f"{name} {t - last:.2f}")
    last = t
print(f"from 0 to 1 in {answered - asked:.2f} s: " + ", ".join(words))
PY
done
