#!/usr/bin/env bash
# The exact cache: hit, miss and shared; TTL; streamed and not; who goes past it; refusals; stale answers; tags,
# ages and purges; ensembles; and what one API key cannot learn of another.
source "$(dirname "$0")/lib.sh"
cat >"$work/c.yaml" <<EOF
cache: {mb: 1, negative_ttl_s: 3600}
deadline_ms: 200000 # of a slow machine
manifest: $PWD/models/models.json
models: [{name: home-intent}, {name: home-slots}, {name: home-embed}, {name: home-chat-s}, {name: home-chat-m}]
ensembles:
  - {name: cascade, kind: cascade, members: [{model: home-chat-s}, {model: home-chat-m}]}
  - {name: vote, kind: vote, members: [{model: home-chat-s}, {model: home-chat-m}]}
  - {name: refine, kind: refine, members: [{model: home-chat-s}, {model: home-chat-m}]}
pipelines:
  - name: p
    stages: [{name: intent, kind: classify, model: home-intent}]
EOF
start_shoal "$work/c.yaml"

# state PATH BODY [CURL-ARGS...]: x-shoal-cache of the answer, "-" without one
state() {
    local path=$1 body=$2 id=$BASHPID got
    shift 2
    [ "$(curl -s -m 120 -o "$work/a.$id" -D "$work/h.$id" -w '%{http_code}' "$@" "$url$path" -d "$body")" = 200 ] ||
        { cat "$work/a.$id"; return; }
    cp "$work/h.$id" "$work/last"
    got=$(tr -d '\r' <"$work/h.$id" | grep -i '^x-shoal-cache:' | cut -d' ' -f2)
    echo "${got:--}"
}
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }

chat='{"model":"home-chat-s","temperature":0,"max_tokens":8,"messages":[{"role":"user","content":"hello"}]'
requests=(
    '/v1/classify {"model":"home-intent","input":"hello"}'
    '/v1/tag {"model":"home-slots","input":"hello"}'
    '/v1/embeddings {"model":"home-embed","input":"hello"}'
    '/v1/process {"pipeline":"p","input":"hello"}'
    '/v1/completions {"model":"home-chat-s","temperature":0,"max_tokens":8,"prompt":"hello"}'
    "/v1/chat/completions $chat}"
)
for r in "${requests[@]}"; do
    path=${r%% *} body=${r#* }
    want "$(state "$path" "$body" -H 'Cache-Control: no-store')" - "$path past the cache"
    want "$(state "$path" "$body")" miss "$path first"
    want "$(state "$path" "$body")" hit "$path again"
    want "$(state "$path" "$body" -H 'Cache-Control: max-age=0, no-cache')" - "$path past the cache"
done
want "$(state /v1/chat/completions "$chat,\"stream\":true}")" hit "streamed after unary"
want "$(state /v1/chat/completions "$chat,\"seed\":4,\"top_p\":0.5}")" hit "what greedy sampling does not read"
want "$(state /v1/chat/completions "$chat,\"stop\":[\"x\"]}")" miss "another stop string"
want "$(state /v1/chat/completions "${chat/\"temperature\":0/\"temperature\":1}}")" - "a draw"

# At once, out of one process: four curls start more slowly than a reply is made. It is drawn, by a seed, so that it is
# kept: a reply that repeats itself is guessed, and sooner whole.
long='{"model":"home-chat-s","temperature":1,"seed":3,"max_tokens":1000,"logit_bias":{"2":-100},"messages":[{"role":"user","content":"go on"}]}'
for i in 1 2 3 4; do to+=(-o "$work/s.$i" "$url/v1/chat/completions"); done
curl -s --parallel --parallel-immediate -m 120 -D "$work/four" -d "$long" "${to[@]}" 2>"$work/progress"
[ "$(tr -d '\r' <"$work/four" | sed -n 's/^x-shoal-cache: //Ip' | sort | tr '\n' ' ')" = "miss shared shared shared " ] ||
    fail "four at once: $(cat "$work/four")"
# A client that leaves hands the work on instead of taking it along; it leaves in the middle, unless it was answered.
for i in $(seq 10); do
    other=${long/go on/go on, $i}
    curl -sN -m 120 "$url/v1/chat/completions" -d "${other%\}},\"stream\":true}" >"$work/leaver" & leaver=$!
    for _ in $(seq 400); do [ -s "$work/leaver" ] && break; sleep 0.005; done
    state /v1/chat/completions "$other" >"$work/heir" & heir=$!
    sleep 0.1
    kill "$leaver"
    wait "$heir"
    got=$(cat "$work/heir")
    [ "$got" = shared ] || [ "$got" = hit ] || break
