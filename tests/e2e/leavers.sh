#!/usr/bin/env bash
# Hundreds of clients leave in the middle of votes, refined answers, cascades and plain streams, in every way a client can:
# nothing of theirs goes on in workers, and whoever stays does not notice.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
shipped | sed -e "s/^  mb: 16/  mb: 0/" -e "s/^deadline_ms: .*/deadline_ms: 200000/" >"$work/shoal.yaml"
cat >"$work/leave.py" <<'END'
import json, random, socket, struct, sys, threading, time, urllib.parse
u = urllib.parse.urlparse(sys.argv[1])
MODELS = ["home-vote", "home-refine", "home-cascade", "auto", "home-chat-s"]

def one(i):
    r = random.Random(i)
    body = {"model": MODELS[i % 5], "stream": i % 3 != 0, "temperature": 1, "seed": i, "max_tokens": 200, "ignore_eos": True,
            "messages": [{"role": "user", "content": f"tell me a story about lamp {i}"}]}
    if i % 4 == 0: body["session"] = f"leave{i % 7}"
    b = json.dumps(body).encode()
    s = socket.create_connection((u.hostname, u.port))
    s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
              f"x-shoal-refine: {i % 2}\r\ncontent-length: {len(b)}\r\n\r\n".encode() + b)
    wait = r.random() * 0.5
    if i % 4 == 0:
        time.sleep(wait)
    elif i % 4 == 1:
        s.settimeout(3)
        try:
            left = r.randint(1, 3000)
            while left > 0:
                d = s.recv(r.randint(1, 200))
                left = left - len(d) if d else 0
        except OSError: pass
    elif i % 4 == 2:
        s.shutdown(socket.SHUT_WR)
        time.sleep(wait)
    else:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(wait / 4)
    s.close()

for first in range(0, 480, 60):
    crowd = [threading.Thread(target=one, args=(first + k,)) for k in range(60)]
    for t in crowd: t.start()
    for t in crowd: t.join()
END
start_shoal "$work/shoal.yaml"
stay() { # N: answers of a vote, one after the other, while others leave
    for i in $(seq "$1"); do
        curl -s -m 200 "$url/v1/chat/completions" -d '{"model":"home-vote","temperature":0,"max_tokens":100,"ignore_eos":true,"messages":[{"role":"user","content":"and who stays, '"$i"'?"}]}' |
            python3 -c 'import json,sys; d=json.load(sys.stdin)
print("(degraded)" if "degraded" in d else json.dumps(d["choices"][0]["message"]["content"]))'
    done
}
stay 6 >"$work/before" || fail "nobody answers"
python3 "$work/leave.py" "$url" &
leaving=$!
stay 6 >"$work/meanwhile" || fail "nobody answers while others leave"
wait "$leaving" || fail "the crowd"
# On a slow machine a member may be silent for too long, which is said; everything else is the same.
grep -q 'event=vote_left .*why="it was silent' "$log" || ! grep -qh '^(degraded)$' "$work/before" "$work/meanwhile" || fail "degraded without a reason"
paste "$work/before" "$work/meanwhile" | awk -F '\t' '$1 != $2 && $1 != "(degraded)" && $2 != "(degraded)" { print; bad = 1 } END { exit bad }' ||
    fail "who stays hears something else: $(diff "$work/before" "$work/meanwhile")"
busy() { curl -s "$url/v1/status" | python3 -c 'import json,sys
print(sum(r.get(k, 0) for r in json.load(sys.stdin)["replicas"] for k in ("running", "waiting", "calls", "kv_pages_used")))'; }
for _ in $(seq 200); do [ "$(busy)" = 0 ] && break; sleep 0.1; done
[ "$(busy)" = 0 ] || fail "workers go on with what nobody waits for: $(curl -s "$url/v1/status")"
sleep 1.1
metrics=$(curl -s "$url/metrics")
grep -q '^shoal_moves_total' <<<"$metrics" && fail "calls lost their worker: $(grep '^shoal_moves_total' <<<"$metrics")"
grep 'event=vote_left' "$log" | grep -v 'why="it was silent' >"$work/left" && fail "votes lost a member: $(head -3 "$work/left")"
grep -q '^shoal_requests_in_flight 1$' <<<"$metrics" || fail "requests go on: $(grep '^shoal_requests_in_flight' <<<"$metrics")"
gone=$(awk '/^shoal_client_gone_total/ { n += $2 } END { print n }' <<<"$metrics")
[ "$gone" -gt 300 ] || fail "only $gone left"
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "$gone clients left, and nothing of theirs went on"
