"""The command shoal-ray, on any node of a Ray cluster."""
from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import ray

from . import NAMESPACE, controller, spec


def _connect(address: str) -> None:
    """This package goes to the nodes with the actors: they need not have it installed."""
    here = str(Path(__file__).resolve().parent)
    ray.init(address=address, namespace=NAMESPACE, runtime_env={"py_modules": [here]}, log_to_driver=False, logging_level="error")


def _controller() -> object:
    try:
        return controller.get()
    except ValueError:
        sys.exit("shoal-ray: nothing runs here: shoal-ray up FILE")


def _show(status: dict) -> None:
    print(f"{'NAME':<36} {'STATE':<9} {'ADDRESS':<22} NODE")
    for kind in status.values():
        for a in kind["actors"]:
            print(f"{a['name']:<36} {a['state']:<9} {a['address'] or '-':<22} {a['node'][:12] or '-'}")
    for name, kind in status.items():
        if kind["ready"] != kind["wanted"] or kind["trouble"]:
            print(f"{name}: {kind['ready']} of {kind['wanted']} ready{': ' if kind['trouble'] else ''}{kind['trouble']}")


def _up(o: argparse.Namespace) -> None:
    try:
        wanted = spec.load(o.file)
    except spec.SpecError as e:
        sys.exit(f"shoal-ray: {o.file}: {e}")
    _connect(o.address)
    c = controller.put(wanted)
    end = time.monotonic() + o.wait_s
    while True:
        status = ray.get(c.status.remote())
        done = all(k["ready"] == k["wanted"] == len(k["actors"]) for k in status.values())
        if done or time.monotonic() > end:
            break
        time.sleep(0.5)
    _show(status)
    if not done:
        sys.exit(f"shoal-ray: not all is ready after {o.wait_s:.0f} s; it is tried further")


def _status(o: argparse.Namespace) -> None:
    _connect(o.address)
    status = ray.get(_controller().status.remote())
    print(json.dumps(status)) if o.json else _show(status)


def _scale(o: argparse.Namespace) -> None:
    _connect(o.address)
    why = ray.get(_controller().scale.remote(o.model, o.n))
    if why:
        sys.exit(f"shoal-ray: {why}")


def _ingress(o: argparse.Namespace) -> None:
    from ray import serve

    from .ingress import Ingress
    _connect(o.address)
    serve.start(http_options={"host": o.host, "port": o.port})
    serve.run(Ingress.options(num_replicas=o.replicas).bind(), name="shoal", route_prefix="/")
    print(f"http://{o.host}:{o.port}")


def _down(o: argparse.Namespace) -> None:
    _connect(o.address)
    c = _controller()
    ray.get(c.stop.remote())
    ray.kill(c, no_restart=True)


def main() -> None:
    p = argparse.ArgumentParser(prog="shoal-ray", description="Shoal on a Ray cluster.")
    p.add_argument("--address", default="auto", help="of the Ray cluster (this node's)")
    commands = p.add_subparsers(required=True)

    def command(name: str, do, about: str) -> argparse.ArgumentParser:
        c = commands.add_parser(name, help=about, description=about)
        c.set_defaults(do=do)
        return c

    c = command("up", _up, "run what FILE says, or change what runs to it")
    c.add_argument("file", metavar="FILE")
    c.add_argument("--wait-s", type=float, default=120, help="how long to wait until all is ready (120)")
    c = command("status", _status, "gateways and workers")
    c.add_argument("--json", action="store_true")
    c = command("scale", _scale, "another number of workers, within min and max")
    c.add_argument("model", metavar="MODEL")
    c.add_argument("n", metavar="N", type=int)
    c = command("ingress", _ingress, "a Ray Serve ingress in front of the gateways")
    c.add_argument("--host", default="127.0.0.1")
    c.add_argument("--port", type=int, default=8000)
    c.add_argument("--replicas", type=int, default=1)
    command("down", _down, "drain and end everything but the ingress")
    o = p.parse_args()
    o.do(o)


if __name__ == "__main__":
    main()
