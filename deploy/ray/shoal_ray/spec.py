"""What is to run: a YAML file as dataclasses. Unknown keys, wrong types and values that cannot be are refused by name."""
from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import typing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

GROUPS = ("SPREAD", "STRICT_SPREAD", "PACK", "STRICT_PACK")


class SpecError(ValueError):
    """A sentence that names the key."""


@dataclass(frozen=True)
class Model:
    """A model: where its file is on every node, what a worker of it takes, and how many there may be."""

    path: str
    cpus: float = 1.0
    memory_mb: int = 0                  # what Ray reserves; 0: nothing
    resources: dict = field(default_factory=dict)
    threads: int = 0                    # of a worker; 0: cpus, rounded up
    args: list = field(default_factory=list)
    min: int = 1
    max: int = 0                        # 0: min
    target: float = 0                   # requests under way per worker; 0: the number is not changed by itself
    down_s: float = 60.0                # fewer workers only after this time of less load
    group: str = ""                     # a placement group of `min` bundles with this strategy
    drain_s: float = 60.0               # how long a worker may finish its calls
    config: dict = field(default_factory=dict)  # further keys of the model in shoal.yaml: cost, fallback

    @property
    def most(self) -> int:
        return self.max or self.min

    @property
    def digest(self) -> str:
        """Changes with whatever needs other workers."""
        of = (self.path, self.cpus, self.memory_mb, self.resources, self.threads, self.args, self.group, self.group and self.min)
        return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Gateways:
    """How many gateways there are, and what their shoal.yaml has beside models and discovery."""

    replicas: int = 1
    port: int = 8080
    cpus: float = 0.5
    resources: dict = field(default_factory=dict)
    drain_s: float = 60.0
    config: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Tls:
    """PEM texts. A gateway shows its pair to workers, a worker its pair to gateways; one CA signed both."""

    worker_cert: str
    worker_key: str
    gateway_cert: str
    gateway_key: str
    ca: str


@dataclass(frozen=True)
class Spec:
    models: dict[str, Model]
    gateways: Gateways
    tls: Tls
    program: str = "shoal"
    ports: tuple[int, int] = (7090, 7189)  # of workers

    @property
    def gateway_digest(self) -> str:
        """Changes with whatever needs other gateways."""
        of = (dataclasses.asdict(self.gateways) | {"replicas": 0}, sorted((n, m.config) for n, m in self.models.items()))
        return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:8]


def _fill(kind: type, given: object, where: str):
    """An instance of a dataclass from a map, each key of its type."""
    if not isinstance(given, dict):
        raise SpecError(f"{where}: must be a map")
    types = typing.get_type_hints(kind)
    for key, value in given.items():
        if key not in types:
            raise SpecError(f"{where}.{key}: is no key; there are {', '.join(types)}")
        wanted = (int, float) if types[key] is float else types[key]
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise SpecError(f"{where}.{key}: must be of type {types[key].__name__}")
    for f in dataclasses.fields(kind):
        if f.name not in given and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise SpecError(f"{where}.{f.name}: is required")
    return kind(**given)


def _model(name: str, given: object) -> Model:
    where = f"models.{name}"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SpecError(f"{where}: is no name of a model")
    m = _fill(Model, given, where)
    if m.min < 0 or m.most < m.min or m.most < 1 or m.most > 1000:
        raise SpecError(f"{where}: needs 0 <= min <= max <= 1000, and max of 1 or more")
    if m.min == 0 and not m.target:
        raise SpecError(f"{where}.min: may be 0 only with `target`, or nothing would start the first worker")
    if m.target < 0 or m.cpus < 0 or m.threads < 0 or m.memory_mb < 0 or m.drain_s < 0 or m.down_s < 0:
        raise SpecError(f"{where}: a number is negative")
    if m.group and (m.group not in GROUPS or m.min == 0):
        raise SpecError(f"{where}.group: must be one of {', '.join(GROUPS)}, and needs min of 1 or more")
    if not all(isinstance(a, str) for a in m.args):
        raise SpecError(f"{where}.args: must be texts")
    return m


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as e:
        raise SpecError(f"tls: {path}: {e.strerror}") from e


def read_tls(folder: Path) -> Tls:
    """The folder that deploy/kubernetes/certificates.sh makes."""
    w, g = folder / "worker", folder / "gateway"
    return Tls(_read(w / "tls.crt"), _read(w / "tls.key"), _read(g / "tls.crt"), _read(g / "tls.key"), _read(w / "ca.crt"))


def parse(text: str, folder: Path) -> Spec:
    """The specification in a YAML text; its relative `tls` begins at the folder."""
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise SpecError(f"not YAML: {e}") from e
    if not isinstance(given, dict):
        raise SpecError("must be a map")
    for key in given:
        if key not in ("program", "tls", "ports", "gateways", "models"):
            raise SpecError(f"{key}: is no key")
    models = given.get("models")
    if not isinstance(models, dict) or not models:
        raise SpecError("models: must name one or more")
    if not isinstance(given.get("tls"), str):
        raise SpecError("tls: must be a folder")
    gateways = _fill(Gateways, given.get("gateways", {}), "gateways")
    if gateways.replicas < 1 or not 0 < gateways.port < 65536:
        raise SpecError("gateways: needs replicas of 1 or more, and a port")
    for key in ("models", "discovery", "listen", "tls"):
        if key in gateways.config:
            raise SpecError(f"gateways.config.{key}: is not for this file")
    ports = re.fullmatch(r"(\d+)-(\d+)", str(given.get("ports", "7090-7189")))
    if not ports or not 0 < int(ports[1]) <= int(ports[2]) < 65536:
        raise SpecError("ports: must be FIRST-LAST")
    return Spec({str(n): _model(str(n), m) for n, m in models.items()}, gateways, read_tls(folder / given["tls"]),
                str(given.get("program", "shoal")), (int(ports[1]), int(ports[2])))


def load(path: str) -> Spec:
    try:
        return parse(Path(path).read_text(), Path(path).resolve().parent)
    except OSError as e:
        raise SpecError(f"{path}: {e.strerror}") from e
