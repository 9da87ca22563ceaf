"""Runs the commands of a page's ```console blocks and compares what they print with what the page shows.

    consoles.py PAGE PORT FOLDER [--write]

A line "$ ..." is a command, "> ..." continues it, and what follows is its output: "…" stands for any characters of a line, a
line of "…" alone for any lines. All commands of a page run in one shell in FOLDER. http://127.0.0.1:8080 is at PORT here, and the options
"--server" that samples need for other ports are left out. A "shoal serve" runs in the background until the next one or the end. --write puts the output that was seen into the page where it differs,
or where the page shows "…" alone.
"""

import os
import re
import signal
import subprocess
import sys
import time

WAIT_S = 120


def blocks(text):
    """(start, end, [(command, output lines)]) of each console block; start and end are offsets of its body"""
    for m in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S):
        steps = []
        for line in m.group(1).splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            elif line.startswith("> ") and not steps[-1][1]:
                steps[-1] = (steps[-1][0] + "\n" + line[2:], [])
            else:
                steps[-1][1].append(line)
        yield m.start(1), m.end(1), steps


def fits(shown, seen):
    """Do the lines that were seen fit those of the page?"""
    parts = [".*" if line.strip() == "…" else None for line in shown]
    pattern = ""
    for line, any_lines in zip(shown, parts):
        if any_lines:
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += "[^\n]*".join(re.escape(p) for p in line.rstrip().split("…")) + "\n"
    text = "".join(line.rstrip() + "\n" for line in seen)
    return re.fullmatch(pattern, text) is not None


def plain(line, port):
    return line.replace(f" --server http://127.0.0.1:{port}", "")


class Shell:
    """One bash whose commands end with a mark and their exit status"""

    def __init__(self, folder, port):
        self.port, self.server, self.n = port, None, 0
        env = dict(os.environ, SHOAL_HOST=f"127.0.0.1:{port}", COLUMNS="80", LC_ALL="C.UTF-8")
        self.bash = subprocess.Popen(["bash", "--norc"], cwd=folder, env=env, text=True, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, command):
        self.n += 1
        mark = f"-- end {self.n} --"
        self.bash.stdin.write(f"{{ {command}\n}} </dev/null 2>&1; printf '\\n%s %s\\n' '{mark}' $?\n")
        self.bash.stdin.flush()
        lines = []
        for line in self.bash.stdout:
            if line.startswith(mark):
                break
            lines.append(line.rstrip("\n"))
        if lines and lines[-1] == "":
            lines.pop()
        return lines

    def serve(self, command, shown):
        """Start a server and wait until what it prints fits"""
        self.stop()
        out = f"{os.environ['CONSOLES_WORK']}/serve.{self.n}"
        self.n += 1
        seen = []
        open(out, "w").close()
        self.run(f"{command} --port {self.port} >{out} 2>{out}.log & server=$!")
        self.server = True
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            seen = [line.rstrip("\n") for line in open(out)]
            if seen and fits(shown, [plain(line, self.port) for line in seen]):
                return seen
            if self.run("kill -0 $server 2>/dev/null && echo up") != ["up"]:
                return seen + [line.rstrip("\n") for line in open(out + ".log")][-3:]
            time.sleep(0.1)
        return seen

    def stop(self):
        if self.server:
            self.run("kill $server; wait $server")
            self.server = None

    def close(self):
        self.stop()
        os.killpg(self.bash.pid, signal.SIGTERM)
        self.bash.wait()


def main():
    page, port, folder = sys.argv[1], sys.argv[2], sys.argv[3]
    write = "--write" in sys.argv
    text = open(page).read()
    here = lambda s: s.replace("http://127.0.0.1:8080", "http://127.0.0.1:" + port)
    there = lambda s: s.replace("http://127.0.0.1:" + port, "http://127.0.0.1:8080")
    shell = Shell(folder, port)
    wrong = n = 0
    new, at = "", 0
    for start, end, steps in blocks(text):
        body = ""
        for command, shown in steps:
            n += 1
            serves = re.search(r"\bshoal serve\b", command)
            expected = [here(line) for line in shown]
            seen = shell.serve(here(command), expected) if serves else shell.run(here(command))
            seen = [plain(line, port) for line in seen]
            if not fits(expected, seen) or (write and expected == ["…"]):
                wrong += 1
                print(f"{page}: $ {command}\n  shows:\n" + "".join(f"    {line}\n" for line in expected) +
                      "  printed:\n" + "".join(f"    {line}\n" for line in seen))
                shown = [there(line) for line in seen]
            body += "$ " + command.replace("\n", "\n> ") + "\n" + "".join(line + "\n" for line in shown)
        new += text[at:start] + body
        at = end
    shell.close()
    if write:
        open(page, "w").write(new + text[at:])
    print(f"{page}: {n} commands" + (f", {wrong} otherwise than shown" if wrong else ""))
    sys.exit(1 if wrong or n == 0 else 0)


main()
