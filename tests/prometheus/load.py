"""Requests of all kinds to a home cluster for some seconds: answered, failed, cached, routed, streamed, left.

    load.py URL
"""
import http.client
import json
import sys
import threading
import time
import urllib.parse

host = urllib.parse.urlsplit(sys.argv[1]).netloc
end = time.monotonic() + 12
faults = []


def post(path, body, wanted=(200,)):
    c = http.client.HTTPConnection(host, timeout=60)
    c.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    r = c.getresponse()
    text = r.read()
    c.close()
    if r.status not in wanted:
        faults.append(f"{path}: {r.status} {text[:200]}")


def chat(model, n, **more):
    return {"model": model, "max_tokens": 40, "messages": [{"role": "user", "content": f"play jazz number {n}"}], **more}


def classify(n):
    post("/v1/classify", {"model": "home-intent", "input": [f"turn on light {n} {i}" for i in range(64)]})
    post("/v1/classify", {"model": "nobody", "input": "x"}, (404,))


def chats(n):
    for model in ("home-chat-s", "home-cascade", "auto"):
        post("/v1/chat/completions", chat(model, n))
    post("/v1/chat/completions", chat("home-chat-m", 0)) # the same: cached
    post("/v1/chat/completions", chat("home-chat-s", n, stream=True))


def pipelines(n):
    post("/v1/process", {"input": f"turn off the kitchen light {n}"})
    post("/v1/embeddings", {"model": "home-embed", "input": f"text {n}"})


def leave(n):
    """A stream that its client breaks off."""
    c = http.client.HTTPConnection(host, timeout=60)
    c.request("POST", "/v1/chat/completions", json.dumps(chat("home-chat-s", n, stream=True, max_tokens=900, ignore_eos=True)), {"content-type": "application/json"})
    c.getresponse().read(10)
    c.close()
    time.sleep(0.2)


def late(n):
    """A deadline that nobody can keep: 504."""
    c = http.client.HTTPConnection(host, timeout=60)
    c.request("POST", "/v1/chat/completions", json.dumps(chat("home-chat-m", n, max_tokens=900, ignore_eos=True)), {"content-type": "application/json", "x-shoal-deadline-ms": "20", "cache-control": "no-store"})
    c.getresponse().read()
    c.close()
    time.sleep(0.2)


def again(work):
    n = 0
    while time.monotonic() < end:
        n += 1
        try:
            work(n)
        except OSError as e:
            faults.append(f"{work.__name__}: {e}")


threads = [threading.Thread(target=again, args=(w,)) for w in (classify, chats, pipelines, leave, late)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if faults:
    raise SystemExit(f"{len(faults)} requests failed: {faults[:3]}")
