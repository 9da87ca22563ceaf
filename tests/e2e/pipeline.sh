#!/usr/bin/env bash
# shoal pipeline check, graph and test: what a configuration's pipelines come to, their picture, and cases.
source "$(dirname "$0")/lib.sh"
out=$work/out err=$work/err
n=0

# run STATUS ARGS...: stdout in $out, stderr in $err.
run() {
    local want=$1 status
    shift
    "$SHOAL_BIN" pipeline "$@" >"$out" 2>"$err" </dev/null
    status=$?
    [ $status -eq "$want" ] || fail "shoal pipeline $* ends with $status, not $want: $(head -3 "$err" "$out")"
    n=$((n + 1))
}
says() { grep -qE -e "$2" "$1" || fail "no \"$2\" in: $(cat "$1")"; }

# ---- check: the shipped pipeline and the examples are right
run 0 check shoal.yaml
says "$out" '^home: 8 stages, at most 1 model call one after the other \(line -> intent\); answers are cached$'
says "$out" '^  choice +generate +home-chat-s +when request is choose or propose; after request; optional$'
[ ! -s "$err" ] || fail "check complains about shoal.yaml: $(cat "$err")"
run 0 check shoal.yaml --json
says "$out" '^\{"ok":true,"problems":\[\],"pipelines":\[\{"name":"home","stages":\[\{"name":"line","kind":"line","runs":"always"'

# ---- and what is wrong has its line
cat >"$work/odd.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-chat-s}]
pipelines:
  - name: odd
    stages:
      - {name: intent, kind: classify, model: home-intent}
      - {name: reply, kind: generate, model: home-chat-s, when: [{stage: intent, label: [alarm_set]}], temperature: 0.5}
      - name: sure
        kind: generate
        model: home-chat-s
        when: [{stage: intent, score_min: 0.9}]
        unless: [{stage: intent, score_min: 0.5}]
      - name: checked
        kind: generate
        model: home-chat-s
        when:
          - {stage: reply, mean_prob_below: 0.5}
          - {stage: sure, mean_prob_below: 0.7}
  - name: plain
    stages:
      - {name: intent, kind: classify, model: home-intent}
END
run 1 check "$work/odd.yaml"
says "$out" "^odd: 4 stages, at most 3 model calls .*\(intent -> reply -> checked\); answers are not cached: stage 'reply' draws at random\$"
says "$out" '^  sure .*; NEVER$'
says "$err" "odd.yaml:11: pipelines\[0\].stages\[2\].when: stage 'sure' never runs"
says "$err" "odd.yaml:18: pipelines\[0\].stages\[3\].when\[1\]: this never lets 'checked' run"
run 0 check "$work/odd.yaml" --pipeline plain
run 1 check "$work/odd.yaml" --json
says "$out" '^\{"ok":false,"problems":\["[^"]*odd.yaml:11: '
sed 's/alarm_set/alarm_ste/' "$work/odd.yaml" >"$work/label.yaml"
run 1 check "$work/label.yaml"
says "$err" "label.yaml:7: .*no label of 'home-intent' is 'alarm_ste'; did you mean 'alarm_set'\?"
sed 's/{name: home-chat-s}/{name: home-chat-s, path: gone.gguf}/' "$work/odd.yaml" >"$work/gone.yaml"
run 1 check "$work/gone.yaml"
says "$err" "gone.yaml:2: models\[1\].path: .*gone.gguf' cannot be read"
sed 's/stage: reply/stage: later/' "$work/odd.yaml" >"$work/later.yaml"
run 1 check "$work/later.yaml"
says "$err" "later.yaml:17: .*'later' is no stage declared before 'checked'"
run 1 check "$work/none.yaml"
run 2 check shoal.yaml --pipeline hmoe
says "$err" "there is no pipeline 'hmoe', did you mean \"home\"\?"
run 2 chekc shoal.yaml
says "$err" "there is no \"pipeline chekc\", did you mean \"check\"\?"

