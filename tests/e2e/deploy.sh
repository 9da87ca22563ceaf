#!/usr/bin/env bash
# deploy/: each option that a manifest gives to shoal is one, each configuration in it passes `shoal serve --check`,
# what it names it has, and systemd takes its units. Kubernetes, Nomad and Ray have tests of their own (kubernetes.sh, nomad.sh, ray.sh).
source "$(dirname "$0")/lib.sh"
python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"
cat >"$work/look.py" <<'END'
import glob, re, subprocess, sys, yaml

shoal, work = sys.argv[1:]
help_of = {}

def known(command, option):
    if command not in help_of:
        r = subprocess.run([shoal, command, "--help"], capture_output=True, text=True)
        assert r.returncode == 0, f"shoal {command} is no command"
        help_of[command] = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", r.stdout))
    return option in help_of[command]

def look(where, line):
    """A line of a shell, a unit or a joined list of arguments: what follows `shoal COMMAND` up to a pipe or its end."""
    n = 0
    for command, rest in re.findall(r"(?:^|[\s/])shoal\s+([a-z]+)\b([^;|&]*)", line):
        n += 1
        for option in re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", rest):
            assert known(command, option), f"{where}: shoal {command} has no option {option}"
    return n

def check(where, n, text):
    path = f"{work}/config.{n}.yaml"
    text = text.replace("/usr/local/share/shoal/models/models.json", "models/models.json")
    text = text.replace("/tls/", work + "/tls/gateway/")
    open(path, "w").write(text.replace("models/models.json", __import__("os").getcwd() + "/models/models.json"))
    r = subprocess.run([shoal, "serve", "--check", "-c", path], capture_output=True, text=True)
    assert r.returncode == 0, f"{where}: {r.stdout}{r.stderr}"

n_commands = n_configs = 0

# ---- Kubernetes
docs = [(p, d) for p in sorted(glob.glob("deploy/kubernetes/*/shoal.yaml")) for d in yaml.safe_load_all(open(p))]
made = subprocess.run(["deploy/kubernetes/certificates.sh", work + "/tls"], capture_output=True, text=True, check=True).stdout
has = {(d["kind"], d["metadata"]["name"]) for _, d in docs} | {("Secret", s) for s in re.findall(r"create secret generic (\S+)", made)}
pods = [(p, d, d["spec"]["template"]) for p, d in docs if d["kind"] == "Deployment"]
assert len(pods) >= 3, "gateways and two models"
for where, d in docs:
    assert d["apiVersion"] and d["kind"], where
    if d["kind"] == "ConfigMap":
        for text in d["data"].values():
            check(where, n_configs, text)
            n_configs += 1
    if d["kind"] == "Service":
        chosen = [t for _, _, t in pods if d["spec"]["selector"].items() <= t["metadata"]["labels"].items()]
        ports = {p["name"] for t in chosen for c in t["spec"]["containers"] for p in c["ports"]}
        for p in d["spec"]["ports"]:
            assert p["targetPort"] in ports, f"{where}: Service {d['metadata']['name']} leads to no port {p['targetPort']}"
for where, d, t in pods:
    name, spec = d["metadata"]["name"], t["spec"]
    assert d["spec"]["selector"]["matchLabels"].items() <= t["metadata"]["labels"].items(), f"{where}: {name} selects others"
    volumes = {v["name"]: v for v in spec["volumes"]}
    for v in volumes.values():
        for kind, key in (("configMap", "name"), ("secret", "secretName"), ("persistentVolumeClaim", "claimName")):
            real = {"configMap": "ConfigMap", "secret": "Secret", "persistentVolumeClaim": "PersistentVolumeClaim"}[kind]
            assert kind not in v or (real, v[kind][key]) in has, f"{where}: {name} has no {real} {v[kind][key]}"
    for c in spec.get("initContainers", []) + spec["containers"]:
        for m in c["volumeMounts"]:
            assert m["name"] in volumes, f"{where}: {name} mounts no volume {m['name']}"
        for s in ("allowPrivilegeEscalation", "readOnlyRootFilesystem"):
            assert s in c["securityContext"], f"{where}: {c['name']} says nothing about {s}"
        assert "command" not in c, f"{where}: the image's entry point is shoal, and it has no shell"
        n_commands += look(where, " ".join(["shoal", *c["args"]]))
    for c in spec["containers"]:
        assert c["resources"]["limits"]["memory"] and c["resources"]["requests"]["cpu"], f"{where}: {name} has no limits"
        assert "readinessProbe" in c, f"{where}: {name} is never looked at"
        names = {p["name"] for p in c["ports"]}
        for probe in [c[k] for k in c if k.endswith("Probe")]:
            assert (probe.get("httpGet") or probe["tcpSocket"])["port"] in names, f"{where}: {name}: a probe of no port"
            assert re.fullmatch(r"/healthz|/readyz\?model=home-intent", probe.get("httpGet", {}).get("path", "/healthz")), where

