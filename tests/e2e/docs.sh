#!/usr/bin/env bash
# Collections of documents: added from files and over HTTP, found, replaced, removed; what was acknowledged outlives a
# kill -9; and the command without a server.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
cat >"$work/shoal.yaml" <<END
retrieval: {memory_mb: 64, max_document_mb: 2}
manifest: $PWD/models/models.json
models: [{name: home-embed}, {name: home-chat-s}]
pipelines:
  - name: ask
    stages:
      - {name: found, kind: retrieve, collection: home, limit: 2}
      - name: say
        kind: generate
        model: home-chat-s
        system: "Answer from these passages.\n{text.found}"
        max_tokens: 8
        when: [{stage: found, label: [found]}]
      - {name: lost, kind: retrieve, collection: nowhere, optional: true}
END
docs() { "$SHOAL_BIN" docs "$@" -s "$url"; }
# field JSON EXPRESSION: with d for the JSON
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }

mkdir -p "$work/f/sub/.hidden"
cat >"$work/f/boiler.md" <<END
# Boiler
## Radiators
Bleed the radiators every autumn. Hold a cloth under the valve.

## Pressure
The pressure must stay between one and two bar.
END
echo '<title>Garden</title><p>The pump waters the tomatoes at <b>dawn</b>.</p><script>radiators()</script>' >"$work/f/sub/garden.html"
printf 'room,lamp\nkitchen,warm white\noffice,"daylight, bright"\n' >"$work/f/lamps.csv"
echo 'The spare key hangs behind the meter.' >"$work/f/note.txt"
echo 'secret radiators' >"$work/f/sub/.hidden/no.txt"
printf 'a\0b' >"$work/f/binary.txt"
: >"$work/f/picture.png"

start_shoal "$work/shoal.yaml"
# ---- the fixed forms
cd "$work" || exit 1
docs add home f >"$work/said" 2>"$work/errors" && fail "a file that is no text passes"
grep -q 'home: 4 added, 0 replaced, 0 unchanged, 1 failed' "$work/said" || fail "add says $(cat "$work/said")"
grep -q 'binary.txt: .*no text' "$work/errors" || fail "add says $(cat "$work/errors")"
rm f/binary.txt
found=$(docs search home "when do I bleed the radiators?" --json)
want "$(field "$found" 'list(d) == ["results"] and all(list(r)[:3] == ["text","score","source"] for r in d["results"])')" True "$found"
want "$(field "$found" '(d["results"][0]["source"], d["results"][0]["line"], d["results"][0]["title"])')" \
    "('f/boiler.md', 3, 'Boiler > Radiators')" "the first result"
span=$(field "$found" 'd["results"][0]["start"], d["results"][0]["end"]')
text=$(python3 -c "print(open('f/boiler.md').read()[slice$span])")
want "$text" "$(field "$found" 'd["results"][0]["text"]')" "the span in the file"
for q in "watering tomatoes:f/sub/garden.html" "office lamp:f/lamps.csv" "where is the spare key:f/note.txt"; do
    want "$(field "$(docs search home "${q%%:*}" --json -k 1)" 'd["results"][0]["source"]')" "${q#*:}" "${q%%:*}"
done
for mode in vector text; do
    want "$(field "$(docs search home "pressure" --mode $mode --json)" 'd["results"][0]["source"]')" f/boiler.md "$mode"
done
want "$(field "$(docs search home "secret" --mode text --json)" 'len(d["results"])')" 0 "what is hidden"

# ---- again: nothing is sent twice, what changed is replaced, metadata filter
want "$(field "$(docs add home f --json 2>/dev/null)" '(d["added"],d["replaced"],d["unchanged"],d["failed"],d["skipped"])')" \
    "(0, 0, 4, 0, 1)" "added again"
echo 'The spare key is lost.' >f/note.txt
want "$(field "$(docs add home f/note.txt --json 2>/dev/null)" '(d["added"],d["replaced"],d["unchanged"])')" "(0, 1, 0)" "changed"
want "$(field "$(docs search home "meter" --mode text --json)" 'len(d["results"])')" 0 "the old words"
docs add home f/lamps.csv --meta floor=2 --meta room=all -q >/dev/null || fail "metadata"
want "$(field "$(docs search home "the" --filter '{"floor":2}' --json)" '{r["source"] for r in d["results"]}')" "{'f/lamps.csv'}" "filter"
want "$(docs list home --json | python3 -c 'import json,sys; print([d["source"] for d in json.load(sys.stdin)["data"]])')" \
    "['f/boiler.md', 'f/sub/garden.html', 'f/note.txt', 'f/lamps.csv']" "list"
docs remove home f/note.txt >/dev/null || fail "remove"
docs remove home f/note.txt 2>/dev/null && fail "removed twice"
want "$(field "$(docs search home "spare key" --mode text --json)" 'len(d["results"])')" 0 "removed"