# ---- graph
run 0 graph shoal.yaml
says "$out" '^    -> request +unless it is read or unreadable$'
says "$out" '^  choice \(generate home-chat-s, optional\)$'
run 0 graph shoal.yaml --dot
says "$out" '^  "request" -> "choice" \[label="if it is choose or propose"\];$'
run 0 graph "$work/odd.yaml" --svg "$work/odd.svg"
says "$out" "^wrote $work/odd.svg\$"
run 0 graph "$work/odd.yaml" --svg -
cmp -s "$out" "$work/odd.svg" || fail "--svg - draws something else"
says "$out" '^<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 [0-9]+ [0-9]+"'
says "$out" 'prefers-color-scheme:dark'
[ "$(grep -c '<rect class="box' "$out")" -eq 7 ] || fail "not seven boxes: four stages, one, and two requests"
if command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/odd.svg" || fail "the SVG is no XML"
fi
run 2 graph shoal.yaml --pipeline no
run 1 graph shoal.yaml --svg "$work/no/such.svg"

# ---- test: expected against got, by a server of its own and by one that runs
cat >"$work/cases.jsonl" <<'END'
{"id":"act","input":"turn off the kitchen light","expect":{"text":"Turning off *","calls":[{"name":"light.turn_off","arguments":{"target":"light.kitchen"}}],"intent":"light.turn_off","stages":{"intent":{"label":"iot_*","score_min":0.5},"choice":{"ran":false},"request":{"label":"act"}}}}
{"input":"is the front door locked?","expect":{"kind":"answer","has":["locked"],"stages":{"choice":{"ran":false}}}}
{"input":"lamp off","context":{"devices":[{"id":"light.x","name":"Lamp","state":"on"}]},"expect":{"calls":[{"name":"light.turn_off","arguments":{"target":"light.x"}}]}}
{"input":"","expect":{"status":400,"text":"*input*"}}
END
cp "$work/cases.jsonl" "$work/more.jsonl"
cat >>"$work/more.jsonl" <<'END'
{"id":"bad","input":"turn on the office fan","expect":{"text":"No.","lacks":["Office"],"calls":[],"stages":{"intnet":{"label":"a"},"intent":{"score_below":0.01},"choice":{"ran":true}}}}
END
shipped >"$work/home.yaml"
run 0 test "$work/cases.jsonl" -c "$work/home.yaml"
says "$out" '^4 cases, 4 as expected$'
start_shoal
run 1 test "$work/more.jsonl" --server "$url" --failures
says "$out" '^5 cases, 4 as expected, 1 not$'
says "$out" '^not ok  5 bad "turn on the office fan"$'
says "$out" 'stages.intnet: there is no such stage, did you mean "intent"\?'
says "$out" '^        - "No."$'
says "$out" '^        \+ "Turning on Office Fan."$'
says "$out" '^      calls: not asked for: fan.turn_on'
says "$out" '^      stages.choice.ran: request is act$'
grep -q '^ok' "$out" && fail "--failures lists what passed"
run 1 test "$work/more.jsonl" --server "$url" --json
says "$out" '^\{"cases":5,"passed":4,"failures":\[\{"case":5,"id":"bad",'
run 1 test "$work/cases.jsonl" --server "$url" --pipeline no
says "$out" 'status: there is no pipeline'
stop_shoal
run 1 test "$work/cases.jsonl" --server "$url"
says "$err" 'nobody listens|refused'
run 1 test "$work/cases.jsonl" -c "$work/none.yaml"
says "$err" 'the server does not start: .*none.yaml'
echo '{"input":"a","expect":{"txet":"b"}}' >"$work/typo.jsonl"
run 1 test "$work/typo.jsonl" --server "$url"
says "$err" "typo.jsonl:1: 'expect' has no 'txet'"
# ---- tools: calls of these functions alone, of these devices alone
run 0 test examples/tools.jsonl -c examples/tools.yaml
run 0 check examples/tools.yaml
sed 's/minimum: 1, maximum: 100/multipleOf: 2000/' examples/tools.yaml | sed "s#\.\./models#$PWD/models#" >"$work/unheld.yaml"
run 1 check "$work/unheld.yaml"
says "$err" 'unheld.yaml:24: pipelines\[0\].stages\[0\].tools\[0\].parameters: tools/0/function/parameters: at "#/properties/brightness'
echo "$n runs"
