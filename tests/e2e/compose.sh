#!/usr/bin/env bash
# deploy/container: compose.yaml passes Docker Compose's own reader, and a wrong one does not. Then its services run by hand as containers
# of one network: the image's files and user, read-only, without capabilities, with the mounts, names and commands that it says.
# long: the reader is built from Go modules, and an image is packed
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "namespaces need root"
command -v openssl >/dev/null || skip "openssl is not installed"
[ "$SHOAL_BIN" = "$PWD/build/shoal" ] || skip "the image is of build/shoal"
command -v go >/dev/null || skip "Go is not installed"
compose=$(scripts/deploy_parsers.sh compose 2>"$work/go.log") || skip "Compose's reader cannot be fetched or built: $(tail -1 "$work/go.log")"
if [ -z "${SHOAL_COMPOSE_INSIDE:-}" ]; then
    unshare --net sh -c 'ip link add b0 type bridge && ip link add v0 type veth peer name v1' 2>/dev/null || skip "no bridge or veth may be made here"
    rm -rf "$work"
    SHOAL_COMPOSE_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
fi
export HOME=$work/home
folder=$work/deploy
cp -r deploy/container "$folder"

refuses() { # WHY SED
    sed "$2" "$folder/compose.yaml" >"$folder/bad.yaml"
    "$compose" "$folder/bad.yaml" >/dev/null 2>"$work/said" && fail "taken: $2"
    grep -qF -- "$1" "$work/said" || fail "$2 says: $(cat "$work/said")"
    rm "$folder/bad.yaml"
}
refuses 'read_olny' 's/read_only/read_olny/'
refuses 'services.home-chat-s.scale' 's/scale: 2/scale: many/'
refuses 'undefined volume' 's/- state:/- sate:/'

# ---- as docs/installing.md
deploy/kubernetes/certificates.sh "$folder/tls" >/dev/null || fail "certificates.sh"
chown -R 65532:65532 "$folder/tls"
"$compose" "$folder/compose.yaml" >"$work/project.json" 2>"$work/said" || fail "compose.yaml: $(cat "$work/said")"
SHOAL_IMAGE_ONLY=1 SHOAL_IMAGE_DIR="$work/packed" scripts/image.sh >"$work/said" || fail "image.sh: $(cat "$work/said")"
chmod 755 "$work" # the containers' user goes through it

ip link set lo up
ip link add b0 type bridge
ip addr add 10.89.0.1/24 dev b0
ip link set b0 up
declare -A pids=()
# What the project says of each container: its folder, its address, and tests/kubernetes/container.py's description.
python3 - "$work" <<'PY' || fail "the containers"
import json, os, subprocess, sys
work = sys.argv[1]
services = json.load(open(work + "/project.json"))["services"]
names = [f"shoal-{name}-{i + 1}" for name, s in sorted(services.items()) for i in range(s.get("scale") or 1)]
hosts = "127.0.0.1 localhost\n" + "".join(f"10.89.0.{n + 2} {name}\n" for n, name in enumerate(names))
image = open("deploy/container/Containerfile").read()
assert "ENTRYPOINT [\"/usr/bin/shoal\"]" in image and "USER 65532:65532" in image
volume = work + "/volume"
os.makedirs(volume)
os.chown(volume, 65532, 65532)
for n, name in enumerate(names):
    s = services[name.removeprefix("shoal-").rsplit("-", 1)[0]]
    assert s["read_only"] and s["cap_drop"] == ["ALL"] and s["tmpfs"] == ["/tmp"], name
    root = f"{work}/{name}"
    os.mkdir(root)
    subprocess.run(["tar", "-C", root, "-xpf", work + "/packed/rootfs.tar"], check=True)
    open(root + "/etc/hosts", "w").write(hosts)
    mounts = [{"at": "/tmp", "tmpfs": "64m"}]
    for v in s["volumes"]:
        os.makedirs(root + v["target"], exist_ok=True)
        source = volume if v["type"] == "volume" else v["source"]
        assert os.path.isdir(source), f"{name}: there is no {source}"
        mounts.append({"at": v["target"], "from": source, "read_only": v.get("read_only", False)})
    json.dump({"netns": f"/run/netns/{name}", "root": root, "mounts": mounts, "args": ["/usr/bin/shoal", *s["command"]],
               "env": {"SHOAL_STATE": "/var/lib/shoal", "PATH": "/usr/bin", "HOME": "/var/lib/shoal"},
               "user": 65532, "group": 65532, "groups": [], "cwd": "/var/lib/shoal"}, open(f"{work}/{name}.json", "w"))
    print(f"10.89.0.{n + 2} {name}", file=open(work + "/names", "a"))
PY
mount -t tmpfs tmpfs /run
n=0
while read -r address name; do
    n=$((n + 1))
    ip netns add "$name"
    ip link add "v$n" type veth peer name eth0 netns "$name"
    ip link set "v$n" master b0 up
    ip -n "$name" addr add "$address/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
    python3 tests/kubernetes/container.py <"$work/$name.json" >"$work/$name.out" 2>"$work/$name.log" &
    pids[$name]=$!
    [ "$name" != shoal-gateway-1 ] || url=http://$address:8080
done <"$work/names"
clues() { tail -n 3 "$work"/shoal-*.log; }
ready() { curl -s -m 5 "$url/readyz" | grep -o '"state":"ready"' | wc -l; }
until_ready() {
    for _ in $(seq 1200); do [ "$(ready)" = "$1" ] && return; sleep 0.05; done
    fail "$(ready) workers are ready, not $1: $(clues)"
}
until_ready 3
curl -s -m 30 "$url/v1/classify" -d '{"model": "home-intent", "input": "turn on the light"}' | grep -q light || fail "no class: $(clues)"
ask() { curl -s -m 30 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model": "home-chat-s", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": "turn off the kitchen light"}]}'; }
ask | grep -q '"content":"Turning off' || fail "no chat: $(clues)"

# ---- the docs' command for a third worker gives a right list
sed '/chat-s-2/{p;s/chat-s-2/chat-s-3/}' "$folder/gateway/shoal.yaml" | sed "s|/tls/|$folder/tls/gateway/|g" >"$work/three.yaml"
grep -q 'chat-s-3:7090' "$work/three.yaml" || fail "the docs' sed: $(cat "$work/three.yaml")"
"$SHOAL_BIN" config check "$work/three.yaml" >"$work/said" 2>&1 || fail "the docs' sed: $(cat "$work/said")"

# ---- one worker less in the list, and SIGHUP; the containers are told to stop, and end by themselves
sed -i '/home-chat-s-2/d' "$folder/gateway/shoal.yaml"
kill -HUP "$(pgrep -x shoal-supervise)"
until_ready 2
ask | grep -q '"content":"Turning off' || fail "no chat with one worker less: $(clues)"
for name in "${!pids[@]}"; do
    kill -TERM "${pids[$name]}"
    wait "${pids[$name]}"
    [ $? = 0 ] || fail "$name ends with an error: $(tail -3 "$work/$name.log")"
done
ip netns list | cut -d' ' -f1 | while read -r name; do ip netns delete "$name"; done
umount -l /run
echo "compose.yaml is right, and its four containers answer"
