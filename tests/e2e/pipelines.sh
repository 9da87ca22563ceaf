#!/usr/bin/env bash
# Pipelines that go through lists: every configuration of docs/pipelines.md, with the bundled models, and the worst
# that a request can do to one.
source "$(dirname "$0")/lib.sh"

# has WHAT ANSWER: a piece of an answer
has() { grep -qF -- "$1" <<<"$2" || fail "no $1 in: $2"; }
ask() { curl -s "$url/v1/process" -d "$@"; }

# ---- one configuration of all that the page has
{
    shipped | sed '/^pipelines:/,$d'
    for key in hosts pipelines; do
        echo "$key:"
        awk -v key="$key:" '/^```/ { inside = /yaml/; next } inside && /^[a-z]/ { at = $0; next } inside && at == key' \
            docs/pipelines.md
    done
} >"$work/shoal.yaml"
grep -c '^  - name:' "$work/shoal.yaml" >/dev/null || fail "no pipelines on the page"
start_shoal "$work/shoal.yaml"

answer=$(ask '{"pipeline":"values","input":"turn off the kitchen light"}')
has '"stage":"reply","kind":"generate","model":"home-chat-s","ran":true' "$answer"
has '"intent":{"label":"iot_hue_lightoff"' "$answer"

# ---- foreach: what each item comes to is what it comes to alone, in order
answer=$(ask '{"pipeline":"requests","input":"Turn off the kitchen light. Play some jazz."}')
for text in "Turn off the kitchen light." "Play some jazz."; do
    label=$("$SHOAL_BIN" classify home-intent "$text" -k 1 --json | grep -o '"label":"[a-z_]*"' | head -1)
    labels=${labels:-}${labels:+.*}$label
done
grep -qE "\"intents\":\[\{$labels" <<<"$answer" || fail "not $labels: $answer"
has '"places":[[{"start":' "$answer"
has '"stage":"labels","kind":"generate","model":"home-chat-s","ran":true,"why":"always","items":2,"ms":' "$answer"
ask '{"pipeline":"requests","input":"Turn off the kitchen light. Play some jazz."}' -D "$work/head" >"$work/again"
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "not cached: $(cat "$work/head")"
answer=$(ask '{"pipeline":"requests","input":" \n "}')
has '"results":{"intents":[],"places":[],"labels":[]}' "$answer"

# ---- the worst of inputs: braces, many lines, one endless line
answer=$(ask '{"pipeline":"requests","input":"{input} {{ {json.intents} }. {request | lower}"}')
has '"text":' "$answer"
{ printf '{"pipeline":"requests","input":"'; printf 'a. %.0s' $(seq 1 65); printf '"}'; } >"$work/many.json"
answer=$(ask @"$work/many.json")
has "stage 'intents' (model home-intent): 'input' has more than 64 items" "$answer"
has '"code":"pipeline_limit"' "$answer"
{ printf '{"pipeline":"requests","input":"'; head -c 1048570 /dev/zero | tr '\0' a; printf '"}'; } >"$work/huge.json"
has "bytes here (limits.max_body_bytes of its configuration)" "$(ask @"$work/huge.json")"
head -c 100000 "$work/huge.json" | sed "s/requests/values/; s/\$/\"}/" >"$work/long.json"
has "this pipeline takes at most 16384" "$(ask @"$work/long.json")"

# ---- map and reduce: a text of many pieces becomes one text
{ printf '{"pipeline":"report","input":"'; printf 'The boiler was checked on day %d and found well. ' $(seq 1 60)
  printf '"}'; } >"$work/report.json"
