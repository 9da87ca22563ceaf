#!/usr/bin/env bash
# Model files that are damaged, cut or removed on a machine are set aside, fetched again and served; those of the
# gateway's own folder are served again when they are put back, and another machine serves the model meanwhile.
source "$(dirname "$0")/machines.bash"

clues() { echo "$(curl -s "$url/readyz"); $(grep -hE 'component=(store|agent|placement|supervisor)' "$work"/*.log | tail -n 12)"; }
state() { curl -s "$url/readyz" | grep -o "\"id\":\"$1\"[^}]*"; }
# shellcheck disable=SC2329
ready() { state "$1" | grep -q '"state":"ready"'; }
# shellcheck disable=SC2329
is_new() { ready pi/chat/0 && [ "$(worker pi)" != "$2" ] && answers "$1"; }
worker() { pgrep -P "${agents[$1]}" -f 'shoal worker' | head -1; }
boss_pid() { state "$1/0" | sed 's/.*"pid":\([0-9]*\).*/\1/'; }
# shellcheck disable=SC2329
answers() {
    curl -s -m 30 "$url/v1/completions" -H 'cache-control: no-store' -d "{\"model\":\"$1\",\"prompt\":\"hello there\",\"max_tokens\":16,\"temperature\":0}" |
        grep -o '"text":"[^"]*"' | cmp -s - "$work/want"
}
# shellcheck disable=SC2329
failed() { state "$1" | grep -q '"state":"failed"'; }
flip() { # 64 bytes in the middle, as a bad sector would
    head -c 64 /dev/urandom | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc status=none
}

mkdir "$work/m"
cp models/home-chat-s.gguf models/home-intent.gguf "$work/m"
sum=$(sha256sum models/home-chat-s.gguf | cut -d' ' -f1)
printf 'models: [{name: chat, path: %s}]\n' "$PWD/models/home-chat-s.gguf" >"$work/alone.yaml"
start_shoal "$work/alone.yaml"
curl -s "$url/v1/completions" -d '{"model":"chat","prompt":"hello there","max_tokens":16,"temperature":0}' | grep -o '"text":"[^"]*"' >"$work/want"
stop_shoal

make_ca
cat >"$work/c.yaml" <<YAML
cluster: {listen: "$control", name: boss, state: $gw}
cache: {mb: 0}
models:
  - {name: chat, path: $work/m/home-chat-s.gguf, sha256: $sum, place: {nodes: [pi]}}
  - {name: either, path: $work/m/home-chat-s.gguf, sha256: $sum, place: {nodes: [boss, pi]}}
  - {name: intent, path: $work/m/home-intent.gguf, sha256: $(sha256sum models/home-intent.gguf | cut -d' ' -f1), place: {nodes: [boss]}}
YAML
start_shoal "$work/c.yaml"
join pi
until_true "pi serves" ready pi/chat/0
until_true "it answers" answers chat
stored=$work/pi/models/$sum.gguf

# ---- a machine's stored file: changed, cut, removed
for harm in flip "truncate -s 100000" "truncate -s 0" rm; do
    pid=$(worker pi)
    $harm "$stored" || fail "$harm"
    kill -9 "$pid"
    until_true "after $harm pi serves again" is_new chat "$pid"
    [ "$(sha256sum "$stored" | cut -d' ' -f1)" = "$sum" ] || fail "after $harm: $(ls -l "$work/pi/models")"
done
n=$(grep -c 'component=store event=damaged' "$work/pi.log")
[ "$n" -ge 4 ] || fail "$n were found damaged: $(grep store "$work/pi.log")"
[ "$(find "$work/pi/models" -name 'damaged-*' | wc -l)" -le 2 ] || fail "set aside: $(ls "$work/pi/models")"

# ---- changed while the machine was off
end_agent pi
flip "$stored"
start_agent pi
until_true "pi serves after its restart" ready pi/chat/0
until_true "it answers after its restart" answers chat

# ---- the gateway's own file: the model moves to a machine that has it, and one that can be nowhere else comes back
ready either/0 || fail "the gateway does not serve it: $(curl -s "$url/readyz")"
flip "$work/m/home-chat-s.gguf"
kill -9 "$(boss_pid either)"
until_true "pi takes over" ready pi/either/0
until_true "pi answers" answers either
until_true "it has left the gateway" sh -c "! curl -s '$url/readyz' | grep -q '\"id\":\"either/0\"'"
grep -q 'component=placement event=leaves model=either node=boss why="its worker could not start there"' "$log" || fail "$(grep placement "$log")"

truncate -s 100000 "$work/m/home-intent.gguf"
kill -9 "$(boss_pid intent)"
until_true "it says what is wrong" failed intent/0
curl -s "$url/readyz?model=intent" | grep -q '"reason":"its worker failed: .*the file is damaged' || fail "$(curl -s "$url/readyz?model=intent")"
cp models/home-intent.gguf "$work/m/home-intent.gguf"
until_true "put back, it is served again" ready intent/0
rm "$work/m/home-intent.gguf"
kill -9 "$(boss_pid intent)"
until_true "it says what is wrong" failed intent/0
cp models/home-intent.gguf "$work/m/home-intent.gguf"
until_true "put back, it is served again" ready intent/0
stop_shoal
[ "$stopped" -eq 0 ] || fail "exit status $stopped"
echo "files that were changed, cut and removed were fetched again: $n times on a machine"
