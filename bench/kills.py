#!/usr/bin/env python3
"""Tokens per second of streams while their worker is killed every so often.

    bench/kills.py [--shoal build/shoal] [--model home-chat-m] [--clients 8] [--tokens 600] [--every 2] [--seconds 30]

Starts a server of its own, lets all clients stream replies of a fixed length one after the other, first undisturbed and
then with a SIGKILL of the model's worker every so many seconds, and counts the tokens that arrive within the time. Every
reply that ends must say what the same request said undisturbed. Prints one JSON line a phase."""
import argparse, collections, hashlib, http.client, json, os, re, signal, subprocess, sys, tempfile, threading, time

a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
a.add_argument("--shoal", default="build/shoal")
a.add_argument("--model", default="home-chat-m")
a.add_argument("--clients", type=int, default=8)
a.add_argument("--tokens", type=int, default=600)
a.add_argument("--every", type=float, default=2)
a.add_argument("--seconds", type=float, default=30)
o = a.parse_args()

work = tempfile.mkdtemp()
with open(f"{work}/c.yaml", "w") as f:
    f.write(f"manifest: {os.getcwd()}/models/models.json\nmodels: [{{name: {o.model}}}]\n")
log = open(f"{work}/log", "w+")
server = subprocess.Popen([o.shoal, "serve", "--config", f"{work}/c.yaml", "--port", "0"], stdout=log, stderr=log)


def find(pattern):
    """What the log says by now."""
    with open(f"{work}/log") as f:
        return re.findall(pattern, f.read())


while not (port := find(r"http://127\.0\.0\.1:(\d+)")):
    time.sleep(0.05)
    assert server.poll() is None, open(f"{work}/log").read()
port = int(port[0])


def ready():
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("GET", "/readyz")
    return json.loads(c.getresponse().read())


while ready().get("status") != "ready":
    time.sleep(0.1)


def stream(seed, on_token, stop):
    """(finished, digest of the text) of one reply."""
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("POST", "/v1/chat/completions", json.dumps({
        "model": o.model, "stream": True, "temperature": 0.7, "seed": seed, "ignore_eos": True, "max_tokens": o.tokens,
        "messages": [{"role": "user", "content": f"tell me all about number {seed}"}]}),
        {"x-shoal-deadline-ms": "600000", "cache-control": "no-cache"})
    r, text = c.getresponse(), ""
    for line in r:
        if stop():
            return False, ""
        if line.startswith(b"data: [DONE]"):
            return True, hashlib.sha256(text.encode()).hexdigest()
        if not line.startswith(b"data: {"):
            continue
        d = json.loads(line[6:])
        if "error" in d:
            return False, json.dumps(d["error"])
        on_token()
        text += (d["choices"][0]["delta"].get("content") or "") if d.get("choices") else ""
    return False, "cut"


def phase(name, kill_every, known):
    n, begun, gaps, bad, whole = 0, time.time(), [], collections.Counter(), 0
    lock, over = threading.Lock(), threading.Event()
    last = [begun] * o.clients

    def client(i):
        nonlocal n, whole
        turn = 0

        def on_token():
            nonlocal n
            now = time.time()
            with lock:
                gaps.append(now - last[i])
                n += now - begun < o.seconds
            last[i] = now

        while not over.is_set():
            seed = 1000 * i + turn
            done, digest = stream(seed, on_token, over.is_set)
            turn += 1
            if done:
                with lock:
                    whole += 1
                    bad["different"] += known.setdefault(seed, digest) != digest
            elif digest:
                with lock:
                    bad[digest] += 1

    threads = [threading.Thread(target=client, args=(i,)) for i in range(o.clients)]
    for t in threads:
        t.start()
    kills = 0
    while time.time() - begun < o.seconds:
        time.sleep(min(kill_every or o.seconds, max(0.01, o.seconds - (time.time() - begun))))
        if kill_every and time.time() - begun < o.seconds:
            for pid in re.findall(r'"pid":\s*(\d+)', json.dumps(ready())):
                try:
                    os.kill(int(pid), signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
    over.set()
    for t in threads:
        t.join()
    gaps.sort()
    out = {"phase": name, "tokens_per_s": round(n / o.seconds, 1), "whole": whole, "kills": kills,
           "gap_p99_ms": round(1000 * gaps[int(len(gaps) * 0.99)]), "gap_max_ms": round(1000 * gaps[-1]),
           "wrong": {k: v for k, v in bad.items() if v}, "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(out), flush=True)
    return out


try:
    known = {}
    plain = phase("undisturbed", 0, known)
    killed = phase(f"a kill every {o.every} s", o.every, known)
    print(json.dumps({"share": round(killed["tokens_per_s"] / max(plain["tokens_per_s"], 0.1), 3)}))
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
