#!/usr/bin/env bash
# Several candidates, of which the best goes out: what is best by each rule and judge, the same answer to the same request,
# n choices that are the n best, and answers while members die or freeze.
source "$(dirname "$0")/lib.sh"

at=$PWD/models
cat >"$work/shoal.yaml" <<EOF
manifest: $at/models.json
models:
  - {name: home-chat-s}
  - {name: home-chat-m}
  - {name: ranker, path: $PWD/tests/data/hf/cross-encoder-rerank}
ensembles:
  - {name: longest, kind: rerank, members: [{model: home-chat-s}, {model: home-chat-m}], score: {rule: longest}}
  - {name: likely, kind: rerank, members: [{model: home-chat-s, candidates: 4}], score: {log_prob: home-chat-m}}
  - {name: own, kind: rerank, members: [{model: home-chat-m}, {model: home-chat-s}], score: {log_prob: home-chat-m}}
  - {name: ranked, kind: rerank, members: [{model: home-chat-s, candidates: 2, temperature: 1}, {model: home-chat-m}], score: {model: ranker}}
  - {name: turn, kind: rerank, in_turn: true, members: [{model: home-chat-s}, {model: home-chat-m}], score: {rule: pattern, pattern: "."}}
  - {name: most, kind: rerank, members: [{model: home-chat-s}, {model: home-chat-s, candidates: 3, temperature: 1}], score: {rule: majority}}
pipelines:
  - {name: say, stages: [{name: reply, kind: generate, model: longest}]}
EOF
start_shoal "$work/shoal.yaml"

