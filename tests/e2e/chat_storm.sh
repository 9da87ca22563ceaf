#!/usr/bin/env bash
# shoal chat under bad hands: a terminal that changes its size while a reply comes, storms of Ctrl-C and of signals,
# noise for keys, no HOME, LANG=C, a history that cannot be kept, a terminal that is gone. It ends as it should, and
# never by a signal of its own making.
source "$(dirname "$0")/lib.sh"
python3 -c 'import pty' 2>/dev/null || skip "python3 is not there"
start_shoal
: >"$work/file"
cat >"$work/storm.py" <<'END'
import fcntl, os, pty, random, re, select, signal, struct, sys, termios, time
shoal, url, work = sys.argv[1:]

class Terminal:
    def __init__(self, args, env=None, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            e = {**os.environ, "XDG_STATE_HOME": work + "/state", "TERM": "xterm", **(env or {})}
            os.execve(shoal, [shoal, "chat", *args], {k: v for k, v in e.items() if v is not None})
        self.size(24, columns)
        self.seen = b""
        self.expect(rb"> $")

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, pattern, seconds=20):
        end = time.time() + seconds
        while not re.search(pattern, self.seen):
            assert time.time() < end, (pattern, self.seen[-300:])
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    more = os.read(self.fd, 65536)
                except OSError:
                    more = b""
                assert more, ("it has ended", pattern, self.seen[-300:])
                self.seen += more

    def keys(self, text):
        self.seen = b""
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def end(self, wanted):
        for i in range(400):
            try:
                if i % 10 == 9:  # what was typed while a reply came may have been for that
                    os.write(self.fd, b"\x04" if i % 20 == 9 else b"\x03")
                if select.select([self.fd], [], [], 0)[0]:
                    os.read(self.fd, 65536)
            except OSError:
                pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                assert status in wanted, (status, self.seen[-300:])
                return
            time.sleep(0.05)
        os.kill(self.pid, 9)
        raise AssertionError("it does not end")

long = ["home-chat-m", "--no-home", "--no-history", "-n", "300", "--temp", "1", "--json-schema", work + "/long.json"]
open(work + "/long.json", "w").write('{"type": "array", "items": {"type": "integer"}, "minItems": 200}')
n = 0
for where in (["--here"], ["--server", url]):
    t = Terminal(long + where, columns=20)
    t.keys("count for as long as you can, please, and do not stop\r")
    t.expect(rb"[0-9]+, *[0-9]+")
    for i in range(40):
        t.size(random.randint(1, 60), random.randint(1, 200))
        os.kill(t.pid, signal.SIGWINCH)
        time.sleep(0.005)
    os.write(t.fd, b"\x03")  # it may have ended by itself
    t.expect(rb"\[(stopped: )?[0-9]+ token")
    t.expect(rb"> $")
    t.keys("once more\r")
    t.expect(rb"[0-9]+, *[0-9]+")
    t.keys(b"\x03" * 100)  # the first stops the reply; those that come behind it may leave already
    time.sleep(0.5)
    try:
        t.keys(b"\x03\x04\x04")
    except OSError:
        pass
    t.end([0, 130 << 8])  # the second of two for one reply leaves
    t = Terminal(long + where)
    t.keys("count\r")
    for i in range(100):
        try:
            os.kill(t.pid, signal.SIGINT)
        except ProcessLookupError:
            break
        time.sleep(0.002)
    time.sleep(0.5)
    t.keys(b"\x03\x04\x04")
    t.end([0, signal.SIGINT, 130 << 8])  # what comes while a line is edited is not for a reply
    bare = {"HOME": None, "XDG_STATE_HOME": None, "LANG": "C", "LC_ALL": "C"}
    t = Terminal(["home-chat-s"] + where, env=bare)
    t.keys("schalte das Küchenlicht an\r")
    t.expect("Küchenlicht".encode())
    t.expect(rb"\]")
    noise = bytes(random.Random(7).choice([c for c in range(256) if c not in (3, 4, 26, 28)]) for _ in range(2000))
    t.keys(noise + b"\r")
    time.sleep(0.5)
    t.keys(b"\x03\x03\x03\x04\x04")
    t.end([0, 130 << 8])  # the reply to it may run still
    t = Terminal(["home-chat-s"] + where, env={"XDG_STATE_HOME": work + "/file"})
    assert b"what you type is not kept" in t.seen, t.seen
    t.keys("hello\r")
    t.expect(rb"\]")
    t.keys(b"\x04")
    t.end([0])
    t = Terminal(long + where)
    t.keys("count\r")
    t.expect(rb"[0-9]+, *[0-9]+")
    os.close(t.fd)
    for _ in range(200):
        pid, status = os.waitpid(t.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    assert pid, "it outlives its terminal"
    n += 5
print(f"{n} sittings")
END
python3 "$work/storm.py" "$SHOAL_BIN" "$url" "$work" >"$work/said" 2>&1 || fail "$(tail -6 "$work/said")"
curl -s "$url/healthz" | grep -q ok || fail "the server is not well"
cat "$work/said"
