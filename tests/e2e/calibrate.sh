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
# A models.json beside what is written pins it; what is not the pinned file, or is of another model's file, is refused.
mkdir "$work/models"
cp models/models.json "$work/models/"
for m in home-chat-s home-chat-m home-intent; do ln -s "$PWD/models/$m.gguf" "$work/models/"; done
sed -i "s|$PWD/models|$work/models|; s|$work/two.json|models/two.json|" "$work/shoal.yaml"
cp "$work/two.json" "$work/models/two.json"
start_shoal "$work/shoal.yaml"
calibrate two "$work/some.jsonl" --out "$work/models/two.json" || fail "$(cat "$work/err")"
grep -q "^pinned:  $work/models/models.json" "$work/out" || fail "it is not said to be pinned: $(cat "$work/out")"
stop_shoal
pinned=$(sha256sum "$work/models/two.json" | cut -d' ' -f1)
grep -q "\"two.json\":\"$pinned\"" "$work/models/models.json" || fail "it is not pinned: $(head -3 "$work/models/models.json")"
start_shoal "$work/shoal.yaml"
stop_shoal
refused() { # WORDS
    for how in "serve --port 0" "serve --check"; do
        timeout 20 "$SHOAL_BIN" $how -c "$work/shoal.yaml" >"$work/out" 2>"$work/err"
        local rc=$?
        [ $rc = 2 ] || [ $rc = 1 ] || fail "shoal $how: status $rc: $(cat "$work/out" "$work/err")"
        grep -qF "$1" "$work/err" "$work/out" || fail "shoal $how: no \"$1\" in: $(cat "$work/out" "$work/err")"
    done
}
cp "$work/models/two.json" "$work/kept.json"
echo >>"$work/models/two.json"
refused "shoal.yaml:4: ensembles[0].members[0].calibration: $work/models/two.json is not the file that $work/models/models.json pins"
sed 's/"digest": "[0-9a-f]*"/"digest": "'"$(printf x | sha256sum | cut -d' ' -f1)"'"/' "$work/kept.json" >"$work/other.json"
sed -i "s|models/two.json|other.json|" "$work/shoal.yaml"
refused "was made with another file of home-chat-s"
# Where nobody says before which file a model is, it shows when it answers: the next member does, and it is told once.
sed -i "s|models: \[{name: home-chat-s}|models: [{name: home-chat-s, path: $PWD/models/home-chat-s.gguf}|" "$work/shoal.yaml"
start_shoal "$work/shoal.yaml"
for i in 1 2 3; do
    got=$(curl -s -D "$work/head" "$url/v1/chat/completions" -d '{"model":"two","seed":'"$i"',"temperature":1,"max_tokens":8,"messages":[{"role":"user","content":"turn on the lamp"}]}')
    grep -q 'home-chat-s was calibrated as another file, home-chat-m' "$work/head" || fail "it is trusted: $(cat "$work/head") $got"
done
[ "$(grep -c 'level=warn .*event=cascade_untrusted' "$log")" = 1 ] || fail "it is not told once"
curl -s "$url/metrics" | grep -q '^shoal_cascade_total{ensemble="two",model="home-chat-s",judged="untrusted"} 3' || fail "not counted: $(curl -s "$url/metrics" | grep cascade)"
stop_shoal
echo "a cascade is calibrated, its file is pinned and taken, what is not it is not, and drift is told once"
