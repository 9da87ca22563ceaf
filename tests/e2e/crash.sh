#!/usr/bin/env bash
# The gateway process is killed again and again under load: the port never refuses, workers stay the same processes,
# streams resume with the same bytes, whoever retries loses nothing, and nothing is left behind in the end.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state # reports of crashes are kept there
command -v python3 >/dev/null || skip "python3 is not installed"
kills=${SHOAL_CRASHES:-20}
{
    printf 'manifest: %s/models/models.json\nalso_listen: [{address: "unix:%s/socket"}]\n' "$PWD" "$work"
    printf 'models:\n  - name: home-intent\n  - name: home-chat-s\n  - name: home-embed\n'
} >"$work/shoal.yaml"
cat >"$work/clients.py" <<'EOF'
import http.client, json, socket, sys, threading
host, port, stop = "127.0.0.1", int(sys.argv[1]), threading.Event()
tally, lock, faults = {"streams": 0, "resumed": 0, "unary": 0, "retried": 0, "connects": 0}, threading.Lock(), []
ASK = json.dumps({"model": "home-chat-s", "stream": True, "temperature": 1, "seed": 5, "ignore_eos": True, "max_tokens": 300,
                  "messages": [{"role": "user", "content": "tell me everything"}]})
def count(what, n=1):
    with lock: tally[what] += n
class Lost(Exception): pass
def events(after):
    """Each event with its id, from behind `after` on; Lost where the connection ends before [DONE]."""
    c = http.client.HTTPConnection(host, port, timeout=60)
    try:
        c.request("POST", "/v1/chat/completions", ASK, {"content-type": "application/json", "cache-control": "no-store",
                                                        **({"last-event-id": after} if after else {})})
        r = c.getresponse()
        if r.status == 503: raise Lost()
        if r.status != 200: raise AssertionError(f"a stream got {r.status}: {r.read()[:300]}")
        id, data = None, ""
        while True:
            line = r.readline()
            if not line.endswith(b"\n"): raise Lost()
            line = line.decode().rstrip("\r\n")
            if line.startswith("id: "): id = line[4:]
            if line.startswith("data: "): data += line[6:]
            if line or not data: continue
            if data == "[DONE]": return
            yield id, json.loads(data)
            data = ""
    except (OSError, http.client.HTTPException): raise Lost() from None
    finally: c.close()
def reply():
    text, after = "", None
    while True:
        try:
            for id, e in events(after):
                if "error" in e: raise AssertionError(f"a stream ended with {e}")
                text += "".join(c["delta"].get("content") or "" for c in e["choices"])
                after = id or after
            return text
        except Lost:
            if after: count("resumed")
def streams(whole):
    while not stop.is_set():
        got = reply()
        if got != whole: raise AssertionError(f"a resumed stream differs: {got!r} and {whole!r}")
        count("streams")
def classify(text):
    while True:
        try:
            c = http.client.HTTPConnection(host, port, timeout=60)
            c.request("POST", "/v1/classify", json.dumps({"model": "home-intent", "input": text}), {"content-type": "application/json"})
            r = c.getresponse()
            body = r.read()
            c.close()
            if r.status == 200: return json.loads(body)["data"][0]["labels"][0]["label"]
            if r.status != 503: raise AssertionError(f"a request got {r.status}: {body[:300]}")
        except (OSError, http.client.HTTPException): pass
        count("retried")
def unary(i):
    n = 0
    while not stop.is_set():
        n += 1
        label = classify(f"play jazz {i} {n}")
        if label != "play_music": raise AssertionError(f"a wrong answer: {label}")
        count("unary")
def connects():
    while not stop.wait(0.003):
        socket.create_connection((host, port), timeout=60).close() # refused: an error
        count("connects")
def guarded(fn, *a):
    try: fn(*a)
    except BaseException as e:
        faults.append(f"{fn.__name__}: {type(e).__name__}: {e}")
whole = reply()
threads = [threading.Thread(target=guarded, args=a) for a in
           [(streams, whole), (streams, whole), (unary, 1), (unary, 2), (connects,)]]
