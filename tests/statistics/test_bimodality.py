"""Two groups of runs: the dip against its definition, and what is claimed from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.simulate.claims import group_claims
from bench.simulate.shapes import Shape, bimodal, heavy_tailed, log_normal, normal, slowed_down
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from strakes.statistics.bimodality import CRITICAL, TwoGroups, critical_value, dip, steps_apart, two_groups

TRIES = 1000
ONE_MODE = (normal(0.1), log_normal(1.0), heavy_tailed(0.2), slowed_down(0.4))


def dip_by_definition(values: list[float]) -> float:
    """The least distance from the empirical distribution to one with a single mode, by linear programming over every place of the mode.

    A distribution with its mode at a point rises ever faster before it, may jump at it, and rises ever slower after it.
    """
    from scipy.optimize import linprog

    points = sorted(set(values))
    count, size = len(points), len(values)
    before = [sum(value < point for value in values) / size for point in points]
    after = [sum(value <= point for value in values) / size for point in points]
    # Unknowns: the distribution just left of and at each point (2 i, 2 i + 1), and the distance (last).
    best = 1.0
    for mode in range(count):
        rows: list[NDArray[np.float64]] = []
        limits: list[float] = []

        def at_most(
            limit: float, terms: dict[int, float], rows: list[NDArray[np.float64]] = rows, limits: list[float] = limits
        ) -> None:
            row = np.zeros(2 * count + 1)
            for unknown, factor in terms.items():
                row[unknown] += factor
            rows.append(row)
            limits.append(limit)

        for place in range(count):
            for unknown, step in ((2 * place, before[place]), (2 * place + 1, after[place])):
                at_most(step, {unknown: 1, 2 * count: -1})
                at_most(-step, {unknown: -1, 2 * count: -1})
            at_most(0, {2 * place: 1, 2 * place + 1: -1})
            if place != mode:
                at_most(0, {2 * place: -1, 2 * place + 1: 1})
        for place in range(1, count - 1):
            if place == mode:
                continue
            sign = 1 if place < mode else -1
            left, right = sign / (points[place] - points[place - 1]), sign / (points[place + 1] - points[place])
            at_most(0, {2 * place: left, 2 * place - 1: -left, 2 * place + 2: -right, 2 * place + 1: right})
        cost = np.zeros(2 * count + 1)
        cost[-1] = 1
        solved = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * (2 * count + 1))
        if solved.status == 0:
            best = min(best, float(np.asarray(solved.fun)))
    return best


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=9))
def test_the_dip_is_the_distance_to_the_nearest_distribution_with_one_mode(values: list[int]) -> None:
    sample = [float(value) for value in values]
    assert dip(sample) == pytest.approx(max(dip_by_definition(sample), 1 / (2 * len(sample))), abs=1e-7)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_the_dip_lies_between_its_bounds(values: list[float]) -> None:
    least = 1 / (2 * len(values))
    assert least - 1e-9 <= dip(values) <= max(0.25, least) + 1e-9


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.sampled_from([0.5, -1.0, 4.0]))
def test_neither_scale_nor_direction_changes_the_dip(values: list[int], factor: float) -> None:
    assert dip([factor * value for value in values]) == pytest.approx(dip([float(value) for value in values]))


def test_critical_values_are_those_of_uniform_samples() -> None:
    tries = 4000
    for runs in (12, 25, 60):
        samples = np.random.default_rng(runs).random((tries, runs)).tolist()
        beyond = sum(dip(sample) * math.sqrt(runs) > critical_value(runs) for sample in samples) / tries
        assert beyond == pytest.approx(0.01, abs=3.7 * math.sqrt(0.01 * 0.99 / tries))
    assert [critical_value(runs) for runs in CRITICAL] == list(CRITICAL.values())
    assert critical_value(10_000) == CRITICAL[500]


@pytest.mark.parametrize("shape", ONE_MODE, ids=lambda shape: shape.name)
def test_one_group_is_hardly_ever_called_two(shape: Shape) -> None:
    for runs in (12, 30):
        assert group_claims(shape, runs, TRIES, seed=runs) <= 0.01 + 3.7 * math.sqrt(0.01 * 0.99 / TRIES)


def test_two_clear_groups_are_found_with_their_medians() -> None:
    assert group_claims(bimodal(0.5, 0.6), 20, TRIES, seed=1) > 0.9
    found = two_groups([600.0 + run for run in range(6)] + [1000.0 + run for run in range(10)])
    assert found is not None
    assert (found.low, found.high, found.low_share, found.runs) == (602.5, 1004.5, 6 / 16, 16)


def test_fewer_than_twelve_runs_are_never_called_two_groups() -> None:
    assert two_groups([1.0] * 5 + [100.0] * 6) is None
    assert two_groups([1.0] * 6 + [100.0] * 6) is not None


def test_groups_that_hardly_differ_are_not_mentioned() -> None:
    assert two_groups([100.0 + 0.01 * run for run in range(10)] + [105.0 + 0.01 * run for run in range(10)]) is None


def test_rates_of_zero_are_not_grouped() -> None:
    assert two_groups([0.0] * 6 + [100.0] * 6) is None


@pytest.mark.parametrize("step_s", [0.002, 0.004, 0.008])
def test_values_of_a_coarse_clock_are_hardly_ever_two_groups(step_s: float) -> None:
    """A test at 1 % of error called 40 to 100 % of them two groups."""
    generator = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        seconds = 0.04 * np.exp(0.1 * generator.standard_normal(30))
        wrong += two_groups((1 / (step_s * np.maximum(1, np.round(seconds / step_s)))).tolist()) is not None
    assert wrong <= 10


def test_two_groups_are_found_through_a_coarse_clock() -> None:
    generator = np.random.default_rng(7)
    slow = generator.random(60) < 0.5
    seconds = np.where(slow, 0.08, 0.04) * np.exp(0.03 * generator.standard_normal(60))
    groups = two_groups((1 / (0.001 * np.round(seconds / 0.001))).tolist())
    assert groups is not None
    assert groups.high / groups.low == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("ticks", range(1, 30))
def test_rates_one_step_of_a_clock_apart_are_no_groups_and_three_steps_apart_they_are(ticks: int) -> None:
    """Whichever of both times the median is that a step is told relative to."""
    for middle in (ticks, ticks + 1):
        assert steps_apart(TwoGroups(1 / (ticks + 1), 1 / ticks, 0.5, 20), 1 / middle)
    assert not steps_apart(TwoGroups(1 / (ticks + 3), 1 / ticks, 0.5, 20), 1 / (ticks + 3))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_runs_that_resemble_the_one_before_make_no_groups(correlation: float) -> None:
    generator = np.random.default_rng(7)
    called = 0
    for _ in range(100):
        values = 0.1 * generator.standard_normal(60)
        for run in range(1, 60):
            values[run] = correlation * values[run - 1] + math.sqrt(1 - correlation**2) * values[run]
        called += two_groups(np.exp(values).tolist(), correlation) is not None
    assert called <= 3


def test_a_small_group_is_told_whole() -> None:
    """A seventh of the runs is slow: they are one group, and the scatter of the others is no gap."""
    generator = np.random.default_rng(9)
    values = np.exp(0.1 * generator.standard_normal(350)) * np.where(np.arange(350) % 7, 1.0, 0.3)
    groups = two_groups(values.tolist())
    assert groups is not None
    assert groups.low_share == pytest.approx(1 / 7, abs=0.01)
    assert groups.low / groups.high == pytest.approx(0.3, rel=0.05)


def test_groups_are_found_although_runs_resemble_the_one_before() -> None:
    """A neighbour who comes and goes makes neighbours in time alike."""
    generator = np.random.default_rng(8)
    levels = np.where(np.arange(300) // 10 % 2, 0.5, 1.0)
    values = levels * np.exp(0.1 * generator.standard_normal(300))
    groups = two_groups(values.tolist(), 0.8)
    assert groups is not None and groups.low / groups.high == pytest.approx(0.5, rel=0.05)
