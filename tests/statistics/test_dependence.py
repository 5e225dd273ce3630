"""Runs that depend on each other are told from independent ones, and intervals made wider for it hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from strakes.statistics.change_points import change_points
from strakes.statistics.comparison import between_runs, common_correlation, judge, within_blocks
from strakes.statistics.contrast import Verdict
from strakes.statistics.dependence import dependent_interval, mixed_correlation, pooled_correlation, stretched
from strakes.statistics.drift import pooled_trend
from strakes.statistics.interval import median_interval
from strakes.statistics.stopping import StoppingRule


def autoregressions(correlation: float, rows: int, runs: int, seed: int = 1) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    series = generator.standard_normal((rows, runs))
    for run in range(1, runs):
        series[:, run] = correlation * series[:, run - 1] + np.sqrt(1 - correlation**2) * series[:, run]
    return series


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_the_correlation_of_many_short_series_is_found(correlation: float) -> None:
    found = pooled_correlation(autoregressions(correlation, 30, 40).tolist())
    assert found == pytest.approx(correlation, abs=0.2)


def test_independent_series_are_seldom_called_dependent() -> None:
    called = [pooled_correlation(autoregressions(0.0, 30, 12, seed).tolist()) > 0 for seed in range(200)]
    assert sum(called) <= 24


def test_a_change_of_level_in_a_third_of_the_series_is_no_dependence_of_all() -> None:
    series = autoregressions(0.0, 30, 12)
    series[:10, 6:] += 5.0
    assert pooled_correlation(series.tolist()) == 0.0


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_intervals_of_dependent_runs_hold_or_there_are_none(correlation: float) -> None:
    held = total = 0
    for seed in range(40):
        series = autoregressions(correlation, 20, 40, seed).tolist()
        confidence = stretched(0.9, pooled_correlation(series))
        intervals = [median_interval(values, confidence) for values in series]
        held += sum(interval.contains(0.0) for interval in intervals if interval is not None)
        total += sum(interval is not None for interval in intervals)
    assert held >= 0.88 * total


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_changes_are_found_in_dependent_series_at_most_twice_as_often_as_stated(correlation: float) -> None:
    series = 0.05 * autoregressions(correlation, 200, 30)
    assert sum(bool(change_points(values, 0.05, dependent=True)) for values in series.tolist()) <= 20


def test_a_change_far_beyond_the_scatter_is_found_among_dependent_runs() -> None:
    series = 0.05 * autoregressions(0.5, 50, 40)
    series[:, 20:] -= 0.4
    found = [change_points(values, 0.05, dependent=True) for values in series.tolist()]
    assert sum(any(abs(change.index - 20) <= 2 for change in changes) for changes in found) >= 40


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_two_like_runs_are_told_apart_no_more_often_than_stated(correlation: float) -> None:
    wrong = 0
    for first, second in zip(
        autoregressions(correlation, 150, 40), autoregressions(correlation, 150, 40, 2), strict=True
    ):
        a, b = np.exp(0.1 * first).tolist(), np.exp(0.1 * second).tolist()
        (judged,) = judge([between_runs(a, b)], 0.9, 0.05, least=0.05)
        wrong += judged.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert wrong <= 15


@pytest.mark.parametrize("runs", [5, 8, 12, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_pairs_that_wander_are_told_apart_no_more_often_than_stated(correlation: float, runs: int) -> None:
    """Three standard errors beyond one in ten, of 300 tries."""
    wrong = 0
    for first, second in zip(
        autoregressions(correlation, 300, runs, 5), autoregressions(correlation, 300, runs, 6), strict=True
    ):
        a, b = (dict(enumerate(np.exp(0.2 * side).tolist())) for side in (first, second))
        (judged,) = judge([within_blocks(a, b)], 0.9, 0.05)
        wrong += judged.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert wrong <= 45


@pytest.mark.parametrize("correlation", [0.5, 0.8])
@pytest.mark.parametrize(("cells", "blocks"), [(4, 8), (6, 8), (12, 12)])
def test_cells_whose_ratios_wander_are_told_apart_no_more_often_than_stated(
    cells: int, blocks: int, correlation: float
) -> None:
    """Two standard errors beyond one in ten, of 200 tries."""
    tries = 200
    first, second = (
        autoregressions(correlation, tries * cells, blocks, seed).reshape(tries, cells, blocks)
        for seed in (cells, 100 + cells)
    )
    wrong = 0
    for of_a, of_b in zip(first, second, strict=True):
        pairs = [
            (dict(enumerate(np.exp(0.1 * a).tolist())), dict(enumerate(np.exp(0.1 * b).tolist())))
            for a, b in zip(of_a, of_b, strict=True)
        ]
        alike = common_correlation(pairs)
        judged = judge([within_blocks(a, b, correlation=alike) for a, b in pairs], 0.9, 0.05)
        wrong += any(one.verdict in (Verdict.FASTER, Verdict.SLOWER) for one in judged)
    assert wrong <= 28


@pytest.mark.parametrize("runs", [8, 12])
@pytest.mark.parametrize("correlation", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("confidence", [0.9, 0.98, 0.99])
def test_an_interval_holds_where_it_is_known_how_much_runs_resemble_each_other(
    runs: int, correlation: float, confidence: float
) -> None:
    """Three standard errors of 1,000 tries; of what its ends cover by themselves it spends up to 1.2 times the error."""
    intervals = [
        dependent_interval(values, confidence, correlation)
        for values in autoregressions(correlation, 1000, runs).tolist()
    ]
    missed = sum(interval is None or not interval.contains(0.0) for interval in intervals)
    error = 1.2 * (1 - confidence)
    assert missed <= 1000 * error + 3 * (1000 * error) ** 0.5


def test_a_trend_of_cells_that_wander_is_none_but_a_common_one_stays() -> None:
    wander = np.exp(0.15 * autoregressions(0.7, 14 * 60, 14, 9).reshape(60, 14, 14))
    false = dict.fromkeys((0.0, 0.7), 0)
    for survey in wander:
        cells = [dict(enumerate(cell.tolist())) for cell in survey]
        for alike in false:
            false[alike] += pooled_trend(cells, alike).p_value <= 0.05
    assert false[0.7] <= 6 < false[0.0]
    falling = [{block: 100.0 * 0.95**block for block in range(14)}] * 14
    assert pooled_trend(falling, 0.5).p_value < 0.001


def test_a_difference_far_beyond_the_scatter_is_found_in_few_pairs() -> None:
    a, b = {n: 100.0 + n % 3 for n in range(8)}, {n: 80.0 + n % 2 for n in range(8)}
    (judged,) = judge([within_blocks(a, b)], 0.9, 0.05)
    assert judged.verdict is Verdict.SLOWER


@settings(deadline=None)
@given(st.integers(6, 1500), st.floats(0, 0.95), st.sampled_from([0.8, 0.9, 0.99]))
def test_few_and_many_dependent_runs_have_an_interval_that_is_no_narrower(
    runs: int, correlation: float, confidence: float
) -> None:
    values = np.random.default_rng(runs).standard_normal(runs).tolist()
    interval = dependent_interval(values, confidence, correlation)
    independent = dependent_interval(values, confidence, 0.0)
    if independent is None:
        assert interval is None
        return
    assert interval is not None
    assert interval.low <= independent.low + 1e-9
    assert interval.high >= independent.high - 1e-9


@pytest.mark.parametrize("correlation", [0.5, 0.8, 0.9])
def test_few_runs_of_many_cells_leave_intervals_that_hold_or_none(correlation: float) -> None:
    """Coverage of what a survey of a dozen blocks gives, whose cells all wander."""
    missed = total = 0
    for seed in range(40):
        series = autoregressions(correlation, 14, 12, seed).tolist()
        rule = StoppingRule(confidence=stretched(0.9, pooled_correlation(series)))
        intervals = [rule.estimate(values).interval for values in series]
        missed += sum(not interval.contains(0.0) for interval in intervals if interval is not None)
        total += len(intervals)
    assert missed <= 0.03 * total


def test_independent_runs_keep_their_intervals() -> None:
    """As wide as before in all but a few surveys, and there is one in all."""
    wider = []
    for seed in range(100):
        series = autoregressions(0.0, 14, 12, seed).tolist()
        own, plain = StoppingRule(confidence=stretched(0.9, pooled_correlation(series))), StoppingRule()
        for values in series:
            interval, independent = own.estimate(values).interval, plain.estimate(values).interval
            assert interval is not None
            assert independent is not None
            wider.append((interval.high - interval.low) / (independent.high - independent.low))
    assert np.mean(wider) < 1.1


@given(st.floats(0, 0.95), st.floats(0, 0.95), st.floats(0, 1), st.integers(5, 60))
def test_two_sources_of_scatter_cost_what_lies_between_those_of_each(
    shared: float, own: float, part: float, runs: int
) -> None:
    mixed = mixed_correlation(shared, own, part, runs)
    alone = [mixed_correlation(correlation, correlation, 1, runs) for correlation in (shared, own)]
    assert min(alone) - 1e-9 <= mixed <= max(alone) + 1e-9
    assert mixed <= max(shared, own) + 1e-9


def test_intervals_hold_where_blocks_have_little_in_common_that_lasts() -> None:
    """A tenth of the variance lasts from block to block: intervals are given, and hold."""
    generator = np.random.default_rng(5)
    held = []
    for _ in range(40):
        common = autoregressions(0.8, 1, 20, seed=int(generator.integers(1 << 30)))
        rows = np.sqrt(0.1) * common + np.sqrt(0.9) * generator.standard_normal((15, 20))
        rule = StoppingRule(stretched(0.9, mixed_correlation(0.95, 0.0, 0.15, 20)), 0.1)
        intervals = [rule.estimate(np.exp(0.1 * row).tolist()).interval for row in rows]
        held += [interval is not None and interval.contains(1.0) for interval in intervals]
    assert sum(held) >= 0.9 * len(held)
