#!/usr/bin/env bash
# How long a conversation's next turn waits for its first token, with its past in KV pages and without:
#
#   scripts/bench_sessions.sh [MODEL] [CONVERSATIONS]      MODEL: a name of models/models.json (home-chat-m)
#
# Each conversation is read once, goes on at once (warm), and goes on again when the worker that held it was killed and is
# back (rebuilt). A table of medians, for docs/sessions.md.
set -euo pipefail
cd "$(dirname "$0")/.."
model=${1:-home-chat-m} n=${2:-20}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$work"' EXIT
printf 'cache: {mb: 0}\nmanifest: %s\nmodels: [{name: %s, kv_mb: 256}]\nsessions: {path: %s, key_file: %s}\n' \
    "$PWD/models/models.json" "$model" "$work/s.db" "$work/s.key" >"$work/shoal.yaml"
build/shoal serve -c "$work/shoal.yaml" --port 0 >"$work/ready" 2>"$work/log" &
server=$!
for _ in $(seq 200); do grep -q 'http://' "$work/ready" && break; sleep 0.1; done
python3 - "$(grep -o 'http://[0-9.:]*' "$work/ready" | head -1)" "$model" "$n" <<'END'
import json, os, signal, statistics, sys, time, urllib.request
url, model, n = sys.argv[1], sys.argv[2], int(sys.argv[3])

def ask(session, text):
    body = {"model": model, "temperature": 0, "max_tokens": 4, "ignore_eos": True, "stream": True, "session": session,
            "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": text}]}
    r = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    begun, first, usage = time.monotonic(), None, None
    for line in urllib.request.urlopen(r, timeout=60):
        if not line.startswith(b"data: {"): continue
        d = json.loads(line[6:])
        if d["choices"] and d["choices"][0]["delta"].get("content"): first = first or 1000 * (time.monotonic() - begun)
        usage = d.get("usage") or usage
    return first, usage

def kill_worker():
    state = json.load(urllib.request.urlopen(url + "/readyz"))["replicas"][0]
    os.kill(state["pid"], signal.SIGKILL)
    while True:
        try:
            now = json.load(urllib.request.urlopen(url + "/readyz"))["replicas"][0]
            if now["pid"] not in (0, state["pid"]) and now["state"] == "ready": return
        except urllib.error.HTTPError: pass
        time.sleep(0.05)

print("| words before | prompt tokens | warm, ms | rebuilt, ms |\n|---|---|---|---|")
for words in (60, 120, 240):
    past = "the lamp in the hall is bright and the kettle in the kitchen is warm " * (words // 14)
    warm, cold, tokens = [], [], 0
    for i in range(n): ask(f"{words}-{i}", f"{i}: {past}")
    for i in range(n):
        ms, usage = ask(f"{words}-{i}", "and now?")
        warm.append(ms)
        tokens = usage["prompt_tokens"]
    kill_worker()
    ask("other", "hello there")
    for i in range(n): cold.append(ask(f"{words}-{i}", "and now?")[0])
    print(f"| {words} | {tokens} | {statistics.median(warm):.1f} | {statistics.median(cold):.1f} |")
END
