#!/usr/bin/env bash
# shoal chat with a running Shoal, at a terminal: slash commands, lines within quotes, Ctrl-C, a server that dies.
source "$(dirname "$0")/lib.sh"
command -v script >/dev/null || skip "script (bsdutils) is not there"
export XDG_STATE_HOME=$work/state NO_COLOR=1
source tests/e2e/terminal.bash
start_shoal

# ---- the same request here and there has the same reply
for where in "--here" "--server $url"; do
    echo "turn on the kitchen light" | "$SHOAL_BIN" chat $where home-chat-s --json 2>"$work/err" | python3 -c '
import json, sys
a = json.load(sys.stdin)
assert a["content"].startswith("Turning on Kitchen Light."), a
assert "light.kitchen" in json.dumps(a), a
assert a["tokens"] > 5 and a["ms"] >= a["first_ms"] > 0, a' || fail "$where: $(cat "$work/err")"
done
out=$(echo "turn on the kitchen light" | "$SHOAL_BIN" chat --server "$url" home-chat-s)
[ "$(head -1 <<<"$out")" = "Turning on Kitchen Light." ] || fail "in a pipe: $out"
grep -q $'\x1b' <<<"$out" && fail "codes for a terminal in a pipe"
"$SHOAL_BIN" chat --server "$url" nobody </dev/null >/dev/null 2>"$work/err" && fail "chats with nobody"
grep -q "has no model \"nobody\"" "$work/err" || fail "$(cat "$work/err")"
"$SHOAL_BIN" chat --server "$url" home-intent </dev/null >/dev/null 2>"$work/err" && fail "chats with a classifier"
grep -q 'try: shoal classify home-intent' "$work/err" || fail "$(cat "$work/err")"
"$SHOAL_BIN" chat --server "$url" --color sometimes </dev/null 2>"$work/err" && fail "--color sometimes"
grep -q 'auto, always or never' "$work/err" || fail "$(cat "$work/err")"

# a reader that leaves ends it, a full disk is said, and what is no text is refused
(for _ in $(seq 200); do echo "turn on the kitchen light"; done; sleep 20) | timeout 10 "$SHOAL_BIN" chat --server "$url" home-chat-s 2>/dev/null | head -1 >"$work/first"
[ "${PIPESTATUS[1]}" -ne 124 ] || fail "it talks on to a reader that has left"
echo hello | "$SHOAL_BIN" chat --server "$url" home-chat-s >/dev/full 2>"$work/err" && fail "a full disk"
grep -q 'No space left' "$work/err" || fail "a full disk: $(cat "$work/err")"
for where in "--here" "--server $url"; do
    printf '\xff\xfe hello\n' | "$SHOAL_BIN" chat $where --no-home home-chat-s >/dev/null 2>"$work/err" && fail "noise is said, $where"
    grep -q 'not UTF-8' "$work/err" || fail "noise, $where: $(cat "$work/err")"
done

