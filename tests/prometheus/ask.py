"""Each query of a file (dashboards.py queries) asked of Prometheus: it must parse, and have data but where nothing can have been counted.

    ask.py URL FILE
"""
import collections
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

base, path = sys.argv[1:]
# What a server on one machine does not do, does once at most, or cannot measure everywhere.
RARE = ("move_gap_seconds", "answer_restarts_total", "hedges_total", "degraded_total", "model_calls_held", "streams_resumed_total",
        "spills_total", "worker_energy_joules_total", "otel_sent_total")


def ask(kind, **query):
    try:
        with urllib.request.urlopen(f"{base}/api/v1/{kind}?{urllib.parse.urlencode(query)}", timeout=30) as r:
            return json.load(r)["data"]
    except urllib.error.HTTPError as e:
        raise SystemExit(f"{query}: {e.read().decode()}") from None


empty, counts = [], collections.Counter()
now = float(ask("query", query="time()")["result"][1])
for line in open(path):
    board, title, text = line.rstrip("\n").split("\t")
    result = ask("query_range", query=text, start=now - 20, end=now, step=1)["result"]
    known = [v for s in result for _, v in s["values"] if v != "NaN"]
    counts[board] += 1
    if not known:
        empty.append((board, title, text))
rules = [r for g in ask("rules")["groups"] for r in g["rules"]]
bad = [(r["name"], r.get("lastError")) for r in rules if r["health"] == "err"]
assert not bad, bad
missing = [e for e in empty if not any(f"shoal_{r}" in e[2] for r in RARE)]
for e in missing:
    print("no data:", *e, sep="\n    ")
if missing:
    raise SystemExit(1)
print(f"{sum(counts.values())} queries of {len(counts)} dashboards: {sum(counts.values()) - len(empty)} have data; {len(rules)} rules are evaluated")
