#!/usr/bin/env bash
# A worker and a gateway that die of a fault leave reports, which name the model, the last steps and lines of the source, and
# nothing of what was asked; shoal crash and shoal ps show them.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
printf 'models:\n  - name: home-chat-m\n' >"$work/one.yaml"
start_shoal "$work/one.yaml"
"$SHOAL_BIN" crash | grep -q "no crashes are reported in $work/state/crashes" || fail "crashes before there are any"
start_stream # "tell me everything"
kill -SEGV "$(pgrep -P "$server" -f 'worker --name home-chat-m')"
wait "$stream"
grep -q 'data: \[DONE\]' "$work/stream" || fail "the stream did not go on"
for _ in $(seq 200); do curl -s "$url/v1/status" | grep -q '"crash_report":"' && break; sleep 0.05; done
report=$(curl -s "$url/v1/status" | grep -o '"crash_report":"[^"]*' | cut -d'"' -f4)
[ -s "$work/state/crashes/$report" ] || fail "no report: $(curl -s "$url/v1/status")"
[ "$(stat -c %a "$work/state/crashes/$report")" = 600 ] || fail "others may read it"
grep -q "event=worker_exited .*shoal crash $report shows more" "$log" || fail "the log does not name it: $(grep worker_exited "$log")"
[ "$(grep -c 'component=worker event=crash replica=home-chat-m/0 .* report='"$report" "$log")" = 1 ] || fail "not one event: $(grep event=crash "$log")"
"$SHOAL_BIN" ps --server "$url" | grep -q "crashed 1 time; the last report: shoal crash $report" || fail "ps: $("$SHOAL_BIN" ps --server "$url")"
python3 - "$work/state/crashes/$report" <<'END' || fail "the report"
import json, sys
text = open(sys.argv[1]).read()
r = json.loads(text)
f, s = r["facts"], r["steps"]
assert (r["component"], r["signal"], r["name"]) == ("worker", 11, "SEGV"), r
assert f["model"] == "home-chat-m" and len(f["digest"]) == 64 and f["isa"] and int(f["context"]) > 0 and f["limit_files"] > 0, f
assert any(x["kind"] in ("decode", "prefill") and x["jobs"] == 1 and x["tokens"] >= 1 for x in s) and len(s) <= 32, s
assert len(r["frames"]) > 3 and all(x["offset"].startswith("0x") for x in r["frames"]), r["frames"]
assert "everything" not in text and len(text) < 32768
END
"$SHOAL_BIN" crash "$report" >"$work/shown" || fail "it cannot be shown"
grep -q '^worker: SIGSEGV (11), ' "$work/shown" && grep -q '^  digest  *[0-9a-f]\{64\}$' "$work/shown" && grep -qE "^  (decode|prefill) .* ms before" "$work/shown" || fail "it shows $(cat "$work/shown")"
if command -v addr2line >/dev/null && readelf -S "$SHOAL_BIN" 2>/dev/null | grep -q debug_line; then
    grep -q 'worker_run at .*/worker\.c:[0-9]' "$work/shown" || fail "no lines of the source: $(cat "$work/shown")"
fi
kill -ABRT "$(gateway)"
for _ in $(seq 400); do [ "$("$SHOAL_BIN" crash | wc -l)" = 2 ] && curl -s "$url/readyz" | grep -q '"status":"ready"' && break; sleep 0.05; done
"$SHOAL_BIN" crash last | grep -q '^gateway: SIGABRT (6), ' || fail "the last one: $("$SHOAL_BIN" crash last)"
"$SHOAL_BIN" crash --json | python3 -c 'import json, sys; a = json.load(sys.stdin)["reports"]; assert [x["component"] for x in a] == ["gateway", "worker"], a' || fail "the list as JSON"
"$SHOAL_BIN" crash ../one.yaml 2>"$work/err" && fail "another file is shown"
grep -q 'is no name of a report' "$work/err" || fail "$(cat "$work/err")"
echo '{"half' >"$work/state/crashes/09999999999-worker-1.json"
"$SHOAL_BIN" crash >/dev/null || fail "half a report ends the list"
"$SHOAL_BIN" crash last 2>"$work/err" && fail "half a report is shown"
stop_shoal
[ "$stopped" = 0 ] || fail "it stops with $stopped"
grep -rq everything "$work/state" "$log" && fail "what was asked is written down: $(grep -rl everything "$work/state" "$log")"
echo "a worker and a gateway left reports, of which nothing tells what was asked"
