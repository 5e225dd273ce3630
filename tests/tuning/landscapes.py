"""Known objective functions, against which the results of a search are checked."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from strakes.model.portrait import Setting
from strakes.tuning.tune_search import Rules, Search, Trial, TrialResult
from strakes.tuning.tune_space import Constraint, Factor, SearchSpace

# The true rate of a setting; the second argument is true for cheap trials with a share of the data.
Truth = Callable[[Mapping[str, Setting], bool], float]


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


def hill(at: Mapping[str, Setting], low: bool) -> float:
    """Return a rate with its optimum at four writers, large transfers and own files; shared files want few writers."""
    writers, transfer = math.log2(int(at["writers"])), math.log2(int(at["transfer"]))
    value: float = 100 * 1.3**transfer / (1 + 0.2 * (writers - 2) ** 2)
    if at["files"] == "shared":
        value /= 1 + 0.15 * writers
    return value * {"posix": 1.0, "mmap": 0.6, "uring": 1.1}[str(at["interface"])] * (0.8 if low else 1.0)


def flat(at: Mapping[str, Setting], low: bool) -> float:
    return 100.0


def searched(search: Search, truth: Truth, budget: float, noise: float, seed: int) -> Search:
    """Run the search to its end and return it; a full repetition costs 1, and ``budget`` is the total cost."""
    chance, spent = random.Random(seed), 0.0

    def cost(trial: Trial) -> float:
        return (search.rules.low_share if trial.low else 1.0) / budget

    while trials := search.next_block(spent, cost):
        block, drift = search.blocks, chance.gauss(0, noise / 2)
        for trial in trials:
            value = truth(search.space.settings(trial.point), trial.low) * math.exp(drift + chance.gauss(0, noise))
            search.tell(TrialResult(trial, block, value))
            spent += cost(trial)
    return search


def search_of(seed: int, **rules: float) -> Search:
    return Search(space(), seed, Rules(**rules))  # type: ignore[arg-type]
