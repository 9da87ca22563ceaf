#!/usr/bin/env bash
# shoal process: asks a running cluster over TCP and over a Unix socket, with devices and a key.
source "$(dirname "$0")/lib.sh"
out=$work/out err=$work/err
# says CODE PATTERN ARGS...: the exit status of shoal process, and what it prints (on stderr unless 0).
says() {
    local code=$1 pattern=$2 status where=$out
    shift 2
    "$SHOAL_BIN" process "$@" >"$out" 2>"$err" </dev/null
    status=$?
    [ "$code" -eq 0 ] || where=$err
    [ $status -eq "$code" ] && grep -qE -e "$pattern" "$where" || fail "shoal process $*: $status, $(cat "$out" "$err")"
}

# ---- nobody there: one sentence that says what to do
says 1 'no Shoal serves there \(unix:.*/none.sock: .*\): start one with "shoal serve"' hello -s "unix:$work/none.sock"
[ "$(wc -l <"$err")" -eq 1 ] || fail "several lines: $(cat "$err")"
says 2 'neither ADDRESS:PORT, http://ADDRESS:PORT, https://ADDRESS:PORT nor unix:PATH' hello -s localhost:

# ---- TCP
PATH=$(dirname "$SHOAL_BIN"):$PATH start_shoal shoal.yaml --banner
grep -q '^  shoal process --server ' "$work/ready" || fail "with shoal in PATH: $(cat "$work/ready")"
stop_shoal
start_shoal shoal.yaml --banner
command=$(grep ' process --server ' "$work/ready") || fail "no command to try: $(cat "$work/ready")"
bash -c "$command" >"$work/out" 2>"$work/err" || fail "the banner's command fails: $command: $(cat "$work/err")"
says 0 '^  Turning off Kitchen Light' "turn off the kitchen light" --server "$url"
grep -qE 'call +light.turn_off \{"target":"light.kitchen"\}' "$out" || fail "no call: $(cat "$out")"
grep -qE '^  (route|intent|slot|total) ' "$out" && fail "a trace that nobody asked for: $(cat "$out")"
says 0 '^  intent ' "turn off the kitchen light" --server "$url" --trace
[ "$(head -1 "$out")" = '  Turning off Kitchen Light.' ] || fail "the answer is not first: $(cat "$out")"
grep -qE 'route +intent +home-intent .* ms +always' "$out" || fail "no trace: $(cat "$out")"
says 0 'call +lock.lock \{"target":"lock.front_door"\}' "turn on the kitchen light and lock the front door" --server "$url" --trace
grep -qE 'call +light.turn_on \{"target":"light.kitchen"\}' "$out" || fail "one of two calls: $(cat "$out")"
grep -qE 'route +request +act +rule' "$out" || fail "no rule in the trace: $(cat "$out")"
says 0 '^\{.*"object":"shoal.process".*"trace":\[' "turn off the kitchen light" --server "$url" --json
echo "turn off the kitchen light" | "$SHOAL_BIN" process - --server "$url" | grep -q 'light.kitchen' || fail "standard input"
echo "light.attic 'Attic Light' = off" >"$work/lines"
says 0 '"target":"light.attic"' "turn on the attic light" --server "$url" --devices "$work/lines"
echo '[{"id": "light.attic", "name": "Attic Light", "state": "off"}]' >"$work/json"
says 0 '"target":"light.attic"' "turn on the attic light" --server "$url" --devices "$work/json"
echo '[{"id": ' >"$work/json"
says 1 'the device list' "turn on the attic light" --server "$url" --devices "$work/json"
says 1 "no pipeline named 'nix'" hello --server "$url" --pipeline nix
says 1 "no pipeline named 'hmoe'; did you mean 'home'" hello --server "$url" --pipeline hmoe
says 2 'give a TEXT, lines on standard input, or' --server "$url"

# ---- SHOAL_HOST names the server for every command; classify, embed and tag ask one that is named
export SHOAL_HOST=127.0.0.1:$port
says 0 '^  Turning off Kitchen Light' "turn off the kitchen light"
SHOAL_HOST=gpu:x says 2 '^shoal process: SHOAL_HOST: "gpu:x" is neither' hello
"$SHOAL_BIN" ps | grep -q home-intent || fail "ps asks no SHOAL_HOST"
for command in "top --once" "cache show" "logs"; do
    "$SHOAL_BIN" $command >"$out" 2>"$err" || fail "$command asks no SHOAL_HOST: $(cat "$err")"
    SHOAL_HOST=unix:$work/none.sock "$SHOAL_BIN" $command >"$out" 2>"$err" && fail "$command finds somebody at no socket"
    grep -q 'no Shoal serves there.*--server or SHOAL_HOST' "$err" || fail "$command: $(cat "$err")"
done
for command in eval calibrate; do
    SHOAL_HOST=unix:$work/none.sock "$SHOAL_BIN" "$command" $([ "$command" = calibrate ] && echo home-cascade) eval/names.jsonl >"$out" 2>"$err" && fail "$command"
    grep -q 'no Shoal serves there' "$err" || fail "$command: $(cat "$err")"
