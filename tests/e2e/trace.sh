#!/usr/bin/env bash
# A request's trace is in the log of each worker that works for it, also behind a pipeline's stages.
source "$(dirname "$0")/lib.sh"
start_shoal shoal.yaml
id=4bf92f3577b34da6a3ce929d0e0e4736
ask() { curl -s -m 120 "$url$1" -H "traceparent: 00-$id-00f067aa0ba902b7-01" -H "x-request-id: $2" -d "$3" >"$work/body" || fail "no answer to $1"; }
done_by() { grep 'event=call_done' "$log" | grep "request_id=$1 " | grep -o 'model=[a-z-]*' | sort -u; }

ask /v1/process r-process '{"input": "turn off the kitchen light"}'
grep -q '"trace"' "$work/body" || fail "no pipeline answered: $(head -c 300 "$work/body")"
[ "$(done_by r-process | wc -l)" -ge 2 ] || fail "two models at least work on a request: $(done_by r-process)"
ask /v1/chat/completions r-chat '{"model": "home-chat-s", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}'
for r in r-process r-chat; do
    bad=$(grep 'event=call_done' "$log" | grep "request_id=$r " | grep -v "trace_id=$id ")
    [ -z "$bad" ] || fail "without the trace: $bad"
    [ -n "$(done_by $r)" ] || fail "no worker says that it has ended a call of $r"
done
curl -s -m 60 "$url/v1/classify" -H 'x-request-id: r-plain' -d '{"model": "home-intent", "input": "hello"}' >/dev/null
grep 'event=call_done' "$log" | grep 'request_id=r-plain ' | grep -q 'trace_id=[0-9a-f]' && fail "a trace that nobody asked for"
stop_shoal
echo "the trace reaches every worker"
