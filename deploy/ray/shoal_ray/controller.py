"""The controller: makes the actors that there are those that are wanted, and tells gateways where workers are.

It keeps nothing: the names of the actors say what runs (`worker/MODEL/DIGEST/N`, `gateway/DIGEST/N`), so another controller, after a
crash or with another specification, continues with them. Where it is away, everything that runs continues."""
from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from dataclasses import dataclass, field

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError
from ray.util import list_named_actors, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import CONTROLLER, NAMESPACE
from .actors import Gateway, View, Worker
from .scaling import Load, Scaler, under_way
from .spec import Model, Spec

PERIOD_S = 1.0
SILENT_S = 30.0   # a worker that answers no gateway for so long is killed, and started again
RETRY_S = 5.0     # after an actor could not start


@dataclass
class Kept:
    """An actor of ours, and what is known of it."""

    name: str
    handle: object
    view: View | None = None            # None: it has not answered since it was started (again)
    looking: asyncio.Task | None = None
    draining: asyncio.Task | None = None
    silent_since: float = 0.0
    dead: bool = False                  # Ray will not start it again

    @property
    def ready(self) -> bool:
        return self.view is not None and not self.view.ending and not self.draining and not self.dead


async def _call(ref: object) -> object:
    return await ref


@dataclass
class Wanted:
    """Actors of one kind: workers of a model, or gateways."""

    prefix: str                         # of their names, with the digest
    family: str                         # the same without it
    n: int
    drain_s: float
    make: object                        # (name, index) -> handle
    retry_at: float = 0.0
    trouble: str = ""


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Controller:
    """One for the cluster, by name. Its methods are what the command shoal-ray and the ingress call."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.kept: dict[str, Kept] = {}
        self.groups: dict[str, object] = {}
        self._adopt()
        self.wanted = {f"worker/{n}/": self._workers(n, m) for n, m in spec.models.items()}
        g = spec.gateways
        # What there is counts as wanted just now: the first look may come before a gateway tells its load.
        self.scalers = {n: Scaler(m.min, m.most, m.target, m.down_s, deque([(time.monotonic(), self.wanted[f"worker/{n}/"].n)]))
                        for n, m in spec.models.items() if m.target}
        self.wanted["gateway/"] = Wanted(f"gateway/{spec.gateway_digest}/", "gateway/", g.replicas, g.drain_s, self._make_gateway)
        self.stopping = False
        self.renewed: dict[str, int] = {}  # the process that has this specification's certificates
        self.task = asyncio.get_event_loop().create_task(self._run())

    # ---- what there is

    def _adopt(self) -> None:
        for name in list_named_actors():
            if name.startswith(("worker/", "gateway/")) and name not in self.kept:
                try:
                    self.kept[name] = Kept(name, ray.get_actor(name))
                except ValueError:
                    pass  # it has just ended

    def _of(self, prefix: str) -> list[Kept]:
        return [k for name, k in sorted(self.kept.items()) if name.startswith(prefix) and not k.draining]

    def _workers(self, name: str, m: Model) -> Wanted:
        """As many as there are already, within the bounds; else the least."""
        there = len(self._of(f"worker/{name}/{m.digest}/"))
        n = min(max(there, m.min), m.most)
        return Wanted(f"worker/{name}/{m.digest}/", f"worker/{name}/", n, m.drain_s, lambda full, i: self._make_worker(full, i, name, m))

    # ---- actors

    def _make_worker(self, name: str, i: int, model: str, m: Model) -> object:
        where: object = "SPREAD"
        if m.group and i < m.min:
            where = PlacementGroupSchedulingStrategy(self._group(model, m), placement_group_bundle_index=i)
        options = {"name": name, "namespace": NAMESPACE, "lifetime": "detached", "num_cpus": m.cpus, "resources": m.resources,
                   "scheduling_strategy": where}
        if m.memory_mb:
            options["memory"] = m.memory_mb << 20
        return Worker.options(**options).remote(name, self.spec, model)

    def _make_gateway(self, name: str, _: int) -> object:
        g = self.spec.gateways
        return Gateway.options(name=name, namespace=NAMESPACE, lifetime="detached", num_cpus=g.cpus, resources=g.resources,
                               scheduling_strategy="SPREAD").remote(name, self.spec)

    def _group(self, model: str, m: Model) -> object:
        """The placement group of a model's first `min` workers."""
        name = f"group/{model}/{m.digest}"
        if name not in self.groups:
            try:
                self.groups[name] = ray.util.get_placement_group(name)
            except ValueError:
                bundle = {"CPU": m.cpus, **m.resources} | ({"memory": m.memory_mb << 20} if m.memory_mb else {})
                self.groups[name] = placement_group([bundle] * m.min, strategy=m.group, name=name, lifetime="detached")
        return self.groups[name]

    def _drop_groups(self) -> None:
        """Of models and specifications that are no more, once their workers have gone."""
        for row in ray.util.placement_group_table().values():
            name, parts = row["name"], row["name"].split("/")
            if len(parts) != 3 or parts[0] != "group" or row["state"] == "REMOVED":
                continue
            _, model, digest = parts
            m = self.spec.models.get(model)
            unused = not any(k.startswith(f"worker/{model}/{digest}/") for k in self.kept)
            if unused and (self.stopping or not m or m.digest != digest):
                try:
                    remove_placement_group(ray.util.get_placement_group(name))
                except ValueError:
                    pass  # it is of another namespace, or has just gone

    async def _look(self, k: Kept) -> None:
        """One question at a time: an actor that waits for room answers when it has it."""
        if k.looking is None:
            k.looking = asyncio.ensure_future(_call(k.handle.look.remote()))
        await asyncio.wait([k.looking], timeout=0.3)
        if not k.looking.done():
            return
        try:
            k.view = k.looking.result()
        except ActorDiedError as e:
            k.view, k.dead = None, True
            self._say(k.name, e)
        except (ActorUnavailableError, RayActorError):
            k.view = None  # Ray starts it again
        except Exception as e:  # noqa: BLE001: whatever one actor does, the others are looked after
            k.view = None
            print(f"{k.name}: {e}", file=sys.stderr, flush=True)
        k.looking = None

    def _say(self, name: str, e: Exception) -> None:
        for w in self.wanted.values():
            if name.startswith(w.family):
                w.trouble = str(e).strip().splitlines()[-1][:300]
                w.retry_at = time.monotonic() + RETRY_S

    async def _drain(self, k: Kept, grace_s: float) -> None:
        try:
            if k.view is not None:
                await asyncio.wait_for(_call(k.handle.drain.remote(grace_s)), grace_s + 10)
        except Exception:  # noqa: BLE001: it ends with the call, or its node has gone
            pass
        try:
            ray.kill(k.handle, no_restart=True)
        finally:
            self.kept.pop(k.name, None)

    def _let_go(self, k: Kept, grace_s: float) -> None:
        k.draining = asyncio.ensure_future(self._drain(k, grace_s))

    # ---- a round

    def _reconcile(self, w: Wanted, now: float) -> None:
        """Those of the present digest come one after the other where old ones serve, and an old one goes for each that has come."""
        for k in [k for k in self._of(w.family) if k.dead]:
            del self.kept[k.name]
        new = self._of(w.prefix)
        old = [k for k in self._of(w.family) if not k.name.startswith(w.prefix)]
        if len(new) >= w.n and all(k.view is not None for k in new):
            w.trouble = ""
        n_ready = sum(k.ready for k in new)
        room = w.n if not old else min(w.n, n_ready + 1)
        for i in range(w.n):
            name = f"{w.prefix}{i}"
            if len(new) >= room or now < w.retry_at:
                break
            if name in self.kept:
                continue
            try:
                new.append(self.kept.setdefault(name, Kept(name, w.make(name, i))))
            except ValueError as e:  # the name of one that is ending still
                w.trouble, w.retry_at = str(e), now + PERIOD_S
        for k in new[w.n:] if len(new) > w.n else []:
            self._let_go(k, w.drain_s)
        for k in old[max(w.n - n_ready, 0):]:
            self._let_go(k, w.drain_s)

    def _ending(self) -> None:
        """Actors that an earlier controller told to end: they finish what they do, and are neither counted nor named."""
        for w in self.wanted.values():
            for k in self._of(w.family):
                if k.view is not None and k.view.ending:
                    self._let_go(k, w.drain_s)

    def _gone_models(self) -> None:
        for k in self._of(""):
            if not any(k.name.startswith(w.family) for w in self.wanted.values()):
                self._let_go(k, 60)

    def _rows(self) -> list[tuple[str, str]]:
        return sorted((k.name.split("/")[1], k.view.address) for k in self._of("worker/") if k.ready)

    def _loads(self, model: str) -> list[Load]:
        return [k.view.loads[model] for k in self._of("gateway/") if k.ready and model in k.view.loads]

    def _watch(self, now: float) -> None:
        """A worker that its actor believes in, and that answers no gateway."""
        silent = [set(k.view.silent) for k in self._of("gateway/") if k.ready]
        everywhere = set.intersection(*silent) if silent else set()
        for k in self._of("worker/"):
            if not k.ready or k.view.address not in everywhere:
                k.silent_since = 0.0
            elif not k.silent_since:
                k.silent_since = now
            elif now - k.silent_since > SILENT_S:
                print(f"{k.name}: silent for {SILENT_S:.0f} s: killed", file=sys.stderr, flush=True)
                ray.kill(k.handle, no_restart=False)
                k.view, k.silent_since = None, 0.0

    async def _renew(self) -> None:
        """Certificates of this specification, to actors that an earlier one has made."""
        for k in self._of(""):
            if k.ready and self.renewed.get(k.name) != k.view.pid:
                await k.handle.set_tls.remote(self.spec.tls)
                self.renewed[k.name] = k.view.pid

    async def _tell(self, k: Kept, rows: list[tuple[str, str]]) -> None:
        """One that does not answer, on a node that is lost, say, keeps nothing from the others."""
        try:
            await asyncio.wait_for(_call(k.handle.set_workers.remote(rows)), PERIOD_S)
        except Exception as e:  # noqa: BLE001
            print(f"{k.name}: {type(e).__name__}: {e}", file=sys.stderr, flush=True)

    async def _round(self) -> None:
        now = time.monotonic()
        await asyncio.gather(*(self._look(k) for k in self._of("")))
        if not self.stopping:
            for name, scaler in self.scalers.items():
                self.wanted[f"worker/{name}/"].n = scaler.wanted(now, under_way(self._loads(name)))
        self._ending()
        for w in self.wanted.values():
            self._reconcile(w, now)
        self._gone_models()
        rows = self._rows()
        await asyncio.gather(*(self._tell(k, rows) for k in self._of("gateway/") if k.ready))
        self._watch(now)
        await self._renew()
        self._drop_groups()

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except Exception as e:  # noqa: BLE001: an actor may end between any two lines; the next round sees it
                print(f"{type(e).__name__}: {e}", file=sys.stderr, flush=True)
            await asyncio.sleep(PERIOD_S)

    # ---- what others ask

    async def gateways(self) -> list[str]:
        """Addresses of the gateways that are ready."""
        return [k.view.address for k in self._of("gateway/") if k.ready]

    async def scale(self, model: str, n: int) -> str:
        """Another number of workers; why not, or nothing."""
        m = self.spec.models.get(model)
        if not m:
            return f"there is no model {model}"
        if m.target:
            return f"{model} has a target: its load says how many there are"
        if not m.min <= n <= m.most:
            return f"{model} may have {m.min} to {m.most} workers"
        self.wanted[f"worker/{model}/"].n = n
        return ""

    async def status(self) -> dict:
        kinds = {}
        for family, w in self.wanted.items():
            of = [k for name, k in sorted(self.kept.items()) if name.startswith(family)]
            kinds[family.rstrip("/")] = {
                "wanted": w.n, "ready": sum(k.ready and k.name.startswith(w.prefix) for k in of), "trouble": w.trouble,
                "actors": [{"name": k.name, "node": k.view.node if k.view else "", "address": k.view.address if k.view else "",
                            "pid": k.view.pid if k.view else 0,
                            "state": "draining" if k.draining else "ready" if k.ready else "starting"} for k in of]}
        return kinds

    async def stop(self) -> None:
        """Gateways drain, then workers; returns when no actor is left."""
        self.stopping = True
        for family in ("gateway/", "worker/"):
            for w in self.wanted.values():
                if w.family.startswith(family):
                    w.n = 0
            while any(name.startswith(family) for name in self.kept):
                await asyncio.sleep(0.2)
        self._drop_groups()


def get() -> object:
    """The cluster's controller; ValueError where there is none."""
    return ray.get_actor(CONTROLLER, namespace=NAMESPACE)


def put(spec: Spec) -> object:
    """The controller with this specification, in the place of the one that there is."""
    try:
        ray.kill(get(), no_restart=True)
    except ValueError:
        pass
    end = time.monotonic() + 30
    while True:
        try:
            # At the head: without that node there is no cluster.
            return Controller.options(name=CONTROLLER, namespace=NAMESPACE, lifetime="detached",
                                      resources={"node:__internal_head__": 0.001}).remote(spec)
        except ValueError:  # its name is known until it has gone
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
