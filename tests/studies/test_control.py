"""The controller that reduces the load of a run when probe operations are slow: properties and simulations."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import reduce
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.studies.neighbour import CALM, SHARES, TOO_MANY, WINDOW, Control

histories = st.lists(st.tuples(st.sampled_from(["file-cycle", "write-fsync"]), st.booleans()), max_size=400)
FINE, SLOW = ("file-cycle", False), ("file-cycle", True)


def controlled(history: list[tuple[str, bool]], start: Control | None = None) -> Control:
    return reduce(Control.after, history, start or Control())


def simulated(slow_at: Callable[[float], float], operations: int, seed: int = 1) -> list[Control]:
    """Simulate probe operations, slow with probability ``slow_at(share)``; return the controller after each one."""
    chance, path = random.Random(seed), [Control()]
    for number in range(operations):
        control = path[-1]
        felt = ("file-cycle", "file-read", "write-fsync")[number % 3], chance.random() < slow_at(control.share)
        path.append(control.after(felt))
        if path[-1].stopped:
            break
    return path


@settings(deadline=None)
@given(histories)
def test_only_slow_operations_reduce_the_load_stepwise_and_finally_stop_it(history: list[tuple[str, bool]]) -> None:
    path = accumulate(history, Control.after, initial=Control())
    for (before, after), felt in zip(pairwise(path), history, strict=True):
        assert abs(after.step - before.step) <= 1 and after.share in SHARES
        if after.stopped and not before.stopped:
            assert before.step == len(SHARES) - 1
        assert felt[1] or (after.step <= before.step and after.stopped == before.stopped)


@settings(deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_the_load_rises_only_after_a_calm_time(calms: list[int]) -> None:
    control = controlled([SLOW] * TOO_MANY)
    for calm in calms:
        control = controlled([FINE] * calm + [("write-fsync", True)], control)
        if control.step == 0:
            raise AssertionError("went back to full load without a calm time")
        if control.step > 1:
            return


def test_slow_operations_far_apart_do_not_reduce_the_load() -> None:
    seldom = ([FINE] * (WINDOW // 2 - 1) + [SLOW]) * 40
    assert controlled(seldom).share == 1.0 and controlled(([FINE] * (WINDOW // 3 - 2) + [SLOW]) * 3).share == 0.5


def test_slow_operations_of_different_kinds_are_counted_separately() -> None:
    each = [(kind, True) for kind in ("a", "b", "c") for _ in range(TOO_MANY - 1)]
    assert controlled(each).share == 1.0 and controlled([*each, ("b", True)]).share == 0.5


def test_after_a_calm_time_the_load_rises_and_a_failed_attempt_doubles_the_wait() -> None:
    half = controlled([SLOW] * TOO_MANY)
    back = controlled([FINE] * CALM, half)
    assert back.share == 1.0
    again = controlled([SLOW] * TOO_MANY, back)
    assert controlled([FINE] * (2 * CALM - 1), again).share == 0.5
    assert controlled([FINE] * 2 * CALM, again).share == 1.0


@pytest.mark.parametrize("bearable", SHARES)
def test_the_controller_finds_the_load_that_others_can_bear(bearable: float) -> None:
    path = simulated(lambda share: 0.002 if share <= bearable else 0.3, 8_000)
    assert not path[-1].stopped
    # Attempts at a higher load are rare, because each one must wait twice as long as the one before.
    assert sum(control.share <= bearable for control in path) > 0.95 * len(path)
    assert sum(control.share >= bearable / 2 for control in path) > 0.95 * len(path)


def test_the_controller_stops_where_operations_are_slow_at_any_load() -> None:
    path = simulated(lambda _share: 0.2, 8_000)
    assert path[-1].stopped and len(path) < 1000 and path[-2].share == SHARES[-1]


def test_rare_slow_operations_seldom_change_the_load() -> None:
    assert [simulated(lambda _share: 0.003, 3000, seed)[-1].share for seed in range(20)].count(1.0) >= 16
