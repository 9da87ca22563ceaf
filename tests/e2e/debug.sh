#!/usr/bin/env bash
# shoal debug: models of random weights that every command takes as any other.
source "$(dirname "$0")/lib.sh"
made=$work/made.gguf

"$SHOAL_BIN" debug make-model --shape llama-24m --type q4_k_m -c 512 -o "$made" >"$work/out" 2>"$work/err" ||
    fail "make-model: $(cat "$work/err")"
grep -q "$made: [0-9]* bytes, 24.4 M weights" "$work/out" || fail "$(cat "$work/out")"
grep -q 'make-model: [0-9]* of 57 tensors' "$work/err" || fail "no progress in a pipe"
grep -q "sha256 $(sha256sum "$made" | cut -d' ' -f1)" "$work/out" || fail "another digest than the file's"
"$SHOAL_BIN" show "$made" >"$work/out" || fail "show"
grep -q '^context  *512$' "$work/out" || fail "the context that was asked for: $(grep context "$work/out")"
"$SHOAL_BIN" run "$made" -p "turn on the lights" -n 3 --json | grep -q '"generated_tokens":3' || fail "run"
"$SHOAL_BIN" quantize "$made" "$work/q8.gguf" --type q8_0 >/dev/null 2>&1 || fail "quantize of a made model"
"$SHOAL_BIN" debug make-model --shape minilm -o "$work/minilm.gguf" --name small --json >"$work/out" 2>/dev/null ||
    fail "make-model of an encoder"
grep -q "^{\"file\":\"$work/minilm.gguf\",\"sha256\":\"[0-9a-f]\{64\}\",\"bytes\":[0-9]*,\"tensors\":101,\"weights\":22[0-9]*}$" \
    "$work/out" || fail "$(cat "$work/out")"
"$SHOAL_BIN" embed "$work/minilm.gguf" "turn on the lights" --json >"$work/out" 2>/dev/null || fail "embed"
[ "$("$SHOAL_BIN" debug shapes | wc -l)" -eq "$("$SHOAL_BIN" debug shapes --json | grep -o '"name"' | wc -l)" ] ||
    fail "shapes and its JSON differ"

refused() {
    local status=$1 why=$2
    shift 2
    "$SHOAL_BIN" debug "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$status" ] || fail "debug $*: another status than $status"
    grep -q -- "$why" "$work/err" || fail "debug $*: $(cat "$work/err")"
}
refused 2 'did you mean "llama-24m"' make-model --shape llama-24 -o "$work/x"
refused 2 '--shape NAME is needed' make-model -o "$work/x"
refused 2 '-o FILE is needed' make-model --shape minilm
refused 2 'none of q8_0' make-model --shape minilm --type q9 -o "$work/x"
refused 1 'No such file' make-model --shape minilm -o "$work/nowhere/x"
refused 2 'there is no "debug made"' made
[ ! -e "$work/x" ] || fail "a refused model was written"

# ---- Ctrl-C leaves nothing behind
"$SHOAL_BIN" debug make-model --shape llama-1.1b -o "$work/big.gguf" >/dev/null 2>&1 &
sleep 0.3
kill $! 2>/dev/null && ! wait $! && { ls "$work" | grep -q big && fail "a stopped model left $(ls "$work" | grep big)"; }
echo "made, read and refused"
