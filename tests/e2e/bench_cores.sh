#!/usr/bin/env bash
# bench/cores packs what it needs into an archive; unpacked elsewhere, with another HOME, this measures and writes its own
# archive of results. No speed is held to anything.
# long: it measures for half a minute
source "$(dirname "$0")/lib.sh"

bench/cores --pack "$work/pack.tar.gz" "$SHOAL_BIN" >"$work/out" 2>&1 || fail "--pack: $(cat "$work/out")"
mkdir "$work/there" "$work/home"
tar -C "$work/there" -xzf "$work/pack.tar.gz" || fail "the pack is no archive"
there=$work/there/shoal-cores
(
    cd "$there" || exit
    LD_TRACE_LOADED_OBJECTS=1 LD_LIBRARY_PATH=$there/lib program/shoal | grep '/' | grep -vF "$there/lib/" | grep -v '^[[:space:]]*lib/ld.so'
) >"$work/outside"
[ ! -s "$work/outside" ] || fail "it needs files of this machine: $(cat "$work/outside")"

cd "$work/home" || fail "no folder"
measured() { env -i HOME="$work/home" PATH="$PATH" TMPDIR="$work" "$there/cores" --quick --seconds 0.3 --clients 1,3 --threads 1,2 --larger llama-24m "$@"; }
measured --out results.tar.gz >"$work/out" 2>&1 || fail "measuring: $(cat "$work/out")"
grep -q FAILED "$work/out" && fail "$(grep FAILED "$work/out")"
tar -xzf results.tar.gz || fail "no archive of results"
cd shoal-cores-results || fail "another folder in it"
for file in machine.txt summary.txt scale-{small,larger,reader}.{json,svg} service-{home,streams}.json; do [ -s "$file" ] || fail "no $file"; done
[ "$(grep -cE '^(pp128|tg64|tg16) +[12] +[0-9.]+ +[0-9.]+ +[0-9]+ % ' summary.txt)" = 8 ] || fail "scaling: $(cat summary.txt)"
[ "$(grep -cE '^(intent|embed|home) +[13] clients: [0-9.]+ requests/s, .* 0 failed$' summary.txt)" = 6 ] || fail "the home: $(cat summary.txt)"
[ "$(grep -cE '^streams +[13] clients: [0-9.]+ tokens/s, ' summary.txt)" -ge 2 ] || fail "streams: $(cat summary.txt)"
grep -qE '^ +cores: .*shoal-worker small [0-9.]+' summary.txt || fail "cores of processes: $(cat summary.txt)"
cd "$work/home" || fail "no folder"
[ "$(find . -newer "$work/pack.tar.gz" -name '*.gguf')" = "" ] || fail "models are left in HOME"

refused() {
    "$there/cores" "${@:2}" >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -qF -- "$1" "$work/out" || fail "cores ${*:2}: $(cat "$work/out")"
}
refused 'no option --slow' --slow
refused '--out wants a value' --out
refused 'no program shoal here' "$work/nothing"
refused '--clients wants numbers' --clients 1,x
refused '--seconds wants a number' --seconds soon
"$there/cores" --help | grep -q -- '--quick ' || fail "--help"
printf '#!/bin/sh\nexit 1\n' >"$work/broken" && chmod +x "$work/broken"
refused 'does not run here' "$work/broken"
echo "packed, unpacked and measured"
