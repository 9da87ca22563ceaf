"""Streams through a Service while things change behind it, each compared with what the same request gave before.

    streams.py record URL FILE                       ask each request once, alone, and write the replies down
    streams.py run URL FILE CLIENTS REPORT           ask them in turn until SIGTERM, and compare; a line for each that differs

A client whose connection ends, or is silent for 20 s, sends the request again with the id of the last event that it has
(Last-Event-ID), as a client of a Service behind which pods come and go does. REPORT: streams, resumed (asked again with an id),
refused (asked again from the beginning), differ, lost (not at their end in two minutes), and gap_ms, the longest wait for a next
event, with the reasons for which clients asked again."""
import http.client, json, os, signal, sys, threading, time, urllib.parse

VARIANTS = 6

def request(n):
    return {"model": "home-chat-s", "stream": True, "temperature": 1, "seed": n, "ignore_eos": True, "max_tokens": 1500,
            "messages": [{"role": "user", "content": f"tell me about room {n}"}]}

class Broken(Exception):
    pass

def events(url, body, last_id):
    to = urllib.parse.urlsplit(url)
    c = http.client.HTTPConnection(to.hostname, to.port, timeout=20)
    try:
        headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
        if "SHOAL_KEY" in os.environ:
            headers["Authorization"] = "Bearer " + os.environ["SHOAL_KEY"]
        if last_id:
            headers["Last-Event-ID"] = last_id
        c.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        r = c.getresponse()
        if r.status != 200:
            raise Broken(f"{r.status} {r.read(300).decode()}")
        event_id = None
        for line in r:
            line = line.decode().rstrip("\n")
            if line.startswith("id:"):
                event_id = line[3:].strip()
            elif line.startswith("data:"):
                yield event_id, line[5:].strip()
        raise Broken("the stream ended early")
    finally:
        c.close()

def whole(url, body, counts):
    """All text of the reply, and how it ended; None where it did not."""
    text, finish, last, end = "", None, None, time.monotonic() + 120
    asked = 0
    while time.monotonic() < end:
        if asked:
            counts["resumed" if last else "refused"] += 1
            time.sleep(0.2)
        asked += 1
        heard = time.monotonic()
        try:
            for event_id, data in events(url, body, last):
                counts["gap_ms"] = max(counts["gap_ms"], int((time.monotonic() - heard) * 1000))
                heard = time.monotonic()
                if data == "[DONE]":
                    return text, finish
                o = json.loads(data)
                if "error" in o:
                    raise Broken(data)
                for choice in o.get("choices", []):
                    text += choice["delta"].get("content") or ""
                    finish = choice.get("finish_reason") or finish
                last = event_id or last
        except (OSError, http.client.HTTPException, Broken) as e:
            why = f"{type(e).__name__}: {e}"[:160]
            counts["why"][why] = counts["why"].get(why, 0) + 1
    return None

def fresh():
    return {"streams": 0, "resumed": 0, "refused": 0, "differ": 0, "lost": 0, "gap_ms": 0, "why": {}}

def together(all_counts):
    total = fresh()
    for c in all_counts:
        for why, n in c["why"].items():
            total["why"][why] = total["why"].get(why, 0) + n
        for k in ("streams", "resumed", "refused", "differ", "lost"):
            total[k] += c[k]
        total["gap_ms"] = max(total["gap_ms"], c["gap_ms"])
    return total

def main(what, url, path, *rest):
    if what == "record":
        replies = [whole(url, request(n), fresh()) for n in range(VARIANTS)]
        assert all(r and r[0] and r[1] for r in replies), replies
        json.dump(replies, open(path, "w"))
        return 0
    expected = [tuple(r) for r in json.load(open(path))]
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    all_counts = [fresh() for _ in range(int(rest[0]))]

    def client(i):
        n, counts = i, all_counts[i]
        while not stopped.is_set():
            n = (n + 1) % VARIANTS
            got = whole(url, request(n), counts)
            counts["streams"] += 1
            if got is None:
                counts["lost"] += 1
            elif got != expected[n]:
                counts["differ"] += 1
                print(f"request {n}: {got!r}, not {expected[n]!r}", flush=True)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(len(all_counts))]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads): # a signal reaches this thread alone
        time.sleep(0.1)
    total = together(all_counts)
    json.dump(total, open(rest[1], "w"))
    return 1 if total["differ"] or total["lost"] else 0

sys.exit(main(*sys.argv[1:]))
