"""What a watch costs a neighbour: counted in pairs, and said only where the interval allows it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest
from bench.watch.own_cost import fitting, late_of, measure, verdict

from strakes.launch.messages import LoggedOperation


def operations(count: int, factor: float, generator: random.Random) -> Sequence[LoggedOperation]:
    return [
        LoggedOperation("file-read", 0, number, float(number), float(number), number + factor * generator.random(), "")
        for number in range(count)
    ]


@pytest.mark.parametrize(("cost", "answer"), [(0.9, "met"), (1.5, "missed")])
def test_a_cost_is_told_though_the_machine_drifts(cost: float, answer: str) -> None:
    generator = random.Random(1)
    windows = 0

    def window(watched: bool) -> Sequence[LoggedOperation]:
        nonlocal windows
        windows += 1
        # Every pair is slower than the one before.
        return operations(1000, (cost if watched else 1.0) * 1.5 ** ((windows - 1) // 2), generator)

    ratio = measure(range(12), window, random.Random(2))["all"]
    assert ratio.median == pytest.approx(cost, rel=0.02)
    assert verdict(ratio) == answer


def test_few_pairs_decide_nothing() -> None:
    generator = random.Random(3)
    ratio = measure(range(2), lambda _: operations(100, 1.0, generator), random.Random(4))["all"]
    assert verdict(ratio).startswith("not known")


def test_latency_counts_from_when_an_operation_was_due() -> None:
    late = LoggedOperation("file-read", 0, 0, 10.0, 12.0, 12.5, "")
    assert late_of([late]) == {"file-read": 2.5, "all": 2.5}


@pytest.mark.parametrize(("took_s", "pairs"), [([40.0] * 20, 15), ([40.0, 100.0, *[40.0] * 20], 12), ([700.0], 1)])
def test_as_many_pairs_are_measured_as_fit_into_the_time(took_s: Sequence[float], pairs: int) -> None:
    clock = accumulate(took_s, initial=5.0)
    assert sum(1 for _ in fitting(600.0, lambda: next(clock))) == pairs
