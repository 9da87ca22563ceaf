#!/usr/bin/env bash
# The load client of `shoal bench`: counts what it asked for and what failed, asks nothing twice unless told to, and
# finds the server's process. No speed is held to anything.
source "$(dirname "$0")/lib.sh"
load() { "$SHOAL_BIN" bench --url "$url" --load home-chat-s -p 6 -n 5 "$@"; }
value() { grep -o "\"$1\":[0-9.]*" "$work/out" | cut -d: -f2 | paste -sd ' '; }
hits() { curl -s "$url/metrics" | awk '/^shoal_cache_lookups_total.*result="hit"/ { n += $2 } END { print n + 0 }'; }

start_shoal
load --requests 12 --clients 1,3 --json >"$work/out" || fail "closed loops"
[ "$(value clients)" = "1 3" ] && [ "$(value ok)" = "12 12" ] && [ "$(value failed)" = "0 0" ] || fail "$(cat "$work/out")"
[ "$(value tokens)" = "60 60" ] || fail "tokens by usage: $(value tokens)"
awk -v v="$(value cpu_s)" 'BEGIN { split(v, c, " "); exit !(c[1] >= 0) }' || fail "no CPU time: $(value cpu_s)"
load --requests 9 --rate 200 --json >"$work/out" || fail "an open loop"
[ "$(value clients)" = 1024 ] && [ "$(value rate)" = 200 ] && [ "$(value ok)" = 9 ] || fail "$(cat "$work/out")"
load --requests 9 --cached --clients 1 --json >"$work/out" || fail "--cached"
[ "$(value ok)" = 9 ] || fail "$(cat "$work/out")"
for _ in $(seq 100); do [ "$(hits)" -ge 8 ] && break; sleep 0.1; done # what is counted is told a little later
[ "$(hits)" = 8 ] || fail "the cache is to answer all of --cached but the first, and nothing else: $(hits) answers"
load --requests 2 --clients 2 >"$work/out" 2>"$work/err" || fail "the table"
grep -qE '^ +2 +[0-9.]+ +2 +0 ' "$work/out" || fail "$(cat "$work/out")"
"$SHOAL_BIN" bench --url "$url" --load nobody --requests 3 --clients 1 --json >"$work/out" 2>"$work/err"
[ "$(value failed)" = 3 ] && grep -q 'first failure: status 404' "$work/err" || fail "a model that is not there"

# ---- until a time is over; a scenario with other numbers of clients; which process used the cores
load --duration 0.3 --clients 2 --json >"$work/out" || fail "--duration"
[ "$(value failed)" = 0 ] && [ "$(value ok)" -ge 2 ] && awk -v s="$(value seconds)" 'BEGIN { exit !(s >= 0.3) }' || fail "$(cat "$work/out")"
for name in shoal-gateway 'shoal-worker home-chat-s' 'shoal-worker home-intent'; do
    grep -qE "\"name\":\"$name\",\"pid\":[0-9]+,\"cores\":[0-9.]+}" "$work/out" || fail "no $name: $(cat "$work/out")"
