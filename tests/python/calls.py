"""Tests that are rows of docs/clients.md: what a client was asked, and whether Shoal answered as it expects.

    from calls import client
    call = client("openai")

    @call("chat.completions.create", "a reply")
    def _():
        assert ...

    @call("images.generate", "a picture", differs="no model here draws")
    def _(): ...                            # asserts what comes instead

A test is a function or a coroutine function. `python calls.py FILE...` imports these files (names of modules beside this
one), runs their tests in order, and prints a line of TAP for each. A test that passed appends its row to the file $SHOAL_CALLS, in
the form that tests/node/clients_table.mjs reads. The exit status is 1 when a test failed or a file does not import.
"""

import asyncio
import faulthandler
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import traceback

URL = os.environ["SHOAL_URL"]
V1 = URL + "/v1"
_tests = []


def client(name):
    """Calls of one package of PyPI; the row tells the version that is imported."""
    version = importlib.metadata.version(name)
    frame = inspect.stack()[1].frame
    file = os.path.basename(frame.f_globals["__file__"])

    def call(what_is_called, what, differs=None):
        def add(run):
            _tests.append((run, {"client": name, "version": version, "file": file, "call": what_is_called, "what": what, "why": differs}))
            return run

        return add

    return call


class rejects:
    """with rejects(openai.NotFoundError, "no such") as e: ...   e.error is the exception; the text must be part of it."""

    def __init__(self, kind, text=""):
        self.kind, self.text, self.error = kind, text, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            raise AssertionError(f"no {self.kind.__name__} was raised")
        if not isinstance(error, self.kind):
            return False
        assert self.text in str(error), f"{self.text!r} is not in {error!s}"
        self.error = error
        return True


def equal(got, want):
    assert got == want, f"{got!r} is not {want!r}"


def _run(files):
    sys.path.insert(0, os.path.dirname(__file__))
    only = os.environ.get("SHOAL_ONLY", "")  # part of a row's text: these tests alone
    failed = 0
    for file in files:
        importlib.import_module(file)
    tests = [t for t in _tests if only in " ".join((t[1]["client"], t[1]["call"], t[1]["what"]))]
    print(f"1..{len(tests)}")
    loop = asyncio.new_event_loop()  # one for all: some clients keep connections in it
    for at, (run, row) in enumerate(tests):
        title = f"{at + 1} - {row['client']} {row['version']}: {row['call']}: {row['what']}"
        try:
            loop.run_until_complete(run()) if inspect.iscoroutinefunction(run) else run()
        except Exception:
            failed += 1
            print(f"not ok {title}\n" + "".join("    " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            continue
        finally:
            sys.stdout.flush()
        print(f"ok {title}", flush=True)
        if "SHOAL_CALLS" in os.environ:
            with open(os.environ["SHOAL_CALLS"], "a", encoding="utf-8") as rows:
                rows.write(json.dumps({**row, "at": at}) + "\n")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.modules["calls"] = sys.modules["__main__"]
    faulthandler.enable()
    sys.exit(_run(sys.argv[1:]))