body() { echo '{"model":"'"$1"'","temperature":'"${3:-0}"',"seed":7,"max_tokens":60,'"${4:-}"'"messages":[{"role":"user","content":"'"$2"'"}]}'; }
ask() { curl -s -m 30 -D "$work/head" "$url/v1/chat/completions" -d "$(body "$@")" -o "$work/answer" && grep -o '"content":"[^"]*"' "$work/answer"; }
header() { grep -i "^x-shoal-$1:" "$work/head" | tr -d '\r'; }
tokens() { grep -o '"completion_tokens":[0-9]*' "$work/answer" | cut -d: -f2; }
worker_pid() {
    local pid
    for _ in $(seq 200); do
        pid=$(curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1/0\"" | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2)
        [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && break
        sleep 0.02
    done
    echo "${pid:-none}"
}

# A rule: the longer of the two answers, and both were generated.
for text in "tell me a story about a lamp" "what is the weather like"; do
    small=$(ask home-chat-s "$text") && n=$(tokens)
    large=$(ask home-chat-m "$text") && n=$((n + $(tokens)))
    best=$small
    [ ${#large} -gt ${#small} ] && best=$large
    [ "$(ask longest "$text")" = "$best" ] || fail "the longest of $small and $large was $(cat "$work/answer")"
    header ensemble | grep -qE 'longest: home-chat-s [0-9]+\*?, home-chat-m [0-9]+\*?$' || fail "no scores: $(cat "$work/head")"
    [ "$(tokens)" = "$n" ] || fail "the two took $n tokens, and the usage says $(tokens)"
done

# A judge: of four samples one; the same request gets the same answer and scores.
one=$(ask likely "tell me a story" 1) && scores=$(header ensemble)
two=$(ask likely "tell me a story" 1)
[ -n "$one" ] && [ "$one" = "$two" ] && [ "$scores" = "$(header ensemble)" ] || fail "two answers to one request: $one $two"
[ "$(echo "$scores" | grep -oE -- '-[0-9]+\.[0-9]{4}' | wc -l)" = 4 ] || fail "four candidates have four scores: $scores"
best=$(echo "$scores" | grep -oE -- '-[0-9]+\.[0-9]+' | sort -g | tail -1)
echo "$scores" | grep -qF -- "$best*" || fail "the best is not the likeliest: $scores"
ask likely "tell me a story" >/dev/null
header ensemble | grep -qE 'log_prob by home-chat-m: home-chat-s\*$' || fail "where nothing is drawn one candidate does: $(header ensemble)"
ask own "tell me a story" >/dev/null
header ensemble | grep -qE 'log_prob by home-chat-m: home-chat-m -[0-9.]+\*, home-chat-s -[0-9.]+$' || fail "a model likes another's answer better: $(header ensemble)"
ask ranked "which lamp is on?" >/dev/null
header ensemble | grep -qE 'relevance by ranker: home-chat-s [0-9.]+\*?, home-chat-s [0-9.]+\*?, home-chat-m [0-9.]+\*?$' || fail "no scores: $(cat "$work/head")"

# In turn: who is all that can be wished leaves the others nothing to do.
ask turn "tell me a story" >/dev/null
header ensemble | grep -qE 'pattern: home-chat-s 1\*, home-chat-m spared$' || fail "not in turn: $(header ensemble)"

# The n choices are the n best, best first; the first is what one choice would have been.
ask likely "tell me a story" 1 '"n":3,' >/dev/null
[ "$(grep -o '"content":"[^"]*"' "$work/answer" | wc -l)" = 3 ] || fail "three choices: $(cat "$work/answer")"
[ "$(grep -o '"content":"[^"]*"' "$work/answer" | head -1)" = "$one" ] || fail "the first choice is not the best: $(cat "$work/answer")"
[ "$(header ensemble)" = "$scores" ] || fail "three choices were drawn anew: $(header ensemble)"

# Streams, forms of reply and pipelines.
small=$(ask longest "tell me a story about a lamp")
curl -sN -m 30 "$url/v1/chat/completions" -d "$(body longest "tell me a story about a lamp" 0 '"stream":true,')" >"$work/stream"
said=$(grep -o '"delta":{"content":"[^"]*"' "$work/stream" | cut -d'"' -f6 | tr -d '\n')
[ "\"content\":\"$said\"" = "$small" ] || fail "the stream said $said"
grep -q 'data: \[DONE\]' "$work/stream" || fail "the stream did not end"
ask most "the lamp as json" 1 '"response_format":{"type":"json_object"},' >/dev/null
grep -q '"content":"{' "$work/answer" || fail "no JSON: $(cat "$work/answer")"
curl -s -m 30 "$url/v1/process" -d '{"input":"tell me a story about a lamp","pipeline":"say"}' >"$work/answer"
grep -qF "$said" "$work/answer" || fail "no stage answers by a rerank: $(cat "$work/answer")"
curl -s "$url/metrics" | grep -q 'shoal_rerank_total{ensemble="longest",model="home-chat-' || fail "nobody counts the best"

# Text that is measured, not written.
curl -s "$url/v1/completions" -d '{"model":"home-chat-s","prompt":"turn on the light","echo":true,"logprobs":0,"max_tokens":0}' >"$work/answer"
grep -q '"text":"turn on the light"' "$work/answer" && grep -q '"token_logprobs":\[null,-' "$work/answer" &&
    grep -q '"completion_tokens":0' "$work/answer" || fail "no log-probabilities of the prompt: $(cat "$work/answer")"

# A frozen member holds nobody up beyond the deadline; the answer says so.
small=$(ask home-chat-s "tell me a story about a lamp")
frozen=$(worker_pid home-chat-m)
kill -STOP "$frozen"
curl -s -m 30 -D "$work/head" -H 'x-shoal-deadline-ms: 250' "$url/v1/chat/completions" -d "$(body longest "tell me a story about a lamp")" -o "$work/answer"
kill -CONT "$frozen" 2>/dev/null
if header degraded | grep -q longest; then
    [ "$(grep -o '"content":"[^"]*"' "$work/answer")" = "$small" ] || fail "the best so far was $small: $(cat "$work/answer")"
    header ensemble | grep -qE 'home-chat-m (late|failed)$' || fail "nobody says who was late: $(cat "$work/head")"
elif ! head -1 "$work/head" | grep -q ' 504'; then # a busy machine: it went on before the deadline after all, or nobody met it
    header ensemble | grep -qE 'longest: home-chat-s [0-9]+\*?, home-chat-m [0-9]+\*?$' || fail "neither all nor marked: $(cat "$work/head" "$work/answer")"
fi
stop_shoal

wrong() {
    sed "s|^ensembles:.*|ensembles: [$1]|; /^  - {name: \(longest\|likely\|own\|ranked\|turn\|most\|say\)/d; /^pipelines:/d" "$work/shoal.yaml" >"$work/wrong.yaml"
    "$SHOAL_BIN" serve -c "$work/wrong.yaml" --port 0 >"$work/out" 2>&1 && fail "taken: $1"
    grep -qE 'wrong.yaml:[0-9]+: ' "$work/out" && grep -qF -- "$2" "$work/out" || fail "not told of $1: $(cat "$work/out")"
}
two='members: [{model: home-chat-s}, {model: home-chat-m}]'
wrong "{name: r, kind: rerank, $two}" "exactly one of model (a cross-encoder), log_prob (a decoder) and rule"
wrong "{name: r, kind: rerank, $two, score: {rule: longest, log_prob: home-chat-m}}" "exactly one of"
wrong "{name: r, kind: rerank, $two, score: {rule: best}}" "longest"
wrong "{name: r, kind: rerank, $two, score: {model: home-chat-m}}" "cross-encoder"
wrong "{name: r, kind: rerank, $two, score: {log_prob: ranker}}" "generate"
wrong "{name: r, kind: rerank, $two, score: {log_prob: nobody}}" "not among the models"
wrong "{name: r, kind: rerank, $two, score: {rule: pattern}}" "needs one"
wrong "{name: r, kind: rerank, $two, score: {rule: pattern, pattern: '('}}" "score.pattern"
wrong "{name: r, kind: rerank, $two, score: {rule: json, schema: nowhere.json}}" "nowhere.json"
wrong "{name: r, kind: rerank, $two, score: {rule: words, schema: nowhere.json}}" "only the rule 'json'"
wrong "{name: r, kind: rerank, in_turn: true, $two, score: {rule: longest}}" "no answer can be better"
wrong "{name: r, kind: vote, in_turn: true, $two}" "only a rerank asks in turn"
wrong "{name: r, kind: rerank, members: [{model: home-chat-s}], score: {rule: longest}}" "candidates"
wrong "{name: r, kind: rerank, members: [{model: home-chat-s, candidates: 9}, {model: home-chat-m, candidates: 9}], score: {rule: longest}}" "at most 16"
wrong "{name: r, kind: vote, members: [{model: home-chat-s, candidates: 2}, {model: home-chat-m}]}" "a rerank's"
wrong "{name: r, kind: vote, $two, score: {rule: longest}}" "only a rerank"
echo "the best of several goes out, by rule and by judge, and says what each was worth"
