#!/usr/bin/env bash
# Copy Prometheus' rules and Grafana's dashboards into the chart, which can read only files of its own folder, or compare them.
#
#   deploy/helm/copy.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
to=helm/shoal/files
if [ "${1:-}" = --check ]; then
    for file in prometheus/rules.yaml grafana/*.json "$to"/*; do
        name=${file##*/}
        from=grafana/$name
        [ "$name" = rules.yaml ] && from=prometheus/$name
        cmp "$from" "$to/$name" >&2 || { echo "deploy/$to/$name is not deploy/$from: run deploy/helm/copy.sh" >&2; exit 1; }
    done
else
    mkdir -p "$to"
    rm -f "$to"/*
    cp prometheus/rules.yaml grafana/*.json "$to"
fi
