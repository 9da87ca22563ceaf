#!/usr/bin/env bash
# One key's documents keep every thread that indexes busy: other keys search, list and add meanwhile; a key has so many
# requests with documents at once and no more; and the server stops as if nothing were there.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat >"$work/shoal.yaml" <<END
retrieval: {memory_mb: 64, max_document_mb: 4, max_indexing: 6}
deadline_ms: 3600000
drain_ms: 3600000
manifest: $PWD/models/models.json
models: [{name: home-embed}]
api_keys: [{name: alice, sha256: $(sum k-alice)}, {name: bob, sha256: $(sum k-bob)}, {name: root, admin: true, sha256: $(sum k-root)}]
END
start_shoal "$work/shoal.yaml"
as() { curl -s -m 120 -H "authorization: Bearer $1" "${@:2}"; }
as k-alice "$url/v1/collections" -d '{"name":"huge","model":"home-embed"}' | grep -q '"name":"huge"' || fail "no collection"
as k-bob "$url/v1/collections" -d '{"name":"notes","model":"none"}' | grep -q '"name":"notes"' || fail "no collection"
as k-bob "$url/v1/collections/notes/documents" -d '{"source":"a","text":"The spare key hangs behind the meter."}' |
    grep -q '"added":1' || fail "bob's document"

# ---- 3 MB without the end of a sentence, eight times
python3 -c 'print("{\"source\":\"w\",\"text\":\"" + "turn on " * 375000 + "\"}")' >"$work/word.json"
busy=()
for i in $(seq 8); do
    curl -s -m 300 -H 'authorization: Bearer k-alice' "$url/v1/collections/huge/documents" -d @"$work/word.json" \
        -w '%{http_code}' -o "$work/word.$i" >"$work/word.$i.code" &
    busy+=($!)
done
for _ in $(seq 600); do [ "$(cat "$work"/word.*.code | grep -o 429 | wc -l)" = 2 ] && break; sleep 0.1; done
[ "$(cat "$work"/word.*.code)" = 429429 ] || fail "six of eight are to be at work, not: $(cat "$work"/word.*.code)"
grep -hq 'max_indexing' "$work"/word.? || fail "the refusal says $(cat "$work"/word.?)"

# ---- bob, meanwhile
for i in $(seq 10); do
    as k-bob "$url/v1/collections/notes/search" -d '{"query":"spare key"}' | grep -q 'behind the meter' || fail "search $i"
    as k-bob "$url/v1/files" | grep -q '"object":"list"' || fail "the list of files"
    as k-bob "$url/v1/collections/notes/documents" -d "{\"source\":\"b$i\",\"text\":\"More.\"}" | grep -q '"added":1' ||
        fail "bob's document $i"
done
[ "$(cat "$work"/word.*.code)" = 429429 ] || fail "alice's documents were done before bob had asked: $(cat "$work"/word.*.code)"

# ---- clients that leave end their work: the places are free again
end "${busy[@]}"
for _ in $(seq 600); do
    code=$(as k-alice "$url/v1/collections/huge/documents" -d '{"source":"s","text":"short"}' -o "$work/short" -w '%{http_code}')
    [ "$code" = 429 ] || break
    sleep 0.1
done
[ "$code" = 200 ] || fail "after the others left: $code $(cat "$work/short")"

# ---- and the server stops while documents are at work
curl -s -m 300 -H 'authorization: Bearer k-alice' "$url/v1/collections/huge/documents" -d @"$work/word.json" >"$work/last" &
last=$!
for _ in $(seq 600); do # it has begun when it is embedded
    as k-root "$url/metrics" | grep -q '^shoal_worker_calls_in_flight{.*} [1-9]' && break
    sleep 0.05
done
kill "$server"
for _ in $(seq 600); do grep -q 'event=stopping' "$log" && break; sleep 0.05; done
sleep 0.3      # one within 250 ms would be the same
kill "$server" # a second one cuts
wait "$server"
stopped=$?
server=
[ "$stopped" = 143 ] || fail "exit status $stopped"
grep -q 'event=stopped' "$log" || fail "the log does not say that it stopped"
wait "$last"
echo "others were answered while one key indexed; the server stopped"
