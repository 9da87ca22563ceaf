#!/usr/bin/env bash
# deploy/nomad: the jobs pass Nomad's own parser, and wrong ones do not. Then their command lines run by hand, with the files that their
# templates give: gateways find workers by Nomad's services and by Consul's names (dnsmasq), and follow them as Nomad's agent would.
# long: the parser is built from Nomad's Go modules (minutes the first time)
source "$(dirname "$0")/lib.sh"
command -v go >/dev/null || skip "Go is not installed"
command -v openssl >/dev/null || skip "openssl is not installed"
dnsmasq=$(PATH=$PATH:/usr/sbin:/sbin command -v dnsmasq) || skip "dnsmasq is not installed (scripts/setup.sh --test)"
jobs_of=$(scripts/deploy_parsers.sh nomad 2>"$work/go.log") || skip "Nomad's parser cannot be fetched or built: $(tail -1 "$work/go.log")"
started=()
stop_others() { end "${started[@]}"; cleanup; }
trap stop_others EXIT

# ---- as docs/nomad.md: certificates in Nomad's variables, a key for each file
deploy/kubernetes/certificates.sh "$work/tls" >/dev/null || fail "certificates.sh"
for side in worker gateway; do
    mkdir -p "$work/vars/$side"
    cp "$work/tls/$side/tls.crt" "$work/vars/$side/crt"
    cp "$work/tls/$side/tls.key" "$work/vars/$side/key"
    cp "$work/tls/$side/ca.crt" "$work/vars/$side/ca"
done
in_jobs=(-variable "nomad/jobs/shoal-gateway=$work/vars/gateway" -variable "nomad/jobs/shoal-home-intent=$work/vars/worker"
    -variable "nomad/jobs/shoal-home-chat-s=$work/vars/worker" -variable "nomad/jobs/shoal/gateway=$work/vars/gateway"
    -variable "nomad/jobs/shoal/worker=$work/vars/worker")