# ---- answers with citations: a sentence of a document, and where it stands
answer=$(curl -s -m 20 "$url/v1/collections/home/answer" -d '{"question":"when are the radiators bled?"}')
want "$(field "$answer" 'd["form"], len(d["citations"]), d["citations"][0]["text"] == d["answer"]')" "('quote', 1, True)" "$answer"
span=$(field "$answer" '(d["citations"][0]["start"], d["citations"][0]["end"])')
from=$(field "$answer" 'd["citations"][0]["source"]')
case $from in *.md | *.txt)
    want "$(python3 -c "print(open('$from', 'rb').read()[slice$span].decode())")" "$(field "$answer" 'd["answer"]')" "the citation's span" ;;
esac
docs ask home "when are the radiators bled?" >"$work/said" || fail "ask"
[ "$(head -1 "$work/said")" = "$(field "$answer" 'd["answer"]')" ] && grep -q "$from:" "$work/said" || fail "ask says $(cat "$work/said")"
free=$(curl -s -m 20 "$url/v1/collections/home/answer" -d '{"question":"turn on the light","form":"free"}')
want "$(field "$free" 'd["answered"] == (len(d["citations"]) > 0) and (d["answered"] or d["answer"] == "The documents do not say.")')" True "$free"
none=$(curl -s -m 20 "$url/v1/collections/home/answer" -d '{"question":"xyzzy","mode":"text"}')
want "$(field "$none" 'd["answered"], d["citations"]')" "(False, [])" "$none"

# ---- a pipeline that looks into documents
run=$(curl -s -m 20 "$url/v1/process" -d '{"pipeline":"ask","input":"when do I bleed the radiators?"}')
want "$(field "$run" '[t["results"][0]["source"] for t in d["trace"] if t["stage"] == "found"]')" "['f/boiler.md']" "$run"
want "$(field "$run" '[t["ran"] for t in d["trace"]]')" "[True, True, True]" "$run"
grep -q "no collection 'nowhere'" <<<"$run" || fail "a collection that is not there: $run"

# ---- refusals: each names what is wrong
says() { # STATUS WORDS CURL-ARGS
    local status=$1 words=$2 got
    shift 2
    got=$(curl -s -m 100 -w '\n%{http_code}' "$@")
    [ "${got##*$'\n'}" = "$status" ] && grep -q "$words" <<<"$got" || fail "$*: $got, wanted $status $words"
}
says 404 "no collection 'nope'" "$url/v1/collections/nope/search" -d '{"query":"x"}'
says 400 'query: must be the text' "$url/v1/collections/home/search" -d '{}'
says 400 'none of eq' "$url/v1/collections/home/search" -d '{"query":"x","filters":{"type":"like","key":"a","value":1}}'
says 404 'model_not_found' "$url/v1/collections/home/search" -d '{"query":"x","rerank":"nobody"}'
says 400 'already' "$url/v1/collections" -d '{"name":"home"}'
says 400 'letters, digits' "$url/v1/collections" -d '{"name":"a/b"}'
says 400 'wrong_task' "$url/v1/collections" -d '{"name":"b","model":"home-chat-s"}'
says 400 'documents\[0\].source' "$url/v1/collections/home/documents" -d '{"documents":[{"text":"x"}]}'
says 400 'one source' "$url/v1/collections/home/documents" -d '{"documents":[{"source":"a","text":"x"},{"source":"a","text":"y"}]}'
says 405 'GET, HEAD, DELETE' -X PUT "$url/v1/collections/home"
says 404 'no such document' "$url/v1/collections/home/documents/0"
says 404 not_found "$url/v1/collections/home/documents/1/more"
python3 -c 'import json; print(json.dumps({"source": "long", "text": "word " * 600000}))' >long.json
says 413 request_too_large "$url/v1/collections/home/documents" -d @long.json
# Without blanks a piece has more tokens than the model reads: it is cut smaller.
python3 -c 'import json; print(json.dumps({"source": "dense", "text": "#q@" * 400}))' >dense.json
says 200 '"status":"added"' "$url/v1/collections/home/documents" -d @dense.json

# ---- killed while documents come in: what was acknowledged is there
for i in $(seq 400); do
    curl -s -m 20 "$url/v1/collections/home/documents" -d "{\"source\":\"k$i\",\"text\":\"kept $i\"}" >"$work/k.out" || break
    grep -q '"added":1' "$work/k.out" && echo "$i" >>"$work/acknowledged"
    [ "$i" -ne 25 ] || { (sleep 0.15; kill -9 "$server") & }
