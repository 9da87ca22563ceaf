"""A stand-in for a node's kubelet and container runtime: it registers a node with a real API server, runs the pods that a real
scheduler binds to it, and reports what they do.

    kubelet.py NAME NUMBER FOLDER        NUMBER: the node's pods get 10.244.NUMBER.x; FOLDER: rootfs is the image, logs go there

Real here: each pod has a network namespace on the bridge `pods`, each container its own process and mount namespaces over the
image's root (container.py). ConfigMaps and Secrets are folders whose files are replaced all at once, and follow changes. Probes,
restarts, SIGTERM, the grace period and SIGKILL are as documented; the back-off of restarts is shorter.
Not here: images from registries, cgroups, seccomp, volumes of storage classes, exec, and other fields of a pod: one that asks
for them fails with a sentence. One line for each thing that happens goes to standard output as JSON, with `at` in seconds."""
import base64, http.client, json, os, shutil, signal, socket, subprocess, sys, threading, time
import api
from api import in_background

NAME, NUMBER, FOLDER = sys.argv[1], int(sys.argv[2]), os.path.abspath(sys.argv[3])
HERE = os.path.dirname(os.path.abspath(__file__))
BRIDGE, GATEWAY, DNS = "pods", "10.244.0.1", "10.96.0.10"
IMAGE = {"Entrypoint": ["/usr/bin/shoal"], "Env": {"SHOAL_STATE": "/var/lib/shoal", "PATH": "/usr/bin", "HOME": "/var/lib/shoal"},
         "WorkingDir": "/var/lib/shoal"} # as deploy/container/Containerfile says it
POD_KEYS = {"containers", "volumes", "restartPolicy", "terminationGracePeriodSeconds", "dnsPolicy", "serviceAccountName", "serviceAccount",
            "automountServiceAccountToken", "nodeName", "securityContext", "schedulerName", "tolerations", "priority", "enableServiceLinks",
            "preemptionPolicy", "topologySpreadConstraints", "affinity", "nodeSelector", "priorityClassName", "imagePullSecrets"}
CONTAINER_KEYS = {"name", "image", "args", "command", "env", "ports", "resources", "volumeMounts", "startupProbe", "readinessProbe",
                  "livenessProbe", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext"}
said_lock = threading.Lock()

def say(event, **more):
    with said_lock:
        print(json.dumps({"at": round(time.time(), 3), "node": NAME, "event": event, **more}), flush=True)

def now():
    t = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))