# ---- commands
# Without a name the home's pipeline replies; its lines are of one session, so that "yes" answers its question.
out=$(printf 'turn on the kitchen light\nand the lamp\nyes\n' | "$SHOAL_BIN" chat --server "$url" 2>"$work/err") || fail "no pipeline replies: $(cat "$work/err")"
[ "$out" = 'Turning on Kitchen Light.
  -> light.turn_on {"target":"light.kitchen"}
I am not sure what you want. Do you mean: Turning off Bedroom Lamp.
Turning off Bedroom Lamp.
  -> light.turn_off {"target":"light.bedroom_lamp"}' ] || fail "the pipeline said: $out"
echo hello | "$SHOAL_BIN" chat --server "$url" --system "Be brief." --json | grep -q '"tokens":[1-9]' || fail "a system message is for a model"
at_terminal chat --server "$url" home-chat-s
grep -q 'home-chat-s, served at http.* replies' "$screen" || fail "no word of who replies: $(cat -v "$screen")"
keys 'turn on the kitchen light\r'
await '-> light.turn_on \{"target": "light.kitchen"\}'
await '[0-9]+ tokens, ([0-9.]+ tokens/s, )?first after [0-9]+ ms'
await '^> '
keys '/hlep\r'
await 'no /hlep, did you mean "help"\?'
await '^> '
keys '/help\r'
await '/system +\[TEXT\|off\]'
await '^> '
keys '/set temperature 0.3\r'
await '^> '
keys '/set\r'
await 'temperature +0\.3'
await '^> '
keys '/set temperature 7\r'
await 'temperature.*(0 to 2|2)'
await '^> '
keys '/set temprature 1\r'
await 'did you mean "temperature"'
await '^> '
keys '/system Be brief.\r'
await '^> '
keys '/system\r'
await '^Be brief\.'
await '^> '
keys '//slashed\r'
await 'tokens'
await '^> '
keys '"""first line\r'
await '^\. '
keys 'second line"""\r'
await 'tokens'
await '^> '
keys "/save $work/talk.json\r"
await '5 messages in '
await '^> '
python3 - "$work/talk.json" <<'END' || fail "what was saved: $(cat "$work/talk.json")"
import json, sys
t = json.load(open(sys.argv[1]))
m = t["messages"]
assert t["model"] == "home-chat-s" and [x["role"] for x in m] == ["system", "user", "assistant", "user", "assistant"], t
assert m[0]["content"] == "Be brief." and m[1]["content"] == "/slashed" and m[3]["content"] == "first line\nsecond line", t
END
keys '/clear\r'
await 'forgotten'
await '^> '
keys '/retry\r'
await 'no reply to make again'
await '^> '
keys "/load $work/talk.json\r"
await '5 messages from '
await '^> '
keys '/retry\r'
await 'tokens'
await '^> '
keys "/load $work/nothing.json\r"
await 'nothing.json'
await '^> '
keys "/load $PWD/shoal.yaml\r"
await 'shoal chat: .*shoal.yaml'
await '^> '
echo '[{"type":"function","function":{"name":"open_door","parameters":{"type":"object","properties":{}}}}]' >"$work/tools.json"
keys "/tools $work/tools.json\r"
await '^  open_door'
await '^> '
keys 'open the door\r'
await '(tokens|shoal chat:)'
await '^> '
keys '/tools off\r'
await '^> '
keys '/model home-chat-m\r'
await '^home-chat-m, of http'
await '^> '
keys '/model nobody\r'
await 'no model "nobody"'
await '^> '
keys '/model\r'
await '^home-chat-m, of http'
await '^> '
echo '{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}' >"$work/schema.json"
keys "/schema $work/schema.json\r"
await '^> '
keys 'is it on\r'
await '\{ *"on": *(true|false)'
await '^> '
# one Ctrl-C says how to leave, the second leaves
keys '\003'
await 'again, or Ctrl-D, leaves'
keys 'x\003'
await '\^C'
await '^> '
keys '\003'
await 'again, or Ctrl-D, leaves'
keys '\003'
exec 9>&-
wait "$typist" || fail "two Ctrl-C leave with $?"
at_terminal chat --server "$url" home-chat-s
keys '/quit\r'
exec 9>&-
wait "$typist" || fail "/quit leaves with $?"

# ---- the model that is taken behind a line is told its home as the first was; a talk that goes on is kept, and says so
at_terminal chat --server "$url" home-chat-s
keys 'turn on the kitchen light\r'
await 'tokens'
await '^> '
keys '/model home-chat-s\r'
await '^home-chat-s, of http'
await '^> '
keys '/system\r'
await '^\(the home and its devices'
await '^> '
echo '{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]}' >"$work/plain.json"
keys "/load $work/plain.json\r"
await '2 messages from '
await '^> '
keys '/model home-chat-s\r'
await 'goes on, without the home; /clear'
await '^> '
keys "/save $work/kept.json\r"
await '2 messages in '
await '^> '
keys '/clear\r'
await 'forgotten'
await '^> '
keys '/model home-chat-s\r'
await '^home-chat-s, of http'
await '^> '
keys '/system\r'
await '^\(the home and its devices'
leave

# ---- Ctrl-C stops the reply of a server and the conversation goes on
echo '{"type": "array", "items": {"type": "integer"}, "minItems": 300}' >"$work/long.json"
at_terminal chat --server "$url" home-chat-m --no-home --no-history --json-schema "$work/long.json" -n 1900 --temp 1
stop_reply count
keys "/save $work/stopped.json\r"
await '2 messages'
await '^> '

# ---- a server that dies in the middle of a reply is told of, and so is one that is away
chat_m() { curl -s "$url/v1/status" | tr '{' '\n' | grep '"id":"home-chat-m/0"'; }
pid=$(curl -s "$url/readyz" | tr '{' '\n' | grep '"home-chat-m/0"' | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2)
for _ in $(seq 10); do # its worker is held, so that the reply is not whole before; unless it was quicker
    keys 'count again\r'
    await '[0-9]+, *[0-9]+'
    kill -STOP "$pid" || fail "no worker of home-chat-m: $(chat_m)"
    sleep 0.05 # what it had sent is on its way
    chat_m | grep -q '"calls":0' || break
    kill -CONT "$pid"
    await '[0-9]+ tokens'
    await '^> '
    keys "/load $work/stopped.json\r"
    await '2 messages from '
    await '^> '
done
kill -9 "$server" "$pid"
wait "$server" 2>/dev/null
await 'shoal chat: '
await '^> '
keys 'hello?\r'
await 'no Shoal serves there'
await '^> '
keys "/save $work/after.json\r"
await '2 messages'
await '^> '
leave
server=
echo "commands, quotes, Ctrl-C, a server that dies"