done
wait "$server" 2>/dev/null
server=
n=$(wc -l <"$work/acknowledged")
[ "$n" -ge 25 ] && [ "$n" -lt 400 ] || fail "$n were acknowledged before the kill"
cd "$OLDPWD" || exit 1
start_shoal "$work/shoal.yaml"
cd "$work" || exit 1
docs list home --json | python3 -c '
import json, sys
there = {d["source"] for d in json.load(sys.stdin)["data"]}
lost = [i for i in open(sys.argv[1]).read().split() if "k" + i not in there]
sys.exit(f"acknowledged and lost: {lost}" if lost else 0)' "$work/acknowledged" || fail "lost"
want "$(field "$(docs search home "kept 7" --mode text --json -k 1)" 'd["results"][0]["text"]')" "kept 7" "after the kill"

# ---- what a folder may hold: loops, pipes, devices, what may not be read, names of any bytes; the rest is added all the same
mkdir -p "$work/odd/closed" "$work/odd/deep"
echo "the attic key hangs behind the door" >"$work/odd/deep/attic.txt"
echo "nobody may know" >"$work/odd/closed/secret.txt"
echo "nobody may read" >"$work/odd/shut.txt"
echo "a name of bytes" >"$work/odd/$(printf 'na\xffme').txt"
echo "another name of bytes" >"$work/odd/$(printf 'na\xfeme').txt"
ln -s .. "$work/odd/deep/loop"
ln -s loop.txt "$work/odd/loop.txt"
ln -s /dev/zero "$work/odd/zeros.txt"
mkfifo "$work/odd/pipe.txt"
chmod 000 "$work/odd/closed" "$work/odd/shut.txt"
chmod 755 "$work" "$work/odd"
as_nobody=
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$SHOAL_BIN" 2>/dev/null &&
    as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
run=$($as_nobody "$SHOAL_BIN" docs add odd "$work/odd" --server "$url" --json 2>"$work/errors")
wanted="(1, 4, 3, 4)" # of two it is not told that they could not be read, where nobody is kept from reading
[ "$(id -u)" != 0 ] || [ -n "$as_nobody" ] || wanted="(3, 2, 3, 2)"
want "$(field "$run" '(d["added"],d["failed"],d["skipped"],len(d["errors"]))')" "$wanted" "a folder of oddities: $(cat "$work/errors")"
[ "$(grep -c 'its name is not UTF-8: rename it' "$work/errors")" = 2 ] || fail "names of bytes: $(cat "$work/errors")"
[ "$wanted" = "(3, 2, 3, 2)" ] || grep -q 'odd/closed: .*Permission denied' "$work/errors" || fail "a closed folder: $(cat "$work/errors")"
chmod 700 "$work/odd/closed"
for device in /dev/zero "$work/odd/pipe.txt"; do
    timeout 20 "$SHOAL_BIN" docs add odd "$device" --server "$url" >"$work/said" 2>"$work/errors" && fail "$device is added"
    grep -q 'neither a file nor a folder' "$work/errors" || fail "$device: $(cat "$work/errors")"
done

# ---- words that mean something to FTS5, and to SQL
for words in '"' '"*"' 'attic*' 'NEAR(attic key, 2)' 'attic AND (' 'title : attic' '{title text} : "attic"' '^attic' 'attic NOT key' '-attic' \
    "'; DROP TABLE pieces_1; --" 'a" OR "b' '*' '\' '%' "$(printf 'attic\001key')"; do
    body=$(python3 -c 'import json,sys; print(json.dumps({"query": sys.argv[1]}))' "$words")
    for mode in hybrid text vector; do
        got=$(curl -s -w '%{http_code}' "$url/v1/collections/odd/search" -d "${body%\}},\"mode\":\"$mode\"}")
        [ "${got: -3}" = 200 ] || [ "${got: -3}" = 400 ] || fail "$mode search for $words: $got"
    done
done
[ "$(field "$(docs search odd "attic key" --json)" '"attic" in d["results"][0]["text"]')" = True ] || fail "the attic is not found any more"
docs remove odd >/dev/null || fail "the collection of oddities stays"

stop_shoal
want "$stopped" 0 "exit status"
[ ! -e "$SHOAL_STATE/collections.db-wal" ] || fail "the log was not put into the file"

# ---- without a server
unset url
home=$("$SHOAL_BIN" docs search home "bleed the radiators" --json -k 1 2>"$work/errors")
want "$(field "$home" 'd["results"][0]["source"]')" f/boiler.md "without a server"
grep -q 'no server runs' "$work/errors" || fail "it says $(cat "$work/errors")"
"$SHOAL_BIN" docs remove home 2>/dev/null >&2 || fail "the collection stays"
want "$(field "$("$SHOAL_BIN" docs list --json 2>/dev/null)" 'd["data"]')" "[]" "all removed"
echo "added, found, replaced, removed; $n acknowledged documents outlived a kill"
