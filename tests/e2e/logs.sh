#!/usr/bin/env bash
# The log: a row an event on a terminal, JSON elsewhere; shoal logs shows what a server has logged and follows it.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state # reports of crashes are kept there
unset SHOAL_LOG NO_COLOR SHOAL_COLOR
config=$work/one.yaml
printf 'models:\n  - name: home-intent\nlog:\n  level: info\n' >"$config"
start_shoal "$config"
classify() { curl -s -o /dev/null -H 'cache-control: no-store' "$url/v1/classify" -d '{"model":"'"$1"'","input":"a secret that is typed"}'; }
logs() { timeout 60 "$SHOAL_BIN" logs --server "$url" "$@"; }
all_json() { python3 -c 'import json, sys; [json.loads(x) for x in sys.stdin]'; }

# ---- in a pipe the server's log is JSON, and what shoal logs prints is the same lines
classify home-intent
classify nobody
all_json <"$log" || fail "the log is not JSON: $(head -2 "$log")"
logs -n 10000 >"$work/said" || fail "status $?"
all_json <"$work/said" || fail "shoal logs is not JSON in a pipe"
grep -q '"event":"request".*"endpoint":"classify".*"status":404' "$work/said" || fail "no line of a request: $(tail -2 "$work/said")"
grep -q '"component":"serve","event":"ready"' "$work/said" || fail "no line of the start"
grep -q '"component":"worker","event":"call_done","replica":"home-intent/0",' "$work/said" || fail "no line of a worker"
grep -q secret "$work/said" "$log" && fail "what was typed is in the log"
[ "$(logs -n 2 | wc -l)" -eq 2 ] || fail "-n 2 gives $(logs -n 2 | wc -l) lines"
[ -z "$(logs --level error)" ] || fail "errors: $(logs --level error)"
logs --level loud >/dev/null 2>"$work/err" && fail "a level that is none"
grep -q "debug, info, warn or error, not 'loud'" "$work/err" || fail "$(cat "$work/err")"
SHOAL_LOG=pairs logs -n 1 | grep -qE '^time=[^ ]+ level=info component=gateway event=request ' || fail "pairs: $(SHOAL_LOG=pairs logs -n 1)"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/logs?lines=-1")" = 400 ] || fail "lines=-1"
last=$(curl -s "$url/v1/logs?lines=0" | python3 -c 'import json, sys; a = json.load(sys.stdin); assert a["lines"] == []; print(a["last"])') || fail "lines=0"
classify home-intent
curl -s "$url/v1/logs?after=$last" | python3 -c 'import json, sys; assert any(x["event"] == "request" for x in json.load(sys.stdin)["lines"])' || fail "after=$last"

# ---- what a worker writes beside its log is an event, and its last lines come before its end
worker=$(pgrep -P "$server" -f 'shoal worker')
{
    printf 'double free or corruption\n{"event":"no log line"}\n'
    printf '#%s in a_function\n' $(seq 30) # a backtrace
    printf '{"time":"2026-11-21T02:25:42.123Z","level":"warn","component":"worker","event":"own","Replica":"another/0","REPLICA":"a","n":7}\n'
} >"/proc/$worker/fd/2"
kill -ABRT "$worker"
for _ in $(seq 200); do logs -n 100 | grep -q '"event":"worker_exited".*"signal":6' && break; sleep 0.05; done
logs -n 100 >"$work/said"
grep -q '"component":"worker","event":"stderr","replica":"home-intent/0","text":"double free or corruption"}' "$work/said" || fail "no last words: $(tail -5 "$work/said")"
[ "$(grep -c '"event":"stderr".*"text":"#[0-9]* in a_function"' "$work/said")" = 30 ] || fail "lines of a backtrace are held back"
grep -q '"event":"own","replica":"home-intent/0","n":7}' "$work/said" || fail "a worker's own replica: $(grep '"own"' "$work/said")"
grep -qF '"text":"{\"event\":\"no log line\"}"}' "$work/said" || fail "what is no log line is passed as one"
grep -E '"event":"(crash|worker_exited)"' "$work/said" | head -1 | grep -q '"component":"worker","event":"crash","replica":"home-intent/0"' || fail "the report comes after the end: $(grep -E 'crash|exited' "$work/said")"

# ---- rows for a person
rows=$(logs --color always -n 50)
grep -q $'\x1b\\[36mINFO' <<<"$rows" || fail "no colours: $rows"
if command -v script >/dev/null; then
    NO_COLOR=1 script -qec "stty cols 80; '$SHOAL_BIN' logs --server '$url'" /dev/null </dev/null | tr -d '\r' >"$work/rows"
    grep -qE '^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3} INFO  gateway request classify 404 ' "$work/rows" || fail "rows: $(cat "$work/rows")"
    grep -q $'\x1b' "$work/rows" && fail "colours in spite of NO_COLOR"
    python3 -c 'import sys; sys.exit(any(len(x.rstrip("\n")) > 80 for x in open(sys.argv[1], encoding="utf-8")))' "$work/rows" || fail "wider than the terminal"
    TERM=xterm script -qfec "'$SHOAL_BIN' serve -c '$config' --port 0 & for i in \$(seq 200); do grep -q 'serve .\[1mready' '$work/screen' && break; sleep 0.05; done; kill \$!; wait" "$work/screen" </dev/null >/dev/null
    grep -q $'\x1b\\[36mINFO \x1b\\[0m serve \x1b\\[1mready' "$work/screen" || fail "the server on a terminal: $(cat -v "$work/screen")"
fi

# ---- followed: what is logged shows, and it ends when the server does
logs -f -n 0 >"$work/followed" 2>"$work/err" &
follower=$!
for _ in $(seq 100); do
    classify home-intent
    [ -s "$work/followed" ] && break
    sleep 0.05
done
grep -q '"event":"request"' "$work/followed" || fail "nothing is followed"
logs -f -n 1 >"$work/other" 2>&1 &
other=$!
for _ in $(seq 400); do [ -s "$work/other" ] && break; sleep 0.05; done # it runs, and knows how to leave
kill -TERM "$(pgrep -P "$other" | head -1)"
wait "$other" || fail "a follower that is told to leave ends with $?"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped while its log is followed"
wait "$follower" && fail "a follower of a server that is gone ends well"
grep -q 'shoal logs: the server has ended' "$work/err" || fail "it says: $(cat "$work/err")"
all_json <"$work/followed" || fail "what was followed is not JSON"
logs 2>&1 | grep -q 'no Shoal serves there' || fail "nobody is there: $(logs 2>&1)"
echo "kept, filtered, followed; rows and JSON"
