#!/usr/bin/env bash
# How many instructions AArch64's kernels take, where there is no such machine to time them on: a model under
# qemu-user's processors with a plugin that counts (bench/count.c). Instructions are not time.
#
#   scripts/neon_count.sh MODEL.gguf...      in build/aarch64, which scripts/neon.sh makes
#
# A token of a reply is the difference between replies of 2 and of 18 tokens (-: the model ends its reply before), a
# token of a prompt that between two prompts; loading cancels out.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
program=build/aarch64/shoal
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stop() { echo "neon_count: $*" >&2; exit 1; }
[ -x $program ] || stop "no $program: scripts/neon.sh builds it"
qemu-aarch64 -help | grep -q -e '^-plugin' || stop "this qemu-aarch64 takes no plugins"
cc -O2 -shared -fPIC -o "$work/count.so" bench/count.c

words() { for ((i = 0; i < $1; i++)); do printf 'word %d, ' $((i * 7919 % 1000)); done; }
# count PROCESSOR MODEL TOKENS PROMPT: sets n_prompt, n_reply and executed
count() {
    qemu-aarch64 -cpu "$1" -L build/aarch64/sysroot -plugin "$work/count.so" $program run --here --raw -t 1 --temp 0 \
        --json -n "$3" "$2" "$4" >"$work/out" 2>"$work/err" || stop "$2 on $1: $(tail -2 "$work/err")"
    n_prompt=$(sed 's/.*"prompt_tokens":\([0-9]*\).*/\1/' "$work/out")
    n_reply=$(sed 's/.*"generated_tokens":\([0-9]*\).*/\1/' "$work/out")
    executed=$(sed -n 's/^instructions //p' "$work/err" | tail -1)
}
# MILLIONS more instructions for so many more tokens, each
each() { awk -v i="$1" -v n="$2" 'BEGIN { if (n > 0) printf "%.3f", i / n / 1e6; else printf "-" }'; }

short=$(words 8)
long=$(words 40)
printf '%-28s %-9s %14s %14s  %s\n' MODEL KERNELS M/REPLY-TOKEN M/PROMPT-TOKEN 'PROMPTS'
for model in "$@"; do
    for row in "cortex-a53 neon" "neoverse-n1 neondot" "max neoni8mm"; do
        read -r cpu kernels <<<"$row"
        count "$cpu" "$model" 2 "$short"
        few=$executed few_prompt=$n_prompt few_reply=$n_reply
        count "$cpu" "$model" 18 "$short"
        reply=$(each $((executed - few)) $((n_reply - few_reply)))
        count "$cpu" "$model" "$few_reply" "$long"
        prompt=$(each $((executed - few)) $((n_prompt - few_prompt)))
        printf '%-28s %-9s %14s %14s  %s\n' "${model##*/}" "$kernels" "$reply" "$prompt" "$few_prompt, $n_prompt tokens"
    done
done