# ---- what stands in comments is typed, too
for where in filter(__import__("os").path.isfile, sorted(glob.glob("deploy/**", recursive=True))):
    for line in open(where).read().replace("\\\n#", " ").split("\n"):
        if line.startswith("#"):
            n_commands += look(where, re.sub(r"-n shoal\b", "", re.sub(r"kubectl .* -- shoal", "shoal", line)))

# ---- README.md has each folder once, and the tests that it names are there
rows = re.findall(r"^\| \[(\w+)/\]\(.*", open("deploy/README.md").read(), re.M)
assert sorted(rows) == sorted(p.split("/")[1] for p in glob.glob("deploy/*/")), f"deploy/README.md has {rows}"
for test in re.findall(r"`(tests/e2e/\w+\.sh)`", open("deploy/README.md").read()):
    assert not glob.glob("tests") or glob.glob(test), f"deploy/README.md: there is no {test}"

# ---- systemd
for where in sorted(glob.glob("deploy/systemd/*.service")):
    for line in open(where):
        if line.startswith("ExecStart="):
            n_commands += look(where, line.split("=", 1)[1])

assert n_commands >= 8 and n_configs >= 1, f"only {n_commands} commands and {n_configs} configurations were found"
print(f"{n_commands} command lines and {n_configs} configurations are right")
END
python3 "$work/look.py" "$SHOAL_BIN" "$work" 2>"$work/err" || fail "$(tail -1 "$work/err")"

# Ray's specification and numbers of workers, without Ray.
PYTHONDONTWRITEBYTECODE=1 python3 tests/ray/test_pure.py "$work/tls" || fail "deploy/ray"

# A test that finds nothing would pass too: an option that is none must be found.
mkdir -p "$work/bad/deploy" && cp -r deploy/* "$work/bad/deploy/" && cp -r models "$work/bad/models"
sed -i 's/--tls-client/--tls-cleint/' "$work/bad/deploy/kubernetes/base/shoal.yaml"
(cd "$work/bad" && python3 "$work/look.py" "$SHOAL_BIN" "$work") 2>&1 | grep -q 'shoal worker has no option --tls-cleint' ||
    fail "a wrong option in a manifest is not found"
cp deploy/kubernetes/base/shoal.yaml "$work/bad/deploy/kubernetes/base/" && mkdir "$work/bad/deploy/podman"
(cd "$work/bad" && python3 "$work/look.py" "$SHOAL_BIN" "$work") 2>&1 | grep -q 'deploy/README.md has' || fail "a folder that README.md lacks is not found"

command -v systemd-analyze >/dev/null || { echo "without systemd: its units were not verified"; exit 0; }
for unit in deploy/systemd/*.service; do
    sed "s|/usr/local/bin/shoal|$SHOAL_BIN|" "$unit" >"$work/$(basename "$unit")"
    mkdir -p "$work/$(basename "$unit").d" && cp deploy/systemd/shoal-priority.conf "$work/$(basename "$unit").d/"
    units=("$work/$(basename "$unit")")
    timer=${unit%.service}.timer
    [ ! -f "$timer" ] || { cp "$timer" "$work/" && units+=("$work/$(basename "$timer")"); }
    systemd-analyze verify --man=no "${units[@]}" >"$work/err" 2>&1 || fail "$unit: $(cat "$work/err")"
    grep "$(basename "$unit")" "$work/err" && fail "$unit"
done
[ "$(systemd-analyze calendar --iterations=2 "$(sed -n 's/^OnCalendar=//p' deploy/systemd/shoal-eval.timer)" | grep -c ' 03:30:00 ')" -ge 2 ] ||
    fail "shoal-eval.timer does not elapse each night"
echo "systemd takes the units, with the drop-in, and the timer"
