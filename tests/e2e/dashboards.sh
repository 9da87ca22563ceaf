#!/usr/bin/env bash
# Grafana's dashboards and Prometheus' rules name metrics and labels that docs/metrics.md has; dashboards are whole. With a real
# Prometheus: prometheus.sh. The chart has the same files.
cd "$(dirname "$0")/../.." || exit 1
deploy/helm/copy.sh --check || exit 1
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
python3 tests/prometheus/dashboards.py names && python3 tests/prometheus/dashboards.py structure
