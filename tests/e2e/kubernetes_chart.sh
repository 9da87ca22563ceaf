#!/usr/bin/env bash
# deploy/helm/shoal and deploy/kubernetes: the chart passes Helm's own checks and refuses wrong values; the plain manifests are what
# its defaults give; all objects have the fields that Kubernetes 1.28 to 1.37 describe; gateways' configurations are valid.
# long: it builds helm and kustomize, and fetches Kubernetes' descriptions of its objects
source "$(dirname "$0")/lib.sh"
command -v go >/dev/null || skip "Go is not installed"
python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"
made() { tests/kubernetes/build.sh "$1" 2>"$work/go.log" || skip "$1 cannot be fetched or built: $(tail -1 "$work/go.log")"; }
helm=$(made helm) || { echo "$helm"; exit 77; }
kustomize=$(made kustomize) || { echo "$kustomize"; exit 77; }
schemas=$(made schemas) || { echo "$schemas"; exit 77; }
export HELM=$helm/helm HOME=$work/home
chart=deploy/helm/shoal

"$HELM" lint --strict "$chart" >"$work/said" 2>&1 || fail "helm lint: $(cat "$work/said")"
deploy/kubernetes/render.sh --check || fail "the plain manifests are not the chart's"

mkdir "$work/rendered"
for values in tests/kubernetes/values/*.yaml; do
    "$HELM" template --kube-version 1.28.0 shoal "$chart" --namespace shoal -f "$values" >"$work/rendered/$(basename "$values")" 2>"$work/said" ||
        fail "$values: $(cat "$work/said")"
done
"$HELM" template --kube-version 1.28.0 other "$chart" --namespace elsewhere --set certManager.enabled=true >"$work/rendered/other.yaml" || fail "another name"
"$kustomize/kustomize" build deploy/kubernetes/k3s >"$work/rendered/k3s.yaml" 2>"$work/said" || fail "kustomize: $(cat "$work/said")"
n=0
for schema in "$schemas"/*.json; do
    python3 tests/kubernetes/validate.py "$schema" deploy/kubernetes/base/shoal.yaml "$work"/rendered/*.yaml >"$work/said" ||
        fail "$(basename "$schema" .json): $(cat "$work/said")"
    n=$((n + 1))
done
[ "$n" -ge 10 ] || fail "only $n descriptions"
for foreign in cert-manager.io/v1/Certificate cert-manager.io/v1/Issuer keda.sh/v1alpha1/ScaledObject monitoring.coreos.com/v1/ServiceMonitor \
    monitoring.coreos.com/v1/PrometheusRule inference.networking.k8s.io/v1/InferencePool; do
    grep -qx "not described there: $foreign" "$work/said" || fail "$foreign was not rendered: $(cat "$work/said")"
done
[ "$(grep -c 'not described' "$work/said")" = 6 ] || fail "kinds that nobody knows: $(cat "$work/said")"

# A check that finds nothing would pass, too.
for wrong in 's/maxUnavailable: 0/maxUnavailable: yes/' 's/containerPort: 7090/containerPort: "7090"/' 's/readinessProbe:/readynessProbe:/' \
    's/cpu: "1"/cpu: one/' '/mountPath: .tls/s/mountPath/path/'; do
    sed "$wrong" deploy/kubernetes/base/shoal.yaml >"$work/wrong.yaml"
    cmp -s deploy/kubernetes/base/shoal.yaml "$work/wrong.yaml" && fail "$wrong changes nothing"
    python3 tests/kubernetes/validate.py "$schema" "$work/wrong.yaml" >/dev/null && fail "$wrong is not found"
done

# refused WORDS ARGS...: the chart does not take these values, and says why.
refused() {
    local words=$1
    shift
    "$HELM" template --kube-version 1.28.0 shoal "$chart" "$@" >"$work/said" 2>&1 && fail "the chart takes $*"
    grep -q -- "$words" "$work/said" || fail "$* is refused with: $(cat "$work/said")"
}
refused 'replicas' --set models.home-intent.replicas=two
refused 'repliacs' --set gateway.repliacs=2
refused 'path' --set models.mine.replicas=1
refused 'is "nobody", which is not one of models' --set gateway.readyModel=nobody
refused 'prometheus is needed' --set models.home-intent.autoscaling.kind=keda,models.home-intent.autoscaling.minReplicas=0,models.home-intent.autoscaling.maxReplicas=2
refused 'models' --set models=null
refused 'enabled' --set dashboards.enabled=maybe
refused 'rules' --set prometheusRule.rules=none
refused 'endpointPicker.name is needed' --set inferencePool.enabled=true
refused 'failureMode' --set inferencePool.endpointPicker.failureMode=Maybe

# A packaged chart has the rules and dashboards, unchanged.
"$HELM" package "$chart" --destination "$work/packed" >"$work/said" 2>&1 || fail "helm package: $(cat "$work/said")"
"$HELM" template --kube-version 1.28.0 shoal "$work"/packed/shoal-*.tgz --set prometheusRule.enabled=true,dashboards.enabled=true >"$work/monitored.yaml" ||
    fail "the packaged chart"
python3 - "$work/monitored.yaml" "$work/rendered/all.yaml" deploy/kubernetes/base/shoal.yaml <<'PY' || fail "rules and dashboards"
import json, pathlib, sys, yaml
rules = yaml.safe_load(open("deploy/prometheus/rules.yaml"))
boards = {"shoal-" + p.name: p.read_text().rstrip("\n") for p in pathlib.Path("deploy/grafana").glob("*.json")}
for path, labels in zip(sys.argv[1:3], ({}, {"release": "prometheus"})):
    docs = [d for d in yaml.safe_load_all(open(path)) if d]
    [rule] = [d for d in docs if d["kind"] == "PrometheusRule"]
    assert rule["spec"] == rules and labels.items() <= rule["metadata"]["labels"].items(), path
    maps = [d for d in docs if d["metadata"].get("labels", {}).get("grafana_dashboard") == "1"]
    assert {k: v for d in maps for k, v in d["data"].items()} == boards and len(boards) >= 2, path
    assert all((d["metadata"].get("annotations") == {"grafana_folder": "Shoal"}) == bool(labels) for d in maps), path
    assert all(json.loads(v)["title"] for d in maps for v in d["data"].values())
assert not any(d["kind"] == "PrometheusRule" or "dashboard" in d["metadata"]["name"] for d in yaml.safe_load_all(open(sys.argv[3])) if d)
PY

# An InferencePool of the gateways (the published API: sigs.k8s.io/gateway-api-inference-extension, InferencePoolSpec), whose
# metrics a picker finds.
python3 - "$work/rendered/all.yaml" deploy/kubernetes/base/shoal.yaml <<'PY' || fail "InferencePool"
import sys, yaml
docs = [d for d in yaml.safe_load_all(open(sys.argv[1])) if d]
[pool] = [d for d in docs if d["kind"] == "InferencePool"]
[gateway] = [d for d in docs if d["kind"] == "Deployment" and d["metadata"]["name"] == pool["metadata"]["name"]]
assert set(pool["spec"]) == {"selector", "targetPorts", "endpointPickerRef"}, pool
assert set(pool["spec"]["selector"]) == {"matchLabels"}, pool
assert pool["spec"]["selector"]["matchLabels"].items() <= gateway["spec"]["template"]["metadata"]["labels"].items(), pool
ports = [p["containerPort"] for c in gateway["spec"]["template"]["spec"]["containers"] for p in c["ports"]]
assert pool["spec"]["targetPorts"] == [{"number": ports[0]}], pool
assert pool["spec"]["endpointPickerRef"] == {"name": "shoal-picker", "port": {"number": 9002}, "failureMode": "FailClose"}, pool
[config] = [d for d in docs if "shoal.yaml" in (d.get("stringData") or {})]
assert yaml.safe_load(config["stringData"]["shoal.yaml"])["metrics"] == {"compat": "vllm"}, config
assert not any(d["kind"] == "InferencePool" for d in yaml.safe_load_all(open(sys.argv[2])) if d)
PY

# What the gateways read. The certificates are those that certificates.sh makes.
deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh"
python3 - "$work" "$SHOAL_BIN" deploy/kubernetes/base/shoal.yaml "$work"/rendered/*.yaml <<'PY' || fail "a configuration"
import subprocess, sys, yaml
work, shoal, *manifests = sys.argv[1:]
n = 0
for m in manifests:
    for d in yaml.safe_load_all(open(m)):
        text = ((d or {}).get("data") or (d or {}).get("stringData") or {}).get("shoal.yaml")
        if text is None: continue
        n += 1
        path = f"{work}/config.{n}.yaml"
        open(path, "w").write(text.replace("/tls/", work + "/tls/gateway/").replace("/keys/", work + "/"))
        r = subprocess.run([shoal, "serve", "--check", "-c", path], capture_output=True, text=True)
        assert r.returncode == 0, f"{m}: {r.stdout}{r.stderr}"
assert n == len(manifests), f"{n} configurations in {len(manifests)} manifests"
PY
echo "the chart and its manifests are valid in $n versions of Kubernetes"
