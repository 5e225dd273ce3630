"""The yardstick on made-up systems: 300 of known truth, measured small with noise, forecast large.

Fixed before the model was tried on them. A system has clients, their links, metadata targets, data targets and a lock
of the shared
directory, each with a capacity of its own, and one of four shapes:

- *caps*: the rate is the least of what each part can carry; nothing is lost before.
- *queue*: the parts are stations of a closed queueing network, solved exactly (mean value analysis, a client's every
rank a customer).
- *retrograde*: a lock whose holder is passed on more dearly the more ask for it: the rate falls beyond a peak.
- *swap*: two parts of nearly the same capacity, one of which grows with the number of metadata targets: which is
scarce changes.

Measured are 1, 2, 4 and 8 clients (16 in every other system), and where there are several metadata targets also 2 of
them, each level
3 to 12 times with 2 to 8 % of log-normal noise. Counters tell the busy share of each part with a probability of 0.8,
with an error of
4 points. Forecast is the rate with 4 to 32 times as many clients and 1 to 4 times as many metadata targets.

*Coverage* of the 80 % interval (aim 74 to 86 %), the median factor of error, and how often what saturates first at
the forecast's
scale is named right (aim at least 80 %) and wrong (at most 5 %); where the forecast says that it is not known,
neither. Right is the
part with the largest busy share in truth, or any whose share is within 5 points of that.

Seed 7311 judged the models before the fourth. 52018 was named before the fourth was tried on it, 61127 before the
fifth was, 70211 before the sixth, 88419 before the seventh and 90173 before the eighth; the constants of all four were
chosen on seeds 101 to 104.

The same systems are judged with data sheets beside: these state what a unit of each part carries that no counter tells
of, off by a log-normal 10 %. Of a lock, which has no data sheet in earnest, they state nothing, or what it carries when
one rank asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

Shape = Literal["caps", "queue", "retrograde", "swap"]
SHAPES: tuple[Shape, ...] = ("caps", "queue", "retrograde", "swap")
Part = Literal["clients", "links", "mdts", "osts", "lock"]
PARTS: tuple[Part, ...] = ("clients", "links", "mdts", "osts", "lock")
TOLD = 0.8
COUNTER_ERROR = 0.04
CLOSE = 0.05
SEED = 90173
SHEET_ERROR = 0.1


@dataclass(frozen=True)
class Size:
    """How large the system is, and how much asks of it."""

    clients: int
    ranks_each: int = 4
    mdts: float = 1
    osts: int = 4

    @property
    def ranks(self) -> int:
        """Return all ranks together."""
        return self.clients * self.ranks_each


@dataclass(frozen=True)
class MadeUpSystem:
    """``demand_s``: what one operation takes of one unit of each part. ``latency_s``: what it waits for besides."""

    shape: Shape
    latency_s: float
    demand_s: Mapping[Part, float]
    passing_on: float

    def rate(self, size: Size) -> float:
        """Return operations a second."""
        units = units_of(size)
        demands = {part: demand / units[part] for part, demand in self.demand_s.items()}
        if self.shape == "retrograde":
            demands["lock"] *= 1 + self.passing_on * (size.ranks - 1)
        alone_s = self.latency_s + sum(self.demand_s.values())
        if self.shape == "queue":
            return _exact_mva(size.ranks, self.latency_s, self.demand_s, units)
        return min(size.ranks / alone_s, *(1 / demand for demand in demands.values()))

    def busy(self, size: Size) -> dict[Part, float]:
        """Return the busy share of a unit of each part."""
        units, rate = units_of(size), self.rate(size)
        dearer = 1 + self.passing_on * (size.ranks - 1) if self.shape == "retrograde" else 1.0
        return {
            part: min(1.0, rate * demand / units[part] * (dearer if part == "lock" else 1.0))
            for part, demand in self.demand_s.items()
        }


@dataclass(frozen=True)
class Level:
    """What was measured with one size: rates of the runs, and the busy share of what counters told."""

    size: Size
    rates: tuple[float, ...]
    busy: Mapping[Part, float]


@dataclass(frozen=True)
class Task:
    """A system, what was measured of it, and the size that is asked for."""

    system: MadeUpSystem
    levels: tuple[Level, ...]
    asked: Size

    @property
    def scarce(self) -> frozenset[Part]:
        """The parts that may rightly be named; none where no part is busy for more than half of the time."""
        busy = self.system.busy(self.asked)
        most = max(busy.values())
        return frozenset(part for part, share in busy.items() if share >= most - CLOSE) if most > 0.5 else frozenset()


def units_of(size: Size) -> dict[Part, float]:
    """Return how many of each part there are."""
    return {"clients": size.clients, "links": size.clients, "mdts": size.mdts, "osts": size.osts, "lock": 1}


def make_tasks(number: int = 300, seed: int = SEED) -> list[Task]:
    """Draw as many, of every shape alike."""
    generator = np.random.default_rng(seed)
    return [_task(SHAPES[index % len(SHAPES)], index, generator) for index in range(number)]


def read_sheet(task: Task, seed: int, *, of_locks: bool) -> dict[Part, float]:
    """Return the operations a second of one unit of each part that no counter tells of, as a data sheet states them."""
    errors = np.random.default_rng(seed).normal(0, SHEET_ERROR, len(PARTS))
    return {
        part: math.exp(error) / task.system.demand_s[part]
        for part, error in zip(PARTS, errors, strict=True)
        if part not in task.levels[0].busy and (part != "lock" or of_locks)
    }


def _task(shape: Shape, index: int, generator: np.random.Generator) -> Task:
    latency_s = 10 ** generator.uniform(-3.5, -2)
    # How many ranks that never wait each part could carry: some saturate while they are measured, some far beyond; a
    # client
    # or its link is asked by its own few ranks only.
    demands: dict[Part, float] = {}
    for part in PARTS:
        low, high = (-0.5, 2.0) if part in ("clients", "links") else (0.7, 3.2)
        demands[part] = latency_s * (4 if part == "osts" else 1) / 10 ** generator.uniform(low, high)
    if shape == "swap":
        demands["osts"] = 4 * demands["mdts"] / generator.uniform(1.2, 3)
    system = MadeUpSystem(shape, latency_s, demands, 10 ** generator.uniform(-3.5, -1.5))
    several = shape == "swap" or bool(generator.random() < 0.4)
    clients = (1, 2, 4, 8, 16) if index % 2 else (1, 2, 4, 8)
    sizes = [Size(number) for number in clients]
    if several:
        sizes += [Size(number, mdts=2) for number in clients[-2:]]
    noise = generator.uniform(0.02, 0.08)
    told = [part for part in PARTS if generator.random() < TOLD]
    levels = tuple(_measure(system, size, noise, told, generator) for size in sizes)
    asked = Size(round(clients[-1] * 2 ** generator.uniform(2, 5)), mdts=int(generator.choice([1, 2, 3, 4])))
    return Task(system, levels, asked if several else replace(asked, mdts=1))


def _measure(system: MadeUpSystem, size: Size, noise: float, told: list[Part], generator: np.random.Generator) -> Level:
    runs = int(generator.integers(3, 13))
    rates = system.rate(size) * np.exp(generator.normal(0, noise, runs))
    busy = {
        part: float(np.clip(share + generator.normal(0, COUNTER_ERROR), 0, 1))
        for part, share in system.busy(size).items()
        if part in told
    }
    return Level(size, tuple(rates.tolist()), busy)


def _exact_mva(customers: int, latency_s: float, demands: Mapping[Part, float], units: Mapping[Part, float]) -> float:
    """Each part is as many stations as it has units, each asked for its share of the operations."""
    demand = np.array([demands[part] / units[part] for part in PARTS])
    count = np.array([units[part] for part in PARTS])
    queue = np.zeros(len(PARTS))
    rate = 0.0
    for number in range(1, customers + 1):
        stay = demand * (1 + queue)
        rate = number / (latency_s + float((count * stay).sum()))
        queue = rate * stay
    assert math.isfinite(rate)
    return rate
