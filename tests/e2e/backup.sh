#!/usr/bin/env bash
# shoal backup of a server that serves, shoal restore after its state is gone: the same conversations, the same documents found, the
# same batch, CA and models made of others. What is damaged is named, by the commands and by a server that meets it.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state HOME=$work
state=$SHOAL_STATE
cat >"$work/shoal.yaml" <<END
manifest: $PWD/models/models.json
models: [{name: home-chat-s}, {name: home-embed}]
END
shoal() { "$SHOAL_BIN" "$@"; }
backup() { shoal backup "$@" -c "$work/shoal.yaml"; }
restore() { shoal restore "$@" -c "$work/shoal.yaml"; }
field() { python3 -c 'import json,sys; d=json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }
want() { [ "$1" = "$2" ] || fail "$3: $1, wanted $2"; }
# refused PATTERN COMMAND...: exit status 1 and one sentence.
refused() {
    local pattern=$1 status
    shift
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    want $status 1 "$*"
    grep -v '^\(backup\|restore\): ' "$work/err" >"$work/said"
    grep -qE -e "$pattern" "$work/said" && [ "$(wc -l <"$work/said")" = 1 ] || fail "$* says $(cat "$work/err")"
}
talk() { curl -s -m 30 "$url/v1/chat/completions" -d '{"model":"home-chat-s","session":"'"$1"'","temperature":0,"max_tokens":8,"messages":[{"role":"user","content":"'"$2"'"}]}'; }
# What clients see of all that is kept; warm pages and times of use are not in it.
answers() {
    curl -s "$url/v1/sessions/kitchen"
    curl -s "$url/v1/collections/manuals/search" -d '{"query":"when are the radiators bled?"}'
    curl -s "$url/v1/collections/manuals/documents"
    curl -s "$url/v1/batches/$batch" | tee "$work/ended"
    echo
    curl -s "$url/v1/files/$(field "$(cat "$work/ended")" 'd["output_file_id"]')/content"
    echo
    curl -s "$url/api/show" -d '{"model":"brief"}' | python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["system"])'
    shoal ca show
}
tree() { (cd "$1" && find . -type f ! -name serving.lock -print0 | sort -z | xargs -0 sha256sum); }

# ---- a state
refused 'there is nothing to back up' backup "$work/none"
shoal ca init --cluster attic >/dev/null || fail "no CA"
shoal token create >/dev/null || fail "no token"
start_shoal "$work/shoal.yaml"
for text in "my name is Ada" "what is my name"; do
    talk kitchen "$text" | grep -q '"finish_reason"' || fail "no turn: $(talk kitchen "$text")"
done
curl -s "$url/v1/collections" -d '{"name":"manuals","model":"home-embed"}' | grep -q '"manuals"' || fail "no collection"
curl -s "$url/v1/collections/manuals/documents" -d '{"documents":[{"source":"boiler.md","text":"# Boiler\nBleed the radiators every autumn."},
    {"source":"garden.md","text":"The pump waters the tomatoes at dawn."}]}' | grep -q '"added"' || fail "no documents"
curl -s "$url/api/create" -d '{"model":"brief","from":"home-chat-s","system":"Be brief.","stream":false}' | grep -q success || fail "no made model"
echo '{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"home-embed","input":"hello"}}' >"$work/batch.jsonl"
file=$(field "$(curl -s "$url/v1/files" -F purpose=batch -F "file=@$work/batch.jsonl")" 'd["id"]')
batch=$(field "$(curl -s "$url/v1/batches" -d '{"input_file_id":"'"$file"'","endpoint":"/v1/embeddings","completion_window":"24h"}')" 'd["id"]')
for _ in $(seq 600); do curl -s "$url/v1/batches/$batch" | grep -q '"status":"completed"' && break; sleep 0.05; done
answers >"$work/before"
grep -q '"turns":2' "$work/before" && grep -q boiler.md "$work/before" && grep -q '"status":"completed"' "$work/before" &&
    grep -q '^Be brief.$' "$work/before" && grep -q '"custom_id":"a"' "$work/before" && grep -q '^cluster attic' "$work/before" || fail "what is kept: $(cat "$work/before")"

