# cluster.bash: a Kubernetes cluster in namespaces of its own, for end-to-end tests. Source it; it sources lib.sh.
#
#   inside                     starts the script again in namespaces of network, mounts and processes
#   start_cluster KUBERNETES COREDNS   (folders) etcd, kube-apiserver, kube-scheduler, kube-controller-manager, CoreDNS, the
#                              Services' addresses, and the image's files in $work/rootfs
#   start_node NAME NUMBER     a node: tests/kubernetes/kubelet.py
#   lose_node NAME NUMBER      its power: the wires of its pods are cut, everything on it is killed
#   api METHOD PATH [JSON [TYPE]]      asks the API server
#   kube EXPRESSION PATH       what the expression of Python says of its answer `o`
#   until_true WHAT COMMAND... until it succeeds, for five minutes
#
# In there 10.244.0.1 is the nodes' address, and everything ends with the script.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"

here=$PWD/tests/kubernetes
export KUBE_SERVER=127.0.0.1:6443 KUBE_TOKEN=test KUBECONFIG=$work/kubeconfig PYTHONDONTWRITEBYTECODE=1
declare -A node_pids=()

inside() {
    [ "$(id -u)" = 0 ] || skip "namespaces need root"
    [ -z "${SHOAL_KUBE_INSIDE:-}" ] || return 0
    unshare --net --mount --pid --fork true 2>/dev/null || skip "no namespaces may be made here"
    unshare --net sh -c 'ip link add b0 type bridge && ip link add v0 type veth peer name v1' 2>/dev/null || skip "no bridge or veth may be made here"
    rm -rf "$work"
    SHOAL_KUBE_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
}

background() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$work/$name.out" 2>"$work/$name.log" &
}

clues() { tail -n 4 "$work"/*.log "$work"/nodes/*.out "$work"/nodes/*.log 2>/dev/null | cut -c1-400; }

until_true() {
    local what=$1 end=$((SECONDS + ${SHOAL_KUBE_PATIENCE:-300}))
    shift
    while [ $SECONDS -lt $end ]; do
        "$@" && return 0
        sleep 0.2
    done
    fail "$what: never came to pass: $(clues)"
}

api() {
    curl -sk -X "$1" -H "Authorization: Bearer $KUBE_TOKEN" -H "Content-Type: ${4:-application/json}" \
        ${3:+-d "$3"} "https://$KUBE_SERVER$2"
}
kube() { api GET "$2" | python3 -c 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" 2>/dev/null; }

start_control_plane() {
    mkdir -p "$work/pki"
    openssl genrsa -out "$work/pki/sa.key" 2048 2>/dev/null && openssl rsa -in "$work/pki/sa.key" -pubout -out "$work/pki/sa.pub" 2>/dev/null
    echo "$KUBE_TOKEN,admin,1,\"system:masters\"" >"$work/pki/tokens.csv"
    cat >"$KUBECONFIG" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$KUBE_SERVER", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: $KUBE_TOKEN}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
YAML
    background etcd etcd --data-dir "$work/etcd" --unsafe-no-fsync --log-level error
    background apiserver "$1/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --cert-dir="$work/pki" \
        --advertise-address=10.244.0.1 --token-auth-file="$work/pki/tokens.csv" --authorization-mode=Node,RBAC \
        --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$work/pki/sa.pub" --service-account-signing-key-file="$work/pki/sa.key" \
        --default-not-ready-toleration-seconds=3 --default-unreachable-toleration-seconds=3 \
        --enable-aggregator-routing --feature-gates=HPAScaleToZero=true
    until_true "the API server" eval '[ "$(api GET /readyz)" = ok ]'
    background controllers "$1/kube-controller-manager" --kubeconfig="$KUBECONFIG" --leader-elect=false \
        --service-account-private-key-file="$work/pki/sa.key" --node-monitor-grace-period=8s --node-monitor-period=1s \
        --horizontal-pod-autoscaler-sync-period=5s --feature-gates=HPAScaleToZero=true
    background scheduler "$1/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false
}

start_dns() {
    ip addr add 10.96.0.10/32 dev lo
    cat >"$work/Corefile" <<CORE
.:53 {
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local {
        kubeconfig $KUBECONFIG c
    }
}
CORE
    background dns "$1/coredns" -conf "$work/Corefile"
    until_true "CoreDNS" curl -sf -o /dev/null http://127.0.0.1:8181/ready
}

start_cluster() {
    ip link set lo up
    ip link add pods type bridge
    ip addr add 10.244.0.1/16 dev pods
    ip link set pods up
    mkdir -p /run/netns "$work/nodes"
    mount -t tmpfs none /run/netns # names of network namespaces are this cluster's own
    start_control_plane "$1"
    start_dns "$2"
    background proxy python3 "$here/proxy.py"
    # What is mounted somewhere in a container needs a place in its image.
    (umask 022 && SHOAL_IMAGE_ONLY=1 SHOAL_IMAGE_DIR="$work/packed" scripts/image.sh >"$work/image.log" 2>&1 && mkdir "$work/rootfs" &&
        tar -C "$work/rootfs" -xpf "$work/packed/rootfs.tar" && mkdir "$work"/rootfs/{tls,models,keys} &&
        touch "$work"/rootfs/etc/{resolv.conf,hosts}) || fail "the image: $(tail -3 "$work/image.log")"
    rm -r "$work/packed"
    chmod 755 "$work"
}

start_node() {
    mkdir -p "$work/nodes/$1"
    ln -sfn "$work/rootfs" "$work/nodes/$1/rootfs"
    setsid python3 "$here/kubelet.py" "$1" "$2" "$work/nodes/$1" >>"$work/nodes/$1.out" 2>>"$work/nodes/$1.log" &
    node_pids[$1]=$!
}

lose_node() {
    local link
    for link in $(ip -o link show | grep -o " v$2-[0-9]*" | tr -d ' '); do ip link set "$link" down; done
    kill -9 -- "-${node_pids[$1]}"
    echo "{\"at\": $(date +%s.%3N), \"node\": \"$1\", \"event\": \"lost\"}" >>"$work/nodes/$1.out"
}
