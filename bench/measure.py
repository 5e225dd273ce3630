"""Interleaved measurement: in each block, every program runs every workload once, in random order."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import Contender
from bench.places import Place
from bench.together import together
from bench.work import Work


@dataclass(frozen=True)
class Series:
    """Key of a series of rates: a program, a workload and an operation."""

    contender: str
    work: Work
    operation: str


Results = Mapping[Series, Mapping[int, float]]


def measure(
    works: Sequence[Work],
    contenders: Sequence[Contender],
    places: Mapping[str, Place],
    blocks: range,
    seed: int,
    on_block: Callable[[int, Results], Sequence[Work]],
) -> Results:
    """Run all workloads with all programs that support them. Return the rates of each series by block.

    All programs run a workload in direct succession, so that ratios are paired. ``on_block``: called after each block,
    returns the workloads of the next block (none: the end).
    """
    results: dict[Series, dict[int, float]] = defaultdict(dict)
    for block in blocks:
        order = random.Random(f"{seed}.{block}")
        for work in order.sample(works, len(works)):
            for contender in order.sample(contenders, len(contenders)):
                if not contender.takes(work):
                    continue
                for operation, rate in _run(contender, work, places[work.place]).items():
                    results[Series(contender.name, work, operation)][block] = rate
        works = on_block(block, results)
        if not works:
            break
    return results


def _run(contender: Contender, work: Work, place: Place) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(dir=place.directory, prefix="bench-") as directory:
        place.settle()
        with together() if work.direct and place.on_loop else nullcontext():
            return contender.run(work, Path(directory))