def ip(*words):
    r = subprocess.run(["ip", *words], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {r.stderr.strip()}")

class Addresses:
    """Pods' addresses, each used once, so that nobody mistakes a new pod for an old one."""
    lock, last = threading.Lock(), 1

    @classmethod
    def new(cls):
        with cls.lock:
            cls.last += 1
            return f"10.244.{NUMBER}.{cls.last}", cls.last

class Volume:
    """A ConfigMap or a Secret as a folder: `..data` leads to the files of one version, as kubelet lays them."""
    def __init__(self, path, namespace, kind, source):
        self.path, self.version = path, None
        name = source.get("name") or source["secretName"]
        self.url = f"/api/v1/namespaces/{namespace}/{kind}s/{name}"
        self.mode = source.get("defaultMode", 0o644)
        self.secret = kind == "secret"
        os.makedirs(path)

    def refresh(self, group):
        o = api.get(self.url)
        if o["metadata"]["resourceVersion"] == self.version:
            return False
        data = {k: base64.b64decode(v) if self.secret else v.encode() for k, v in o.get("data", {}).items()}
        folder = f"..{time.time_ns()}"
        os.mkdir(f"{self.path}/{folder}")
        for name, content in data.items():
            with open(f"{self.path}/{folder}/{name}", "wb") as f:
                f.write(content)
            os.chown(f.name, 0, group)
            os.chmod(f.name, self.mode)
            if not os.path.lexists(f"{self.path}/{name}"):
                os.symlink(f"..data/{name}", f"{self.path}/{name}")
        old = os.readlink(f"{self.path}/..data") if self.version else None
        os.symlink(folder, f"{self.path}/..data.new")
        os.rename(f"{self.path}/..data.new", f"{self.path}/..data")
        if old:
            shutil.rmtree(f"{self.path}/{old}")
        self.version = o["metadata"]["resourceVersion"]
        return True

class Probe:
    """One of a container's probes, in a thread of its own."""
    def __init__(self, pod, kind, spec):
        self.pod, self.kind, self.spec = pod, kind, spec
        self.result = None # True or False when its threshold is reached
        self.stopped = threading.Event()
        in_background(self.run)

    def ask(self):
        timeout = self.spec.get("timeoutSeconds", 1)
        try:
            if "tcpSocket" in self.spec:
                socket.create_connection((self.pod.address, self.pod.port(self.spec["tcpSocket"]["port"])), timeout).close()
                return True
            get = self.spec["httpGet"]
            c = http.client.HTTPConnection(self.pod.address, self.pod.port(get["port"]), timeout=timeout)
            c.request("GET", get.get("path", "/"), headers={"User-Agent": "kube-probe/1.31"})
            status = c.getresponse().status
            c.close()
            return 200 <= status < 400
        except (OSError, http.client.HTTPException):
            return False

    def run(self):
        good = bad = 0
        self.stopped.wait(self.spec.get("initialDelaySeconds", 0))
        while not self.stopped.is_set():
            good, bad = (good + 1, 0) if self.ask() else (0, bad + 1)
            if self.stopped.is_set():
                return
            if good >= self.spec.get("successThreshold", 1) and self.result is not True:
                self.result = True
                self.pod.wake.set()
            if bad >= self.spec.get("failureThreshold", 3) and self.result is not False:
                self.result = False
                self.pod.wake.set()
            self.stopped.wait(self.spec.get("periodSeconds", 10))

class Pod:
    def __init__(self, o):
        self.o, self.spec = o, o["spec"]
        self.meta = o["metadata"]
        self.name, self.uid = self.meta["name"], self.meta["uid"]
        self.url = f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.name}"
        self.folder = f"{FOLDER}/pods/{self.name}"
        self.wake, self.gone = threading.Event(), False
        self.address = self.process = self.started = None
        self.restarts, self.last, self.probes, self.told = 0, None, {}, None
        self.deleted_at = None
        self.changed = {}
        say("bound", pod=self.name)
        in_background(self.live)

    # ---- what the pod has
    def port(self, p):
        return p if isinstance(p, int) else next(x["containerPort"] for x in self.container["ports"] if x["name"] == p)

    def understand(self):
        unknown = set(self.spec) - POD_KEYS
        if len(self.spec["containers"]) != 1:
            unknown.add("several containers")
        self.container = self.spec["containers"][0]
        unknown |= set(self.container) - CONTAINER_KEYS
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            unknown |= set(self.container.get(kind, {})) & {"exec", "grpc"}
        if unknown:
            raise RuntimeError("the stand-in does not know " + ", ".join(sorted(unknown)))

    def network(self):
        self.address, n = Addresses.new()
        self.netns, self.link = f"{NAME}-{n}", f"v{NUMBER}-{n}"
        ip("netns", "add", self.netns)
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.netns)
        ip("link", "set", self.link, "master", BRIDGE, "up")
        ip("-n", self.netns, "link", "set", "lo", "up")
        ip("-n", self.netns, "addr", "add", self.address + "/16", "dev", "eth0")
        ip("-n", self.netns, "link", "set", "eth0", "up")
        ip("-n", self.netns, "route", "add", "default", "via", GATEWAY)

    def volumes(self):
        """The mounts of its container. Folders belong to fsGroup, as kubelet arranges it."""
        context = self.spec.get("securityContext", {})
        self.group = context.get("fsGroup", 0)
        self.followed, sources = [], {}
        for v in self.spec.get("volumes", []):
            path = f"{self.folder}/volumes/{v['name']}"
            if "emptyDir" in v:
                if v["emptyDir"].get("medium") == "Memory":
                    size = v["emptyDir"].get("sizeLimit", "64Mi")
                    sources[v["name"]] = {"tmpfs": size.replace("Mi", "m").replace("Gi", "g")}
                    continue
                os.makedirs(path)
                os.chown(path, 0, self.group)
                os.chmod(path, 0o2777)
            elif "configMap" in v or "secret" in v:
                kind = "secret" if "secret" in v else "configmap"
                volume = Volume(path, self.meta["namespace"], kind, v.get("configMap") or v["secret"])
                volume.refresh(self.group)
                self.followed.append(volume)
            else:
                raise RuntimeError(f"the stand-in does not know the volume {json.dumps(v)}")
            sources[v["name"]] = {"from": path}
        mounts = [{"at": m["mountPath"], "read_only": m.get("readOnly", False), **sources[m["name"]]}
                  for m in self.container.get("volumeMounts", [])]
        for name, text in (("resolv.conf", f"nameserver {DNS}\nsearch {self.meta['namespace']}.svc.cluster.local svc.cluster.local "
                            "cluster.local\noptions ndots:5\n"), ("hosts", f"127.0.0.1 localhost\n{self.address} {self.name}\n")):
            with open(f"{self.folder}/{name}", "w") as f:
                f.write(text)
            mounts.append({"at": "/etc/" + name, "from": f.name, "read_only": True})
        return mounts

    def start(self):
        c, context = self.container, {**self.spec.get("securityContext", {}), **self.container.get("securityContext", {})}
        env = {**IMAGE["Env"], **{e["name"]: e["value"] for e in c.get("env", [])}}
        run = {"netns": "/run/netns/" + self.netns, "root": FOLDER + "/rootfs", "mounts": self.mounts,
               "args": c.get("command", IMAGE["Entrypoint"]) + c.get("args", []), "env": env, "cwd": IMAGE["WorkingDir"],
               "user": context["runAsUser"], "group": context["runAsGroup"], "groups": [self.group]}
        log = open(f"{self.folder}/log", "ab")
        self.process = subprocess.Popen([sys.executable, HERE + "/container.py"], stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
        self.process.stdin.write(json.dumps(run))
        self.process.stdin.close()
        log.close()
        self.started = now()
        self.begin_probe("startupProbe")
        say("started", pod=self.name, restarts=self.restarts)

    # ---- probes: readiness and liveness begin when startup has succeeded
    def begin_probe(self, kind):
        if kind in self.container:
            self.probes[kind] = Probe(self, kind, self.container[kind])
        elif kind == "startupProbe":
            self.begin_probe("readinessProbe")
            self.begin_probe("livenessProbe")

    def end_probes(self):
        for p in self.probes.values():
            p.stopped.set()
        self.probes = {}

    def is_ready(self):
        if not self.process or self.process.poll() is not None or "startupProbe" in self.probes:
            return False
        return "readinessProbe" not in self.probes or self.probes["readinessProbe"].result is True

    def look_at_probes(self):
        startup = self.probes.get("startupProbe")
        if startup and startup.result is True:
            startup.stopped.set()
            del self.probes["startupProbe"]
            say("start_probed", pod=self.name)
            self.begin_probe("readinessProbe")
            self.begin_probe("livenessProbe")
        for kind in ("startupProbe", "livenessProbe"):
            if kind in self.probes and self.probes[kind].result is False:
                say("killed_by_probe", pod=self.name, probe=kind)
                self.stop(self.spec["terminationGracePeriodSeconds"])

    # ---- status
    def tell(self, phase="Running", reason=None):
        ready = self.is_ready()
        state = (phase, ready, self.restarts, reason, self.started)
        if state == self.told:
            return
        if ready and not (self.told and self.told[1]):
            say("ready", pod=self.name)
        def condition(kind, true):
            old = self.changed.get(kind)
            if not old or old[0] != true:
                self.changed[kind] = old = (true, now())
            return {"type": kind, "status": "True" if true else "False", "lastTransitionTime": old[1]}
        running = self.process and self.process.poll() is None
        container = {"name": self.container["name"], "image": self.container["image"], "imageID": self.container["image"], "ready": ready,
                     "started": bool(running) and "startupProbe" not in self.probes, "restartCount": self.restarts,
                     "state": {"running": {"startedAt": self.started}} if running else
                     {"terminated": self.last} if self.last and phase in ("Succeeded", "Failed") else {"waiting": {"reason": reason or "ContainerCreating"}}}
        if self.last:
            container["lastState"] = {"terminated": self.last}
        status = {"phase": phase, "hostIP": GATEWAY, "startTime": self.created, "containerStatuses": [container],
                  "conditions": [condition("PodScheduled", True), condition("Initialized", True), condition("ContainersReady", ready),
                                 condition("Ready", ready)]}
        if self.address:
            status.update(podIP=self.address, podIPs=[{"ip": self.address}])
        try:
            api.merge(self.url + "/status", {"metadata": {"uid": self.uid}, "status": status})
            self.told = state
        except (OSError, http.client.HTTPException, api.Refused) as e:
            if isinstance(e, api.Refused) and e.status in (404, 409):
                self.gone = True
            say("not_told", pod=self.name, why=str(e))

    # ---- life
    def live(self):
        self.created = now()
        try:
            self.understand()
            os.makedirs(self.folder)
            self.network()
            while True:
                try:
                    self.mounts = self.volumes()
                    break
                except api.Refused as e: # a Secret that is not there yet
                    say("waits", pod=self.name, why=str(e))
                    shutil.rmtree(f"{self.folder}/volumes", ignore_errors=True)
                    self.tell("Pending", "CreateContainerConfigError")
                    if self.wake.wait(1) and self.deleted_at:
                        return self.bury()
            self.start()
            self.run()
        except Exception as e:
            say("failed", pod=self.name, why=str(e))
            raise

    def run(self):
        followed = time.monotonic()
        while True:
            self.tell()
            self.wake.wait(0.2)
            self.wake.clear()
            if self.process.poll() is not None and not self.deleted_at and not self.gone:
                self.exited()
                self.tell(reason="CrashLoopBackOff")
                if self.wake.wait(min(0.5 * 2 ** self.restarts, 10)) and (self.deleted_at or self.gone):
                    return self.bury()
                self.restarts += 1
                self.start()
            if self.deleted_at or self.gone:
                self.stop(0 if self.gone else self.grace)
                return self.bury()
            self.look_at_probes()
            if time.monotonic() - followed > 2:
                followed = time.monotonic()
                for v in self.followed:
                    try:
                        if v.refresh(self.group):
                            say("volume_changed", pod=self.name, volume=os.path.basename(v.path))
                    except (OSError, http.client.HTTPException, api.Refused):
                        pass

    def exited(self):
        code = self.process.returncode
        self.end_probes()
        self.last = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": self.started, "finishedAt": now()}
        say("exited", pod=self.name, code=code)

    def stop(self, grace):
        """SIGTERM, the grace period, SIGKILL. The readiness probe goes on meanwhile."""
        if self.process.poll() is None:
            say("term", pod=self.name, grace=grace)
            for kind in ("startupProbe", "livenessProbe"):
                if kind in self.probes:
                    self.probes.pop(kind).stopped.set()
            self.process.terminate()
            end = time.monotonic() + grace
            while self.process.poll() is None and time.monotonic() < end and not self.gone:
                self.tell()
                time.sleep(0.05)
            if self.process.poll() is None:
                say("killed", pod=self.name)
                self.process.kill()
                self.process.wait()
        self.exited()

    def bury(self):
        self.end_probes()
        if self.address:
            ip("netns", "del", self.netns)
        if self.last:
            self.tell("Succeeded" if self.last["exitCode"] == 0 else "Failed")
        for _ in range(50):
            try:
                api.call("DELETE", self.url, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                                              "preconditions": {"uid": self.uid}})
                break
            except api.Refused as e:
                if e.status in (404, 409):
                    break
                time.sleep(0.2)
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        say("gone", pod=self.name)

