"""A client of a Kubernetes API server, of Python's own library: what the stand-ins of the tests need and no more."""
import http.client, json, os, ssl, threading, time, urllib.parse

SERVER = os.environ.get("KUBE_SERVER", "127.0.0.1:6443")
TOKEN = os.environ.get("KUBE_TOKEN", "test")
# The server's certificate is made at its start, and everything is in one network namespace.
TLS = ssl._create_unverified_context()

class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:600]}")
        self.status = status

def open_request(method, path, body=None, kind="application/json", timeout=30):
    c = http.client.HTTPSConnection(SERVER, context=TLS, timeout=timeout)
    c.request(method, path, None if body is None else json.dumps(body), {"Authorization": "Bearer " + TOKEN, "Content-Type": kind})
    r = c.getresponse()
    if r.status >= 300:
        text = r.read().decode()
        c.close()
        raise Refused(r.status, text)
    return c, r

def call(method, path, body=None, kind="application/json"):
    c, r = open_request(method, path, body, kind)
    text = r.read()
    c.close()
    return json.loads(text) if text else None

get = lambda path: call("GET", path)
merge = lambda path, body: call("PATCH", path, body, "application/merge-patch+json")

def watch(path, on_event, selector=""):
    """Call on_event(type, object) for everything at PATH: what is there (ADDED), then what changes; for ever. What went while the
    connection was away is DELETED then."""
    known = {}
    query = "fieldSelector=" + urllib.parse.quote(selector) if selector else ""
    while True:
        try:
            listed = get(f"{path}?{query}")
            now = {o["metadata"]["uid"]: o for o in listed["items"]}
            for uid in list(known):
                if uid not in now:
                    on_event("DELETED", known.pop(uid))
            for uid, o in now.items():
                if uid not in known or known[uid]["metadata"]["resourceVersion"] != o["metadata"]["resourceVersion"]:
                    on_event("MODIFIED" if uid in known else "ADDED", o)
                    known[uid] = o
            c, r = open_request("GET", f"{path}?watch=true&resourceVersion={listed['metadata']['resourceVersion']}&{query}", timeout=3600)
            for line in r:
                event = json.loads(line)
                if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                    break
                o = event["object"]
                known[o["metadata"]["uid"]] = o
                if event["type"] == "DELETED":
                    del known[o["metadata"]["uid"]]
                on_event(event["type"], o)
            c.close()
        except (OSError, http.client.HTTPException, Refused, json.JSONDecodeError):
            time.sleep(0.2)

def in_background(run, *args):
    t = threading.Thread(target=run, args=args, daemon=True)
    t.start()
    return t
