"""What an exposure costs a neighbour, on made-up neighbours whose latencies come in bursts and with a heavy tail."""

from __future__ import annotations

import numpy as np
import pytest
from bench.watch.exposed import Operations, effect, exposed, in_time
from numpy.typing import NDArray

_MINUTES, _RATE_PER_S, _NEAR_S = 30, 30.0, 0.05
_PLANTED = 1.05


def made_up(generator: np.random.Generator) -> tuple[Operations, NDArray[np.bool_]]:
    """Return a neighbour, and what is exposed to a probe: an operation each third of a second, begun each minute.

    Something else makes operations slow each second; within a minute the probe is in step with it.
    """
    due_s = np.arange(0, 60 * _MINUTES, 1 / (_RATE_PER_S + 0.618))
    begun_s = 60 * np.arange(_MINUTES) + generator.uniform(0, 1 / 3, _MINUTES)
    is_exposed = exposed(due_s, np.add.outer(begun_s, np.arange(180) / 3).ravel(), _NEAR_S, _NEAR_S)
    bursts = np.repeat(np.exp(0.3 * generator.standard_normal(6 * _MINUTES)), len(due_s) // (6 * _MINUTES) + 1)
    late_s = 0.005 * bursts[: len(due_s)] * np.exp(0.5 * generator.standard_normal(len(due_s)))
    late_s *= np.where(due_s % 1 < 0.02, 2.0, 1.0)
    return Operations(due_s, np.zeros(len(due_s)), late_s), is_exposed


def slowed(operations: Operations, is_exposed: NDArray[np.bool_], ratio: float) -> Operations:
    """Slow what is exposed, so much that the 99th percentile is ``ratio`` times what it was."""
    minutes = (operations.due_s // 60).astype(int)
    usual_s = np.array([np.quantile(operations.late_s[minutes == minute], 0.9) for minute in range(_MINUTES)])
    share = operations.late_s / usual_s[minutes]
    wanted = ratio * np.quantile(share, 0.99)
    low, high = 1.0, 10.0
    while high - low > 1e-4:
        factor = (low + high) / 2
        slower = np.quantile(np.where(is_exposed, factor, 1.0) * share, 0.99)
        low, high = (factor, high) if slower < wanted else (low, factor)
    return Operations(operations.due_s, operations.waited_s, np.where(is_exposed, low, 1.0) * operations.late_s)


@pytest.mark.parametrize("ratio", [1.0, _PLANTED])
def test_the_interval_holds_the_effect_nine_times_out_of_ten(ratio: float) -> None:
    generator = np.random.default_rng(7)
    found = []
    for _ in range(40):
        operations, is_exposed = made_up(generator)
        found.append(effect(slowed(operations, is_exposed, ratio), is_exposed))
    intervals = [each.interval for each in found]
    assert sum(each is not None and each.contains(ratio) for each in intervals) >= 35
    # What is planted is told from nothing, nearly each time.
    assert ratio == 1.0 or sum(each is not None and each.low > 1.0 for each in intervals) >= 38
    assert np.mean([each.median for each in found]) == pytest.approx(ratio, abs=0.004)


def test_long_operations_are_not_exposed_more_often_than_short_ones() -> None:
    due_s = np.arange(0, 100, 0.0137)
    late_s = np.where(np.arange(len(due_s)) % 2, 0.001, 0.9)
    is_exposed = exposed(due_s, list(range(100)), 0.1, 0.1)
    assert np.mean(is_exposed[late_s > 0.5]) == pytest.approx(np.mean(is_exposed[late_s < 0.5]), abs=0.01)


def test_times_in_which_the_neighbour_is_behind_tell_nothing() -> None:
    due_s = np.arange(0, 300, 0.1)
    waited_s = np.where((due_s > 101) & (due_s < 109), 2.0, 0.001)
    counts = in_time(due_s, Operations(due_s, waited_s, waited_s))
    assert due_s[~counts].tolist() == due_s[(due_s >= 100) & (due_s < 110)].tolist()


def test_a_short_run_has_no_interval() -> None:
    due_s = np.arange(0, 100, 0.1)
    operations = Operations(due_s, np.zeros(len(due_s)), np.ones(len(due_s)))
    assert effect(operations, due_s % 1 < 0.3).interval is None