done
unset SHOAL_HOST
asked() { "$SHOAL_BIN" "$@" -s "127.0.0.1:$port" >"$out" 2>"$err" || fail "shoal $*: $(cat "$err")"; }
for command in "classify home-intent" "classify home-intent --top 7" "embed home-embed" "tag home-slots"; do
    "$SHOAL_BIN" $command "set a timer for ten minutes" >"$work/here"
    asked $command "set a timer for ten minutes"
    cmp -s "$work/here" "$out" || fail "$command there: $(cat "$out"), and here: $(cat "$work/here")"
done
asked classify home-intent --json hello
grep -q '"object":"list"' "$out" || fail "the server's JSON: $(cat "$out")"
"$SHOAL_BIN" classify home-chat-s -s "$url" hello 2>&1 | grep -q 'home-chat-s is for "generate"' || fail "another task"
"$SHOAL_BIN" classify nobody -s "$url" hello 2>&1 | grep -q 'has no model "nobody"' || fail "no such model"
"$SHOAL_BIN" tag home-slots --tokens -s "$url" hello 2>&1 | grep -q 'does not go with --server' || fail "logits of a server"
"$SHOAL_BIN" embed home-embed --threads 2 -s "$url" hello 2>&1 | grep -q 'do not go with --server' || fail "threads of a server"
# On a terminal, too, the trace follows the answer.
if command -v script >/dev/null; then
    script -qec "'$SHOAL_BIN' process --trace 'turn off the kitchen light' --server $url" "$work/typescript" </dev/null >"$out" 2>&1
    grep -nE 'route +request +act +rule|Turning off Kitchen Light|total' "$out" | cut -d: -f2 | awk '{ print $1 }' | tr '\n' ' ' |
        grep -q '^Turning route total $' || fail "on a terminal: $(cat "$out")"
    script -qec "'$SHOAL_BIN' process hello --server $url --pipeline nix" "$work/typescript" </dev/null >"$out" 2>&1 &&
        fail "on a terminal a wrong name is none"
    grep -q "no pipeline named 'nix'" "$out" || fail "on a terminal: $(cat "$out")"
fi

# ---- a line, a request; what is wrong with one does not end the others
printf 'turn off the kitchen light\n\n  \nturn on the office fan\n' | "$SHOAL_BIN" process --server "$url" >"$out" 2>"$err" ||
    fail "lines: $(cat "$err")"
grep -q '^> turn off the kitchen light' "$out" && grep -q '"target":"light.kitchen"' "$out" && grep -q '^> turn on the office fan' "$out" &&
    grep -q '"target":"fan.office"' "$out" || fail "two lines: $(cat "$out")"
printf 'turn off the kitchen light\nlock the front door' | "$SHOAL_BIN" process --server "$url" --json >"$out" 2>"$err"
[ "$(grep -c '^{.*"object":"shoal.process".*}$' "$out")" -eq 2 ] || fail "not two lines of JSON: $(cat "$out")"
printf 'and the lamp\nyes\nyes\n' | "$SHOAL_BIN" process --server "$url" >"$out" 2>"$err" # lines are a conversation
[ "$(grep -c 'call .*light.turn_off' "$out")" -eq 1 ] && grep -q 'asked nothing that is still open' "$out" ||
    fail "a yes, and one too many: $(cat "$out")"
printf 'turn off the bedroom lamp\nturn it on\nturn up the heat\n20\n' | "$SHOAL_BIN" process --server "$url" >"$out" 2>"$err"
grep -q 'call *light.turn_on {"target":"light.bedroom_lamp"}' "$out" && grep -q '"temperature":20}' "$out" ||
    fail "what the line before was about: $(cat "$out" "$err")"
{ head -c 20000 /dev/zero | tr '\0' a; printf '\nlock the front door\n'; } | "$SHOAL_BIN" process --server "$url" >"$out" 2>"$err"
[ $? -eq 1 ] && grep -q 'takes at most 16384' "$err" && grep -q 'lock.lock' "$out" || fail "a line too long: $(cat "$err")"
stop_shoal
echo "hello" | "$SHOAL_BIN" process --server "$url" >"$out" 2>"$err"
[ $? -eq 1 ] && [ "$(grep -c 'no Shoal serves there' "$err")" -eq 1 ] || fail "lines to nobody: $(cat "$err")"

# ---- the configuration here says where: a Unix socket, with a key
key=sesame
mkdir "$work/site"
ln -s "$PWD/models" "$PWD/lexicons" "$work/site/"
sed -e "s|^listen:.*|listen: unix:$work/site/shoal.sock\napi_keys: [\"sha256:$(printf %s $key | sha256sum | cut -d' ' -f1)\"]|" \
    shoal.yaml >"$work/site/shoal.yaml"
cd "$work/site" || fail "no folder"
: >"$work/ready"
"$SHOAL_BIN" serve >"$work/ready" 2>"$log" &
server=$!
for _ in $(seq 400); do grep -q ready "$work/ready" && break; sleep 0.05; done
says 1 'answers 401: .*--key or SHOAL_API_KEY' "turn off the kitchen light"
says 2 'a space or a control character' "turn off the kitchen light" --key $'a\r\nb: c'
says 0 'call +light.turn_off' "turn off the kitchen light" --key "$key"
SHOAL_API_KEY=$key says 0 'call +light.turn_off' "turn off the kitchen light"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ends with $stopped"
echo "TCP, a Unix socket, devices and a key"