answer=$(ask @"$work/report.json")
has '"stage":"parts","kind":"generate","model":"home-chat-s","ran":true,"why":"always","items":' "$answer"
has '"rounds":' "$answer"
has '"results":{"parts":["' "$answer"
grep -q '"summary":"' <<<"$answer" || fail "no summary: $answer"
pieces=$(grep -o '"stage":"parts"[^}]*' <<<"$answer" | grep -o '"items":[0-9]*' | tr -dc 0-9)
[ "$pieces" -gt 4 ] || fail "only $pieces pieces"
answer2=$(ask @"$work/report.json")
[ "$(sed 's/^{"id":"[^"]*","ms":[0-9.]*//' <<<"$answer")" = "$(sed 's/^{"id":"[^"]*","ms":[0-9.]*//' <<<"$answer2")" ] ||
    fail "not the same again"

# ---- a host that is not there is optional here
answer=$(ask '{"pipeline":"outside","input":"how warm is the kitchen"}')
has '"stage":"reading","kind":"http","ran":true' "$answer"
has "'sensors' cannot be asked: " "$answer"
has '"stage":"reply","kind":"generate","model":"home-chat-s","ran":true' "$answer"

# ---- as events: the texts, joined, are the answer's text, and the answer is the one in one piece
events=$(curl -sN "$url/v1/process" -D "$work/head" -H 'cache-control: no-cache' \
    -d '{"pipeline":"values","input":"turn off the kitchen light","stream":true}')
grep -qi '^content-type: text/event-stream' "$work/head" || fail "no stream: $(cat "$work/head")"
[ "$(grep -c '^event: stage' <<<"$events")" -eq 3 ] || fail "not three stages: $events"
[ "$(grep -n '^event: text' <<<"$events" | head -1 | cut -d: -f1)" -lt "$(grep -n '"stage":"reply"' <<<"$events" | head -1 | cut -d: -f1)" ] ||
    fail "the text comes behind its stage: $events"
tail -2 <<<"$events" | grep -q '^data: \[DONE\]' || fail "no end: $events"
whole=$(ask '{"pipeline":"values","input":"turn off the kitchen light"}' | grep -o '"text":"\([^"\\]\|\\.\)*"' | head -1)
joined=$(grep -A1 '^event: text' <<<"$events" | grep -o '"text":"\([^"\\]\|\\.\)*"' | sed 's/^"text":"//; s/"$//' | tr -d '\n')
[ "\"text\":\"$joined\"" = "$whole" ] || fail "$joined is not $whole"
has "$whole" "$(grep -A1 '^event: answer' <<<"$events")"
kept=$(curl -sN "$url/v1/process" -D "$work/head" -d '{"pipeline":"values","input":"turn off the kitchen light","stream":true}')
grep -qi '^x-shoal-cache: hit' "$work/head" || fail "a stream is not answered from the cache"
has "$whole" "$(grep -A1 '^event: text' <<<"$kept")"
has "'stream' must be true or false" "$(ask '{"pipeline":"values","input":"x","stream":"yes"}')"
# a failure before the first event has its status
curl -s -o /dev/null -w '%{http_code}' "$url/v1/process" \
    -d "$(sed 's/"pipeline"/"stream":true,"pipeline"/' "$work/many.json")" | grep -q 400 || fail "no status"
piped=$("$SHOAL_BIN" process 'Lights on. Play jazz.' --pipeline requests --server "$url")
grep -qE '^  result  intents +\[\{"label":' <<<"$piped" || fail "no results: $piped"
piped=$("$SHOAL_BIN" process 'how warm is it' --pipeline outside --server "$url")
grep -qE "^  route   reading +http +[0-9.]+ ms  always: 'sensors' cannot be asked" <<<"$piped" || fail "no error: $piped"
if command -v script >/dev/null; then
    script -qefc "'$SHOAL_BIN' process 'turn off the kitchen light' --pipeline values --server $url" "$work/screen" \
        </dev/null >/dev/null 2>&1 || fail "on a terminal: $(cat "$work/screen")"
    live=$(tr -d '\r' <"$work/screen" | sed -n '2,$p')
    piped=$("$SHOAL_BIN" process 'turn off the kitchen light' --pipeline values --server "$url")
    [ "$(grep -v '^Script' <<<"$live" | sed '/^$/d')" = "$(sed '/^$/d' <<<"$piped")" ] ||
        fail "the terminal shows: $live; a pipe: $piped"
fi

# ---- a client that leaves in the middle leaves nothing behind
curl -s -m 0.05 "$url/v1/process" -H 'cache-control: no-cache' -d @"$work/report.json" >/dev/null
answer=$(ask '{"pipeline":"values","input":"is the front door locked"}')
has '"object":"shoal.process"' "$answer"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "pipelines: every configuration of docs/pipelines.md runs"