# ---- a backup while others write
(while [ ! -e "$work/enough" ]; do talk other "go on" >/dev/null; done) &
writer=$!
backup "$work/b" >"$work/out" 2>"$work/err" || fail "a backup: $(cat "$work/err")"
touch "$work/enough"
wait "$writer"
grep -q '^sessions.db ' "$work/out" && grep -qE '^the backup .*/b, of .*Z, is made$' "$work/out" || fail "backup prints $(cat "$work/out")"
grep -q $'\r\|\e' "$work/err" && fail "a pipe gets a terminal's line"
grep -qE '^backup: collections.db, [0-9]+ bytes$' "$work/err" || fail "backup tells $(cat "$work/err")"
want "$(cd "$work/b" && find . -type f | sort | tr '\n' ' ')" "./ca/ca.crt ./ca/ca.key ./ca/crl.pem ./ca/ledger ./collections.db ./manifest.json \
./sessions.db ./sessions.key ./shoal.yaml ./variants.json " "the backup's files"
want "$(stat -c %a "$work/b" "$work/b/sessions.db" "$work/b/ca/ca.key" "$work/b/manifest.json" | tr '\n' ' ')" "700 600 600 600 " "modes"
(cd "$work/b" && python3 -c 'import json
for f in json.load(open("manifest.json"))["files"]: print(f["sha256"], "", f["name"])' | sha256sum --quiet -c) || fail "the digests are not the files'"
shoal backup "$work/b" --check 2>/dev/null | grep -q 'is whole$' || fail "its check"
want "$(field "$(shoal backup "$work/b" --check --json 2>/dev/null)" '[f["name"] for f in d["files"]][1], d["left_out"]')" "('sessions.db', [])" "--check --json"
refused 'is there already: a backup overwrites nothing' backup "$work/b"
[ -z "$(ls -d "$work"/b.tmp.* 2>/dev/null)" ] || fail "something is left: $(ls -d "$work"/b.tmp.*)"
backup "$work/bare" --without-keys >"$work/out" 2>/dev/null || fail "a backup without keys"
grep -q '^sessions.key  *left out$' "$work/out" && [ ! -e "$work/bare/ca/ca.key" ] && [ ! -e "$work/bare/sessions.key" ] || fail "keys: $(cat "$work/out")"
if command -v script >/dev/null; then
    script -qefc "'$SHOAL_BIN' backup '$work/b' --check" "$work/screen" >/dev/null 2>&1 </dev/null
    grep -q 'backup: collections.db  100 % of' "$work/screen" || fail "a terminal gets $(cat -v "$work/screen")"
fi

# ---- a server that runs is in the way; then its state is lost, and comes back
refused 'a server, an agent or a backup is at work there: stop it first' restore "$work/b"
stop_shoal
rm -rf "$state"
restore "$work/b" >"$work/out" 2>"$work/err" || fail "a restore: $(cat "$work/err")"
grep -q "^restored $work/b, of .*, to $state\$" "$work/out" && ! grep -q 'what was there' "$work/out" || fail "restore prints $(cat "$work/out")"
want "$(stat -c %a "$state" "$state/sessions.db" "$state/sessions.key" "$state/ca" "$state/ca/ca.key" | tr '\n' ' ')" "700 600 600 700 600 " "modes after a restore"
start_shoal "$work/shoal.yaml"
answers >"$work/after"
cmp -s "$work/before" "$work/after" || fail "after a restore: $(diff "$work/before" "$work/after")"
talk kitchen "and now" | grep -q '"finish_reason"' || fail "the conversation does not go on"
stop_shoal

# ---- a restore over a state that is there: it goes aside, whole
tree "$state" >"$work/tree"
field "$(restore "$work/b" --json 2>/dev/null)" 'd["aside"]' >"$work/aside"
[ -f "$state/$(cat "$work/aside")/sessions.db" ] && [ -f "$state/$(cat "$work/aside")/ca/ca.key" ] || fail "what was there is not in $(cat "$work/aside")"
want "$(tree "$state/$(cat "$work/aside")" | cut -d' ' -f1 | sort)" \
    "$(grep -E ' \./(ca/(ca.key|ca.crt|crl.pem|ledger)|sessions.*|collections.db(-.*)?|variants.json)$' "$work/tree" | cut -d' ' -f1 | sort)" "what went aside"

# ---- what is no whole backup changes nothing
tree "$state" >"$work/tree"
unchanged() { tree "$state" | cmp -s - "$work/tree" || fail "$1 changed the state: $(tree "$state" | diff - "$work/tree")"; }
broken() { rm -rf "$work/x"; cp -r "$work/b" "$work/x"; } # one to break
broken
printf X | dd of="$work/x/collections.db" bs=1 seek=5000 conv=notrunc status=none
refused 'x/collections.db is damaged: it is not the file that the manifest describes' shoal backup "$work/x" --check
refused 'x/collections.db is damaged' restore "$work/x"
broken
truncate -s -1 "$work/x/sessions.db"
refused 'x/sessions.db is damaged' restore "$work/x"
broken
sed -i 's#"sessions.db"#"../sessions.db"#' "$work/x/manifest.json"
refused "no backup has a file '../sessions.db'" restore "$work/x"
broken
sed -i 's#"sessions.db"#"/etc/passwd"#' "$work/x/manifest.json"
refused "no backup has a file '/etc/passwd'" restore "$work/x"
broken
mv "$work/x/ca" "$work/y" && ln -s ../y "$work/x/ca"
refused 'x/ca/.* is no regular file' restore "$work/x"
broken
sed -i 's/"shoal_backup":1/"shoal_backup":2/' "$work/x/manifest.json"
refused 'a newer Shoal made this backup \(format 2, this one knows 1\)' restore "$work/x"
broken
head -c 100 "$work/b/manifest.json" >"$work/x/manifest.json"
refused 'x/manifest.json: it is no manifest of a backup' restore "$work/x"
refused 'nowhere: No such file' restore "$work/nowhere"
unchanged "a restore that was refused"

# ---- a disk that is full: nothing half-made under the name
(trap '' XFSZ && ulimit -f 8 && "$SHOAL_BIN" backup "$work/full" -c "$work/shoal.yaml") >"$work/out" 2>"$work/err" && fail "a full disk passes"
grep -q 'full.tmp.*\(disk is full\|File too large\|I/O error\)' "$work/err" || fail "of a full disk it says $(cat "$work/err")"
(trap '' XFSZ && ulimit -f 8 && "$SHOAL_BIN" restore "$work/b" -c "$work/shoal.yaml") >"$work/out" 2>"$work/err" && fail "a restore onto a full disk passes"
[ -z "$(ls -d "$work"/full* 2>/dev/null)" ] && [ -z "$(find "$state" -name '*.restoring')" ] || fail "something is left of a full disk"
unchanged "a restore onto a full disk"

# ---- databases that are damaged, and a server that meets them: an event, an error that says what to do, all else goes on
# spoil KIND FILE
spoil() {
    rm -f "$2-wal" "$2-shm"
    case $1 in
    garbage) head -c 20000 /dev/urandom >"$2" ;;
    truncated) truncate -s $(($(stat -c %s "$2") / 8192 * 4096)) "$2" ;;
    flipped) for page in $(seq 1 $(($(stat -c %s "$2") / 4096 - 1))); do printf '\245\245\245\245\245\245\245\245' | dd of="$2" bs=1 seek=$((page * 4096)) conv=notrunc status=none; done ;;
    esac
}
for kind in garbage truncated flipped; do
    spoil $kind "$state/sessions.db"
    spoil $kind "$state/collections.db"
    refused '(sessions|collections).db is damaged \(.*\): move it away, with its -wal file; ' backup "$work/damaged"
    [ ! -e "$work/damaged" ] || fail "a backup of a damaged database is made"
    start_shoal "$work/shoal.yaml"
    said=$(curl -s "$url/v1/sessions/kitchen")
    want "$(field "$said" 'd["error"]["code"]')" sessions_failed "a $kind sessions.db: $said"
    grep -q 'sessions.db is damaged (.*move it away, with its -wal file; conversations begin anew, or come back with shoal restore' <<<"$said" || fail "$said"
    said=$(curl -s "$url/v1/collections/manuals/search" -d '{"query":"radiators"}')
    want "$(field "$said" 'd["error"]["code"]')" store_damaged "a $kind collections.db: $said"
    grep -q 'collections.db is damaged (.*add the documents again, or bring them back with shoal restore' <<<"$said" || fail "$said"
    grep -q "$state" <<<"$said" && fail "a client learns where the file is: $said"
    grep -q "component=sessions event=file_damaged file=$state/sessions.db" "$log" || fail "no event: $(tail -5 "$log")"
    grep -q "component=retrieve event=file_damaged file=$state/collections.db" "$log" || fail "no event: $(tail -5 "$log")"
    curl -s "$url/v1/chat/completions" -d '{"model":"home-chat-s","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}' |
        grep -q '"finish_reason"' || fail "beside a $kind sessions.db nobody is answered"
    # moved away while it runs: both begin anew
    for f in sessions collections; do mkdir -p "$work/away" && mv "$state/$f.db"* "$work/away/"; done
    talk kitchen "hello" | grep -q '"finish_reason"' || fail "no conversation begins anew: $(talk kitchen hello)"
    want "$(field "$(curl -s "$url/v1/sessions/kitchen")" 'd["turns"]')" 1 "turns of a new file"
    want "$(field "$(curl -s "$url/v1/collections")" 'd["data"]')" "[]" "collections of a new file"
    stop_shoal
    restore "$work/b" >/dev/null 2>"$work/err" || fail "$(cat "$work/err")"