done
"$SHOAL_BIN" bench --url "$url" --only embed,home --clients 2,3 --requests 7 --json >"$work/out" || fail "scenarios"
[ "$(grep -oE '"name":"[a-z]*","clients":[0-9]*,"ok":[0-9]*,"failed":[0-9]*' "$work/out" | tr -d '"' | paste -sd ' ')" = \
    'name:embed,clients:2,ok:7,failed:0 name:embed,clients:3,ok:7,failed:0 name:home,clients:2,ok:7,failed:0 name:home,clients:3,ok:7,failed:0' ] ||
    fail "$(cat "$work/out")"
load --duration 0.3 --clients 4 >"$work/out" || fail "the table with processes"
grep -qE '^      cores: .*shoal-worker home-chat-s [0-9.]+' "$work/out" || fail "$(cat "$work/out")"

# ---- every path; steps until an objective is missed; a trace, and the server's own requests as one; reports
for of in chat/completions:home-chat-s embeddings:home-embed rerank:home-embed classify:home-intent process:home; do
    "$SHOAL_BIN" bench --server "$url" --load "${of#*:}" --path "/v1/${of%:*}" -p 3..5 -n 4 --requests 5 --clients 1 --json >"$work/out"
    [ "$(value ok)" = 5 ] && [ "$(value failed)" = 0 ] || fail "/v1/${of%:*}: $(cat "$work/out")"
done
load --prompt-tokens 50 --requests 4 --clients 1 --json >"$work/out"
awk -v n="$(value prompt_tokens)" 'BEGIN { exit !(n >= 160 && n <= 240) }' || fail "prompts of 50 tokens: $(value prompt_tokens)"
load --rate 20..80 --step 20 --arrivals poisson --duration 0.5 --objective max=0.001 --html "$work/l.html" --svg "$work/l.svg" >"$work/out" 2>"$work/err"
[ "$(grep -c '^ *[0-9]* .* 0 ' "$work/out")" = 1 ] && grep -q '^max is .* at 20/s' "$work/out" || fail "steps: $(cat "$work/out")"
grep -q '</html>' "$work/l.html" && grep -q '</svg>' "$work/l.svg" && grep -q 'shoal [0-9.]*' "$work/l.html" || fail "reports"
load --rate 20..60 --step 20 --requests 4 --objective p95=60000 --json >"$work/out" 2>"$work/err"
[ "$(value rate)" = "20 40 60" ] && grep -q '"objective":"p95 <= 60000 ms holds up to 60/s"' "$work/out" || fail "$(cat "$work/out")"
printf '{"at":0,"path":"/v1/classify","body":{"model":"home-intent","input":"x"}}\n{"at":0.1,"prompt":"hello","max_tokens":3}\n' >"$work/t.jsonl"
load --trace "$work/t.jsonl" --json >"$work/out" || fail "a trace"
[ "$(value ok)" = 2 ] && [ "$(value tokens)" = 3 ] || fail "$(cat "$work/out")"
"$SHOAL_BIN" bench --server "$url" --load nobody --requests 3 --clients 1 >"$work/out" 2>"$work/err"
"$SHOAL_BIN" bench --server "$url" --save-trace "$work/own.jsonl" >"$work/out" || fail "--save-trace"
grep -q '"path":"/v1/classify"' "$work/own.jsonl" || fail "$(head -3 "$work/own.jsonl")"
# Those to the model that is not there have no name in the list, and fail as they did. The list is bounded: a fast machine
# has made so many requests by now that the first three of them have left it.
failing=$(grep -vc '"model"' "$work/own.jsonl")
[ "$failing" = 3 ] || [ "$failing" = 6 ] || fail "the trace has $failing requests without a model"
"$SHOAL_BIN" bench --server "$url" --trace "$work/own.jsonl" --speed 1000 --clients 4 --json >"$work/out" 2>"$work/err"
[ "$(value ok)" = "$(grep -c '"model"' "$work/own.jsonl")" ] && [ "$(value failed)" = "$failing" ] ||
    fail "its own requests again: $(cut -c1-400 "$work/out")"

# ---- where one of these requests went
"$SHOAL_BIN" profile --request last --server "$url" >"$work/out" || fail "profile --request"
grep -q ' model call' "$work/out" && grep -q ' START MS ' "$work/out" || fail "$(cat "$work/out")"
"$SHOAL_BIN" profile --request nobody --server "$url" 2>"$work/err" && fail "a request that is not there"
grep -q 'does not list a request nobody' "$work/err" || fail "$(cat "$work/err")"

refused() {
    "$SHOAL_BIN" bench "${@:2}" >"$work/out" 2>"$work/err" && fail "bench ${*:2} is taken"
    grep -q -- "$1" "$work/err" || fail "bench ${*:2}: $(cat "$work/err")"
}
refused '--server URL' --load home-chat-s
refused '--clients wants' --url "$url" --load home-chat-s --clients 0
refused '--duration wants' --url "$url" --load home-chat-s --duration -1
refused '--rate wants' --url "$url" --load home-chat-s --rate -1
refused '--step is of a range' --url "$url" --load home-chat-s --step 3
refused '--objective wants' --url "$url" --load home-chat-s --objective p95
refused '--body FILE' --url "$url" --path /any
refused '--arrivals wants' --url "$url" --load home-chat-s --rate 3 --arrivals never
refused 'no such process' --url "$url" --load home-chat-s --pid 999999999
refused 'neither ADDRESS' --url 'no address' --load home-chat-s
stop_shoal
"$SHOAL_BIN" bench --url "$url" --load home-chat-s --requests 2 --clients 1 --json >"$work/out" 2>"$work/err"
[ "$(value failed)" = 2 ] || fail "a server that is gone: $(cat "$work/out")"
echo "closed and open loops, counted by usage"
