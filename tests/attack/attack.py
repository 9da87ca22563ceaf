#!/usr/bin/env python3
"""attack.py: hostile clients against a running server, and good clients beside them.

    attack.py test  URL SOCKET PID [FILTER]     each case once: what must hold beside it and after it (below)
    attack.py bench URL SOCKET PID [FILTER]     latencies of good clients beside 8 hostile connections, as a table
    attack.py list                              the cases

PID is the gateway's. Runs against the loopback interface and a Unix socket. FILTER is a part of "TRANSPORT KIND NAME". While the 8 processes of a case
are at it, good clients ask for /healthz and a classification over new connections; every answer must be 200. After it, the server
has the same processes, its resident memory has grown by at most MEMORY_MB (its peak, not what is left), and no turn of its
event loop has done more than TURN_BYTES of work (shoal_loop_turn_work_bytes). No time is judged in `test`; all waits are limits.
"""
import http.client
import json
import multiprocessing
import os
import re
import sys
import time
import traceback
from urllib.parse import urlsplit

from cases import CASES, KINDS, TRANSPORTS

PROCESSES = 8
MEMORY_MB = 64
TURN_BYTES = 16 << 20  # a bound of the histogram: a read of 64 KiB of each of 128 connections, and 1 MiB that these start
ASKS = 6  # good requests of each kind beside a case, at least
TRIES = 10
ASK_S = 60  # no good request waits longer than this: the limit of a hang, not of a slow machine
CASE_S = 120  # a case that is not over by then is ended


class Go:
    def __init__(self, transport, n_rounds, over):
        self.transport, self.n_rounds, self.over, self.kept = transport, n_rounds, over, []

    def round(self):
        with self.n_rounds.get_lock():
            self.n_rounds.value += 1
        return not self.over.is_set()

    def keep(self, connection):
        self.kept.append(connection)

    def hold(self):
        self.over.wait(CASE_S)


def hostile(run, where, go):
    signal_free()
    again = True
    while again:
        try:
            run(where, go)
        except (OSError, EOFError):
            go.round()
            time.sleep(0.01)
        except Exception:
            traceback.print_exc()
            os._exit(1)
        again = go.repeat and not go.over.is_set()
    os._exit(0)


def signal_free():
    import signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


class Server:
    def __init__(self, url, path, pid):
        self.at, self.path, self.pid = urlsplit(url), path, int(pid)

    def where(self, transport):
        return ("unix", self.path) if transport == "unix" else ("tcp", self.at.hostname, self.at.port)

    def ask(self, method, path, body=None):
        """(status, text, milliseconds). As any client it asks again, TRIES times in all, where its new connection was closed
        without an answer (while hundreds are opened at once the oldest without a request give way)."""
        began = time.monotonic()
        for _ in range(TRIES):
            status, text, _ = answer = self.ask_once(method, path, body, began)
            if status != 0 or "timed out" in text:
                break
        return answer

    def ask_once(self, method, path, body, began):
        c = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=ASK_S)
        try:
            c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
            r = c.getresponse()
            return r.status, r.read().decode(errors="replace"), 1000 * (time.monotonic() - began)
        except OSError as e:
            return 0, repr(e), 1000 * (time.monotonic() - began)
        finally:
            c.close()

    def healthz(self):
        return self.ask("GET", "/healthz")

    def classify(self):
        return self.ask("POST", "/v1/classify", {"model": "home-intent", "input": f"turn on the light {time.monotonic_ns()}"})

    def turns(self):
        """How many turns of the loop did more than TURN_BYTES, since the start."""
        c = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=ASK_S)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
        def value(series):
            return int(float(re.search(rf"^shoal_loop_turn_work_bytes_{re.escape(series)} (\S+)$", text, re.M).group(1)))
        return value("count") - value(f'bucket{{le="{TURN_BYTES}"}}')

    def status(self, key):
        with open(f"/proc/{self.pid}/status") as f:
            return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M).group(1))

    def forget_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w") as f:
            f.write("5")

    def processes(self):
        """The gateway and its workers: children of one supervisor."""
        supervisor = parent_of(self.pid)
        return sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == supervisor)


def start(server, transport, run, repeat=False):
    n_rounds, over = multiprocessing.Value("i", 0), multiprocessing.Event()
    go = Go(transport, n_rounds, over)
    go.repeat = repeat
    processes = [multiprocessing.Process(target=hostile, args=(run, server.where(transport), go), daemon=True)
                 for _ in range(PROCESSES)]
    for p in processes:
        p.start()
    return processes, n_rounds, over


