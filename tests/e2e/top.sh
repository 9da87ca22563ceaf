#!/usr/bin/env bash
# shoal top: one block, JSON, blocks in a pipe, and on a terminal, which it leaves as it was when q is pressed.
source "$(dirname "$0")/lib.sh"
command -v script >/dev/null || skip "script (bsdutils) is not there"
start_shoal
top() { timeout 20 "$SHOAL_BIN" top --url "$url" -i 100 "$@"; }
for _ in 1 2 3; do curl -s "$url/v1/completions" -H 'content-type: application/json' -H 'cache-control: no-store' \
    -d '{"model":"home-chat-s","prompt":"a","max_tokens":900,"ignore_eos":true}' >/dev/null & done
one=$(top --once) || fail "status $?: $one"
[[ $one == "shoal "*" ready "*"replicas 5/5"* ]] || fail "no summary: $one"
grep -q '^home-chat-s/0 .* ready ' <<<"$one" || fail "no replica: $one"
grep -q $'\x1b' <<<"$one" && fail "codes for a terminal in a pipe"
top --json --once | grep -q '^{.*"id":"home-intent/0".*"tokens_per_s":.*}$' || fail "no JSON"
[ "$(top | head -16 | grep -c '^shoal ')" -ge 2 ] || fail "not one block after another in a pipe"
: >"$work/screen"
(for _ in $(seq 400); do grep -q home-chat-s/0 "$work/screen" && break; sleep 0.05; done; printf q) |
    timeout 60 script -qefc "'$SHOAL_BIN' top --url '$url' -i 100" "$work/screen" >/dev/null || fail "on a terminal: $(cat -v "$work/screen")"
drawn=$(cat "$work/screen")
[[ $drawn == *"q or Ctrl-C leaves"* ]] || fail "no word of its keys: $drawn"
[[ $drawn == *$'\x1b[?1049h'*"home-chat-s/0"*$'\x1b[?1049l'* ]] || fail "not drawn, or the screen was not given back: $drawn"

# ---- a terminal of 80 columns: no row is wider, none ends in a word: each word is one of a wide terminal's
at_columns() { # COLUMNS ARGS...
    local columns=$1
    shift
    script -qefc "stty cols $columns rows 50; $(printf '%q ' "$SHOAL_BIN" "$@")" /dev/null </dev/null 2>&1 | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g'
}
words() { grep -oE '[^ ]+' | grep -vE '^[0-9.]+[KMG%]?$' | sort -u; } # numbers change from one call to the next
fits() {
    local shown cut
    shown=$(at_columns 80 "$@")
    [ -n "$shown" ] || fail "shoal $*: nothing"
    LC_ALL=C.UTF-8 grep -qE '.{81}' <<<"$shown" && fail "shoal $* is wider than 80 columns: $(grep -E '.{81}' <<<"$shown")"
    cut=$(comm -23 <(words <<<"$shown") <(at_columns 400 "$@" | words))
    [ -z "$cut" ] || fail "shoal $* cuts: $cut; of $shown"
}
cat >"$work/long.yaml" <<YAML
listen: 127.0.0.1:0
manifest: $PWD/models/models.json
models: [{name: home-intent, replicas: 9000}]
YAML
for c in "top --once --url $url" "ps -s $url" "show home-chat-s -s $url" "show home-intent -s $url" "nodes -s $url" "cache show --url $url" \
    "lab list" "plan shoal.yaml" "plan $work/long.yaml" "pipeline check shoal.yaml" "config check shoal.yaml" models \
    "models inspect -q home-chat-s" "models inspect -q tests/data/hf/bert-intent" "models inspect -q tests/data/hf/mamba-tiny" \
    "route show -s $url" "help" "help all" "show home-chat-s --manifest models/models.json"; do
    fits $c
done
for c in $("$SHOAL_BIN" help all | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
    fits "$c" --help
    for verb in $("$SHOAL_BIN" "$c" --help | sed -n '1s/.*\[options\] \([a-z|-]*\) \.\.\.$/\1/p' | tr '|' ' '); do fits "$c" "$verb" --help; done
done

wait $(jobs -p | grep -v "^$server$")
stop_shoal
gone=$(top --once 2>&1) && fail "a gateway that is gone was shown"
[[ $gone == *refused* ]] || fail "what is wrong was not said: $gone"
echo "shown in a pipe and on a terminal"
