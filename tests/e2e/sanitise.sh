#!/usr/bin/env bash
# Words of a server that mean to command the terminal: every command that shows them takes their controls out, and a
# pipe gets them as they are.
source "$(dirname "$0")/lib.sh"
command -v script >/dev/null || skip "script (bsdutils) is not there"
export NO_COLOR=1 XDG_STATE_HOME=$work/state
cat >"$work/evil.py" <<'END_OF_SERVER'
import http.server, json
E = "ev\x1b]0;il\x07\x7f\u009b2J\u202ebi\u2069\u05d0\u200f\U0001f469\u200d\U0001f4bb"
MODEL = {"id": E, "task": "generate", "parent": "", "state": E, "labels": [E], "version": E, "architecture": E}
GET = {"/v1/models": {"data": [MODEL, {**MODEL, "id": "m"}, {**MODEL, "id": "my m/x"}, {**MODEL, "id": "c", "task": "classify", "labels": [E, E]}]},
       "/v1/models/m": {**MODEL, "id": "m"}, "/v1/models/my%20m%2Fx": {**MODEL, "id": "my m"},
       "/v1/status": {"replicas": [{"model": E, "state": E, "node": E, "resident_bytes": 1}], "models": [], "nodes": []},
       "/v1/nodes": {"nodes": [{"name": E, "role": E, "site": E, "isa": E, "labels": [E]}]},
       "/v1/collections": {"data": [{"name": E, "documents": 1, "chunks": 1, "bytes": 1, "model": E}]},
       "/v1/logs": {"lines": [{"time": "2026-11-21T02:25:42.123Z", "level": "info", "component": "x", "event": "y", "a": E}]}}
POST = {"/v1/process": {"text": E, "heard": E, "intent": {"label": E, "score": 1}, "slots": [{"label": E, "text": E}],
                        "tool_calls": [{"name": E, "arguments": {"a": E}}], "results": {E: E}, "ms": 1,
                        "trace": [{"ran": True, "stage": E, "why": E, "ms": 1, "model": E, "label": E}]},
        "/v1/classify": {"data": [{"labels": [{"label": E, "score": 1}]}]},
        "/v1/models/load": {"status": E, "model": E}, "/v1/models/unload": {"status": E, "model": E}}
class Evil(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def say(self, status, text):
        self.send_response(status)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())
    def say_json(self, v):
        if v is None: return self.say(500, json.dumps({"error": {"message": E}}, ensure_ascii=False))
        self.say(200, json.dumps(v, ensure_ascii=False))
    def do_GET(self):
        self.say_json(GET.get(self.path.split("?")[0]))
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if b'"stream":true' in body and "process" in self.path:
            events = [("text", {"text": E + "\n"}), ("stage", POST[self.path]["trace"][0]), ("answer", POST[self.path])]
            return self.say(200, "".join(f"event: {k}\ndata: {json.dumps(v, ensure_ascii=False)}\n\n" for k, v in events))
        if "chat" not in self.path: return self.say_json(POST.get(self.path))
        call = {"index": 0, "id": "1", "function": {"name": E, "arguments": E}}
        deltas = [{"reasoning_content": E}, {"content": E}, {"tool_calls": [call]}]
        events = [{"choices": [{"delta": d}]} for d in deltas]
        self.say(200, "".join(f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events) + "data: [DONE]\n\n")
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
print(f"http://127.0.0.1:{s.server_port}", flush=True)
s.serve_forever()
END_OF_SERVER
python3 "$work/evil.py" >"$work/at" &
server=$!
for _ in $(seq 200); do [ -s "$work/at" ] && break; sleep 0.05; done
url=$(cat "$work/at")

n=0
# shown WHAT...: on a terminal, with nothing that it obeys; what was said is there. 
shown() {
    script -qec "$SHOAL_BIN $*" /dev/null <<<"hello" >"$work/shown" 2>&1
    LC_ALL=C grep -qP '\x1b\]|\x07|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xaf]' "$work/shown" && fail "shoal $*: $(cat -v "$work/shown")"
    grep -q 'ev?\|ev\\u001[bB]' "$work/shown" || fail "shoal $* does not show it: $(cat -v "$work/shown")"
    n=$((n + 1))
}
at="--server $url"
for json in "" --json; do
    shown ps $at $json
    shown show m $at $json
    shown nodes --server $url $json
    shown logs $at $json
    shown docs list $at $json
    shown process $at $json hello
    shown run $at $json c hello
    shown run $at $json m hello
    shown load $at $json m
done
shown show "'my m/x'" $at # a name that would end the path of the request
shown top $at --once
shown node drain n $at # a refusal's reason
shown run $at --system x m hello
# chat, at both ends a terminal, and with only its answers there
shown chat $at m --no-home --no-history
# What reorders text is told by its number; letters from right to left, marks and joiners stay.
shown run $at --system x m hello
LC_ALL=C.UTF-8 grep -q $'\\\\u202ebi\\\\u2069\u05d0\u200f\U0001f469\u200d\U0001f4bb' "$work/shown" || fail "directions: $(cat -v "$work/shown")"
echo hello | "$SHOAL_BIN" chat $at m --no-home 2>/dev/null | grep -q $'ev\x1b]0;il\x07\x7f\xc2\x9b2J\u202ebi\u2069' || fail "a pipe gets something else"
stop_shoal
echo "$n ways to show what a server says"
