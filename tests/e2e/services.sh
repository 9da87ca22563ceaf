#!/usr/bin/env bash
# The ten commands of docs/cluster.md for two machines as services, on two machines: each is a network namespace with files of its own over
# this machine's. `make install` puts the program and what it needs in place, tests/deploy/systemctl.py starts what the units say.
# long: it has the models copied, and wants root and namespaces
# alone: two machines start their services at once
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "namespaces need root"
for tool in systemd-sysusers systemd-tmpfiles setpriv; do command -v $tool >/dev/null || skip "$tool is not installed"; done
if [ -z "${SHOAL_SERVICES_INSIDE:-}" ]; then
    unshare --net sh -c 'ip link add v0 type veth peer name v1' 2>/dev/null || skip "no veth may be made here"
    unshare --mount sh -c 'mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r' 2>/dev/null ||
        skip "no overlay may be mounted here"
    rm -rf "$work"
    SHOAL_SERVICES_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
fi

# ---- two machines
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /run
ip link set lo up
for n in 1 2; do
    root=/mnt/$n/root
    mkdir -p /mnt/$n/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=/,upperdir=/mnt/$n/upper,workdir=/mnt/$n/work" $root
    mount --rbind /proc $root/proc
    mount --rbind /dev $root/dev
    mount -t tmpfs tmpfs $root/run
    mount -t tmpfs tmpfs $root/tmp
    ip netns add m$n
    ip -n m$n link set lo up
    # Stand-ins for what a machine has: sudo, systemd's hand, and `make install` of a build tree.
    rm -rf $root/etc/shoal $root/var/lib/shoal
    install -D -m 755 tests/deploy/systemctl.py $root/usr/local/sbin/systemctl
    cat >$root/usr/local/sbin/sudo <<'SH'
#!/bin/sh
user=$2; shift 2
exec setpriv --reuid "$user" --regid "$user" --clear-groups env "$@"
SH
    cat >$root/usr/local/sbin/make <<SH
#!/bin/sh
[ "\$1" = install ] || exit 2
install -D $SHOAL_BIN /usr/local/bin/shoal
mkdir -p /usr/local/share/shoal/models
cp $PWD/models/home-chat-s.gguf $PWD/models/models.json /usr/local/share/shoal/models/
cp -r $PWD/lexicons $PWD/shoal.yaml /usr/local/share/shoal/
install -D -m 644 -t /usr/local/lib/systemd/system $PWD/deploy/systemd/*.service
install -D -m 644 $PWD/deploy/systemd/shoal.sysusers /usr/lib/sysusers.d/shoal.conf
install -D -m 644 $PWD/deploy/systemd/shoal.tmpfiles /usr/lib/tmpfiles.d/shoal.conf
SH
    chmod 755 $root/usr/local/sbin/*
done
ip link add v1 netns m1 type veth peer name v2 netns m2
for n in 1 2; do
    ip -n m$n addr add 192.168.1.$((n * 10))/24 dev v$n
    ip -n m$n link set v$n up
done
on() { # MACHINE COMMAND
    ip netns exec "m$1" unshare --uts chroot "/mnt/$1/root" bash -c "hostname machine-$1; set -o pipefail; $2" </dev/null
}
clues() { tail -n 5 /mnt/*/root/run/*.log 2>/dev/null; cat "$work/said"; }

# ---- the documents' commands
sed -n '/^## Two machines as services/,/^## Joining/s/^ \{4,5\}\([0-9]*\)  \(.*\)/\1 \2/p' docs/cluster.md >"$work/commands"
[ "$(cut -d' ' -f1 "$work/commands" | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 " ] || fail "not ten commands: $(cat "$work/commands")"
token=
while read -r number command; do
    machine=$((number > 6 ? 2 : 1))
    command=$(sed -E "s/printf '[0-9a-f]+\.[0-9a-f]+…'/printf %s $token/" <<<"$command")
    case $command in *…*) fail "the token's place in: $command" ;; esac
    on "$machine" "$command" >"$work/said" 2>&1 || fail "command $number: $command: $(clues)"
    [ "$number" != 6 ] || token=$(head -1 "$work/said")
done <"$work/commands"

until_true() {
    local end=$((SECONDS + 60))
    while [ $SECONDS -lt $end ]; do
        eval "$2" && return
        sleep 0.1
    done
    fail "$1: never came to pass: $(clues)"
}
until_true "the second machine" 'on 1 "shoal nodes --server 192.168.1.10:8080" 2>/dev/null | grep -q "^machine-2 "'
until_true "two replicas" '[ "$(on 2 "curl -s 192.168.1.10:8080/readyz" | grep -o "\"state\":\"ready\"" | wc -l)" = 2 ]'
until_true "a replica on the second machine" 'on 2 "curl -s 192.168.1.10:8080/readyz" | grep -q "\"id\":\"machine-2/home-chat-s/0\",\"model\":\"home-chat-s\",\"state\":\"ready\""'
on 2 "curl -s -m 30 192.168.1.10:8080/v1/chat/completions -d '{\"model\": \"home-chat-s\", \"max_tokens\": 8, \"temperature\": 0, \"messages\": [{\"role\": \"user\", \"content\": \"turn off the kitchen light\"}]}'" |
    grep -q '"content":"Turning off' || fail "no reply: $(clues)"
for at in 1/root/run/shoal-gateway 2/root/run/shoal-agent; do
    pid=$(cat "/mnt/$at.pid")
    [ "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" != 0 ] || fail "$at runs as root"
    [ "$(awk '/^CapBnd:/ { print $2 }' "/proc/$pid/status")" = 0000000000000000 ] || fail "$at has capabilities"
done
[ "$(stat -c '%a %U' /mnt/1/root/var/lib/shoal)" = "700 $(stat -c %U /mnt/1/root/var/lib/shoal/ca)" ] || fail "the state folder: $(stat -c '%a %U' /mnt/1/root/var/lib/shoal)"

# ---- as systemd stops them
kill -TERM "$(cat /mnt/2/root/run/shoal-agent.pid)"
until_true "the gateway alone" '[ "$(on 2 "curl -s 192.168.1.10:8080/readyz" | grep -o "\"state\":\"ready\"" | wc -l)" -ge 1 ]'
kill -TERM "$(cat /mnt/1/root/run/shoal-gateway.pid)"
for at in 1/root/run/shoal-gateway 2/root/run/shoal-agent; do
    for _ in $(seq 600); do kill -0 "$(cat "/mnt/$at.pid")" 2>/dev/null || break; sleep 0.05; done
    kill -0 "$(cat "/mnt/$at.pid")" 2>/dev/null && fail "$at does not end"
done
ip netns delete m1
ip netns delete m2
echo "ten commands, two machines, and a reply of both"
