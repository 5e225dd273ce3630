"""The yardstick on made-up systems of which very little was measured: 1 and 2 clients, 1 and 2 metadata targets.

Fixed before the model was tried on them. As `bench.prediction.real` measures: a client is one rank with a directory of
its own, which is on one metadata target (the target of client c is c modulo their number); all clients have as much to
do, and the slowest ends a phase. Measured are 1 client on 1 target, 2 on 1 and 2 on 2, each 7 times with 3 to 15 % of
log-normal noise, which counters tell of the metadata targets with a probability of 0.8 and an error of 4 points.
Forecast are 4 and 8 clients on 3 targets.

Systems are those of `bench.prediction.made_up`, with a metadata target that carries 0.5 to 20 ranks that never wait,
as one with a limited processor does.

Aims: 74 to 86 % of the 80 % intervals hold the truth, and three quarters of the medians are within 20 % of it.

The interval of a forecast is judged by the truth, that for a measurement by a measurement. Seed 5119 judged the models
before the fifth; 5331 was named before the fifth was tried on it, 6007 before the sixth, 9021 before
the seventh and 4409 before the eighth, with 201 and 202 to develop on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bench.prediction.made_up import COUNTER_ERROR, SHAPES, TOLD, Level, MadeUpSystem, Part, Size

MEASURED = ((1, 1), (2, 1), (2, 2))
ASKED = ((4, 3), (8, 3))
RUNS = 7
SEED = 4409


@dataclass(frozen=True)
class SmallTask:
    """A system, what was measured of it with how much noise, and the true rates at the sizes asked for."""

    system: MadeUpSystem
    levels: tuple[Level, ...]
    asked: tuple[tuple[Size, float], ...]
    noise: float

    def measured(self, seed: int) -> list[float]:
        """Return what would be measured at the sizes asked for: the median of as many runs with the same noise."""
        generator = np.random.default_rng(seed)
        return [rate * math.exp(float(np.median(generator.normal(0, self.noise, RUNS)))) for _, rate in self.asked]


def make_small_tasks(number: int = 300, seed: int = SEED) -> list[SmallTask]:
    """Draw as many, of every shape alike."""
    generator = np.random.default_rng(seed)
    return [_task(index, generator) for index in range(number)]


def _task(index: int, generator: np.random.Generator) -> SmallTask:
    latency_s = 10 ** generator.uniform(-3.5, -2)
    reach: dict[Part, tuple[float, float]] = {
        "clients": (-0.5, 2.0),
        "links": (-0.5, 2.0),
        "mdts": (-0.3, 1.3),
        "osts": (0.7, 3.2),
        "lock": (0.7, 3.2),
    }
    demands = {part: latency_s / 10 ** generator.uniform(*ends) for part, ends in reach.items()}
    shape = SHAPES[index % len(SHAPES)]
    if shape == "swap":
        demands["osts"] = 4 * demands["mdts"] / generator.uniform(1.2, 3)
    system = MadeUpSystem(shape, latency_s, demands, 10 ** generator.uniform(-3.5, -1.5))
    noise, told = generator.uniform(0.03, 0.15), bool(generator.random() < TOLD)
    levels = []
    for clients, mdts in MEASURED:
        size = Size(clients, ranks_each=1, mdts=mdts)
        rates = system.rate(as_shared(size)) * np.exp(generator.normal(0, noise, RUNS))
        share = system.busy(as_shared(size))["mdts"] + generator.normal(0, COUNTER_ERROR)
        levels.append(Level(size, tuple(rates.tolist()), {"mdts": float(np.clip(share, 0, 1))} if told else {}))
    sizes = [Size(clients, ranks_each=1, mdts=mdts) for clients, mdts in ASKED]
    return SmallTask(system, tuple(levels), tuple((size, system.rate(as_shared(size))) for size in sizes), noise)


def as_shared(size: Size) -> Size:
    """Return as many metadata targets as would share evenly what the busiest one has to do."""
    return replace(size, mdts=size.ranks / math.ceil(size.ranks / size.mdts))
