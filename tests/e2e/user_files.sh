#!/usr/bin/env bash
# Files of other users: who connects to a socket with `user_files` loads what he and the server may read, and nothing else,
# also when he exchanges it after it was checked, and when the worker or the gateway starts again.
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "only root can be three users"
command -v setpriv >/dev/null || skip "there is no setpriv"
n=0 models=$PWD/models server_id=4000 alice=4001 bob=4002 group=4100
chmod 755 "$work"
cp "$SHOAL_BIN" "$work/shoal" # where all users reach it
mkdir -m 700 "$work/state" "$work/secret"
mkdir "$work/store" "$work/alice"
as() { setpriv --reuid "$1" --regid "$1" "${@:2}"; }
cat >"$work/serve" <<S
#!/bin/sh
export SHOAL_STATE=$work/state HOME=$work/state XDG_RUNTIME_DIR=$work/state
exec setpriv --reuid $server_id --regid $server_id --groups $group $work/shoal "\$@"
S
chmod 755 "$work/serve"
SHOAL_BIN=$work/serve
mkdir -m 777 "$work/run"
cat >"$work/shoal.yaml" <<Y
also_listen:
  - {address: "unix:$work/run/users.sock", mode: "0666", user_files: true}
  - {address: "unix:$work/run/plain.sock", mode: "0666"}
models: [{name: first, path: $work/store/first.gguf}]
library: {store: $work/store}
Y
cp "$models/home-intent.gguf" "$work/store/first.gguf"
cp "$models/home-slots.gguf" "$work/secret/model.gguf"
cp "$models/home-slots.gguf" "$work/closed.gguf"
cp "$models/home-chat-s.gguf" "$work/shared.gguf"
cp "$models/home-chat-s.gguf" "$work/alice/mine.gguf"
cp -r tests/data/hf/bert-intent "$work/alice/intent"
chmod -R a+rX "$work/alice" "$work/store"
cp -r "$work/alice/intent" "$work/alice/linked"
cp -r "$work/alice/intent" "$work/alice/partly"
rm "$work/alice/linked/model.safetensors"
cp "$PWD/tests/data/hf/bert-intent/model.safetensors" "$work/secret/weights.safetensors"
ln -s "$work/secret/weights.safetensors" "$work/alice/linked/model.safetensors"
cp "$work/alice/mine.gguf" "$work/alice/private.gguf"
ln -s "$work/closed.gguf" "$work/alice/link.gguf"
gzip -c tests/data/forest/linear.json >"$work/alice/trees.json.gz"
gzip -c tests/data/forest/linear.json >"$work/secret/trees.json.gz"
ln -s "$work/secret/trees.json.gz" "$work/alice/trees-link.json.gz"
ln -s mine.gguf "$work/alice/good-link.gguf"
mkfifo -m 666 "$work/alice/pipe.gguf"
chown -R $server_id:$server_id "$work/state" "$work/secret" "$work/closed.gguf" "$work/store"
chmod 600 "$work/closed.gguf"
chown 0:$group "$work/shared.gguf"
chmod 640 "$work/shared.gguf"
chown -R $alice:$alice "$work/alice"
chmod 600 "$work/alice/private.gguf" "$work/alice/partly/tokenizer.json"
chown $server_id "$work/alice/partly/tokenizer.json"
as $alice --clear-groups test -r "$work/alice/mine.gguf" || skip "other users do not reach $work"
start_shoal "$work/shoal.yaml"