def end(processes, over):
    over.set()
    until = time.monotonic() + CASE_S
    for p in processes:
        p.join(max(0.1, until - time.monotonic()))
        if p.is_alive():
            p.kill()
            p.join()


def test_one(server, name, transport, run):
    """What went wrong, as sentences."""
    wrong = []
    server.forget_peak()
    rss_kb = server.status("VmRSS")
    family, turns = server.processes(), server.turns()
    processes, n_rounds, over = start(server, transport, run)
    n, until = 0, time.monotonic() + CASE_S
    while (n < ASKS or n_rounds.value < PROCESSES) and time.monotonic() < until:
        for what, ask in (("/healthz", server.healthz), ("classify", server.classify)):
            status, text, _ = ask()
            if status != 200:
                wrong.append(f"{what} beside it: {status} {text[:200]}")
        n += 1
        if len(wrong) > 4:
            break
    rounds = n_rounds.value
    end(processes, over)
    if rounds == 0:
        wrong.append("the hostile clients have not done one round")
    if any(p.exitcode == 1 for p in processes):
        wrong.append("a hostile client has an error of its own (above)")
    for _ in range(100):
        status, text, _ = server.classify()
        if status == 200:
            break
        time.sleep(0.1)
    if status != 200:
        wrong.append(f"classify after it: {status} {text[:200]}")
    if server.processes() != family:
        wrong.append(f"processes were {family} and are {server.processes()}")
    grew_mb = (server.status("VmHWM") - rss_kb) / 1024
    if grew_mb > MEMORY_MB:
        wrong.append(f"resident memory grew by {grew_mb:.0f} MiB, {MEMORY_MB} are allowed")
    turns = server.turns() - turns
    if turns:
        wrong.append(f"{turns} turns of the loop did more than {TURN_BYTES} bytes of work")
    print(f"{'FAIL' if wrong else 'ok  '} {name}: {rounds} rounds, {n} asked beside, memory +{grew_mb:.0f} MiB", flush=True)
    return [f"{name}: {w}" for w in wrong]


def test(server, chosen):
    missing = [f"{t} {k}" for t in TRANSPORTS for k in KINDS if not any(c[:2] == (t, k) for c in CASES)]
    wrong = [f"no case covers {m}" for m in missing]
    for transport, kind, name, run in chosen:
        wrong += test_one(server, f"{transport} {kind} {name}", transport, run)
        if server.status("VmRSS") == 0:
            break
    for w in wrong:
        print("wrong:", w)
    print(f"{len(chosen)} cases over {len(TRANSPORTS)} transports, {len(wrong)} faults")
    return 1 if wrong else 0


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(p * len(values)))]


def bench(server, chosen):
    seconds = float(os.environ.get("ATTACK_SECONDS", "5"))
    print("| transport | kind | case | /healthz n, p50, p99 ms | | | classify n, p50, p99 ms | | | not 200 |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for transport, kind, name, run in [("none", "", "nothing", None), *chosen]:
        if run:
            processes, n_rounds, over = start(server, transport, run, repeat=True)
            while n_rounds.value == 0 and any(p.is_alive() for p in processes):
                time.sleep(0.05)
        times, failed, until = ([], []), 0, time.monotonic() + seconds
        while time.monotonic() < until:
            for i, ask in enumerate((server.healthz, server.classify)):
                status, _, ms = ask()
                times[i].append(ms)
                failed += status != 200
        if run:
            end(processes, over)
        cells = " | ".join(f"{len(t)} | {percentile(t, 0.5):.1f} | {percentile(t, 0.99):.1f}" for t in times)
        print(f"| {transport} | {kind} | {name} | {cells} | {failed} |", flush=True)
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("test", "bench", "list") or (sys.argv[1] != "list" and len(sys.argv) < 5):
        sys.exit(__doc__)
    part = sys.argv[5] if len(sys.argv) > 5 else ""
    chosen = [c for c in CASES if part in " ".join(c[:3])]
    chosen.sort(key=lambda c: (TRANSPORTS.index(c[0]), KINDS.index(c[1])))
    if sys.argv[1] == "list":
        print("\n".join(" ".join(c[:3]) for c in chosen))
        return 0
    server = Server(*sys.argv[2:5])
    return (test if sys.argv[1] == "test" else bench)(server, chosen)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
