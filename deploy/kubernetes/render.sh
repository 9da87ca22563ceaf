#!/usr/bin/env bash
# Write deploy/kubernetes/base/shoal.yaml, what the chart's defaults give (deploy/helm/shoal), or compare it with that.
#
#   deploy/kubernetes/render.sh [--check]        HELM names the helm to use
set -euo pipefail
cd "$(dirname "$0")/../.."
out=deploy/kubernetes/base/shoal.yaml
new=$(mktemp)
trap 'rm -f "$new"' EXIT
cat >"$new" <<'YAML'
# Shoal on Kubernetes (1.28 or later): gateways, and workers of each model. Written by deploy/kubernetes/render.sh from the chart's
# defaults: change deploy/helm/shoal, or lay a kustomization over this file as ../k3s does.
#
#   make image                                     and bring localhost/shoal to where your nodes pull from
#   kubectl create namespace shoal
#   deploy/kubernetes/certificates.sh FOLDER       prints the commands that make the two Secrets
#   kubectl apply -k deploy/kubernetes/base
#
# Without api_keys everybody who reaches the Service may ask (docs/kubernetes.md).
apiVersion: v1
kind: Namespace
metadata:
  name: shoal
  labels:
    pod-security.kubernetes.io/enforce: restricted
YAML
# What only Helm itself needs is left out.
"${HELM:-helm}" template shoal deploy/helm/shoal --namespace shoal --kube-version 1.28.0 |
    sed -e '/^# Source: /d' -e '/^ *helm\.sh\/chart: /d' -e '/^ *app\.kubernetes\.io\/managed-by: /d' >>"$new"
if [ "${1:-}" = --check ]; then
    diff -u "$out" "$new" || { echo "$out is not what the chart gives: run deploy/kubernetes/render.sh" >&2; exit 1; }
else
    cp "$new" "$out"
fi
