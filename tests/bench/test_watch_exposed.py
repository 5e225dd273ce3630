"""What an exposure costs a neighbour, on made-up neighbours whose latencies come in bursts and with a heavy tail."""

from __future__ import annotations

import numpy as np
import pytest
from bench.watch.exposed import Operations, effect, exposed
from numpy.typing import NDArray

_MINUTES, _RATE_PER_S, _NEAR_S = 20, 30.0, 0.05
_PLANTED = 1.05


def made_up(generator: np.random.Generator) -> tuple[Operations, NDArray[np.bool_]]:
    """Return a neighbour, and what is exposed to a probe: an operation each third of a second, begun each minute."""
    due_s = np.arange(0, 60 * _MINUTES, 1 / (_RATE_PER_S + 0.618))
    moments_s = np.concatenate([60 * minute + np.arange(180) / 3 for minute in range(_MINUTES)])
    bursts = np.repeat(np.exp(0.3 * generator.standard_normal(6 * _MINUTES)), len(due_s) // (6 * _MINUTES) + 1)
    late_s = 0.005 * bursts[: len(due_s)] * np.exp(0.5 * generator.standard_normal(len(due_s)))
    return Operations(due_s, late_s), exposed(due_s, moments_s + generator.uniform(0, 0.3), _NEAR_S, _NEAR_S)


def slowed(operations: Operations, is_exposed: NDArray[np.bool_], ratio: float) -> Operations:
    """Slow what is exposed, so much that the 99th percentile of all is ``ratio`` times what it was."""
    wanted_s = ratio * np.quantile(operations.late_s, 0.99)
    low, high = 1.0, 10.0
    while high - low > 1e-4:
        factor = (low + high) / 2
        late_s = np.where(is_exposed, factor, 1.0) * operations.late_s
        low, high = (factor, high) if np.quantile(late_s, 0.99) < wanted_s else (low, factor)
    return Operations(operations.due_s, late_s)


@pytest.mark.parametrize("ratio", [1.0, _PLANTED])
def test_the_interval_holds_the_effect_nine_times_out_of_ten(ratio: float) -> None:
    generator = np.random.default_rng(7)
    found = []
    for _ in range(60):
        operations, is_exposed = made_up(generator)
        found.append(effect(slowed(operations, is_exposed, ratio), is_exposed))
    intervals = [each.interval for each in found]
    assert 49 <= sum(each is not None and each.contains(ratio) for each in intervals) <= 59
    # What is planted is told from nothing, each time.
    assert ratio == 1.0 or all(each is not None and each.low > 1.0 for each in intervals)
    assert np.mean([each.median for each in found]) == pytest.approx(ratio, abs=0.003)


def test_long_operations_are_not_exposed_more_often_than_short_ones() -> None:
    due_s = np.arange(0, 100, 0.0137)
    late_s = np.where(np.arange(len(due_s)) % 2, 0.001, 0.9)
    is_exposed = exposed(due_s, list(range(100)), 0.1, 0.1)
    assert np.mean(is_exposed[late_s > 0.5]) == pytest.approx(np.mean(is_exposed[late_s < 0.5]), abs=0.01)


def test_a_short_run_has_no_interval() -> None:
    due_s = np.arange(0, 500, 0.1)
    assert effect(Operations(due_s, np.ones(len(due_s))), due_s % 1 < 0.3).interval is None