done
start_shoal "$work/shoal.yaml"
answers >"$work/after"
cmp -s "$work/before" "$work/after" || fail "after damage and a restore: $(diff "$work/before" "$work/after")"
stop_shoal
# ---- files that the configuration places: whoever has found another state folder leaves them to the server that has them
mkdir "$work/far"
{ cat "$work/shoal.yaml" && printf 'sessions: {path: data/s.db, key_file: data/s.key}\nretrieval: {path: data/c.db}\n'; } >"$work/far/shoal.yaml"
far() { "$@" -c "$work/far/shoal.yaml"; }
start_shoal "$work/far/shoal.yaml"
talk kitchen "hello" | grep -q '"finish_reason"' || fail "no turn: $(talk kitchen hello)"
far shoal backup "$work/fb" >/dev/null 2>"$work/err" || fail "a backup of files elsewhere: $(cat "$work/err")"
refused 'far/data/s.db: a server, an agent or a backup is at work there' far env SHOAL_STATE="$work/other" "$SHOAL_BIN" restore "$work/fb"
refused 'shoal.yaml puts sessions.db at (\./)?data/s.db, outside of .*/try: name the configuration with --config, too' \
    env -C "$work/far" "$SHOAL_BIN" restore "$work/fb" --state "$work/try"
[ ! -e "$work/try" ] || fail "a restore that was refused makes $work/try"
[ -z "$(find "$work/far" -name '*restor*')" ] || fail "a restore that was refused moves what a server has: $(ls "$work/far/data")"
talk kitchen "and now" | grep -q '"finish_reason"' || fail "the server does not go on"
want "$(field "$(curl -s "$url/v1/sessions/kitchen")" 'd["turns"]')" 2 "turns after restores that were refused"
stop_shoal
env -C "$work/far" "$SHOAL_BIN" restore "$work/fb" --state "$work/try" -c shoal.yaml >/dev/null 2>"$work/err" || fail "with both: $(cat "$work/err")"
[ -f "$work/far/data/s.db" ] && [ -n "$(ls "$work/far/data"/s.db.before-restore-*)" ] || fail "it is not restored: $(ls "$work/far/data")"

