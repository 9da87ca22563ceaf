#!/usr/bin/env bash
# shoal calibrate against a running cascade: the file it writes is the one that a gateway takes; and what is wrong is told.
source "$(dirname "$0")/lib.sh"

cat >"$work/shoal.yaml" <<EOF
manifest: $PWD/models/models.json
models: [{name: home-chat-s}, {name: home-chat-m}, {name: home-intent}]
ensembles:
  - {name: two, kind: cascade, members: [{model: home-chat-s, min_confidence: 0.6}, {model: home-chat-m}]}
  - {name: both, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
EOF
head -24 eval/names-calibrate.jsonl >"$work/some.jsonl"
start_shoal "$work/shoal.yaml"
calibrate() { "$SHOAL_BIN" calibrate --server "$url" --homes eval/homes "$@" >"$work/out" 2>"$work/err"; }
# wrong STATUS TEXT ARGS...
wrong() {
    local status=$1 text=$2
    shift 2
    calibrate "$@"
    local rc=$?
    [ $rc -eq "$status" ] || fail "shoal calibrate $*: status $rc, wanted $status: $(cat "$work/err")"
    grep -qF -- "$text" "$work/err" || fail "shoal calibrate $*: no \"$text\" in: $(cat "$work/err")"
}

calibrate two "$work/some.jsonl" --out "$work/two.json" --svg "$work/two.svg" || fail "$(cat "$work/err")"
[ -s "$work/err" ] && fail "progress in a pipe: $(cat "$work/err")"
grep -q 'THRESHOLD  COVERAGE %' "$work/out" || fail "no table: $(cat "$work/out")"
grep -q "home-chat-s: alone right in .* of 24 cases" "$work/out" || fail "not told what it can do alone: $(cat "$work/out")"
grep -q '"model": "home-chat-s", "digest": "[0-9a-f]\{64\}"' "$work/two.json" || fail "whose calibration is it? $(cat "$work/two.json")"
grep -q '</svg>' "$work/two.svg" || fail "no picture"
calibrate two "$work/some.jsonl" --escalate 0.25 --json || fail "$(cat "$work/err")"
grep -q '^{"ensemble":"two","n":24,' "$work/out" || fail "no JSON: $(cat "$work/out")"

wrong 2 "no cascade" both "$work/some.jsonl"
wrong 2 "cascades: two" nothing "$work/some.jsonl"
wrong 2 "not both" two "$work/some.jsonl" --accuracy 0.9 --escalate 0.1
wrong 2 "from 0 to 1" two "$work/some.jsonl" --accuracy 90
wrong 2 "has no cases" two /dev/null
echo '{"text":"wake me at six","expected":"alarm_set"}' >"$work/labels.jsonl"
wrong 1 "case 1 : home-chat-s answers with status 4" two "$work/labels.jsonl"
wrong 1 "No such file" two "$work/nowhere.jsonl"

# Routes side by side; the last line is the last route's.
"$SHOAL_BIN" eval --server "$url" --homes eval/homes "$work/some.jsonl" -r home-chat-s -r two --json >"$work/out" || fail "shoal eval"
tail -1 "$work/out" | grep -q '^{"accuracy":[01]\.[0-9]*,"n":24,"p50_ms":[0-9.]*,"p95_ms":[0-9.]*,"escalated":[01]\.' ||
    fail "the last line: $(tail -1 "$work/out")"
"$SHOAL_BIN" eval --server "$url" --homes eval/homes "$work/some.jsonl" -r two -r home-chat-s >"$work/out" || fail "shoal eval"
grep -q '^two against home-chat-s: ' "$work/out" || fail "no difference: $(cat "$work/out")"
"$SHOAL_BIN" eval --server "$url" "$work/labels.jsonl" -r home-intent --min-right 100 >"$work/out" || fail "a label: $(cat "$work/out")"
stop_shoal

# What was written is taken. Confidences are the same on every machine: what was said then is said now, so that nothing drifts
# with the same requests, and much does when all are nonsense.
sed -i "s|min_confidence: 0.6|calibration: $work/two.json|" "$work/shoal.yaml"
start_shoal "$work/shoal.yaml"
"$SHOAL_BIN" eval --server "$url" --homes eval/homes "$work/some.jsonl" -r two >"$work/out" || fail "shoal eval with the calibration"
curl -s "$url/metrics" | grep -q '^shoal_cascade_drift{ensemble="two",model="home-chat-s"} ' || fail "no drift is told"
grep -q event=cascade_drift "$log" && fail "it drifts with what it was calibrated with: $(grep cascade_drift "$log")"
for _ in $(seq 150); do echo '{"prompt":"xq zzv wkj","expected":"x"}'; done >"$work/nonsense.jsonl"
"$SHOAL_BIN" eval --server "$url" "$work/nonsense.jsonl" -r two >"$work/out" || fail "shoal eval of nonsense"
[ "$(grep -c 'level=warn .*event=cascade_drift' "$log")" = 1 ] || fail "nonsense is no drift, or is told twice: $(curl -s "$url/metrics" | grep drift)"
stop_shoal
echo "a cascade is calibrated, its file is taken, and drift is told once"
