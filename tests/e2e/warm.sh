#!/usr/bin/env bash
# Many conversations over two replicas with little memory, a worker killed between their turns: every answer is the one of
# an undisturbed run, turns go where their pages are, and what is lost is computed again elsewhere.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state
config() { # REPLICAS KV_MB
    printf 'cache: {mb: 0}\nmanifest: %s\nmodels: [{name: home-chat-s, replicas: %s, kv_mb: %s}]\n' \
        "$PWD/models/models.json" "$1" "$2" >"$work/shoal.yaml"
}
cat >"$work/talk.py" <<'END'
"""talk.py URL NAME FIRST LAST [PRESSURE]: turns FIRST..LAST of 12 conversations; prints their answers, and how long the
first token took, as JSON. PRESSURE other requests without a conversation come between the turns."""
import json, sys, time, threading, urllib.request
url, name, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pressure = int(sys.argv[5]) if len(sys.argv) > 5 else 0
said, took = {}, []

def ask(messages, session=None, n=10):
    body = {"model": "home-chat-s", "temperature": 0, "max_tokens": n, "ignore_eos": True, "stream": True, "messages": messages}
    if session: body["session"] = session
    r = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    text, begun, first = "", time.monotonic(), None
    for line in urllib.request.urlopen(r, timeout=60):
        if not line.startswith(b"data: {"): continue
        d = json.loads(line[6:])
        assert "error" not in d, d
        piece = d["choices"][0]["delta"].get("content") if d["choices"] else None
        if piece:
            first = first or time.monotonic() - begun
            text += piece
    return text, first or 0

def turn(s, t):
    words = f"conversation {s} turn {t}: the lamp in room {s * 7 + t} is bright and the kettle of {s} is warm"
    text, ttft = ask([{"role": "user", "content": words}], f"{name}-{s}")
    said[f"{s}/{t}"] = text
    took.append(ttft)

for t in range(first, last + 1):
    for at in range(0, 12, 4):
        crew = [threading.Thread(target=turn, args=(s, t)) for s in range(at, at + 4)]
        crew += [threading.Thread(target=ask, args=([{"role": "user", "content": f"{p} {t} {at} " * 20}],)) for p in range(pressure)]
        for c in crew: c.start()
        for c in crew: c.join()
took.sort()
print(json.dumps({"said": said, "median_ms": round(1000 * took[len(took) // 2], 1)}))
END
talk() { python3 "$work/talk.py" "$url" "$@"; }
count() { sleep 1.1; # the text is made once a second
    curl -s "$url/metrics" | awk -v m="$1" 'index($1, m) == 1 { n += $2 } END { print n + 0 }'; }
pid_of() { curl -s "$url/readyz" | tr '{' '\n' | grep "\"$1\"" | grep -o '"pid":[1-9][0-9]*' | cut -d: -f2; }

config 1 64
start_shoal "$work/shoal.yaml"
talk plain 1 6 >"$work/plain.json" || fail "the undisturbed run"
[ "$(count 'shoal_session_turns_total{model="home-chat-s",warm="new"}')" = 12 ] || fail "twelve conversations began"
[ "$(count 'shoal_session_turns_total{model="home-chat-s",warm="yes"}')" = 60 ] || fail "with memory for all, some turn was not warm: $(curl -s "$url/metrics" | grep shoal_session)"
saved=$(count 'shoal_session_prompt_tokens_total{model="home-chat-s",from="pages"}')
[ "$saved" -gt 0 ] || fail "nothing was saved"
stop_shoal

config 2 4
start_shoal "$work/shoal.yaml"
talk torn 1 2 4 >"$work/1.json" || fail "the first turns"
kill -9 "$(pid_of home-chat-s/0)"
talk torn 3 4 4 >"$work/2.json" || fail "the turns after a death"
[ "$(count 'shoal_worker_kv_pages_kept')" -gt 0 ] || fail "no pages are kept for conversations"
kill -9 "$(pid_of home-chat-s/1)"
talk torn 5 6 4 >"$work/3.json" || fail "the turns after a second death"
warm=$(count 'shoal_session_turns_total{model="home-chat-s",warm="yes"}') cold=$(count 'shoal_session_turns_total{model="home-chat-s",warm="no"}')
[ "$((warm + cold))" = 60 ] || fail "$warm turns were warm and $cold not, of 60"
[ "$warm" -gt 0 ] && [ "$cold" -gt 0 ] || fail "$warm turns were warm and $cold not: both should be"
python3 - "$work" <<'END' || fail "an answer is not that of the undisturbed run"
import json, sys
plain = json.load(open(sys.argv[1] + "/plain.json"))["said"]
torn = {}
for i in "123": torn.update(json.load(open(f"{sys.argv[1]}/{i}.json"))["said"])
assert len(plain) == len(torn) == 72, (len(plain), len(torn))
bad = [k for k in plain if plain[k] != torn[k] or not plain[k]]
assert not bad, [(k, plain[k], torn[k]) for k in bad[:3]]
END
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "72 answers as undisturbed; $warm turns warm, $cold computed again; $saved tokens saved where memory was enough"
