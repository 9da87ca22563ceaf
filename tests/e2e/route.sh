#!/usr/bin/env bash
# Routes: a request names one as its model; who answered and why is said, listed, explained and can be decided again.
source "$(dirname "$0")/lib.sh"
head=$work/head body=$work/body

# chat TEXT [CURL OPTIONS...]: what $route (auto) answers; headers in $head, the answer in $body.
chat() {
    local text=$1
    shift
    curl -s -m 20 -D "$head" -o "$body" "$@" "$url/v1/chat/completions" -d \
        "{\"model\":\"${route:-auto}\",\"max_tokens\":8,\"temperature\":0,\"messages\":[{\"role\":\"user\",\"content\":\"$text\"}]}"
}
# routed PATTERN: the last answer's x-shoal-route.
routed() {
    grep -iE "^x-shoal-route: $1" "$head" >/dev/null || fail "no route like '$1': $(cat "$head" "$body")"
}

# The shipped file, but for how long a domain is waited for, and with a route for which a deadline is short that every
# machine meets: other work on this machine is not what is tested.
mkdir "$work/site"
shipped | sed "s|timeout_ms: 50|timeout_ms: 10000|; /^routes:/a\\  - {name: soon, rules: [{name: short-of-time, max_deadline_ms: 16000, model: home-chat-s}], fallback: [home-chat-m]}" \
    >"$work/site/shoal.yaml"
start_shoal "$work/site/shoal.yaml"
chat "turn off the kitchen light"
routed 'auto; home-chat-s \(rule home: domain devices 0\.[0-9]+\); home-chat-m \(fallback 1\)'
grep -q '"model":"home-chat-s"' "$body" || fail "the answer does not name its model: $(cat "$body")"
chat "why is the sky blue"
routed 'auto; home-chat-m \(fallback 1\); home-chat-s \(fallback 2\)'
# run and chat take a route as they take a model
for command in run chat; do
    echo "turn on the kitchen light" | "$SHOAL_BIN" $command auto --server "$url" --no-home -t 0 -n 8 >"$work/said" 2>"$work/err" ||
        fail "$command auto: $(cat "$work/err")"
    [ -s "$work/said" ] || fail "$command auto says nothing"
done
chat "why is the sky blue" -H 'x-shoal-latency: realtime'
routed 'auto; home-chat-s \(rule hurry: latency realtime\)'
route=soon chat "why is the sky blue" -H 'x-shoal-deadline-ms: 15000'
routed 'soon; home-chat-s \(rule short-of-time: [0-9]+ ms left\)'
chat "hello" -H 'x-shoal-latency: soon'
grep -q 'must be realtime, interactive or batch' "$body" || fail "a latency that is none: $(cat "$body")"
curl -s -D "$head" -o "$body" "$url/v1/embeddings" -d '{"model":"auto","input":"hello"}'
routed 'auto; home-embed \(rule vectors: endpoint embeddings\)'
grep -q '"embedding":\[' "$body" || fail "no vector: $(cat "$body")"
curl -s -D "$head" -o "$body" "$url/v1/rerank" -d '{"model":"auto","query":"a","documents":["b"]}'
grep -q 'route_has_nobody' "$body" || fail "a task that nobody does: $(cat "$body")"
chat "turn off the kitchen light"
grep -qi 'x-shoal-cache: hit' "$head" || fail "the second answer is no hit: $(cat "$head")"
echo "chat, embeddings and a task that nobody does"

curl -s "$url/v1/models" | grep -q '"id":"auto","object":"model","created":0,"owned_by":"shoal-route"' || fail "not among the models"
curl -s "$url/v1/models/auto" | grep -q '"routes_to":\["home-embed"' || fail "it is no model of its own"
"$SHOAL_BIN" route list | grep -qE '^  fallback +home-chat-m$' || fail "shoal route list"
"$SHOAL_BIN" route explain "lock the front door" --route auto --server "$url" --json >"$work/explained"
grep -qE '"steps":\[\{"route":"auto","rule":"home","model":"home-chat-s","reason":"rule","why":"rule home: domain devices .*"ms":[0-9.]+\}$' \
    "$work/explained" || fail "explained: $(cat "$work/explained")"
"$SHOAL_BIN" route explain "lock the front door" --server "$url" | grep -qE '^  asks +home-chat-s +rule home: domain devices' || fail "for people"
"$SHOAL_BIN" route explain "lock the front door" -c shoal.yaml 2>/dev/null | grep -qE '^  asks +home-chat-s +rule home: domain devices' || fail "without a server"
"$SHOAL_BIN" route explain "hello" --route home-cascade --server "$url" --json | grep -qE \
    '"steps":\[\{"route":"home-cascade","model":"home-chat-s",.*"why":"asked first; .*"model":"home-chat-m",.*not sure"\}\].*"ms":[0-9.]+\}$' || fail "an ensemble, explained"
for name in home-vote home-refine home-verified; do
    "$SHOAL_BIN" route explain "hello" --route $name -c shoal.yaml 2>/dev/null | grep -qE '^  and +home-chat-m +' || fail "$name, explained here"
done
curl -s "$url/metrics" | grep -q 'shoal_routed_total{route="auto",model="home-chat-s",reason="rule"}' || fail "no metric"
echo "listed, explained, counted"