def heartbeat():
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NAME}"
    while True:
        t = now()
        try:
            body = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": NAME, "namespace": "kube-node-lease"},
                    "spec": {"holderIdentity": NAME, "leaseDurationSeconds": 6, "renewTime": t[:-1] + ".000000Z"}}
            try:
                api.merge(lease, body)
            except api.Refused as e:
                if e.status != 404:
                    raise
                api.call("POST", lease.rsplit("/", 1)[0], body)
            api.merge(f"/api/v1/nodes/{NAME}/status", {"status": {"conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the stand-in runs", "lastHeartbeatTime": t,
                 "lastTransitionTime": born}]}})
        except (OSError, http.client.HTTPException, api.Refused) as e:
            say("no_heartbeat", why=str(e))
        time.sleep(1)

pods = {}

def on_pod(event, o):
    uid = o["metadata"]["uid"]
    if event == "DELETED":
        pod = pods.pop(uid, None)
        if pod:
            pod.gone = True
            pod.wake.set()
        return
    if uid not in pods:
        if o["status"].get("phase") in ("Succeeded", "Failed"):
            return
        pods[uid] = Pod(o)
    pod = pods[uid]
    if "deletionTimestamp" in o["metadata"] and not pod.deleted_at:
        pod.grace = o["metadata"]["deletionGracePeriodSeconds"]
        pod.deleted_at = time.monotonic()
        pod.wake.set()

born = now()
capacity = {"cpu": "16", "memory": "16Gi", "pods": "100"}
try:
    api.call("POST", "/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NAME, "labels": {
        "kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": f"zone-{NUMBER}"}},
        "status": {"capacity": capacity, "allocatable": capacity}})
    api.merge(f"/api/v1/nodes/{NAME}/status", {"status": {"capacity": capacity, "allocatable": capacity,
                                                          "addresses": [{"type": "InternalIP", "address": GATEWAY}]}})
except api.Refused as e:
    if e.status != 409:
        raise
os.makedirs(FOLDER + "/pods", exist_ok=True)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
in_background(heartbeat)
say("registered")
api.watch("/api/v1/pods", on_pod, "spec.nodeName=" + NAME)
