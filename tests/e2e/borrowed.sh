#!/usr/bin/env bash
# Real models that are not ours to keep: a llama2.c checkpoint of 260,000 parameters tells the story that its author's
# program tells. Skipped where the folder is not there.
source "$(dirname "$0")/lib.sh"
story=../shared/borrowed/stories260K
[ -f "$story/stories260K.bin" ] || skip "no $story here"

"$SHOAL_BIN" run "$story/stories260K.bin" "" -n 200 --temp 0 >"$work/told" 2>"$log" || fail "the checkpoint does not run"
n=$(wc -c <"$story/expected_greedy_n200.txt")
[ "$n" -gt 400 ] || fail "the known story is too short to show anything"
cmp -n "$((n - 1))" "$work/told" "$story/expected_greedy_n200.txt" || fail "another story: $(head -c 200 "$work/told")"

# through our own file, tokenizer included
"$SHOAL_BIN" quantize "$story/stories260K.bin" "$work/story.gguf" --type f32 >/dev/null 2>"$log" || fail "quantize"
"$SHOAL_BIN" run "$work/story.gguf" "" -n 200 --temp 0 >"$work/again" 2>"$log" || fail "the quantised story does not run"
cmp "$work/told" "$work/again" || fail "another story after quantising"
