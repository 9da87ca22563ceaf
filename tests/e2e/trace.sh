#!/usr/bin/env bash
# A request's trace is in the log of each worker that works for it, also behind a pipeline's stages.
source "$(dirname "$0")/lib.sh"
start_shoal shoal.yaml
id=4bf92f3577b34da6a3ce929d0e0e4736
ask() { curl -s -m 120 "$url$1" -H "traceparent: 00-$id-00f067aa0ba902b7-01" -H "x-request-id: $2" -d "$3" >"$work/body" || fail "no answer to $1"; }
done_by() { grep 'event=call_done' "$log" | grep "request_id=$1 " | grep -o 'model=[a-z-]*' | sort -u; }

ask /v1/process r-process '{"input": "turn off the kitchen light"}'
grep -q '"trace"' "$work/body" || fail "no pipeline answered: $(head -c 300 "$work/body")"
cp "$work/body" "$work/process"
[ "$(done_by r-process | wc -l)" -ge 2 ] || fail "two models at least work on a request: $(done_by r-process)"
ask /v1/chat/completions r-chat '{"model": "home-chat-s", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}'
ask /v1/chat/completions r-cascade '{"model": "home-cascade", "max_tokens": 8, "messages": [{"role": "user", "content": "sing me a song"}]}'
ask /v1/chat/completions r-route '{"model": "auto", "max_tokens": 4, "messages": [{"role": "user", "content": "turn off the kitchen light"}]}'
for r in r-process r-chat; do
    bad=$(grep 'event=call_done' "$log" | grep "request_id=$r " | grep -v "trace_id=$id ")
    [ -z "$bad" ] || fail "without the trace: $bad"
    [ -n "$(done_by $r)" ] || fail "no worker says that it has ended a call of $r"
done
curl -s -m 60 "$url/v1/classify" -H 'x-request-id: r-plain' -d '{"model": "home-intent", "input": "hello"}' >/dev/null
grep 'event=call_done' "$log" | grep 'request_id=r-plain ' | grep -q 'trace_id=[0-9a-f]' && fail "a trace that nobody asked for"

# What of cores each call took: in the pipeline's trace, in spans of traced requests, and summed up.
curl -s -m 60 "$url/v1/requests" >"$work/requests"
sleep 1.1
curl -s -m 60 "$url/metrics" >"$work/metrics"
python3 - "$work" <<'END' || fail "what calls took"
import json, re, sys
work = sys.argv[1]
seen = {r["id"]: r for r in json.load(open(work + "/requests"))["data"]}
for request, names in ("r-process", {"classify", "tag"}), ("r-chat", {"generate"}):
    attempts = {s["name"]: s for s in seen[request]["spans"] if "replica" in s}
    assert names <= set(attempts), attempts
    for s in attempts.values(): assert float(s["cpu_ms"]) > 0, s

# Of each span where it stands: [request, stage, call, phase].
def paths(request):
    spans = {s["id"]: s for s in seen[request]["spans"]}
    for s in spans.values():
        path = [s["name"]]
        while s.get("parent") in spans: s = spans[s["parent"]]; path.insert(0, s["name"])
        assert s.get("parent") == "00f067aa0ba902b7", (request, s)
        yield path
expected = {"r-process": [["process"], ["process", "intent"], ["process", "intent", "classify"], ["process", "intent", "classify", "queue"],
                          ["process", "slots", "tag", "compute"]],
            "r-chat": [["chat_completions", "generate", "prefill"]],
            "r-cascade": [["chat_completions", "home-cascade", "generate"], ["chat_completions", "home-cascade", "generate", "decode"]],
            "r-route": [["chat_completions", "auto"], ["chat_completions", "auto", "generate", "decode"]]}
for request, those in expected.items():
    for path in those: assert path in list(paths(request)), (path, sorted(paths(request)))
members = {s["model"] for s in seen["r-cascade"]["spans"] if s["name"] == "generate"}
assert members == {"home-chat-s", "home-chat-m"} or members == {"home-chat-s"}, members
took = {m[1]: float(m[2]) for m in re.finditer(r"^(\S+) (\S+)$", open(work + "/metrics").read(), re.M)}
for series in ('shoal_call_cpu_seconds_total{model="home-intent",task="classify"}',
               'shoal_call_cpu_seconds_total{model="home-chat-s",task="generate"}', "shoal_gateway_cpu_seconds_total"):
    assert took[series] > 0, series
END
grep -o '"stage":"intent"[^}]*' "$work/process" | grep -q '"cpu_ms":[0-9.]*[1-9]' || fail "no cpu_ms in the pipeline's trace: $(cat "$work/process")"
stop_shoal
echo "the trace reaches every worker, and says what of cores each call took"
