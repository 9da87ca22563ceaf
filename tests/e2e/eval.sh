#!/usr/bin/env bash
# shoal eval against a running cluster: verdicts, aims, exit statuses, and plain text in a pipe.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
manifest: $PWD/models/models.json
api_keys: ["sha256:$(printf secret | sha256sum | cut -d' ' -f1)"]
models: [{name: home-intent}]
pipelines:
  - name: only
    stages: [{name: intent, kind: classify, model: home-intent}]
EOF
mkdir "$work/homes"
echo '{"devices":[{"id":"light.a","name":"A","state":"on"}]}' >"$work/homes/one.json"
# This pipeline never says or calls anything: three are silent, one is an error that is expected.
cat >"$work/cases.jsonl" <<'EOF'
{"id":"a","home":"one","input":"turn off the light","expect":{"kind":"refuse"},"tags":["act"]}
{"id":"b","input":"hello","expect":{"kind":"fallback"},"tags":["talk"]}
{"id":"c","input":"hi","context":[],"expect":{"any":[{"kind":"refuse"},{"kind":"fallback"}]},"tags":["talk"]}
{"id":"d","input":"","expect":{"kind":"reject","has":["must not be empty"]},"tags":["odd"]}
EOF
start_shoal "$work/c.yaml"
eval_shoal() { "$SHOAL_BIN" eval --server "$url" -H 'authorization: Bearer secret' "$@" >"$work/out" 2>"$work/err"; }
# want STATUS TEXT ARGS...
want() {
    local status=$1 text=$2
    shift 2
    eval_shoal "$@"
    local rc=$?
    [ $rc -eq "$status" ] || fail "shoal eval $*: status $rc, wanted $status: $(cat "$work/err")"
    grep -qE -- "$text" "$work/out" "$work/err" || fail "shoal eval $*: no \"$text\" in: $(cat "$work/out" "$work/err")"
}
want 0 '^all +4 +25.0 +1 +0 +3 +0 ' "$work/cases.jsonl"
[ -s "$work/err" ] && fail "progress in a pipe: $(cat "$work/err")"
grep -q '"hello"' "$work/out" && fail "a request is shown without --failures"
want 0 '^silent b: "hello"' "$work/cases.jsonl" --failures
want 0 '^talk +2 ' "$work/cases.jsonl" --max-silent 75 --min-right 25
want 1 'right 25.00 %, harmful 0.00 %, silent 75.00 %' "$work/cases.jsonl" --max-silent 74
want 1 '"aims_met":false' "$work/cases.jsonl" --min-right 26 --json
want 0 '^\| odd \| 1 \| 100.0 ' "$work/cases.jsonl" --markdown --svg "$work/out.svg"
grep -q '25.0 % of 4' "$work/out.svg" || fail "no total in the picture"
want 0 '^all +8 ' "$work/cases.jsonl" "$work/cases.jsonl"
want 0 '^all +4 +0.0 +0 +4 ' "$work/cases.jsonl" --pipeline other # 404 is no answer
echo '{"id":"e","input":"x","expect":{"kind":"call"}}' >>"$work/cases.jsonl"
want 2 "cases.jsonl:5: 'expect.kind' must be" "$work/cases.jsonl"
want 2 'has no cases' /dev/null
want 1 'No such file' "$work/nothing.jsonl"
sed -i 5d "$work/cases.jsonl"
want 2 'not "a"' "$work/cases.jsonl" -H a
# ---- compared with an accepted run: the first one is
base=$work/base.json
want 0 "^shoal eval: 4 cases are accepted in $base\$" "$work/cases.jsonl" --baseline "$base"
cp "$base" "$work/base"
want 0 "^shoal eval: none of 4 cases is worse than in $base \(0 better, 0 new, 0 gone\)\$" "$work/cases.jsonl" --baseline "$base"
want 1 "^shoal eval: 1 of 4 cases is worse than in $base: d \(right, now wrong\) \(3 better, 0 new, 0 gone\)\$" "$work/cases.jsonl" --baseline "$base" --pipeline other
cmp -s "$base" "$work/base" || fail "a run that nobody accepted is accepted"
want 0 '^all +4 ' "$work/cases.jsonl" --baseline "$base" --pipeline other --accept
want 0 'worse than in .* \(0 better, 0 new, 0 gone' "$work/cases.jsonl" --baseline "$base" --pipeline other
want 1 '3 of 4 cases are worse .*: a \(wrong, now silent\), b .*, c .*\(1 better' "$work/cases.jsonl" --baseline "$base"
echo '{"shoal_eval":1' >"$work/broken.json"
want 1 'broken.json: it is no accepted run of shoal eval' "$work/cases.jsonl" --baseline "$work/broken.json"
want 2 'name one' "$work/cases.jsonl" --accept
want 1 'nowhere/b.json' "$work/cases.jsonl" --baseline "$work/nowhere/b.json"
want 2 '--route goes without' "$work/cases.jsonl" --route home-intent --baseline "$base"

# ---- the unit's own command: a line for the journal, the report in a file, an exit status; the key from the environment
unit() {
    local line
    line=$(sed -n 's/^ExecStart=//p' deploy/systemd/shoal-eval.service | sed "s#/usr/local/bin/shoal#'$SHOAL_BIN'#; s#/etc/shoal/eval.jsonl#$work/cases.jsonl#; s#/var/lib/shoal/#$work/#g")
    SHOAL_HOST=$url SHOAL_API_KEY=secret SHOAL_EVAL=$1 bash -c "$line" >"$work/out" 2>"$work/err"
}
unit "" || fail "the unit's first run: $(cat "$work/err")"
grep -q '^all  *4 ' "$work/eval.txt" && grep -q '^silent b: ' "$work/eval.txt" || fail "its report: $(cat "$work/eval.txt")"
[ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] || fail "its lines: $(cat "$work/out" "$work/err")"
unit "--pipeline other" && fail "the unit does not fail when a case is worse"
grep -q '1 of 4 cases is worse .*: d (right, now wrong)' "$work/err" && [ "$(wc -l <"$work/err")" = 1 ] || fail "its line: $(cat "$work/err")"
"$SHOAL_BIN" eval --server "$url" "$work/cases.jsonl" --failures | grep -q 'HTTP status 401' || fail "no key, no 401"
stop_shoal
want 1 'no Shoal serves there .*refused' "$work/cases.jsonl"
echo "shoal eval judges, counts, and fails when an aim is missed"