# A worker that hangs is not waited for: the rules that ask it do not hold, and the request is answered.
pid=$(curl -s "$url/readyz" | grep -o '"id":"home-embed/0"[^}]*"pid":[0-9]*' | grep -o '[0-9]*$')
kill -STOP "$pid" || fail "no home-embed"
chat "turn on the bedroom lamp" -H 'x-shoal-deadline-ms: 1200'
if grep -q 'deadline' "$body"; then echo "the machine is too slow to answer in 1.2 s"; else routed 'auto; home-chat-[sm] \('; fi
grep -q 'route: auto; home-chat-m' "$head" && ! grep -qE 'event=decision .*(gave no answer in|may take|no replica serves home-embed|worker)' "$log" &&
    fail "why the domain was not known is not said"
kill -CONT "$pid" 2>/dev/null # if it was not replaced by now
kill -KILL "$pid" 2>/dev/null
for _ in $(seq 100); do
    curl -s "$url/readyz" | grep -o '"id":"home-embed/0"[^}]*' | grep -q '"state":"ready"' || break
    sleep 0.02
done
chat "turn on the office fan"
grep -q '"choices":\[' "$body" || fail "no answer: $(cat "$body")"
echo "a domain's model that hangs, and that is dead"
stop_shoal

"$SHOAL_BIN" route replay "$log" -c "$work/site/shoal.yaml" >"$work/replayed" || fail "replay: $(cat "$work/replayed")"
grep -qE '^[1-9][0-9]* decisions, 0 come out otherwise$' "$work/replayed" || fail "decided again: $(cat "$work/replayed")"
shipped | sed 's/domain: \[devices, media, timers, sensors\], model: home-chat-s/domain: [devices], model: home-chat-m/' >"$work/other.yaml"
"$SHOAL_BIN" route replay "$log" -c "$work/other.yaml" | grep -q '^OTHER auto: home-chat-m, and it was home-chat-s' || fail "other rules decide the same"
echo "decisions of the log are made again, by the same rules and by others"

# A stage of a pipeline may name a route.
mkdir "$work/stage"
{
    shipped | sed "s|timeout_ms: 50|timeout_ms: 10000|; /^pipelines:/,\$d; /^routes:/a\\  - {name: seen, fallback: [home-chat-s], shadow: home-chat-m}\n  - {name: together, fallback: [home-cascade, home-vote]}\n  - {name: shared, rules: [{split_by: session, split: [{model: home-chat-s, share: 1}, {model: home-chat-m, share: 1}]}]}"
    printf 'pipelines: [{name: p, stages: [{name: say, kind: generate, model: auto, max_tokens: 8}]}]\n'
} >"$work/stage/shoal.yaml"
start_shoal "$work/stage/shoal.yaml"
curl -s -m 20 -o "$body" "$url/v1/process" -d '{"input":"turn off the kitchen light"}'
grep -q '"model":"auto","ran":true,.*"answered_by":"home-chat-s"' "$body" || fail "a stage: $(cat "$body")"
grep -qE 'event=decision route=auto model=home-chat-s' "$log" || fail "a stage's route is not logged"
echo "a pipeline's stage"

# A target may be an ensemble.
curl -s -m 20 -D "$head" -o "$body" "$url/v1/completions" -d '{"model":"together","prompt":"The","max_tokens":2,"temperature":0}'
routed 'together; home-cascade \(fallback 1\); home-vote \(fallback 2\)'
grep -q '"choices":\[' "$body" || fail "an ensemble: $(cat "$body")"
echo "an ensemble"

# Shares: a session stays with its model, and sessions are shared out.
for i in $(seq 12); do
    for _ in 1 2; do
        curl -s -m 20 -D "$head" -o "$body" -H "x-shoal-session: $i" "$url/v1/completions" \
            -d '{"model":"shared","prompt":"The","max_tokens":1,"temperature":0}'
        grep -io '^x-shoal-route: shared; home-chat-[sm] (rule 1: share [12] by session' "$head" | tr -d '\r' >>"$work/shares.$i"
    done
    [ "$(sort -u "$work/shares.$i" | wc -l)" -eq 1 ] || fail "session $i moves: $(cat "$work/shares.$i" "$head" "$body")"
done
[ "$(cat "$work"/shares.* | sort -u | wc -l)" -eq 2 ] || fail "all sessions are with one model: $(cat "$work"/shares.*)"
echo "shares of sessions"

# A shadow answers as well, unseen, and is counted.
curl -s -m 20 -o "$body" "$url/v1/completions" -d '{"model":"seen","prompt":"The kitchen","max_tokens":6,"temperature":0}'
grep -q '"model":"home-chat-s"' "$body" || fail "the shadow answered: $(cat "$body")"
for _ in $(seq 200); do
    grep -qE 'event=shadow route=seen shadow=home-chat-m model=home-chat-m result=(same|other) likeness=' "$log" && break
    sleep 0.05
done
grep -qE 'event=shadow .* result=(same|other)' "$log" || fail "no shadow: $(grep shadow "$log")"
sleep 1.1
curl -s "$url/metrics" | grep -qE '^shoal_shadow_total\{route="seen",shadow="home-chat-m",result="(same|other)"\} 1' || fail "the shadow is not counted"
stop_shoal
echo "a shadow"

# Training writes the file that is shipped, and it is not there before.
mkdir "$work/train"
shipped | sed "s|centroids: .*|centroids: means.json|" >"$work/train/shoal.yaml"
"$SHOAL_BIN" route list -c "$work/train/shoal.yaml" 2>&1 | grep -q 'means.json' || fail "a missing file of centroids is not said"
"$SHOAL_BIN" route train "$work/train/shoal.yaml" >"$work/trained" || fail "train: $(cat "$work/trained")"
cmp -s "$work/train/means.json" models/home-topics.json || fail "models/home-topics.json is not what the examples make: run shoal route train shoal.yaml"
grep -q '66 of 68 are found again when they are left out' "$work/trained" || fail "$(cat "$work/trained")"
echo "domains are trained"
