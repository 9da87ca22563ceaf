#!/usr/bin/env bash
# A worker that another program has started, whose loop runs and whose other threads stand still in a step (ptrace stops them): it ends
# itself, with a crash report, and its stream goes on at another worker with the same bytes. So an orchestrator starts it again.
# long: it waits for half a minute
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
declare -A worker
tracer=
stop_others() { end $tracer; kill -9 "${worker[@]}" 2>/dev/null; cleanup; }
trap stop_others EXIT
cat >"$work/hold.py" <<'END'
"""hold.py PID: stop all threads of the process but the first, until the process ends."""
import ctypes, os, sys
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
pid = int(sys.argv[1])
for tid in map(int, os.listdir(f"/proc/{pid}/task")):
    if tid != pid and (libc.ptrace(SEIZE, tid, None, None) or libc.ptrace(INTERRUPT, tid, None, None)):
        print(os.strerror(ctypes.get_errno()), flush=True)
        sys.exit(1)
print("held", flush=True)
while True:
    try:
        os.waitpid(-1, WALL)
    except ChildProcessError:
        break
END
address=([1]=127.0.0.1:$(free_port 1) [2]=127.0.0.1:$(free_port 2))
start_worker() { # N
    "$SHOAL_BIN" worker --name chat --model models/home-chat-m.gguf --address "${address[$1]}" --crashes "$work/crashes" --log-level info 2>>"$work/worker$1.log" &
    worker[$1]=$!
}
cat >"$work/c.yaml" <<CONFIG
models: [{name: chat, external: true}]
discovery:
  workers:
    - {model: chat, address: "${address[1]}"}
    - {model: chat, address: "${address[2]}"}
CONFIG
ready() { curl -s "$url/readyz" | grep -o '"state":"ready"' | wc -l; }
until_ready() {
    for _ in $(seq 1200); do [ "$(ready)" -ge "$1" ] && return; sleep 0.05; done
    fail "not $1 workers are ready: $(curl -s "$url/readyz")"
}
stream() { # FILE
    curl -sN -m 200 "$url/v1/chat/completions" -H 'cache-control: no-store' -d '{"model":"chat","stream":true,"temperature":1,"seed":5,"ignore_eos":true,"max_tokens":900,"messages":[{"role":"user","content":"tell me everything"}]}' >"$1"
}
said() { sed -n 's/^data: {.*"content":"\(.*\)"}.*/\1/p' "$1" | tr -d '\n'; }
start_worker 1
start_shoal "$work/c.yaml"
until_ready 1
stream "$work/undisturbed"
for _ in $(seq 10); do # again, where the stream was quicker
    : >"$work/moved"
    stream "$work/moved" & client=$!
    until grep -q content "$work/moved"; do sleep 0.002; done
    python3 "$work/hold.py" "${worker[1]}" >"$work/held" & tracer=$!
    for _ in $(seq 1000); do [ -s "$work/held" ] && break; sleep 0.01; done
    grep -q held "$work/held" || skip "no thread can be stopped by ptrace: $(cat "$work/held")"
    sleep 0.2 # what was on its way has come
    grep -q 'data: \[DONE\]' "$work/moved" || break
    end "$tracer" # its threads go on
    wait "$client"
done
grep -q 'data: \[DONE\]' "$work/moved" && fail "each stream was over at once"
start_worker 2
wait "${worker[1]}"
status=$?
wait "$tracer" "$client"
[ "$status" = 134 ] || fail "the worker that hung ended with $status, not by SIGABRT: $(tail -3 "$work/worker1.log")"
grep -q 'level=error component=worker event=hangs model=chat' "$work/worker1.log" || fail "its log: $(tail -3 "$work/worker1.log")"
if ! nm -D "$SHOAL_BIN" 2>/dev/null | grep -q '__[at]san'; then # which have reports of their own
    ls "$work/crashes" | grep -q -- '-worker-[0-9]*.json' || fail "it left no report"
fi
grep -q 'data: \[DONE\]' "$work/moved" || fail "its stream broke: $(tail -c 300 "$work/moved")"
[ "$(said "$work/moved")" = "$(said "$work/undisturbed")" ] || fail "its stream is another"
start_worker 1 # as an orchestrator does
until_ready 2
stop_shoal
[ "$stopped" -eq 0 ] || fail "the gateway exits with $stopped"
