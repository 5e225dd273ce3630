"""Known objective functions, against which the results of a search are checked."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from strakes.model.portrait import Setting
from strakes.tuning.tune_search import Search, TrialResult
from strakes.tuning.tune_space import Constraint, Factor, SearchSpace

Truth = Callable[[Mapping[str, Setting]], float]


def space() -> SearchSpace:
    return SearchSpace(
        (
            Factor("writers", (1, 2, 4, 8), 8),
            Factor("transfer", (1, 2, 4, 8), 1),
            Factor("interface", ("posix", "mmap", "uring"), "posix", ordered=False),
            Factor("files", ("shared", "own"), "shared", ordered=False),
        ),
        (Constraint("uring merges nothing", lambda at: at["interface"] != "uring" or at["writers"] == 8),),
    )


def hill(at: Mapping[str, Setting]) -> float:
    writers, transfer = math.log2(int(at["writers"])), math.log2(int(at["transfer"]))
    value: float = 100 * 1.3**transfer / (1 + 0.2 * (writers - 2) ** 2)
    if at["files"] == "shared":
        value /= 1 + 0.15 * writers
    return value * {"posix": 1.0, "mmap": 0.6, "uring": 1.1}[str(at["interface"])]


def flat(at: Mapping[str, Setting]) -> float:
    return 100.0


def searched(search: Search, truth: Truth, budget: float, noise: float, seed: int) -> Search:
    chance, spent = random.Random(seed), 0.0

    while trials := search.next_block(spent, lambda _trial: 1 / budget):
        block, drift = search.blocks, chance.gauss(0, noise / 2)
        for trial in trials:
            value = truth(search.space.settings(trial.point)) * math.exp(drift + chance.gauss(0, noise))
            search.told.append(TrialResult(trial, block, value))
            spent += 1 / budget
    return search


def search_of(seed: int, block: int = 6) -> Search:
    return Search(space(), seed, block=block)