for t in threads: t.start()
print("begun", flush=True)
sys.stdin.read() # until the script closes it
stop.set()
for t in threads: t.join()
print(json.dumps(tally) if not faults else "FAULT " + "; ".join(faults))
EOF
workers() { pgrep -P "$server" -f 'shoal worker' | LC_ALL=C sort; }
classify() { curl -s -m 20 "$@" "$url/v1/classify" -d '{"model":"home-intent","input":"play jazz"}' | grep -q play_music; }
# until TEXT COMMAND...: waits for what must come
until_true() {
    local what=$1
    shift
    for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
    fail "not in a minute: $what"
}
ready() { curl -s -m 10 "$url/readyz" | grep -q '"status":"ready"'; }
logged() { [ "$(grep -c "$1" "$log")" -ge "${2:-1}" ]; }
another() { local now; now=$(gateway) && [ -n "$now" ] && [ "$now" != "$1" ]; }
# crash SIGNAL: the gateway dies of it, and the next one serves
crash() {
    local was
    was=$(gateway)
    kill "-$1" "$was"
    until_true "another gateway than $was" another "$was"
    until_true "ready after $1" ready
}

# ---- under load
start_shoal "$work/shoal.yaml"
before=$(workers)
[ "$(wc -w <<<"$before")" = 3 ] || fail "not three workers: $before"
coproc clients { exec python3 "$work/clients.py" "$port"; }
clients_pid=$!
read -r said <&"${clients[0]}"
[ "$said" = begun ] || fail "the clients did not begin"
crash SEGV
held=$(ls "/proc/$server/fd" | wc -l) rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$server/status")
for i in $(seq 2 "$kills"); do
    case $((i % 4)) in 0) crash KILL ;; 1) crash ABRT ;; *) crash SEGV ;; esac
done
eval "exec ${clients[1]}>&-"
read -r tally <&"${clients[0]}"
wait "$clients_pid" 2>/dev/null
[[ $tally != FAULT* && $tally == *streams* ]] || fail "$tally"
[[ $tally =~ '"resumed": '[1-9] && $tally =~ '"streams": '[1-9] ]] || fail "no stream was resumed: $tally"
[ "$(workers)" = "$before" ] || fail "other workers: $(workers) instead of $before"
logged event=gateway_crashed "$kills" || fail "not $kills crashes in the log"
[ "$(grep -c '^ready' "$work/ready")" = 1 ] || fail "ready was said again: $(cat "$work/ready")"
grep -q 'component=gateway event=crash .*signal=11 name=SEGV .*uptime_ms=.*backtrace="' "$log" || fail "no crash report"
curl -s "$url/metrics" | grep -q "^shoal_gateway_restarts_total $kills\$" || fail "the metric is $(curl -s "$url/metrics" | grep gateway_restarts)"
curl -s "$url/readyz" | grep -q "\"restarts\":$kills," || fail "/readyz does not count: $(curl -s "$url/readyz")"
grep -q 'event=gateway_crashed .*signal=11 .*restart=1 in_ms=0 ' "$log" || fail "the first restart waits"
grep -q 'event=gateway_crashed .*in_ms=1000 ' "$log" || fail "restarts do not back off"
[ "$(ls "/proc/$server/fd" | wc -l)" = "$held" ] || fail "the supervisor holds $(ls -l "/proc/$server/fd") instead of $held"
now=$(awk '/^VmRSS/ { print $2 }' "/proc/$server/status")
[ "$now" -le $((rss + 512)) ] || fail "the supervisor grew from $rss to $now KiB"
classify --unix-socket "$work/socket" || fail "the Unix socket does not serve"

# ---- models that were loaded and unloaded by request
curl -s -m 60 "$url/v1/models/load" -d '{"model":"home-intent","name":"mine"}' | grep -q '"state":"ready"' || fail "no load"
curl -s -m 60 "$url/v1/models/unload" -d '{"model":"home-embed"}' | grep -q '"state":"unloaded"' || fail "no unload"
before=$(workers)
crash SEGV
mine() { curl -s -m 20 "$url/v1/classify" -d '{"model":"mine","input":"play jazz"}' | grep -q play_music; }
until_true "the loaded model" mine
[ "$(workers)" = "$before" ] || fail "loads are not what they were: $(workers) instead of $before"

