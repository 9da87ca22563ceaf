#!/usr/bin/env bash
# shoal run: one command for models of every task, of files and of a running server alike.
source "$(dirname "$0")/lib.sh"
hf=$PWD/tests/data/hf
cat >"$work/all.yaml" <<END
models:
  - {name: home-intent}
  - {name: home-slots}
  - {name: home-embed}
  - {name: home-chat-s}
  - {name: ranker, path: $hf/cross-encoder-rerank}
  - {name: eyes, path: $hf/vit-tiny}
  - {name: ears, path: $hf/whisper}
  - {name: gaps, path: $hf/bert-mlm}
END
[ -d "$hf/bert-mlm" ] || sed -i '/gaps/d' "$work/all.yaml"
start_shoal "$work/all.yaml"
# run WHERE ARGS...: what it prints in $out, what it says in $said
run() {
    local where=(--here)
    [ "$1" = here ] || where=(--server "$url")
    shift
    out=$("$SHOAL_BIN" run "${where[@]}" "$@" 2>"$work/err")
    status=$?
    said=$(cat "$work/err")
}
has() { grep -qE -- "$1" <<<"$out" || fail "no $1 in: $out ($said)"; }
says() { grep -qE -- "$1" <<<"$said" || fail "it does not say $1: $said"; }

for where in here there; do
    run $where home-intent "wake me at seven"
    has '^ *99\.[0-9]+ %  alarm_set$'
    says '^home-intent: classify'
    run $where home-slots wake me at seven # words without quotes
    has '^11-16  time  *seven'
    run $where home-embed "wake me"
    has '^-?[0-9.e-]+ -?[0-9.e-]+ '
    out=$(echo "turn on the kitchen light" | "$SHOAL_BIN" run $([ $where = here ] && echo --here || echo --server "$url") home-chat-s 2>"$work/err")
    said=$(cat "$work/err")
    has '^Turning on Kitchen Light\.$'
    has '-> light\.turn_on \{"target": "light\.kitchen"\}'
    says 'home-chat-s: a reply, told of the home'
    run $where home-chat-s --raw "Once upon" -n 3
    says 'the text goes on'
    run $where home-intent "wake me" --json
    python3 -c 'import json, sys; json.loads(sys.argv[1])' "$out" || fail "--json: $out"
    [ -z "$said" ] || fail "with --json it says: $said"
    run $where home-intent </dev/null
    [ "$status" -eq 2 ] || fail "nothing is classified: $status $out"
    says 'there is no prompt'
    printf 'a\0b' | run $where home-intent -p -
    run $where home-chat-s hello --temp 9
    [ "$status" -eq 2 ] || fail "--temp 9: $status $said"
    run $where home-chat-s hello -p hello
    [ "$status" -eq 2 ] || fail "two texts: $status"
done
printf 'a\0b' | "$SHOAL_BIN" run --here home-intent >/dev/null 2>"$work/err" && fail "a NUL is text"
head -c 300 /dev/urandom | "$SHOAL_BIN" run --server "$url" home-intent >/dev/null 2>"$work/err" && fail "noise is text"
grep -qE 'NUL byte|not UTF-8' "$work/err" || fail "noise: $(cat "$work/err")"

# ---- what is no text: documents, pictures, sound
run here "$hf/cross-encoder-rerank" light "a dog" "the light is on"
has 'the light is on'
says ': rerank'
run there ranker light "a dog" "the light is on"
has '^ *[0-9.]+ %  the light is on$'
says ': rerank'
png=$(find tests/data -name '*.png' | head -1) wav=$(find tests/data -name '*.wav' | head -1)
if [ -n "$png" ]; then
    for how in "there eyes" "here $hf/vit-tiny"; do
        run $how "$png"
        has '^ *[0-9.]+ %  '
        says ': classify-image'
    done
fi
if [ -n "$wav" ]; then
    for how in "there ears" "here $hf/whisper"; do
        run $how "$wav"
        [ "$status" -eq 0 ] || fail "transcribe, $how: $said"
        says ': transcribe'
    done
fi
# What is done with a text is said before it.
"$SHOAL_BIN" run --server "$url" home-chat-s --raw "Turning on" -n 1 >"$work/both" 2>&1
head -1 "$work/both" | grep -q "^home-chat-s: the text goes on; served at $url$" || fail "what it is comes late: $(cat "$work/both")"
tail -1 "$work/both" | grep -q '^cut at 1 tokens' || fail "it is not said that it is cut: $(cat "$work/both")"
run there nobody hello
says 'has no model "nobody"'
run here nobody hello
says 'no file or folder "nobody"'
stop_shoal
# A text that goes on is printed as it comes: this server ends it once the first piece was seen.
python3 - "$work" <<'END' >"$work/fake.log" 2>&1 &
import http.server, os, sys, time
work = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def answer(self, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
    def put(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
    def do_GET(self):
        self.answer("application/json")
        self.put(b'{"data":[{"id":"m","task":"generate","chat_template":"default"}]}')
        self.put(b"")
    def do_POST(self):
        self.answer("text/event-stream")
        self.put(b'data: {"choices":[{"index":0,"text":"first"}]}\n\n')
        for _ in range(400):
            if os.path.exists(work + "/seen"): break
            time.sleep(0.05)
        self.put(b'data: {"error":{"message":"out of paper"}}\n\n')
        self.put(b"")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open(work + "/fake.new", "w").write("http://127.0.0.1:%d" % server.server_port)
os.rename(work + "/fake.new", work + "/fake")
server.serve_forever()
END
fake=$!
for _ in $(seq 200); do [ -s "$work/fake" ] && break; sleep 0.05; done
"$SHOAL_BIN" run --server "$(cat "$work/fake")" m hello >"$work/part" 2>"$work/err" &
part=$!
for _ in $(seq 200); do grep -q first "$work/part" && break; sleep 0.05; done
grep -q first "$work/part" || fail "the first piece waits for the last: $(cat "$work/err")"
touch "$work/seen"
wait $part && fail "a reply that was broken off is one"
grep -q 'broke the reply off: out of paper' "$work/err" || fail "$(cat "$work/err")"
end $fake
run there home-intent hello
says 'no Shoal serves there'
echo "texts, words, standard input, documents, pictures, sound; here and there"
