"""What a collector wrote (its exporter of files: a line of OTLP's JSON for each batch), for tests.

    spans, metrics, logs = read("out.jsonl")
    tree(spans, trace)          {path of names: span}, "POST /v1/process/stage intent/classify home-intent"
"""
import json


def value(v):
    if "arrayValue" in v:
        return [value(x) for x in v["arrayValue"]["values"]]
    if "intValue" in v:
        return int(v["intValue"])
    return next(iter(v.values()), None)


def attributes(o):
    return {a["key"]: value(a["value"]) for a in o.get("attributes", [])}


def read(path):
    spans, metrics, logs = [], [], []
    for line in open(path):
        batch = json.loads(line)
        for kind, scopes, items, to in ("resourceSpans", "scopeSpans", "spans", spans), \
                ("resourceMetrics", "scopeMetrics", "metrics", metrics), ("resourceLogs", "scopeLogs", "logRecords", logs):
            for resource in batch.get(kind, []):
                for scope in resource[scopes]:
                    for item in scope[items]:
                        item["resource"], item["scope"] = attributes(resource["resource"]), scope["scope"]
                        item["schema"] = resource.get("schemaUrl")
                        item["a"] = attributes(item)
                        to.append(item)
    return spans, metrics, logs


def tree(spans, trace, parent=""):
    """Each span of the trace by its path; of equal paths all: path, path#2, ..."""
    found = {}

    def walk(above, path):
        for s in sorted((s for s in spans if s["traceId"] == trace and s.get("parentSpanId", "") == above),
                        key=lambda s: int(s["startTimeUnixNano"])):
            name, n = path + s["name"], 2
            while name in found:
                name, n = "%s%s#%d" % (path, s["name"], n), n + 1
            found[name] = s
            walk(s["spanId"], name + "/")
    walk(parent, "")
    return found
