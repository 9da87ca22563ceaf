#!/usr/bin/env bash
# Full queues, deadlines, clients that leave, a worker that stands still and a drain that is cut: each has
# its own clear answer, and the other models go on.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
drain_ms: 300
deadline_ms: 200000 # of a slow machine
limits: {max_requests: 4}
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s, max_batch: 1, max_queue: 2}]
EOF
start_shoal "$work/c.yaml"
long='{"model":"home-chat-s","temperature":0,"max_tokens":1900,"logit_bias":{"2":-100},"messages":[{"role":"user","content":"go on"}]}'
wild=${long/'"temperature":0'/'"temperature":2'} # takes longer: a reply that repeats itself is guessed

# chat NAME CURL-ARGS...: $work/NAME.body, .head and .status; nothing is shared or cached
chat() {
    local name=$1
    shift
    curl -sN -m 120 -H 'Cache-Control: no-cache' -o "$work/$name.body" -D "$work/$name.head" -w '%{http_code}' \
        "$url/v1/chat/completions" "$@" >"$work/$name.status"
}
# want NAME STATUS TEXT
want() {
    [ "$(cat "$work/$1.status")" = "$2" ] || fail "$1: status $(cat "$work/$1.status"), wanted $2: $(head -c 400 "$work/$1.body")"
    grep -q -- "$3" "$work/$1.body" || fail "$1: wanted $3, got $(tail -c 400 "$work/$1.body")"
}
short() { chat "$1" -d "${long/1900/4}"; want "$1" 200 '"finish_reason":"length"'; }
classify() {
    curl -s -o "$work/c" -w '%{http_code}' -m 5 -H 'Cache-Control: no-cache' "$url/v1/classify" -d '{"model":"home-intent","input":"hello"}'
}
replica_pid() { # while it is started again it has none
    local pid
    for _ in $(seq 400); do
        pid=$(curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2)
        [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && break
        sleep 0.05
    done
    echo "${pid:-none}"
}
log_has() { for _ in $(seq 400); do grep -q -- "$1" "$log" && return; sleep 0.05; done; fail "the log never had $1"; }

# One runs and two wait: of four choices one finds no place. Of eight requests the gateway takes four, and
# the worker three of these. Each choice counts.
chat five -d "${long%\}},\"n\":5}"
want five 429 '"param":"n","code":"too_many_requests"'
chat four -d "${long%\}},\"n\":4}"
want four 429 '2 requests are waiting, the limit is 2'
want four 429 '"code":"queue_full"'
grep -qi '^retry-after: [1-9]' "$work/four.head" || fail "429 without Retry-After"
for _ in $(seq 50); do # the other three are being taken back
    chat room -d "${long%\}},\"n\":3,\"max_completion_tokens\":4}"
    [ "$(cat "$work/room.status")" = 200 ] && break
    sleep 0.1
done
[ "$(cat "$work/room.status")" = 200 ] || fail "no room behind four choices: $(cat "$work/room.body")"
# At once, out of one process: the first is answered before eight curls have started on a slow machine.
to=()
for i in $(seq 8); do to+=(-o "$work/q$i.body" "$url/v1/chat/completions"); done
said=$(curl -sN --parallel --parallel-immediate -m 120 -H 'Cache-Control: no-cache' -D "$work/eight.head" -w '%{http_code} ' \
    -d "${wild/1900/1000}" "${to[@]}" 2>"$work/progress")
[ "$said" = '429 429 429 429 429 200 200 200 ' ] || fail "of eight, five should be refused, and three answered behind: $said"
[ "$(cat "$work"/q?.body | grep -oE '"code":"(too_many_requests|queue_full)"' | wc -l)" = 5 ] || fail "$(cat "$work"/q?.body)"
[ "$(grep -ci '^retry-after: [1-9]' "$work/eight.head")" = 5 ] || fail "429 without Retry-After"
[ "$(classify)" = 200 ] || fail "classify afterwards: $(cat "$work/c")"

# Deadlines: refused at once, missed, and missed in a stream.
chat now -H 'x-shoal-deadline-ms: 0' -d "$long"
want now 504 '"code":"deadline_unmeetable"'
pid=$(replica_pid home-chat-s)
kill -STOP "$pid" # so that no machine is too fast for the deadline
chat soon -H 'x-shoal-deadline-ms: 40' -d "$long"
kill -CONT "$pid"
want soon 504 '"code":"deadline_exceeded"'
for _ in $(seq 20); do # stopped in the middle, unless the stream was quicker than us, or did not begin in time
    pid=$(replica_pid home-chat-s) # a worker that stands still for long is replaced
    : >"$work/flow.body"
    chat flow -H 'x-shoal-deadline-ms: 600' -d "${long%\}},\"stream\":true,\"logprobs\":true,\"top_logprobs\":20}" & flow=$!
    for _ in $(seq 500); do [ -s "$work/flow.body" ] && break; sleep 0.001; done
    kill -STOP "$pid"
    wait "$flow"
    kill -CONT "$pid" 2>/dev/null
    [ "$(cat "$work/flow.status")" = 200 ] && ! grep -q 'DONE' "$work/flow.body" && break
done
want flow 200 '"code":"deadline_exceeded"'
grep -q 'DONE' "$work/flow.body" && fail "a stream that missed its deadline says it is whole"
chat odd -H 'x-shoal-deadline-ms: soon' -d "$long"
want odd 400 'x-shoal-deadline-ms'
chat ctx -d "${long/go on/$(printf 'word %.0s' $(seq 3000))}"
want ctx 400 'maximum context length is 2048 tokens'

# A client that leaves frees the one place there is; one that only shuts its side gets its answer.
for kind in '' ',"stream":true'; do
    for patience in 0.05 0.08 0.03 0.12 0.2; do # too little: it never came; too much: it was answered
        curl -s -m $patience -H 'Cache-Control: no-cache' -H "x-request-id: left${#kind}" "$url/v1/chat/completions" -d "${wild%\}}$kind}" >/dev/null
        sleep 0.1
        grep -q "event=call_cancelled .*request_id=left${#kind}" "$log" && break
    done
    log_has "event=call_cancelled .*request_id=left${#kind}"
    short "after"
done
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCache-Control: no-cache\r\nContent-Length: %d\r\n\r\n%s' ${#long} "$long" >&3
timeout 120 cat <&3 >"$work/half" || fail "no answer"
exec 3<&-
grep -q '"completion_tokens":1900' "$work/half" || fail "$(tail -c 300 "$work/half")"

# A worker that stands still, most likely with the cores in its hands.
chat stuck -H 'x-shoal-deadline-ms: 300' -d "$long" & stuck=$!
pid=$(replica_pid home-chat-s)
kill -STOP "$pid"
for _ in $(seq 10); do [ "$(classify)" = 200 ] || { kill -CONT "$pid"; fail "classify beside a stopped worker: $(cat "$work/c")"; }; done
wait "$stuck"
kill -CONT "$pid" 2>/dev/null # unless it was replaced by now
want stuck 504 '"code":"deadline_exceeded"'
short "continued"

# The grace of a drain is over: an error each, then exit 0.
chat whole -d "$long" & whole=$!
chat cut -d "${long%\}},\"stream\":true,\"n\":3}" & cut=$!
for _ in $(seq 2000); do [ -s "$work/cut.body" ] && break; sleep 0.01; done # it has come in, and one of them runs
kill "$server"
wait "$whole" "$cut"
cat "$work/whole.body" "$work/cut.body" | grep -qE '"code":"stopping"|DONE|finish_reason' || fail "the drain cut without a word: $(cat "$work/whole.status" "$work/cut.status")"
wait "$server"
stopped=$?
server=
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
grep -q 'go on' "$log" && fail "a prompt is in the log"
grep -qE 'AddressSanitizer|runtime error' "$log" && fail "$(grep -E -A5 'AddressSanitizer|runtime error' "$log" | head -20)"
echo "429, 504, 499 and 503, each where it belongs"
