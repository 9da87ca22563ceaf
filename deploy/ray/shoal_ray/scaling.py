"""How many workers a model is to have. Pure: time is an argument."""
from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass, field

_GAUGE = re.compile(r'^shoal_model_(running|queue|calls_held)\{model="([^"]+)"\} ([0-9.e+]+)', re.M)


@dataclass(frozen=True)
class Load:
    """A model at one gateway: in the workers' batches, waiting (there or here), and waiting here for a worker."""

    running: float = 0
    queue: float = 0
    held: float = 0


def loads_of(metrics: str) -> dict[str, Load]:
    """The loads that the text of a gateway's /metrics names."""
    seen: dict[str, dict[str, float]] = {}
    for what, model, value in _GAUGE.findall(metrics):
        seen.setdefault(model, {})["held" if what == "calls_held" else what] = float(value)
    return {model: Load(**values) for model, values in seen.items()}


def under_way(at_gateways: list[Load]) -> float:
    """Requests for a model. All gateways see the same workers; each holds its own calls."""
    return (max((l.running for l in at_gateways), default=0) + max((max(l.queue - l.held, 0) for l in at_gateways), default=0) +
            sum(l.held for l in at_gateways))


@dataclass
class Scaler:
    """Up at once, down when less was wanted for `down_s`."""

    low: int
    high: int
    target: float
    down_s: float
    recent: deque = field(default_factory=deque)  # of (when, wanted)

    def wanted(self, now: float, load: float) -> int:
        self.recent.append((now, min(max(math.ceil(load / self.target), self.low), self.high)))
        while self.recent[0][0] < now - self.down_s:
            self.recent.popleft()
        return max(n for _, n in self.recent)
