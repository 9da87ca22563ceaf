#!/usr/bin/env bash
# Each command of the ```console blocks of README.md and docs/tutorial.md prints what the page shows
# (SHOAL_WRITE_PAGES=1 writes what was printed into the page, to be looked at).
source "$(dirname "$0")/lib.sh"
export CONSOLES_WORK=$work HOME=$work/home SHOAL_STATE=$work/state
unset SHOAL_LOG
mkdir "$HOME"
write=${SHOAL_WRITE_PAGES:+--write}
start_shoal shoal.yaml
said=$(timeout 300 python3 tests/e2e/consoles.py README.md "$port" . $write) || [ -n "$write" ] || fail "$said"
stop_shoal
echo "$said"
# The tutorial begins in the clone and makes its own folder in the home folder.
said=$(timeout 300 python3 tests/e2e/consoles.py docs/tutorial.md "$(free_port)" . $write) || [ -n "$write" ] || fail "$said"
echo "$said"
