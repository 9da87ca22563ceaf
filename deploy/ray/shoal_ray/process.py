"""A Shoal process that lives and ends with its actor."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Callable


class Process:
    """A program that gets SIGTERM when the thread that started it ends, however it ends.

    That thread lives as long as the program: it copies what the program writes to the actor's own output, where Ray keeps it, and
    calls `on_line` with each line of standard output and `on_exit` with the exit status."""

    def __init__(self, argv: list[str], on_exit: Callable[[int], None], on_line: Callable[[str], None] = lambda _: None,
                 env: dict[str, str] | None = None) -> None:
        self._argv, self._on_exit, self._on_line, self._env = argv, on_exit, on_line, env
        self._started, self._ended = threading.Event(), threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._why: OSError | None = None
        threading.Thread(target=self._run, daemon=True).start()
        self._started.wait()
        if self._why:
            raise RuntimeError(f"{argv[0]} cannot be started: {self._why}")

    def _run(self) -> None:
        try:
            # A raylet that was started by nohup would hand down that SIGHUP is ignored.
            argv = ["setpriv", "--pdeathsig", "TERM", "env", "--default-signal=HUP", *self._argv]
            self._child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, errors="replace", env={**os.environ, **(self._env or {})})
        except OSError as e:
            self._why = e
        self._started.set()
        if not self._child:
            return
        try:
            for line in self._child.stdout:
                print(line, end="", flush=True)
                self._on_line(line)
        finally:
            self._child.stdout.close()
            status = self._child.wait()
            self._ended.set()
            self._on_exit(status)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def status(self) -> int | None:
        return self._child.poll() if self._ended.is_set() else None

    def signal(self, number: int) -> None:
        if not self._ended.is_set():
            self._child.send_signal(number)

    def wait(self) -> None:
        self._ended.wait()

    def stop(self, grace_s: float) -> int:
        """SIGTERM, and SIGKILL after the grace; its exit status."""
        self.signal(signal.SIGTERM)
        if not self._ended.wait(grace_s):
            print(f"not at its end after {grace_s} s: killed", file=sys.stderr, flush=True)
            self.signal(signal.SIGKILL)
            self._ended.wait()
        return self._child.returncode


def private_folder(name: str) -> Path:
    """A folder of this user alone, the same each time that the actor of this name starts on a machine. In memory if possible."""
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    top = base / f"shoal-ray-{os.getuid()}"
    top.mkdir(mode=0o700, exist_ok=True)
    if top.lstat().st_uid != os.getuid() or top.is_symlink():
        raise RuntimeError(f"{top} is another user's")
    folder = top / name.replace("/", "_")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def put(folder: Path, name: str, text: str) -> None:
    """A file that is whole at any time."""
    part = folder / (name + ".part")
    part.touch(mode=0o600)
    part.write_text(text)
    part.replace(folder / name)