# ---- what is mounted by itself cannot be replaced: told before anything changes
mounted() { unshare -m sh -c 'mount $0 && exec "$@"' "$@"; } # ARGUMENTS-OF-MOUNT COMMAND...
if [ "$(id -u)" = 0 ] && mounted "-t tmpfs tmpfs $work/far" true 2>/dev/null; then
    tree "$state" >"$work/tree"
    elsewhere="state/ca is on another disk or mount than .*, and files cannot be moved between them: unmount it; nothing has changed$"
    for mount in "-t tmpfs tmpfs $state/ca" "--bind $state/ca $state/ca"; do refused "$elsewhere" mounted "$mount" "$SHOAL_BIN" restore "$work/b" -c "$work/shoal.yaml"; done
    refused 'state/sessions.key is mounted by itself and cannot be replaced: unmount it; nothing has changed$' \
        mounted "--bind $state/sessions.key $state/sessions.key" "$SHOAL_BIN" restore "$work/b" -c "$work/shoal.yaml"
    unchanged "a restore onto mounts"
fi

# ---- root restores what another account serves: its files, its locks
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 711 "$work"
    rm -rf "$state" && install -d -m 700 -o 4321 -g 4321 "$state"
    restore "$work/b" >/dev/null 2>"$work/err" || fail "root's restore: $(cat "$work/err")"
    others=$(find "$state" ! -uid 4321)
    [ -z "$others" ] || fail "the account does not own $others"
    # again, so that something goes aside; and into folders that are made
    mkdir "$work/srv"
    { cat "$work/shoal.yaml" && echo "sessions: {path: $work/srv/made/deep/s.db}"; } >"$work/made.yaml"
    shoal restore "$work/b" -c "$work/made.yaml" >/dev/null 2>"$work/err" || fail "root's second restore: $(cat "$work/err")"
    ls -d "$state"/before-restore-* >/dev/null && [ -f "$work/srv/made/deep/s.db" ] || fail "nothing is aside, or no s.db"
    others=$(find "$state" "$work/srv/made" ! -uid 4321)
    [ -z "$others" ] || fail "the account does not own $others"
    # a link of the account leads root nowhere
    mkdir "$work/trap"
    mv "$state/ca" "$work/ca" && ln -s "$work/trap" "$state/ca" && chown -h 4321 "$state/ca"
    refused 'state/ca is a link, which a restore does not follow: make it a folder; nothing has changed$' restore "$work/b"
    want "$(stat -c %u "$work/trap") $(ls -A "$work/trap")" "0 " "where the link leads"
    rm "$state/ca" && mv "$work/ca" "$state/ca"
    setpriv --reuid 4321 --regid 4321 --clear-groups "$SHOAL_BIN" token create >/dev/null 2>"$work/err" || fail "its CA, as that account: $(cat "$work/err")"
fi
echo "a backup while serving, a restore, $(wc -l <"$work/before") lines of answers the same; damage of three kinds is told"
