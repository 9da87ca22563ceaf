#!/usr/bin/env bash
# Collections, vector stores and files are the API key's that made them; what is shared all may search; lists come in
# pages; and without keys nothing is anybody's.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
sum() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
cat >"$work/open.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-intent}]
END
{ cat "$work/open.yaml"
  echo "retrieval: {max_collections: 5}"
  echo "api_keys: [{name: alice, sha256: $(sum k-alice)}, {name: bob, sha256: $(sum k-bob)}, {name: root, admin: true, sha256: $(sum k-root)}]"
} >"$work/keys.yaml"
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
as() { curl -s -m 60 -H "authorization: Bearer $1" "$url$2" "${@:3}"; }
status() { as "$@" -o "$work/said" -w '%{http_code}'; }

# ---- without keys: as ever
start_shoal "$work/open.yaml"
curl -s "$url/v1/collections" -d '{"name":"old","model":"none"}' >/dev/null
curl -s "$url/v1/collections/old/documents" -d '{"source":"a","text":"an old note"}' | grep -q '"added":1' || fail "without keys"
want "$(field "$(curl -s "$url/v1/collections/old")" '"shared" in d')" False "an answer without keys"
old=$(field "$(curl -s -F file=@"$work/open.yaml" "$url/v1/files")" 'd["id"]')
stop_shoal

# ---- with them
start_shoal "$work/keys.yaml"
as k-alice /v1/collections -d '{"name":"diary","model":"none"}' | grep -q '"shared":false' || fail "alice's collection"
as k-alice /v1/collections/diary/documents -d '{"source":"d","text":"the pin is 4711"}' | grep -q '"added":1' || fail "alice's document"
as k-alice /v1/collections -d '{"name":"recipes","model":"none","shared":true}' | grep -q '"shared":true' || fail "a shared one"
as k-alice /v1/collections/recipes/documents -d '{"source":"r","text":"soup with leeks"}' | grep -q '"added":1' || fail "a recipe"
store=$(field "$(as k-alice /v1/vector_stores -d '{"name":"mine","model":"none"}')" 'd["id"]')
echo 'the pin is 4712' >"$work/pin.txt"
file=$(field "$(as k-alice /v1/files -F file=@"$work/pin.txt")" 'd["id"]')
as k-alice "/v1/vector_stores/$store/files" -d "{\"file_id\":\"$file\"}" | grep -q '"completed"' || fail "a file in a store"
for who in k-bob k-root; do
    want "$(field "$(as $who /v1/collections)" '[c["name"] for c in d["data"]]')" "['old', 'recipes']" "$who's list"
    want "$(field "$(as $who /v1/vector_stores)" '[c["id"] for c in d["data"]]')" "['old', 'recipes']" "$who's stores"
    want "$(field "$(as $who /v1/files)" '[f["id"] for f in d["data"]]')" "['$old']" "$who's files"
    for path in /v1/collections/diary /v1/collections/diary/documents /v1/collections/diary/documents/1 "/v1/vector_stores/$store" \
        "/v1/vector_stores/$store/files" "/v1/vector_stores/$store/files/$file" "/v1/files/$file" "/v1/files/$file/content"; do
        want "$(status $who "$path")" 404 "$who reads $path"
    done
    for path in /v1/collections/diary "/v1/collections/diary/documents?source=d" "/v1/vector_stores/$store" "/v1/files/$file"; do
        want "$(status $who "$path" -X DELETE)" 404 "$who deletes $path"
    done
    want "$(status $who /v1/collections/diary/search -d '{"query":"pin"}')" 404 "$who searches"
    want "$(status $who "/v1/vector_stores/$store/search" -d '{"query":"pin"}')" 404 "$who searches"
    want "$(status $who /v1/collections/diary/documents -d '{"source":"x","text":"x"}')" 404 "$who adds"
    want "$(status $who /v1/collections/old/documents -d "{\"file_id\":\"$file\"}")" 404 "$who adds alice's file"
    grep -q 4712 "$work/said" && fail "$who reads the file"
    as $who /v1/collections/recipes/search -d '{"query":"leeks"}' | grep -q 'soup with leeks' || fail "$who searches what is shared"
    want "$(status $who /v1/collections/recipes/documents -d '{"source":"x","text":"x"}')" 403 "$who adds to what is shared"
    want "$(status $who /v1/collections/recipes -X DELETE)" 403 "$who deletes what is shared"
    as $who /v1/collections/old/search -d '{"query":"note"}' | grep -q 'an old note' || fail "$who searches what has no owner"
done
as k-bob /v1/collections -d '{"name":"diary","model":"none"}' | grep -q '"name":"diary"' || fail "bob's own of that name"
as k-bob /v1/collections/diary/search -d '{"query":"pin"}' | grep -q '"results":\[\]' || fail "bob's own is another one"
as k-alice /v1/collections/diary/search -d '{"query":"pin"}' | grep -q 4711 || fail "alice searches"
as k-alice "/v1/files/$file/content" | cmp - "$work/pin.txt" || fail "alice reads her file"
SHOAL_API_KEY=k-bob "$SHOAL_BIN" docs list -s "$url" >"$work/said" || fail "docs list"
grep -q '^recipes ' "$work/said" && [ "$(grep -c '^diary ' "$work/said")" = 1 ] || fail "docs list says $(cat "$work/said")"
SHOAL_API_KEY=k-bob "$SHOAL_BIN" docs search diary pin --mode text -s "$url" | grep -q 4711 && fail "docs search"
SHOAL_API_KEY=k-bob "$SHOAL_BIN" docs add notes "$work/pin.txt" --model none --shared -q -s "$url" >/dev/null || fail "docs add --shared"
as k-bob /v1/collections -d '{"name":"drafts","model":"none"}' >/dev/null
SHOAL_API_KEY=k-bob "$SHOAL_BIN" docs add drafts "$work/pin.txt" --shared -q -s "$url" >/dev/null 2>"$work/said" && fail "drafts is not shared"
grep -q 'drafts exists and is not shared' "$work/said" || fail "--shared for a collection that is not: $(cat "$work/said")"
as k-bob /v1/collections/drafts -X DELETE >/dev/null
as k-alice /v1/collections/notes/search -d '{"query":"pin"}' | grep -q 4712 || fail "what docs add shares"

# ---- pages, and how many
as k-alice /v1/collections -d '{"name":"x1","model":"none"}' >/dev/null
as k-alice /v1/collections -d '{"name":"x2","model":"none"}' >/dev/null
want "$(status k-alice /v1/collections -d '{"name":"x3","model":"none"}')" 400 "the sixth"
grep -q 'max_collections' "$work/said" || fail "the limit says $(cat "$work/said")"
for list in collections vector_stores files; do
    python3 - "$url/v1/$list" <<'PY' || fail "the pages of $list"
import json, sys, urllib.request
def get(q): return json.load(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + q, headers={"authorization": "Bearer k-alice"})))
whole = [x.get("id", x.get("name")) for x in get("")["data"]]
pages, after = [], ""
while True:
    p = get("?limit=1" + after)
    assert len(p["data"]) == 1, p
    pages += [x.get("id", x.get("name")) for x in p["data"]]
    if not p["has_more"]: break
    after = "&after=" + p["last_id"]
assert pages == whole and len(whole) >= 2, (pages, whole)
PY
done
echo "alice's is alice's; shared is searched by all; old is everybody's; pages are whole"
