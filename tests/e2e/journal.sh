#!/usr/bin/env bash
# Under systemd-journald (its own, in a mount namespace): lines of the gateway and of workers are entries with fields.
source "$(dirname "$0")/lib.sh"
export SHOAL_STATE=$work/state # reports of crashes are kept there
unset SHOAL_LOG
journald=$(ls /lib/systemd/systemd-journald /usr/lib/systemd/systemd-journald 2>/dev/null | head -1)
[ -n "$journald" ] && command -v journalctl systemd-cat >/dev/null || skip "systemd's journal is not installed"
if [ "${1:-}" != inside ]; then
    unshare -m true 2>/dev/null || skip "no mount namespace can be made here"
    rm -rf "$work"
    exec unshare -m bash "$0" inside
fi
mount -t tmpfs none /run && mkdir -p /run/systemd/journal /run/log/journal || skip "no folder for a journal can be mounted"
"$journald" 2>"$work/journald.log" &
journal=$!
trap 'kill "$journal" 2>/dev/null; cleanup' EXIT
for _ in $(seq 100); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.05; done
[ -S /run/systemd/journal/stdout ] || skip "systemd's journal does not start here: $(tail -1 "$work/journald.log")"

printf 'models:\n  - name: home-intent\n' >"$work/one.yaml"
: >"$work/ready"
# As systemd starts a service: standard error is the stream, and JOURNAL_STREAM names it.
systemd-cat -t by-the-stream bash -c 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" serve -c "$1" --port 0 >"$2"' \
    "$SHOAL_BIN" "$work/one.yaml" "$work/ready" &
server=$!
for _ in $(seq 400); do url=$(grep -o 'http://[0-9.]*:[0-9]*' "$work/ready" | head -1); [ -n "$url" ] && break; sleep 0.05; done
[ -n "$url" ] || fail "the server was not ready in 20 s"
curl -s -o /dev/null -H 'x-request-id: req-7' "$url/v1/classify" -d '{"model":"home-intent","input":"a secret that is typed"}'
cat >"$work/check.py" <<'END'
import json, subprocess, sys
def entries():
    subprocess.run(["journalctl", "--sync"], check=True)
    out = subprocess.run(["journalctl", "-D", "/run/log/journal", "-o", "json", "--all", "SYSLOG_IDENTIFIER=shoal"], capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines()]
lines = entries()
def one(**want):
    found = [e for e in lines if all_equal(e, want)]
    assert found, f"no entry with {want} among {[(e.get('SHOAL_COMPONENT'), e.get('SHOAL_EVENT')) for e in lines]}"
    return found[0]
def all_equal(e, want): return all(e.get(k) == v for k, v in want.items())
e = one(SHOAL_COMPONENT="gateway", SHOAL_EVENT="request", SHOAL_REQUEST_ID="req-7")
assert e["PRIORITY"] == "6" and e["SHOAL_STATUS"] == "200" and e["SHOAL_MODEL"] == "home-intent", e
assert e["MESSAGE"].startswith("gateway request ") and e["_TRANSPORT"] == "journal" and e["_COMM"].startswith("shoal"), e
e = one(SHOAL_COMPONENT="worker", SHOAL_EVENT="call_done", SHOAL_REQUEST_ID="req-7")
assert e["SHOAL_REPLICA"] == "home-intent/0", e
one(SHOAL_COMPONENT="worker", SHOAL_EVENT="ready", SHOAL_REPLICA="home-intent/0")
assert not any("secret" in str(e) for e in lines)
if len(sys.argv) > 1:
    e = one(SHOAL_COMPONENT="agent", SHOAL_EVENT="worker_exited")
    assert e["PRIORITY"] == "3" and e["SHOAL_SIGNAL"] == "11", e
    one(SHOAL_COMPONENT="worker", SHOAL_EVENT="crash", SHOAL_REPLICA="home-intent/0")
END
python3 "$work/check.py" || fail "the journal"
kill -SEGV "$(pgrep -P "$server" -f 'shoal worker')" || fail "no worker"
for _ in $(seq 200); do curl -s "$url/readyz" | grep -q '"crashes":1' && break; sleep 0.05; done
python3 "$work/check.py" crashed || fail "the journal after a crash"
stop_shoal
[ "$stopped" = 0 ] || fail "it stops with $stopped"
journalctl --sync
journalctl -D /run/log/journal -o cat SYSLOG_IDENTIFIER=by-the-stream | grep -q . && fail "lines went by the stream: $(journalctl -D /run/log/journal -o cat SYSLOG_IDENTIFIER=by-the-stream | head -3)"
echo "the journal has fields of the gateway's and the workers' lines"
