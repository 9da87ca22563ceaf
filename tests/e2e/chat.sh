#!/usr/bin/env bash
# shoal chat at a terminal (script makes one): editing, history, Ctrl-C, the home's devices; and in pipes.
source "$(dirname "$0")/lib.sh"
export XDG_STATE_HOME=$work/state
history=$work/state/shoal/chat_history
source tests/e2e/terminal.bash

if command -v script >/dev/null; then
    # ---- told of the home; arrow keys and backspace edit; calls are shown as calls

    at_terminal chat --here home-chat-s
    grep -q 'is for device commands and sensor alerts, not for conversation' "$screen" || fail "no word of what it is for"
    grep -q 'knows the 12 devices of shoal.yaml' "$screen" || fail "no word of the home"
    keys 'turn on the kitchexn light\033[D\033[D\033[D\033[D\033[D\033[D\033[D\b\r'
    await '-> light.turn_on \{"target": "light.kitchen"\}'
    grep -q 'tool_call>' "$screen" && fail "raw tool calls"
    await '^> '

    # ---- Ctrl-C drops a line, arrow up brings the last one back, a backslash goes on
    keys 'turn off the kitchen light'
    await 'turn off the kitchen light'
    keys '\003'
    await '^> '
    keys '\033[A\r'
    await '-> light.turn_on'
    keys 'turn off \\\r'
    await '^\. '
    keys 'the kitchen light\r'
    await '-> light.turn_off'
    await '^> '
    keys '"""turn on\r'
    await '^\. '
    keys 'the kitchen light"""\r'
    await '-> light.turn_on \{"target": "light.kitchen"\}'
    await '^> '
    leave
    [ "$(stat -c %a "$history")" = 600 ] || fail "others may read the history: $(stat -c %a "$history")"
    [ "$(stat -c %a "$work/state/shoal")" = 700 ] || fail "others may look into its folder"
    grep -q 'kitchen.*light' "$history" || fail "the history is empty"

    # ---- Ctrl-C stops a reply, not the program; nothing is kept when told so

    cp "$history" "$work/before"
    echo '{"type": "array", "items": {"type": "integer"}, "minItems": 300}' >"$work/long.json"
    at_terminal chat --here home-chat-m --no-home --no-history --json-schema "$work/long.json" -n 1900 -t 1
    stop_reply secret
    leave
    cmp -s "$history" "$work/before" || fail "--no-history keeps lines"
    [ "$(wc -l <"$history")" -eq 4 ] || fail "the history has $(wc -l <"$history") lines"
fi

# ---- a narrow terminal: a reply comes in rows that end between words, and is the one of a pipe
if command -v script >/dev/null; then
    ask=(run --here home-chat-m --no-home "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s" -t 0 -n 60)
    script -qefc "stty cols 24; $(printf '%q ' "$SHOAL_BIN" "${ask[@]}") 2>/dev/null" /dev/null </dev/null | tr -d '\r' >"$work/rows"
    whole=$("$SHOAL_BIN" "${ask[@]}" 2>/dev/null)
    LC_ALL=C.UTF-8 grep -qE '.{25}' "$work/rows" && fail "wider than 24 columns: $(cat "$work/rows")"
    [ "$(wc -l <"$work/rows")" -gt 1 ] && [ "$(xargs <"$work/rows")" = "$(xargs <<<"$whole")" ] || fail "folded: $(cat "$work/rows"); of $whole"
fi

# ---- in a pipe: replies alone, with the home unless told otherwise
answer=$(echo "turn on the kitchen light" | "$SHOAL_BIN" chat --here home-chat-s 2>"$work/err") || fail "chat: $(cat "$work/err")"
[ "$(head -1 <<<"$answer")" = "Turning on Kitchen Light." ] && grep -q '"target": "light.kitchen"' <<<"$answer" || fail "answers: $answer"
[ ! -s "$work/err" ] || fail "complains: $(cat "$work/err")"
alert=$(echo "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s" | "$SHOAL_BIN" chat --here home-chat-s)
grep -q '^Pump 12 ' <<<"$alert" || fail "an alert: $alert"
system="You are Shoal, a helper that runs this home. Devices:
light.attic 'Attic Light' = off"
echo "turn on the attic light" | "$SHOAL_BIN" chat --here home-chat-s --system "$system" --json | grep -q 'light\.attic' || fail "--system"
echo "$(seq 200)" | tr '\n' ' ' | "$SHOAL_BIN" chat --here --no-home home-chat-s --context 64 >/dev/null 2>"$work/err" && fail "a line over the context"
grep -q 'in the context of 64 tokens; say less at once, and --context N of shoal serve and load allows more' "$work/err" || fail "a full context: $(cat "$work/err")"
# A line that fails costs the others nothing; the exit status tells it.
printf '%s\nhi\n' "$(seq 200 | tr '\n' ' ')" | "$SHOAL_BIN" chat --here --no-home home-chat-s --context 64 >"$work/out" 2>"$work/err"
[ "${PIPESTATUS[1]}" -eq 1 ] && grep -q 'in the context of 64 tokens' "$work/err" || fail "after a failed line: $(cat "$work/err")"
[ -s "$work/out" ] || fail "nothing answers the line after a failed one"
cd "$work" || fail "no folder"
printf 'models: 7\n' >broken.yaml
echo hello | "$SHOAL_BIN" chat --here home-chat-s --config broken.yaml >/dev/null 2>"$work/err" && fail "a broken configuration"
grep -q 'broken.yaml' "$work/err" || fail "a broken configuration: $(cat "$work/err")"
"$SHOAL_BIN" chat --here home-intent </dev/null >/dev/null 2>"$work/err" && fail "chats with a classifier"
grep -q 'home-intent is a model for "classify".*try: shoal classify home-intent' "$work/err" || fail "a classifier: $(cat "$work/err")"
echo "at a terminal and in pipes"