done
want "$got" miss "after the first client left"

# Ensembles: what their members' files and the rule decide is kept, with the way it came about; what time decides is not.
for e in cascade vote; do
    for text in hello 'hello there' 'hello again'; do # a vote that a silent member has left is not kept
        asked=${chat/home-chat-s/$e} asked=${asked/hello/$text}
        left=$(grep -c event=vote_left "$log")
        want "$(state /v1/chat/completions "$asked}")" miss "$e first"
        way=$(grep -i '^x-shoal-ensemble' "$work/last")
        [ "$(grep -c event=vote_left "$log")" = "$left" ] && break
    done
    want "$(state /v1/chat/completions "$asked}")" hit "$e again"
    [ -n "$way" ] && [ "$way" = "$(grep -i '^x-shoal-ensemble' "$work/last")" ] || fail "$e: a kept answer does not tell its way"
done
want "$(state /v1/chat/completions "${chat/home-chat-s/refine}}")" - "refine"

# What the model refuses it would refuse again; a request that is malformed never gets so far.
many=$(printf 'word %.0s' $(seq 4000))
refused() { curl -s -m 20 -o "$work/a" -D - "$url/v1/completions" -d "{\"model\":\"home-chat-s\",\"temperature\":0,\"prompt\":\"$many\"}" | tr -d '\r' | sed -n 's/^x-shoal-cache: //p;s/^HTTP[^ ]* //p' | tr '\n' ' '; }
want "$(refused)" "400 Bad Request miss " "a prompt that is too long"
want "$(refused)" "400 Bad Request negative " "the same again"
grep -q context_length_exceeded "$work/a" || fail "a kept refusal says something else: $(cat "$work/a")"

# Tags, ages, and what is asked of the cache alone.
lamp() { state /v1/classify "{\"model\":\"home-intent\",\"input\":\"$1\"}" "${@:2}"; }
want "$(lamp one -H 'X-Shoal-Cache-Tag: kitchen, demo')" miss "tagged"
want "$(lamp two -H 'X-Shoal-Cache-Tag: kitchen')" miss "tagged, too"
want "$(lamp three)" miss "untagged"
want "$(lamp three -H 'Cache-Control: max-age=30')" hit "young enough"
lamp four -H 'Cache-Control: only-if-cached' | grep -q '"not_cached"' || fail "only-if-cached computed"
want "$(lamp three -H 'Cache-Control: only-if-cached')" hit "kept, and only that is wanted"
lamp five -H 'X-Shoal-Cache-Tag: two words' | grep -q 'x-shoal-cache-tag' || fail "a bad tag was taken"
purge() { curl -s -X DELETE "$url/v1/cache$1" | grep -o '"purged":[0-9]*\|"message":"[^"]*"'; }
want "$(purge '?tag=kitchen&model=home-slots')" '"purged":0' "a purge of nothing"
want "$(purge '?tag=kitchen&model=home-intent')" '"purged":2' "a purge by tag and model"
want "$(lamp one)" miss "after the purge"
want "$(lamp three)" hit "what the purge left"
purge '?modle=home-intent' | grep -q modle || fail "a condition that is none purged"
want "$(lamp three)" hit "what no purge meant"
purge '?pipeline=p' | grep -q '"purged":' || fail "no purge by pipeline"
[ "$(purge '?version=1.0.1')" != '"purged":0' ] || fail "no purge by version"
want "$(lamp three)" miss "after its version went"
purge '' >/dev/null
curl -s "$url/v1/cache" | grep -q '"entries":0,"bytes":0,' || fail "something is left: $(curl -s "$url/v1/cache")"
for i in $(seq 300); do curl -s -o /dev/null "$url/v1/classify" -H "x-shoal-cache-tag: t$i,u$i,v$i" -d '{"model":"home-intent","input":"x"}'; done
curl -s "$url/v1/cache" | grep -q '"tags":[0-9]\{1,2\},' || fail "tags pile up: $(curl -s "$url/v1/cache")"

