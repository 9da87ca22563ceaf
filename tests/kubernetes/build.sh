#!/usr/bin/env bash
# Build the real parts of Kubernetes that the tests run, from their Go modules, into build/go: kube-apiserver, kube-scheduler and
# kube-controller-manager; helm; CoreDNS with its kubernetes plugin alone. Prints the folder; says on standard error what failed.
#
#   tests/kubernetes/build.sh control-plane | helm | kustomize | coredns | schemas
#
# Each is built once, at the lowest priority: the control plane takes some eight minutes of two cores, the others less than two.
# `schemas` keeps of each of Kubernetes' minor versions the OpenAPI description of its objects, and nothing else of its module.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$PWD/build/go
kubernetes=v1.31.4
helm=v3.18.6
kustomize=v5.6.0
coredns=v1.14.7
described=(v1.28.15 v1.29.15 v1.30.14 v1.31.14 v1.32.13 v1.33.13 v1.34.4 v1.35.4 v1.36.3 v1.37.2)
command -v go >/dev/null || { echo "Go is not installed" >&2; exit 1; }
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=mod -p=2"
mkdir -p "$tools"
parts=$(mktemp -d "$tools/.part.XXXXXX")
trap 'chmod -R u+w "$parts"; rm -rf "$parts"' EXIT
exec 9>"$tools/.lock.$1"
flock 9

# Kubernetes' own module refers to folders of its repository for what it publishes as modules of their own.
control_plane() {
    local staged
    mkdir "$parts/bin" && cd "$parts"
    go mod init shoal.example/control-plane
    go mod download "k8s.io/kubernetes@$kubernetes"
    staged=$(sed -n 's|^\t*\(k8s.io/[a-z0-9-]*\) => ./staging/.*|\1|p' \
        "$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')")
    go mod edit -require "k8s.io/kubernetes@$kubernetes"
    for module in $staged; do go mod edit -replace "$module=$module@v0.${kubernetes#v1.}"; done
    local version=k8s.io/component-base/version
    nice -n 19 go build -trimpath -o bin/ -ldflags "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 \
        -X $version.gitMinor=31 -X $version.gitTreeState=clean" k8s.io/kubernetes/cmd/kube-{apiserver,scheduler,controller-manager}
}

helm() {
    mkdir "$parts/bin" && cd "$parts"
    GOBIN=$parts/bin nice -n 19 go install -trimpath -ldflags "-s -w" "helm.sh/helm/v3/cmd/helm@$helm"
}

kustomize() {
    mkdir "$parts/bin" && cd "$parts"
    GOBIN=$parts/bin nice -n 19 go install -trimpath -ldflags "-s -w" "sigs.k8s.io/kustomize/kustomize/v5@$kustomize"
}

# The command of its own module would bring the plugins of three clouds.
coredns() {
    mkdir "$parts/bin" && cd "$parts"
    cat >main.go <<'GO'
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/coremain"
)

func main() { coremain.Run() }
GO
    go mod init shoal.example/coredns
    go get "github.com/coredns/coredns@$coredns"
    nice -n 19 go build -trimpath -o bin/coredns -ldflags "-s -w" .
}

schemas() {
    local version at
    mkdir "$parts/bin"
    for version in "${described[@]}"; do
        at=$(GOMODCACHE=$parts/mod go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
        cp "$at/api/openapi-spec/swagger.json" "$parts/bin/$version.json"
        chmod -R u+w "$parts/mod" && rm -rf "$parts/mod"
    done
}

case $1 in
control-plane) folder=$tools/kubernetes-$kubernetes ;;
helm) folder=$tools/helm-$helm ;;
kustomize) folder=$tools/kustomize-$kustomize ;;
coredns) folder=$tools/coredns-$coredns ;;
schemas) folder=$tools/kubernetes-schemas ;;
*) echo "build.sh: control-plane, helm, kustomize, coredns or schemas" >&2; exit 2 ;;
esac
[ -d "$folder" ] || { (set -e; "${1//-/_}") >&2 && mv "$parts/bin" "$folder"; }
echo "$folder"
