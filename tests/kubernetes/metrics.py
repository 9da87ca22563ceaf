"""A stand-in for an adapter of external metrics (prometheus-adapter, KEDA's): it reads all gateways' /metrics when it is asked.

    metrics.py ADDRESS PORT CERT KEY NAMESPACE SERVICE

Serves external.metrics.k8s.io/v1beta1 over TLS with the metric shoal_model_queue of a model: the calls that each gateway holds, added
up, and the longest queue of workers that one of them sees (the same query as the chart's for KEDA)."""
import http.server, json, re, ssl, sys, time, urllib.parse, urllib.request
import api

ADDRESS, PORT, CERT, KEY, NAMESPACE, SERVICE = sys.argv[1:]
GROUP = "/apis/external.metrics.k8s.io/v1beta1"

def gateways():
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices?labelSelector=kubernetes.io/service-name%3D{SERVICE}"
    for s in api.get(path)["items"]:
        for e in s.get("endpoints") or []:
            if e["conditions"].get("ready"):
                yield f"http://{e['addresses'][0]}:{s['ports'][0]['port']}/metrics"

def value(model):
    held_all, queues = 0, [0]
    for url in gateways():
        text = urllib.request.urlopen(url, timeout=2).read().decode()
        def of(name):
            m = re.search(rf'^{name}{{model="{re.escape(model)}"}} ([0-9.e+]+)$', text, re.M)
            return float(m.group(1)) if m else 0
        held_all += of("shoal_model_calls_held")
        queues.append(of("shoal_model_queue") - of("shoal_model_calls_held"))
    return int(held_all + max(queues))

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        to = urllib.parse.urlsplit(self.path)
        if to.path.startswith(GROUP + "/namespaces/"):
            selector = urllib.parse.parse_qs(to.query).get("labelSelector", [""])[0]
            model = dict(part.split("=", 1) for part in selector.split(",") if part)["model"]
            n = value(model)
            print(json.dumps({"at": round(time.time(), 3), "model": model, "value": n}), flush=True)
            o = {"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {}, "items": [
                {"metricName": to.path.rsplit("/", 1)[1], "metricLabels": {"model": model}, "value": str(n),
                 "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}]}
        else:
            o = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1", "resources": [
                {"name": "shoal_model_queue", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}]}
        body = json.dumps(o).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer((ADDRESS, int(PORT)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERT, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