# ---- a worker dies while there is no gateway
victim=$(pgrep -P "$server" -f 'name mine')
kill -STOP "$server"
kill -KILL "$(gateway)"
kill -KILL "$victim"
kill -CONT "$server"
until_true "the loaded model, started again" mine
[ "$(workers | grep -vc "^$victim\$")" = 3 ] || fail "workers: $(workers), of which $victim was killed"
[ "$(comm -12 <(workers) <(echo "$before") | wc -l)" = 2 ] || fail "more than one worker is new"

# ---- while it starts, and while it reads its configuration again
before=$(workers)
for _ in 1 2 3; do
    was=$(gateway)
    kill -SEGV "$was"
    until_true "another gateway" another "$was"
done
until_true "ready after crashes in the start" ready
kill -HUP "$server"
crash SEGV
until_true "the loaded model" mine
[ "$(workers)" = "$before" ] || fail "other workers: $(workers) instead of $before"

# ---- a configuration that became wrong: tried again, and workers wait
cp "$work/shoal.yaml" "$work/right.yaml"
echo 'modles: []' >>"$work/shoal.yaml"
kill -SEGV "$(gateway)"
until_true "a word about the configuration" logged event=gateway_cannot_restart 2
[ "$(workers)" = "$before" ] || fail "workers end while the configuration is wrong"
cp "$work/right.yaml" "$work/shoal.yaml"
until_true "ready when it is right again" ready
until_true "the loaded model" mine
[ "$(workers)" = "$before" ] || fail "other workers: $(workers) instead of $before"

# ---- other options for a model: its worker alone is another
old=$(pgrep -P "$server" -f 'name home-chat-s')
sed -i 's/- name: home-chat-s/- {name: home-chat-s, max_batch: 2}/' "$work/shoal.yaml"
crash SEGV
[ "$(comm -12 <(workers) <(echo "$before") | wc -l)" = 2 ] || fail "not one worker was replaced: $(workers), before $before"
kill -0 "$old" 2>/dev/null && fail "the worker with the old options is still there"
classify || fail "no answer after the options changed"

# ---- in a drain: it ends with the signal, and with everybody
family=$(gateway; workers)
curl -sN -m 60 "$url/v1/chat/completions" -d "{\"model\":\"home-chat-s\",\"stream\":true,\"ignore_eos\":true,\"max_tokens\":1900,\"messages\":[{\"role\":\"user\",\"content\":\"tell me everything\"}]}" >"$work/stream" &
stream=$!
until_true "a stream" test -s "$work/stream"
kill "$server"
until_true "the drain" logged event=draining
kill -SEGV "$(gateway)"
wait "$server"
[ $? = 139 ] || fail "a crash in a drain: not the signal's exit code"
wait "$stream"
gone() { ! kill -0 "$@" 2>/dev/null; }
all_gone() { local p; for p in $family; do gone "$p" || return; done; }
until_true "no process left" all_gone
server=

# ---- the supervisor is killed; and a stop in the ordinary way
start_shoal "$work/shoal.yaml"
family=$(gateway; workers)
kill -KILL "$server"
wait "$server" 2>/dev/null
until_true "no process outlives the supervisor" all_gone
start_shoal "$work/shoal.yaml"
crash SEGV
family=$(gateway; workers)
run_dir=$(grep -o 'unix:[^ ]*/home-intent' "$log" | tail -1)
stop_shoal
[ "$stopped" = 0 ] || fail "stopped with $stopped"
all_gone || fail "processes are left: $family"
[ -d "$(dirname "${run_dir#unix:}")" ] && fail "the folder of sockets is left"
(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && fail "the port is open after the stop"

# ---- not supervised
start_shoal "$work/shoal.yaml" --no-supervise
[ -z "$(gateway)" ] || fail "it is supervised"
classify || fail "no answer"
kill -SEGV "$server"
wait "$server" 2>/dev/null
[ $? = 139 ] || fail "without a supervisor a crash is not the exit status"
server=
echo "$kills gateways killed under load: $tally"
