#!/usr/bin/env bash
# Memory while a model loads: its file and its packed weights are not in memory at the same time. The largest resident set
# of a process that packs is compared with what it must hold: the weights once, and what any model takes.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state

# peak COMMAND...: KiB of the largest resident set
peak() {
    python3 -c '
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
sys.exit("exit status %d" % status) if status else print(usage.ru_maxrss)' "$@" || fail "$*"
}
kib_of() { du -k --apparent-size "$1" | cut -f 1; }

for type in f32 q8_0; do
    "$SHOAL_BIN" debug make-model --shape minilm --type "$type" -o "$work/$type.gguf" >/dev/null 2>&1 || fail "make-model"
done
bare=$(peak "$SHOAL_BIN" embed tests/data/hf/minilm-embed "lights on")
for type in f32 q8_0; do
    file=$(kib_of "$work/$type.gguf") got=$(peak "$SHOAL_BIN" embed "$work/$type.gguf" "lights on")
    # A third of the file and 8 MiB are what a tensor that is being packed, buffers and huge pages may take.
    most=$((bare + file + file / 3 + 8192))
    [ "$got" -le "$most" ] || fail "$type: $got KiB at the peak for a file of $file KiB, over $most"
    echo "$type: a file of $file KiB, $got KiB at the peak; a tiny model takes $bare KiB"
done
