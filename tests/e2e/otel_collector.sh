#!/usr/bin/env bash
# Traces, metrics and logs at a real OpenTelemetry Collector, as protobuf and as JSON: a chat, the home's pipeline, an ensemble, a
# route, a stream that moves to another worker in the middle; a collector that is killed and comes back; sampling.
# long: it builds a Go program, two minutes the first time
source "$(dirname "$0")/lib.sh"
command -v go >/dev/null || skip "Go is not installed"
collector=$(scripts/otelcol.sh build/go 2>"$work/go.log") || skip "the collector's modules cannot be fetched or built: $(tail -1 "$work/go.log")"
export SHOAL_STATE=$work/state PYTHONPATH=$PWD/tests/python
running= runs=0
trap 'end $running; cleanup' EXIT
otlp=$(free_port)
# A file for each run: what is killed may leave half a line.
collect() {
    out=$work/out.$((runs += 1)).jsonl
    cat >"$work/collector.yaml" <<END
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:$otlp"}}}}
exporters: {file: {path: $out, flush_interval: 50ms}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
    metrics: {receivers: [otlp], exporters: [file]}
    logs: {receivers: [otlp], exporters: [file]}
END
    "$collector" --config "$work/collector.yaml" >>"$work/collector.log" 2>&1 &
    running=$!
    for _ in $(seq 200); do (exec 3<>"/dev/tcp/127.0.0.1/$otlp") 2>/dev/null && return; sleep 0.05; done
    fail "the collector does not listen: $(tail -3 "$work/collector.log")"
}
# check NAME: the Python on standard input holds of what the collector wrote, now or soon.
check() {
    cat >"$work/check.py"
    for _ in $(seq 100); do
        python3 "$work/check.py" "$out" "$work" >"$work/said" 2>&1 && return
        sleep 0.1
    done
    fail "$1: $(tail -5 "$work/said")"
}
# ask PATH ID BODY [HEADER...]: the answer's trace id is in $work/ID
ask() {
    local path=$1 id=$2 body=$3
    shift 3
    curl -s -m 60 -D "$work/head" "$url$path" -H "x-request-id: $id" "$@" -d "$body" >"$work/body" || fail "no answer to $id"
    grep -i '^traceparent:' "$work/head" | cut -d- -f2 >"$work/$id"
}
configure() { shipped | sed -E "s|^( +)- name: home-chat-m|&\n\1  replicas: 2|"; printf 'otel:\n  endpoint: http://127.0.0.1:%s\n  interval_ms: 100\n  metrics_interval_ms: 500\n' "$otlp"; printf '  %s\n' "$@"; }
say='"messages":[{"role":"user","content":"turn off the kitchen light"}]'

# Protobuf, packed.
collect
configure 'protocol: http/protobuf' 'compression: gzip' 'service_name: home' 'resource: {deployment.environment.name: test}' >"$work/protobuf.yaml"
start_shoal "$work/protobuf.yaml"
ask /v1/process r-process '{"input": "turn off the kitchen light"}'
ask /v1/chat/completions r-chat "{\"model\":\"home-chat-s\",\"max_tokens\":4,$say}"
ask /v1/chat/completions r-cascade '{"model":"home-cascade","max_tokens":8,"messages":[{"role":"user","content":"sing me a song"}]}'
ask /v1/chat/completions r-route "{\"model\":\"auto\",\"max_tokens\":4,$say}" -H 'cache-control: no-store'
ask /v1/chat/completions r-mine "{\"model\":\"home-chat-s\",\"max_tokens\":4,$say}" -H 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
ask /v1/chat/completions r-not "{\"model\":\"home-chat-s\",\"max_tokens\":4,$say}" -H 'traceparent: 00-11111111111111111111111111111111-00f067aa0ba902b7-00'
check "spans by protobuf" <<'END'
import sys
from otlp_files import read, tree
spans, metrics, logs = read(sys.argv[1])
trace = lambda id: open(sys.argv[2] + "/" + id).read().strip()
root = {s["a"]["shoal.request.id"]: s for s in spans if s["kind"] == 2}
def has(id, *paths):
    t = tree(spans, trace(id))
    for p in paths: assert p in t, (p, sorted(t))
    return t
t = has("r-process", "POST /v1/process", "POST /v1/process/stage intent", "POST /v1/process/stage intent/classify home-intent",
        "POST /v1/process/stage intent/classify home-intent/compute", "POST /v1/process/stage slots/tag home-slots/queue", "POST /v1/process/stage line")
assert t["POST /v1/process"]["resource"]["service.name"] == "home" and t["POST /v1/process"]["resource"]["deployment.environment.name"] == "test"
assert t["POST /v1/process"]["schema"] == "https://opentelemetry.io/schemas/1.37.0"
chat = "POST /v1/chat/completions"
t = has("r-chat", chat, chat + "/generate_content home-chat-s", chat + "/generate_content home-chat-s/decode")
call, a = t[chat + "/generate_content home-chat-s"]["a"], t[chat]["a"]
assert a["http.request.method"] == "POST" and a["http.route"] == "/v1/chat/completions" and a["http.response.status_code"] == 200, a
assert a["gen_ai.operation.name"] == "chat" and a["gen_ai.provider.name"] == "shoal" and a["gen_ai.response.model"] == "home-chat-s", a
assert a["gen_ai.usage.output_tokens"] == 4 and a["gen_ai.usage.input_tokens"] > 1, a
assert call["gen_ai.usage.output_tokens"] == 4 and call["gen_ai.response.finish_reasons"] == ["length"] and call["shoal.replica"] == "home-chat-s/0", call
has("r-cascade", chat + "/ensemble home-cascade/generate_content home-chat-s", chat + "/ensemble home-cascade/generate_content home-chat-m/prefill")
has("r-route", chat + "/route auto/generate_content home-chat-s")
mine = tree(spans, "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
assert chat in mine and mine[chat]["flags"] & 0x301 == 0x301, sorted(mine)
assert trace("r-not") == "11111111111111111111111111111111" and "r-not" not in root, "an unsampled parent"
assert "kitchen" not in open(sys.argv[1]).read(), "parts of requests"
END
check "metrics and logs" <<'END'
import sys
from otlp_files import read, attributes, value
spans, metrics, logs = read(sys.argv[1])
last = {m["name"]: m for m in metrics}
requests = {}
for p in last["shoal_requests_total"]["sum"]["dataPoints"]:
    key = attributes(p)["endpoint"], attributes(p)["code"]
    requests[key] = requests.get(key, 0) + p["asDouble"]
assert requests[("chat_completions", "200")] == 5 and requests[("process", "200")] == 1, requests
assert last["shoal_requests_total"]["sum"]["isMonotonic"] and last["shoal_requests_total"]["sum"]["aggregationTemporality"] == 2
assert any(p["asDouble"] == 1 for p in last["shoal_worker_up"]["gauge"]["dataPoints"])
first = {attributes(p)["gen_ai.request.model"]: p for p in last["gen_ai.server.time_to_first_token"]["histogram"]["dataPoints"]}
assert int(first["home-chat-s"]["count"]) >= 2 and sum(map(int, first["home-chat-s"]["bucketCounts"])) == int(first["home-chat-s"]["count"])
exemplars = [e for p in last["shoal_request_seconds"]["histogram"]["dataPoints"] for e in p.get("exemplars", [])]
ids = {s["traceId"] for s in spans}
assert exemplars and all(e["traceId"] in ids for e in exemplars), exemplars
lines = {l["a"].get("request_id"): l for l in logs if l["body"]["stringValue"] == "request"}
assert any(l["a"].get("component") == "worker" and l["a"].get("replica") for l in logs if l["body"]["stringValue"] == "call_done"), "no line of a worker"
trace = open(sys.argv[2] + "/r-chat").read().strip()
assert lines["r-chat"]["traceId"] == trace and lines["r-chat"]["a"]["status"] == 200 and lines["r-chat"]["severityNumber"] == 9, lines.get("r-chat")
assert abs(int(lines["r-chat"]["timeUnixNano"]) - int(lines["r-chat"]["observedTimeUnixNano"])) < 60e9
END

# A worker dies under a stream: the tree has both.
worker_pid() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1\"" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
for _ in $(seq 20); do # until it is the one that writes
    start_stream
    kill -9 "$(worker_pid home-chat-m/$((RANDOM % 2)))" # in turn it might always be the other one
    wait "$stream"
    grep -q 'event=moved' "$log" && break
    for _ in $(seq 400); do curl -s "$url/readyz" | grep -q '"status":"ready"' && break; sleep 0.05; done
done
grep -q 'event=moved' "$log" || fail "no stream moved"
check "a stream that moved" <<'END'
import sys
from otlp_files import read, tree
spans, _, _ = read(sys.argv[1])
moved = [s for s in spans if s["a"].get("shoal.moves")]
assert moved, "no request that moved"
t = tree(spans, moved[-1]["traceId"])
calls = [s for p, s in t.items() if s["name"].startswith("generate_content home-chat-m")]
assert len(calls) == 2, sorted(t)
assert calls[0]["a"]["shoal.fault"] == "lost" and calls[0]["status"]["code"] == 2 and "error.type" in calls[0]["a"], calls[0]
assert calls[0]["a"]["shoal.replica"] != calls[1]["a"]["shoal.replica"], calls
assert "status" not in calls[1] or not calls[1]["status"], calls[1]
END

# The collector is killed, and comes back: what waited arrives.
kill -9 "$running" && wait "$running" 2>/dev/null
ask /v1/classify r-waits '{"model":"home-intent","input":"hello"}'
for _ in $(seq 100); do grep -q 'event=collector_fails signal=traces' "$log" && break; sleep 0.1; done
grep -q 'event=collector_fails signal=traces' "$log" || fail "nobody notices that the collector is gone"
collect
check "what waited for the collector" <<'END'
import sys
from otlp_files import read
assert any(s["a"].get("shoal.request.id") == "r-waits" for s in read(sys.argv[1])[0])
END
for _ in $(seq 100); do grep -q 'event=collector_answers signal=traces' "$log" && break; sleep 0.1; done
grep -q 'event=collector_answers signal=traces' "$log" || fail "nobody notices that the collector is back"
curl -s "$url/metrics" | grep shoal_otel_dropped_total | grep -v '^#' && fail "something was dropped"

# What came last goes out before the stop.
ask /v1/classify r-last '{"model":"home-intent","input":"bye"}'
stop_shoal
[ "$stopped" = 0 ] || fail "it stops with $stopped"
check "the last request" <<'END'
import sys
from otlp_files import read
spans, _, logs = read(sys.argv[1])
assert any(s["a"].get("shoal.request.id") == "r-last" for s in spans)
assert any(l["body"]["stringValue"] == "draining" for l in logs)
END

# JSON, the older conventions, and only what failed or was slow.
configure 'protocol: http/json' 'semconv: 1.28.0' 'sample: 0' 'keep_failed: true' 'slow_ms: 150' 'metrics: off' >"$work/json.yaml"
start_shoal "$work/json.yaml"
ask /v1/classify r-quick '{"model":"home-intent","input":"hello"}'
ask /v1/classify r-late '{"model":"home-intent","input":"hello"}' -H 'x-shoal-deadline-ms: 0'
ask /v1/chat/completions r-slow '{"model":"home-chat-m","temperature":1,"seed":5,"ignore_eos":true,"max_tokens":400,"messages":[{"role":"user","content":"tell me everything"}]}'
ask /v1/chat/completions r-sampled "{\"model\":\"home-chat-s\",\"max_tokens\":4,$say}" -H 'traceparent: 00-22222222222222222222222222222222-00f067aa0ba902b7-01'
check "spans by JSON" <<'END'
import sys
from otlp_files import read, tree
spans, metrics, logs = read(sys.argv[1])
root = {s["a"]["shoal.request.id"]: s for s in spans if s["kind"] == 2}
for id in "r-late", "r-slow", "r-sampled": assert id in root, (id, sorted(root))
assert "r-quick" not in root
assert root["r-late"]["status"]["code"] == 2 and root["r-late"]["a"]["error.type"] == "deadline_unmeetable", root["r-late"]
assert root["r-slow"]["a"]["gen_ai.system"] == "shoal" and "gen_ai.provider.name" not in root["r-slow"]["a"]
assert root["r-slow"]["schema"] == "https://opentelemetry.io/schemas/1.28.0"
assert "POST /v1/chat/completions/generate_content home-chat-m/decode" in tree(spans, root["r-slow"]["traceId"])
assert any(l["a"].get("request_id") == "r-quick" for l in logs), "log lines are sent, too"
END
stop_shoal
end "$running"
echo "a collector gets spans of requests, routes, ensembles, stages, calls and phases, metrics and logs, by protobuf and JSON"
