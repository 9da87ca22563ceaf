"""The actors: a Worker is one process that serves one model, a Gateway one process that clients ask.

An actor ends when its process ends, and Ray starts it again, on any node that has what it needs. It tells where it listens when it is
asked (`look`); the controller asks once a second."""
from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

import ray

from .process import Process, private_folder, put
from .scaling import Load, loads_of
from .spec import Spec, Tls

LOAD_S = 600  # a model that is not loaded by then never will be


@dataclass(frozen=True)
class View:
    """What an actor says of itself."""

    address: str
    node: str
    pid: int
    loads: dict[str, Load] = field(default_factory=dict)   # of a gateway
    silent: list[str] = field(default_factory=list)        # addresses of workers that do not answer a gateway
    ending: bool = False                                   # it finishes what it does, and ends


def _accepts(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.settimeout(1)
        return s.connect_ex((host, port)) == 0


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Actor:
    """What both have in common: a process, a private folder, and an end that Ray notices."""

    def __init__(self, name: str) -> None:
        self.folder = private_folder(f"{ray.get_runtime_context().gcs_address}/{name}")
        self.host = ray.util.get_node_ip_address()
        self.node = ray.get_runtime_context().get_node_id()
        self.address = ""
        self.ending = threading.Event()
        self.process: Process | None = None
        if ray.get_runtime_context().was_current_actor_reconstructed:
            time.sleep(1)  # one that ends at once does not keep the node busy

    def _exited(self, status: int) -> None:
        if not self.ending.is_set() and self.address:
            print(f"shoal ended with {status}", file=sys.stderr, flush=True)
            os._exit(1)

    def _take(self, port: int) -> None:
        self.address = _join(self.host, port)
        if self.process.status is not None:
            raise RuntimeError("shoal ended as soon as it served")

    def drain(self, grace_s: float) -> None:
        """Finish what runs, then end for good. Who asks again, as a new controller does, waits: a second SIGTERM would cut streams."""
        again = self.ending.is_set()
        self.ending.set()
        if again:
            self.process.wait()
        else:
            self.process.stop(grace_s)
        shutil.rmtree(self.folder, ignore_errors=True)
        ray.actor.exit_actor()


@ray.remote(max_restarts=-1, max_concurrency=4)
class Worker(_Actor):
    """A `shoal worker` of one model."""

    def __init__(self, name: str, spec: Spec, model: str) -> None:
        super().__init__(name)
        self.set_tls(spec.tls)
        m = spec.models[model]
        threads = m.threads or max(1, int(-(-m.cpus // 1)))
        argv = [shutil.which(spec.program) or spec.program, "worker", "--name", model, "--model", m.path, "--threads", str(threads),
                "--tls-cert", str(self.folder / "tls.crt"), "--tls-key", str(self.folder / "tls.key"),
                "--tls-ca", str(self.folder / "ca.crt"), "--tls-client", "shoal-gateway", "--log-level", "info", *m.args]
        first, last = spec.ports
        ports = list(range(first, last + 1))
        at = random.randrange(len(ports))
        ports = [p for p in ports[at:] + ports[:at] if not _accepts(self.host, p)]
        for port in ports[:8]:
            # Another program may take the port while the model loads: then the next one.
            self.process = Process([*argv, "--address", _join(self.host, port)], self._exited)
            if self._serves(port):
                self._take(port)
                return
            if not _accepts(self.host, port):
                break
        raise RuntimeError(f"shoal worker of {model} does not start on {self.host}: its log says why (ray logs)")

    def _serves(self, port: int) -> bool:
        end = time.monotonic() + LOAD_S
        while time.monotonic() < end and self.process.status is None:
            if _accepts(self.host, port):
                time.sleep(0.05)
                return self.process.status is None
            time.sleep(0.05)
        return False

    def set_tls(self, tls: Tls) -> None:
        """Renewed certificates: the process reads changed files by itself."""
        for name, text in (("ca.crt", tls.ca), ("tls.crt", tls.worker_cert), ("tls.key", tls.worker_key)):
            put(self.folder, name, text)

    def look(self) -> View:
        return View(self.address, self.node, self.process.pid, ending=self.ending.is_set())


@ray.remote(max_restarts=-1, max_concurrency=4)
class Gateway(_Actor):
    """A `shoal serve` that starts no model, and calls the workers that the controller names."""

    def __init__(self, name: str, spec: Spec) -> None:
        super().__init__(name)
        self.set_tls(spec.tls)
        self.rows: list[tuple[str, str]] = []
        self.key = secrets.token_hex(32)
        self.config = self._config(spec)
        self._write()
        self.ready = threading.Event()
        config = str(self.folder / "shoal.yaml")
        free = [p for p in range(spec.gateways.port, spec.gateways.port + 16) if not _accepts(self.host, p)]
        for port in free:
            self.process = Process([shutil.which(spec.program) or spec.program, "serve", "--config", config, "--listen",
                                    _join(self.host, port), "--json-log"], self._exited, self._said,
                                   {"SHOAL_STATE": str(self.folder / "state")})
            while self.process.status is None and not self.ready.wait(0.05):
                pass
            if self.ready.is_set():
                self._take(port)
                return
            if not _accepts(self.host, port):
                break
        raise RuntimeError(f"shoal serve does not start on {self.host}: its log says why (ray logs)")

    def _said(self, line: str) -> None:
        if line.startswith("ready "):
            self.ready.set()

    def _config(self, spec: Spec) -> dict:
        """shoal.yaml but for the workers. Where clients need a key, one more reads the metrics, and never leaves this actor."""
        config = {"failover_wait_ms": 120000, "drain_ms": int(spec.gateways.drain_s * 1000), **spec.gateways.config}
        if config.get("api_keys"):
            own = {"name": "ray-metrics", "sha256": hashlib.sha256(self.key.encode()).hexdigest(), "admin": True, "endpoints": ["metrics"]}
            config["api_keys"] = [*config["api_keys"], own]
        config["models"] = [{"name": n, "external": True, **m.config} for n, m in spec.models.items()]
        tls = {"cert": str(self.folder / "tls.crt"), "key": str(self.folder / "tls.key"), "ca": str(self.folder / "ca.crt")}
        config["discovery"] = {"tls": tls}
        return config

    def _write(self) -> None:
        rows = [{"model": m["name"]} for m in self.config["models"]] + [{"model": m, "address": a} for m, a in self.rows]
        put(self.folder, "shoal.yaml", json.dumps(self.config | {"discovery": self.config["discovery"] | {"workers": rows}}, indent=1))

    def set_workers(self, rows: list[tuple[str, str]]) -> None:
        """All workers there are: (model, address). Streams at one that is no longer named continue at another."""
        if rows == self.rows:
            return
        self.rows = rows
        self._write()
        self.process.signal(signal.SIGHUP)

    def set_tls(self, tls: Tls) -> None:
        for name, text in (("ca.crt", tls.ca), ("tls.crt", tls.gateway_cert), ("tls.key", tls.gateway_key)):
            put(self.folder, name, text)

    def _get(self, path: str) -> str:
        r = urllib.request.Request(f"http://{self.address}{path}", headers={"Authorization": f"Bearer {self.key}"})
        try:
            with urllib.request.urlopen(r, timeout=2) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:  # /readyz is 503 while a model has no worker
            return e.read().decode()

    def look(self) -> View:
        try:
            loads = loads_of(self._get("/metrics"))
            silent = [r["id"].rsplit("/", 1)[0] for r in json.loads(self._get("/readyz"))["replicas"] if r["state"] == "silent"]
        except (OSError, ValueError, KeyError, http.client.HTTPException):
            loads, silent = {}, []
        return View(self.address, self.node, self.process.pid, loads, silent, self.ending.is_set())
