#!/usr/bin/env bash
# shoal ps and show: the models of a running server, and files.
source "$(dirname "$0")/lib.sh"
start_shoal
ps() { "$SHOAL_BIN" ps --server "$url" "$@"; }
ps >"$work/ps" || fail "status $?"
grep -qE '^home-chat-s +ready +1/1 here +[0-9]+ MB +0 +0 ' "$work/ps" || fail "ps: $(cat "$work/ps")"
[ "$(wc -l <"$work/ps")" -eq 6 ] || fail "ps has $(wc -l <"$work/ps") lines"
grep -qE '.{81}' "$work/ps" && fail "wider than 80 columns: $(cat "$work/ps")"
ps --json | python3 -c 'import json, sys, time
m = {x["model"]: x for x in json.load(sys.stdin)["models"]}
a = m["home-intent"]
assert a["state"] == "ready" and a["ready"] == a["replicas"] == 1 and a["machines"] == ["here"] and a["memory_bytes"] > 1e6
assert 0 <= time.time() - a["since"] < 600, a' || fail "ps --json: $(ps --json)"
show() { "$SHOAL_BIN" show "$@"; }
digest=$(sha256sum models/home-intent.gguf | cut -d ' ' -f 1)
for how in "--server $url home-intent" home-intent models/home-intent.gguf; do
    show $how >"$work/show" || fail "show $how: $?"
    grep -q "^digest  *$digest\$" "$work/show" || fail "show $how: $(cat "$work/show")"
    grep -q '^architecture  *bert' "$work/show" || fail "show $how: $(cat "$work/show")"
done
show --server "$url" home | grep -q '^can .*tools' || fail "no word of tools: $(show --server "$url" home)"
show --server "$url" home-chat-s | grep -q '^can .*tools' && fail "home-chat-s calls functions that it was not trained on"
show --server "$url" home-intent --json | python3 -c 'import json, sys; a = json.load(sys.stdin); assert a["id"] == "home-intent" and len(a["labels"]) > 9 and a["adapters"] == []' || fail "show --json"
show models/home-intent.gguf --json | grep -q "\"digest\":\"$digest\"" || fail "show FILE --json"
show --server "$url" nobody >/dev/null 2>"$work/err" && fail "nobody is shown"
grep -q 'has no model "nobody"; shoal ps --server' "$work/err" || fail "$(cat "$work/err")"
show nobody >/dev/null 2>"$work/err" && fail "nobody is shown without a server"
# What is no file, and why what is served was not asked.
export SHOAL_HOST=$url
for command in "show nobody" "run nobody hello" "chat nobody"; do
    "$SHOAL_BIN" $command </dev/null >/dev/null 2>"$work/err" && fail "$command ends well"
    grep -q "nobody\".*; $url serves .*home-chat-s" "$work/err" || fail "$command: $(cat "$work/err")"
done
mkdir "$work/none" && echo '{"models":[]}' >"$work/none/models.json"
for command in "run home-chat-s hello --threads 1" "chat home-chat-s --threads 1"; do
    SHOAL_MODELS=$work/none "$SHOAL_BIN" $command </dev/null >/dev/null 2>"$work/err" && fail "$command ends well"
    grep -q "home-chat-s is served at $url, and --threads is for models of this process: leave --threads out" "$work/err" || fail "$command: $(cat "$work/err")"
done
unset SHOAL_HOST
stop_shoal
ps >/dev/null 2>"$work/err" && fail "ps of nobody"
grep -q 'no Shoal serves there' "$work/err" || fail "$(cat "$work/err")"
echo "served models and files"