"$SHOAL_BIN" cache show --url "$url" | grep -q '^pipeline  p  ' || fail "cache show: $("$SHOAL_BIN" cache show --url "$url")"
"$SHOAL_BIN" cache purge --url "$url" 2>&1 | grep -q -e --all || fail "cache purge without a word purged"
"$SHOAL_BIN" cache purge --url "$url" --pipeline p | grep -q '^[0-9]* answers purged' || fail "cache purge"
"$SHOAL_BIN" top --once --url "$url" | grep -q '^cache [0-9.]* of 1 MiB  hits [0-9]* %' || fail "top says nothing of the cache"
metrics=$(curl -s "$url/metrics" | grep '^shoal_cache_lookups_total')
for r in hit miss shared negative; do grep -q "result=\"$r\"} [1-9]" <<<"$metrics" || fail "no $r in $metrics"; done
grep -q 'of="ensemble",name="vote",result="hit"} 1' <<<"$metrics" || fail "hits are not counted by name: $metrics"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"

# Two keys share nothing, unless they may.
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
{ cat "$work/c.yaml"; echo "api_keys: [sha256:$(sum one), sha256:$(sum two)]"; } >"$work/k.yaml"
start_shoal "$work/k.yaml"
as() { state /v1/chat/completions "$chat}" -H "Authorization: Bearer $1" "${@:2}"; }
want "$(as one)" miss "the first key"
want "$(as two)" miss "another key's answer"
want "$(as one)" hit "its own"
want "$(as two -H 'Cache-Control: only-if-cached')" hit "the other's own"
curl -s -o /dev/null -w '%{http_code}' -X DELETE "$url/v1/cache" | grep -q 401 || fail "a purge without a key"
stop_shoal
sed -i 's/^cache:.*/cache: {shared: true}/' "$work/k.yaml"
start_shoal "$work/k.yaml"
want "$(as one)" miss "shared: the first key"
want "$(as two)" hit "shared: the other key"
stop_shoal

# A stale answer goes out at once, and is made anew. Times are short here, so nothing is said of what comes within them.
sed -i 's/^cache:.*/cache: {ttl_s: 1, stale_s: 3600, negative_ttl_s: 1}/' "$work/c.yaml"
start_shoal "$work/c.yaml"
want "$(state /v1/chat/completions "$chat}")" miss "before its time"
want "$(refused)" "400 Bad Request miss " "a refusal"
sleep 1.2
want "$(state /v1/chat/completions "$chat}")" stale "over its time"
grep -qi '^age: [1-9]' "$work/last" || fail "a stale answer does not tell its age"
want "$(refused)" "400 Bad Request miss " "a refusal after its time"
for _ in $(seq 200); do grep -q 'background=refresh' "$log" && break; sleep 0.05; done
grep -q 'background=refresh' "$log" || fail "nobody made it anew"
[ "$(curl -s "$url/metrics" | grep '^shoal_requests_total' | grep chat_completions | grep -o '[0-9]*$')" = 2 ] ||
    fail "what nobody asked is counted as a request"
want "$(state /v1/chat/completions "$chat}" -H 'Cache-Control: max-age=0')" miss "nothing older than now"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
sed -i 's/stale_s: 3600, //' "$work/c.yaml"
start_shoal "$work/c.yaml"
want "$(state /v1/chat/completions "$chat}")" miss "before its time"
sleep 1.2
want "$(state /v1/chat/completions "$chat}")" miss "after its time"
stop_shoal
# Another file under the model's name takes with it what the old one answered.
cp models/home-chat-s.gguf "$work/m.gguf"
echo "models: [{name: m, path: $work/m.gguf}]" >"$work/c.yaml"
start_shoal "$work/c.yaml"
rolled=${chat/home-chat-s/m}
want "$(state /v1/chat/completions "$rolled}")" miss "the old file"
want "$(state /v1/chat/completions "$rolled}")" hit "the old file again"
cp models/home-chat-m.gguf "$work/new.gguf" && mv "$work/new.gguf" "$work/m.gguf"
kill -9 "$(pgrep -P "$server" -f m.gguf | head -1)"
for _ in $(seq 400); do grep -q 'event=replaced model=m entries=1' "$log" && break; sleep 0.05; done
grep -q 'event=replaced model=m entries=1' "$log" || fail "what the old file answered was not purged"
want "$(state /v1/chat/completions "$rolled}")" miss "the new file"
stop_shoal
echo "six endpoints missed, hit, shared, expired and were passed by; refusals, stale answers, tags, purges, keys and new files"
