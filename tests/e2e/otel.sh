#!/usr/bin/env bash
# Export by OpenTelemetry where no collector listens: it costs counters alone, and the stop waits for none. The environment stands in
# for absent keys; what the file may not say is refused. With a real collector: otel_collector.sh.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
sink=$(free_port)
config() { shipped; printf 'otel:\n  endpoint: http://127.0.0.1:%s/base/\n  interval_ms: 100\n  metrics_interval_ms: 300\n' "$sink"; printf '  %s\n' "$@"; }
metric() { curl -s "$url/metrics" | sed -n "s/^$1 //p"; }
ask() { curl -s -m 60 "$url/v1/classify" "$@" -d '{"model":"home-intent","input":"turn off the light"}' >"$work/body" || fail "no answer"; }

# Nobody listens: answers come as ever, and what finds no room is counted.
config 'queue_bytes: 65536' >"$work/dead.yaml"
start_shoal "$work/dead.yaml"
for i in $(seq 200); do ask; done
grep -q '"label"' "$work/body" || fail "no answer without a collector: $(cat "$work/body")"
for _ in $(seq 100); do [ -n "$(metric 'shoal_otel_dropped_total{signal="traces",reason="queue_full"}')" ] && break; sleep 0.1; done
[ -n "$(metric 'shoal_otel_dropped_total{signal="traces",reason="queue_full"}')" ] || fail "nothing is dropped: $(curl -s "$url/metrics" | grep otel)"
[ -z "$(metric 'shoal_otel_sent_total{signal="traces"}')" ] || fail "spans are sent to nobody"
grep -q 'event=collector_fails signal=traces reason="nobody listens there"' "$log" || fail "the log does not say that nobody listens"
stop_shoal
[ "$stopped" = 0 ] || fail "it stops with $stopped"

# The environment stands in for the file; a wrong variable is told and left out.
shipped >"$work/plain.yaml"
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$sink OTEL_BSP_SCHEDULE_DELAY=soon start_shoal "$work/plain.yaml"
curl -si "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}' | grep -qi '^traceparent: 00-' || fail "no trace begins by the environment"
grep -q 'event=variable_ignored variable=OTEL_BSP_SCHEDULE_DELAY' "$log" || fail "a wrong variable is not told"
stop_shoal
start_shoal "$work/plain.yaml"
curl -si "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}' | grep -qi '^traceparent' && fail "a trace that nobody asked for"
stop_shoal

# What the file may not say.
for bad in 'endpoint: collector:4318' 'protocol: grpc' 'sample: 2' 'headers: [{name: content-type, value: x}]' 'resource: {service.name: x}' 'semconv: 1.0'; do
    { shipped; printf 'otel:\n  %s\n' "$bad"; } >"$work/bad.yaml"
    "$SHOAL_BIN" config check "$work/bad.yaml" >"$work/out" 2>&1 && fail "'$bad' is taken"
    grep -q 'otel' "$work/out" || fail "'$bad' is refused without its key: $(cat "$work/out")"
done
printf 'otel: {endpoint: "http://127.0.0.1:1", headers: [{name: x-key, file: secret}]}\n' >>"$work/plain.yaml"
"$SHOAL_BIN" serve -c "$work/plain.yaml" --port 0 >"$work/out" 2>&1 && fail "a header without its file is taken"
grep -q 'otel.headers\[0\].file: ' "$work/out" || fail "the missing file is not named: $(tail -3 "$work/out")"
echo "export costs counters where nobody listens, and the environment stands in for absent keys"
