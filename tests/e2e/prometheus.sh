#!/usr/bin/env bash
# Prometheus itself: its rules are valid and fire as they should, and each query of the dashboards has an answer where it has scraped a
# server that worked, failed and lost a worker. Grafana's own types read the dashboards strictly (Go, where its modules can be had).
# long: it fetches Debian's package of Prometheus and Go modules, and works for half a minute
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
bin=$(scripts/prometheus.sh build/prometheus 2>"$work/apt.log") || skip "Prometheus cannot be had: $(tail -1 "$work/apt.log")"
"$bin/promtool" check rules --lint=all --lint-fatal deploy/prometheus/rules.yaml >"$work/out" 2>&1 || fail "rules: $(cat "$work/out")"
"$bin/promtool" test rules deploy/prometheus/rules_test.yaml >"$work/out" 2>&1 || fail "tests of rules: $(cat "$work/out")"
if command -v go >/dev/null && (mkdir -p build/go && cd tests/prometheus/grafana_schema && CGO_ENABLED=0 go build -o ../../../build/go/grafana_schema .) >"$work/go.log" 2>&1; then
    build/go/grafana_schema deploy/grafana/*.json >"$work/out" || fail "Grafana's types: $(head -5 "$work/out")"
    grafana="valid by Grafana's types"
else
    grafana="not read by Grafana's types: no Go or no modules"
fi
export SHOAL_STATE=$work/state
{
    shipped | sed 's/^    kv_mb: 48$/&\n    replicas: 2/; s/^    kv_mb: 32$/&\n    cost: 1/'
    printf 'watts_per_core: 10\notel: {endpoint: "http://127.0.0.1:1", interval_ms: 100, queue_bytes: 65536}\n'
} >"$work/shoal.yaml"
start_shoal "$work/shoal.yaml"
listens=$(free_port)
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$PWD/deploy/prometheus/rules.yaml]
scrape_configs:
  - {job_name: shoal, static_configs: [{targets: ['127.0.0.1:$port']}]}
END
"$bin/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$listens" --log.level=warn 2>"$work/prometheus.log" &
prometheus=$!
trap 'end "$prometheus" "${load:-}"; cleanup' EXIT
python3 tests/prometheus/load.py "$url" &
load=$!
# What else is counted: a client that leaves, a worker that dies under a stream.
start_stream
kill -9 "$(pgrep -P "$server" -f 'worker --name home-chat-m' | head -1)"
wait "$stream"
start_stream
kill -9 "$(pgrep -P "$server" -f 'worker --name home-chat-m' | tail -1)"
wait "$stream"
wait "$load" || fail "the load"
python3 tests/prometheus/dashboards.py queries shoal >"$work/queries"
python3 tests/prometheus/ask.py "http://127.0.0.1:$listens" "$work/queries" || fail "queries: $(tail -3 "$work/prometheus.log")"
kill "$prometheus"
wait "$prometheus"
echo "dashboards are $grafana"
