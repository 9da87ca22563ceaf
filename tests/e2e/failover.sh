#!/usr/bin/env bash
# Streams of every kind while their workers die or freeze at random moments: each answer is whole, and the one that
# was given undisturbed. With a second replica, and with one that has to come back first.
source "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip "node is not installed"
configure() { shipped | sed -E "s|^( +)- name: home-chat-s|&\n\1  replicas: $1|" >"$work/$1.yaml"; }
for replicas in 2 1; do
    configure $replicas
    for signal in SIGKILL SIGSTOP; do
        start_shoal "$work/$replicas.yaml"
        saw=$(node tests/node/failover.mjs "$url" home-chat-s $signal 6) || fail "$replicas replicas, $signal: $saw"
        said="${said:-}$replicas replicas $signal: $saw; "
        moved=$((${moved:-0} + $(grep -c 'event=moved' "$log")))
        stop_shoal
        [ "$stopped" -eq 0 ] || fail "exit status $stopped"
    done
done
[ "$moved" -gt 0 ] || fail "no line in the log says that a call moved"
echo "$said"
