#!/usr/bin/env bash
# Where the process may open few files, clients that hold connections take neither the others' place nor the descriptors
# that a worker needs to start again.
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
cat >"$work/c.yaml" <<EOF
limits: {request_timeout_ms: 600000, idle_timeout_ms: 600000}
manifest: $PWD/models/models.json
models: [{name: home-intent}]
library: {folders: [$PWD/models]}
EOF
ulimit -Sn 96
ulimit -Hn 96 || skip "the limit of open files cannot be lowered"
start_shoal "$work/c.yaml"
grep -q 'event=fewer_connections max_connections=1024 holds=32' "$log" || fail "no warning: $(grep connections "$log")"

cat >"$work/hold.py" <<'EOF'
import http.client, json, os, signal, socket, sys, time
port = int(sys.argv[1])
def ask(method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, body and json.dumps(body), {"content-type": "application/json"})
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text
def want(status, *request):
    got = ask(*request)
    if got[0] != status: raise SystemExit(f"{request} got {got}, wanted {status}")
    return json.loads(got[1])
def pid(): return want(200, "GET", "/readyz")["replicas"][0]["pid"]
def hold():
    s = socket.create_connection(("127.0.0.1", port), 60)
    s.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    return s
first = pid()
held = [hold() for _ in range(85)]
for _ in range(3): want(200, "POST", "/v1/classify", {"model": "home-intent", "input": "lights on"})
os.kill(first, signal.SIGKILL)
for _ in range(1200):
    status, text = ask("GET", "/readyz")
    replica = json.loads(text)["replicas"][0]
    if status == 200 and replica["pid"] != first: break
    time.sleep(0.05)
else: raise SystemExit(f"the worker is not back: {text}")
if replica["crashes"] != 1: raise SystemExit(f"it could not be started at once: {text}")
want(200, "POST", "/v1/models/load", {"model": "home-slots"})
want(200, "POST", "/v1/classify", {"model": "home-intent", "input": "lights off"})
print(f"{len(held)} connections were held")
EOF
python3 "$work/hold.py" "$port" >"$work/out" 2>&1 || fail "$(cat "$work/out"); $(grep event=worker_exited "$log")"
stop_shoal
[ "$stopped" -eq 0 ] || fail "the server ended with $stopped"
echo "ok: $(cat "$work/out"), of 32 places"
