#!/usr/bin/env bash
# backup.sh STATE CONFIG FOLDER: a backup of STATE and its restore into a copy, either of which may be refused memory or a write. A
# backup that has its name is whole; a restore that failed has changed nothing, or is finished by the next one, or lost its last line alone.
plain() { LD_PRELOAD='' "$SHOAL_BIN" "$@" -c "$config" >/dev/null 2>&1; }
tree() { (cd "$1" && find . -type f ! -name serving.lock ! -path '*before-restore*' ! -name '*-wal' ! -name '*-shm' -exec sha256sum {} + | sort); }
wrong() { echo "backup.sh: $*"; exit 126; }
state=$1 config=$2 at=$3
rm -rf "$at" && mkdir "$at" && cp -r "$state" "$at/state"
SHOAL_STATE=$state "$SHOAL_BIN" backup "$at/b" -c "$config" >/dev/null
rc=$?
[ -z "$(ls -d "$at"/b.tmp.* 2>/dev/null)" ] || wrong "a temporary folder stays"
[ ! -e "$at/b" ] || plain backup "$at/b" --check || wrong "what has the name is not whole"
[ "$rc" -ne 0 ] || [ -e "$at/b" ] || wrong "no backup, and no error"
[ "$rc" -eq 0 ] || exit "$rc"
export SHOAL_STATE=$at/state
echo '{"models": []}' >"$at/state/loaded.json"
before=$(tree "$at/state")
"$SHOAL_BIN" restore "$at/b" -c "$config" >/dev/null
rc=$?
restored() {
    (cd "$at/b" && find . -type f ! -name manifest.json ! -name shoal.yaml -exec sha256sum {} + | sort) | cmp -s - <(tree "$at/state" | grep -v ' ./ca/lock$')
}
if [ -e "$at/state/restore.json" ]; then
    [ "$rc" -ne 0 ] || wrong "a restore that was interrupted says that it is done"
    plain restore "$at/b" || wrong "an interrupted restore is not finished"
    restored || wrong "what is restored is not the backup"
elif [ "$rc" -eq 0 ]; then
    restored || wrong "what is restored is not the backup"
elif [ "$(tree "$at/state")" != "$before" ]; then # then its last line alone was lost
    restored || wrong "a restore that failed left half a state"
fi
exit "$rc"