# by USER SOCKET PATH [KEYS]: $code and $out; the file is loaded as "x"
by() {
    code=$(as "$1" ${groups:---clear-groups} curl -s -m 60 -o "$work/alice/out" -w '%{http_code}' --unix-socket "$work/run/$2.sock" \
        http://x/v1/models/load -H content-type:application/json -d "{\"path\":\"$3\",\"name\":\"x\"${4:-}}")
    out=$(cat "$work/alice/out")
    n=$((n + 1))
}
chmod 777 "$work/alice"
: >"$work/alice/out" && chmod 666 "$work/alice/out"
state() { curl -s "$url/v1/models/x"; }
unload() { curl -s -o "$work/o" -H content-type:application/json "$url/v1/models/unload" -d '{"model":"x"}' && grep -q unloaded "$work/o" || fail "unload: $(cat "$work/o")"; }
loads() { # USER PATH PATTERN
    by "$1" users "$2"
    [ "$code" = 200 ] && grep -q "$3" <<<"$out" || fail "$1 loads $2: $code $out"
    unload
}
refuses() { # CODE USER PATH PATTERN [KEYS]
    by "$2" users "$3" "${5:-}"
    [ "$code" = "$1" ] && grep -qE "$4" <<<"$out" || fail "$2 loads $3: $code $out"
    state | grep -q '"state"' && fail "$3 is there: $(state)"
}

by $alice users "$work/alice/mine.gguf"
grep -q "file system whose permissions" <<<"$out" && skip "$work lies on a file system whose permissions Shoal does not check"
[ "$code" = 200 ] || fail "a file of the caller: $code $out"
unload

# ---- what both may read
loads $alice "$work/alice/good-link.gguf" '"task":"generate"'
loads $alice "$work/alice/intent" '"task":"classify"'
loads $alice "$work/alice/trees.json.gz" '"task":"score"'
loads $bob "$work/alice/mine.gguf" '"state":"ready"'
loads $alice "$work/store/first.gguf" '"state":"ready"' # in the library as ever
groups=--groups=$group loads $alice "$work/shared.gguf" '"state":"ready"'
loads 0 "$work/closed.gguf" '"task":"tag"'
loads $server_id "$work/secret/model.gguf" '"task":"tag"'
out=$(as $alice --clear-groups "$work/shoal" load "$work/alice/mine.gguf" --name x --server "unix:$work/run/users.sock" 2>&1) || fail "shoal load: $out"
unload

# ---- what one of them may not read: who, what and where
refuses 403 $alice "$work/shared.gguf" "calling user .uid $alice. may not read the file '$work/shared.gguf'"
refuses 403 $alice "$work/closed.gguf" "calling user .uid $alice. may not read the file '$work/closed.gguf'"
refuses 403 $alice "$work/secret/model.gguf" "calling user .uid $alice. may not enter the folder '$work/secret'"
refuses 403 $alice "$work/secret/none.gguf" "may not enter the folder '$work/secret'"
refuses 403 $alice "$work/alice/link.gguf" "calling user .* '$work/closed.gguf'"
refuses 403 $alice "$work/alice/trees-link.json.gz" "calling user .* '$work/secret'"
refuses 403 $alice "$work/alice/private.gguf" "server's user .uid $server_id. may not read the file '$work/alice/private.gguf'"
refuses 403 $alice "$work/alice/partly" "calling user .* '$work/alice/partly/tokenizer.json'"
refuses 403 $alice "$work/alice/linked" "calling user .* '$work/secret'"
refuses 403 $bob "$work/closed.gguf" "uid $bob"
refuses 400 $alice "$work/alice/pipe.gguf" 'neither a file nor a folder'
refuses 400 $alice /dev/zero 'neither a file nor a folder'
refuses 403 $alice /proc/self/exe 'file system'
refuses 403 $alice "/proc/$server/root$work/alice/mine.gguf" 'file system'
refuses 404 $alice "$work/alice/none.gguf" 'No such file'
refuses 403 $alice "$work/alice/mine.gguf" 'without keep' ',"keep":true'
refuses 422 $alice /etc/passwd 'does not load'

# ---- elsewhere the folders count alone
by $alice plain "$work/alice/mine.gguf"
[ "$code" = 403 ] && grep -q 'does not lie in a folder' <<<"$out" || fail "a socket without user_files: $code $out"
code=$(curl -s -o "$work/o" -w '%{http_code}' -H content-type:application/json "$url/v1/models/load" -d "{\"path\":\"$work/alice/mine.gguf\"}")
[ "$code" = 403 ] || fail "over TCP: $code $(cat "$work/o")"
as $alice --clear-groups test -x "$work/state/shoal.$server_id" && fail "another user reaches the server's own socket"

# ---- exchanged after it was loaded: the next worker opens nothing that the caller may not read
pid_of() { curl -s "$url/readyz" | grep -o "\"id\":\"x/0\"[^}]*" | grep -o '"pid":[0-9]*' | cut -d: -f2; }
until_says() { for _ in $(seq 400); do state | grep -q "$1" && return; sleep 0.05; done; fail "x does not say $1: $(state)"; }
cp "$work/alice/mine.gguf" "$work/alice/other.gguf"
chown $alice "$work/alice/other.gguf"
by $alice users "$work/alice/other.gguf"
[ "$code" = 200 ] || fail "$code $out"
pid=$(pid_of)
kill -9 "$(gateway)" # the next one takes the worker over
for _ in $(seq 400); do [ "$(pid_of)" = "$pid" ] && break; sleep 0.05; done
[ "$(pid_of)" = "$pid" ] || fail "the worker is not taken over: $(curl -s "$url/readyz")"
until_says '"state":"ready"'
tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- "--reader $alice:$alice:" || fail "whose worker is it: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- "--packed " && fail "weights of another user's file are kept"
as $alice --clear-groups ln -sfn "$work/closed.gguf" "$work/alice/other.gguf"
kill -9 "$pid"
until_says "calling user (uid $alice) may not read the file '$work/closed.gguf'"
as $alice --clear-groups ln -sfn mine.gguf "$work/alice/other.gguf" # he may name another of his own
until_says '"state":"ready"'
unload

# ---- exchanged all the time
setpriv --reuid $alice --regid $alice --clear-groups bash -c 'cd "$1"; while ln -s "$2" t; do mv -T t swap.gguf; ln -s mine.gguf t; mv -T t swap.gguf; done' \
    - "$work/alice" "$work/closed.gguf" 2>/dev/null &
swapper=$!
loaded=0 refused=0 bad=
for _ in $(seq 24); do
    by $alice users "$work/alice/swap.gguf"
    case $code in
    200) loaded=$((loaded + 1)); unload; grep -q '"task":"generate"' <<<"$out" || bad="the server's file is loaded: $out" ;;
    403 | 404 | 422) refused=$((refused + 1)) ;;
    *) bad="exchanged: $code $out" ;;
    esac
    [ -z "$bad" ] || break
done
end "$swapper"
[ -z "$bad" ] || fail "$bad"
stop_shoal
[ "$stopped" -eq 0 ] || fail "it stopped with $stopped"
echo "$n loads by a socket for all users; exchanged under way: $loaded loaded, $refused refused, none of the server's"
