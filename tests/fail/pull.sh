#!/usr/bin/env bash
# pull.sh URL FILE FOLDER: one pull whose writes may fail, and one whose writes do not. After the first, the file is whole or not there
# under its name; after the second it is whole, and nothing lies beside it.
rm -rf "$3"
"$SHOAL_BIN" pull "$1" --to "$3" --no-manifest >/dev/null
rc=$?
[ ! -e "$3/m.gguf" ] || cmp -s "$2" "$3/m.gguf" || { echo "pull.sh: half a file has its name"; exit 126; }
[ "$rc" -ne 0 ] || [ -e "$3/m.gguf" ] || { echo "pull.sh: no file, and no error"; exit 126; }
LD_PRELOAD='' "$SHOAL_BIN" pull "$1" --to "$3" --no-manifest --force >/dev/null 2>&1
cmp -s "$2" "$3/m.gguf" && [ "$(ls -A "$3")" = m.gguf ] || { echo "pull.sh: the next run does not finish: $(ls -A "$3")"; exit 126; }
exit "$rc"