job() { # FILE ARGS...: its JSON is in $work/job
    "$jobs_of" "${in_jobs[@]}" "${@:2}" "deploy/nomad/$1.nomad.hcl" >"$work/job" 2>"$work/said" || fail "$1: $(cat "$work/said")"
}
# laid NAME TASK PORT: the task's files in $work/NAME as a client of Nomad lays them out, its arguments in $work/NAME/args.
laid() {
    python3 - "$work/job" "$work/$1" "$2" "$3" <<'PY' || fail "the job's task $2"
import json, os, re, sys
job, folder, name, port = sys.argv[1:]
[task] = [t for g in json.load(open(job))["TaskGroups"] for t in g["Tasks"] if t["Name"] == name]
for t in task["Templates"]:
    path = os.path.join(folder, t["DestPath"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = t["EmbeddedTmpl"].replace("/secrets/", folder + "/secrets/") if task["Driver"] == "podman" else t["EmbeddedTmpl"]
    if os.path.exists(path) and open(path).read() == text: continue
    open(path + ".new", "w").write(text)
    os.chmod(path + ".new", int(t["Perms"], 8))
    os.rename(path + ".new", path)
here = {"NOMAD_TASK_DIR": folder + "/local", "NOMAD_SECRETS_DIR": folder + "/secrets", "NOMAD_ALLOC_DIR": folder + "/alloc",
        "NOMAD_PORT_http": port, "NOMAD_PORT_grpc": port}
def put(s):
    s = re.sub(r"\$\{(NOMAD_\w+)\}", lambda m: here[m[1]], s)
    s = re.sub(r"^/(local|secrets)/", folder + r"/\1/", s) if task["Driver"] == "podman" else s
    s = re.sub(r"^/usr/(local/)?share/shoal/models/", os.getcwd() + "/models/", s)
    return re.sub("^:8080$", ":" + port, s)
assert task["KillSignal"] == "SIGTERM", "Nomad's own is SIGINT, at which a gateway does not wait for drain_grace_ms"
if task["Driver"] != "podman": assert task["Config"]["command"] == "/usr/local/bin/shoal"
open(folder + "/args", "w").write("\n".join(map(put, task["Config"]["args"])) + "\n")
PY
}
run() { # NAME: what $work/NAME/args says, as process ${started[-1]}
    local args
    mapfile -t args <"$work/$1/args"
    SHOAL_STATE=$work/$1/alloc "$SHOAL_BIN" "${args[@]}" >"$work/$1/ready" 2>"$work/$1/log" &
    started+=($!)
}
until_true() {
    for _ in $(seq 1200); do
        eval "$2" && return
        sleep 0.05
    done
    fail "$1: never came to pass: $(tail -n 3 "$work"/*/log)"
}
ready() { curl -s "$url/readyz" | grep -o '"state":"ready"' | wc -l; }

# ---- what Nomad would refuse is refused
refuses() { # WHY JOB SED ARGS...
    sed "$3" "deploy/nomad/$2.nomad.hcl" >"$work/bad.nomad.hcl"
    cmp -s "$work/bad.nomad.hcl" "deploy/nomad/$2.nomad.hcl" && fail "nothing changed: $3"
    "$jobs_of" "${in_jobs[@]}" "${@:4}" "$work/bad.nomad.hcl" >"$work/job" 2>"$work/said" && fail "taken: $3"
    grep -qF -- "$1" "$work/said" || fail "$3 says: $(cat "$work/said")"
}
refuses 'Unsupported argument' worker 's/kill_signal /kill_singal /' -var model=home-intent
refuses 'Unsupported block type' worker 's/    spread {/    sperad {/' -var model=home-intent
refuses 'a number is required' worker 's/memory = var.memory/memory = "much"/' -var model=home-intent
refuses 'the driver exec has no image' worker 's/command = /image = /' -var model=home-intent
refuses 'which is no text' worker 's/format("%d", var.threads)/var.threads/' -var model=home-intent
refuses 'function "nomadServices" not defined' gateway 's/nomadService /nomadServices /'
refuses 'may not read nomad/jobs/other' gateway 's|nomad/jobs/shoal-gateway|nomad/jobs/other|'
refuses 'model' worker 's/one model/a model/' # -var model is required
echo "wrong jobs are refused"

# ---- by Nomad's own services
p=$(free_port)
for n in 1 2; do
    job worker -var model=home-chat-s -var threads=1
    laid "chat$n" worker $((p + 20 + n))
    run "chat$n"
done
seen() { # SERVICES...
    local args=() s
    for s in "$@"; do args+=(-service "$s"); done
    job gateway "${args[@]}" -var 'models=["home-chat-s"]'
    laid gateway gateway "$p"
}
seen
"$SHOAL_BIN" config check "$work/gateway/local/shoal.yaml" >"$work/said" 2>&1 || fail "the gateway's configuration: $(cat "$work/said")"
run gateway
gateway=${started[-1]}
url=http://127.0.0.1:$p
until_true "the gateway" '[ "$(curl -s "$url/healthz")" ]'
ask='{"model": "home-chat-s", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": "turn off the kitchen light"}]}'
curl -s -m 60 "$url/v1/chat/completions" -d "$ask" >"$work/waited" &
waiting=$!
seen "shoal-home-chat-s=127.0.0.1:$((p + 21))"
kill -HUP "$gateway"
wait "$waiting"
grep -q '"content":"Turning off' "$work/waited" || fail "a request before the first worker: $(cat "$work/waited")"
seen "shoal-home-chat-s=127.0.0.1:$((p + 21))" "shoal-home-chat-s=127.0.0.1:$((p + 22))"
kill -HUP "$gateway"
until_true "two workers" '[ "$(ready)" = 2 ]'
kill -TERM "$gateway"
wait "$gateway"
[ $? = 0 ] || fail "the gateway ends with an error: $(tail -3 "$work/gateway/log")"
echo "a gateway follows Nomad's services"

# ---- by Consul's names
"$dnsmasq" --keep-in-foreground --no-resolv --no-hosts --bind-interfaces --listen-address=127.0.0.1 --user= --group= --pid-file= --conf-file=/dev/null \
    --port=$((p + 30)) --local-ttl=1 --srv-host=_shoal-home-chat-s._tcp.service.consul,localhost,$((p + 21)) &
started+=($!)
job gateway -var discovery=consul -var 'models=["home-chat-s"]' -var "consul_dns=127.0.0.1:$((p + 30))"
laid consul gateway "$p"
run consul
gateway=${started[-1]}
until_true "a worker by its name" '[ "$(ready)" = 1 ]'
curl -s -m 60 "$url/v1/chat/completions" -d "$ask" | grep -q '"content":"Turning off' || fail "no reply through Consul's name"
kill -TERM "$gateway"
wait "$gateway"
end "${started[@]}"
started=()
echo "a gateway follows Consul's names"

# ---- podman's job, with the image's paths brought here
job podman -service "shoal-home-chat-s=127.0.0.1:$((p + 21))"
laid pod-worker worker $((p + 21))
laid pod-gateway gateway "$p"
run pod-worker
run pod-gateway
until_true "podman's worker" '[ "$(ready)" = 1 ]'
curl -s -m 60 "$url/v1/chat/completions" -d "$ask" | grep -q '"content":"Turning off' || fail "no reply of podman's job"
echo "podman's job answers"
