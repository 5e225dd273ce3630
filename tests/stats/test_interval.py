"""Confidence intervals of a median, exact and interpolated."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strakes.stats.interval import (
    Interval,
    coverage,
    interpolated_interval,
    median,
    median_interval,
    smallest_runs,
    symmetric_rank,
)

rates = st.floats(min_value=1e-3, max_value=1e9, allow_nan=False)
samples = st.lists(rates, min_size=1, max_size=40)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.98, 0.99])


@given(st.integers(1, 12), st.integers(1, 6))
def test_coverage_equals_a_count_over_all_ways_to_lie_below_or_above_the_median(runs: int, rank: int) -> None:
    assume(2 * rank <= runs + 1)
    held = sum(rank <= sum(pattern) <= runs - rank for pattern in itertools.product((0, 1), repeat=runs))
    assert coverage(runs, rank) == pytest.approx(held / 2**runs, abs=1e-12)


@given(st.integers(1, 60), confidences)
def test_the_rank_is_the_largest_with_enough_coverage(runs: int, confidence: float) -> None:
    rank = symmetric_rank(runs, confidence)
    assert rank == 0 or coverage(runs, rank) >= confidence
    assert 2 * (rank + 1) > runs + 1 or coverage(runs, rank + 1) < confidence


@pytest.mark.parametrize(("confidence", "runs"), [(0.9, 5), (0.95, 6), (0.98, 7), (0.99, 8), (0.5, 2)])
def test_the_smallest_number_of_runs_follows_from_the_confidence(confidence: float, runs: int) -> None:
    assert smallest_runs(confidence) == runs and median_interval([1.0] * runs, confidence) is not None
    assert median_interval([1.0] * (runs - 1), confidence) is None


@given(samples, confidences)
def test_an_interval_contains_the_median_of_the_sample(values: list[float], confidence: float) -> None:
    for interval in (median_interval(values, confidence), interpolated_interval(values, confidence)):
        assert interval is None or interval.low * (1 - 1e-12) <= median(values) <= interval.high * (1 + 1e-12)


@given(samples, confidences, confidences)
def test_more_confidence_never_narrows_an_interval(values: list[float], one: float, other: float) -> None:
    less, more = sorted((one, other))
    for make in (median_interval, interpolated_interval):
        narrow, wide = make(values, less), make(values, more)
        if wide is not None:
            assert narrow is not None
            assert wide.low <= narrow.low * (1 + 1e-12) and narrow.high <= wide.high * (1 + 1e-12)


@given(samples, confidences)
def test_the_interpolated_interval_lies_within_the_exact_one(values: list[float], confidence: float) -> None:
    exact, interpolated = median_interval(values, confidence), interpolated_interval(values, confidence)
    assert (exact is None) == (interpolated is None)
    if exact and interpolated:
        assert exact.low <= interpolated.low <= interpolated.high * (1 + 1e-12) and interpolated.high <= exact.high * (
            1 + 1e-12
        )


@given(samples, confidences, st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter(values: list[float], confidence: float, shuffler: random.Random) -> None:
    shuffled = values.copy()
    shuffler.shuffle(shuffled)
    assert median_interval(shuffled, confidence) == median_interval(values, confidence)
    assert interpolated_interval(shuffled, confidence) == interpolated_interval(values, confidence)


@given(samples, confidences)
def test_the_interval_of_times_is_the_reciprocal_of_that_of_rates(values: list[float], confidence: float) -> None:
    of_rates, of_seconds = (
        median_interval(values, confidence),
        median_interval([1 / value for value in values], confidence),
    )
    if of_rates is not None:
        assert of_seconds == Interval(1 / of_rates.high, 1 / of_rates.low, confidence)


@pytest.mark.parametrize(
    ("values", "confidence", "said"),
    [
        *((values, 0.9, "a median needs") for values in ([], [math.nan], [1.0, math.inf])),
        *(([1.0] * 6, confidence, "between 0 and 1") for confidence in (0.0, 1.0, 90.0)),
    ],
)
def test_invalid_values_and_confidences_are_refused(values: list[float], confidence: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        median_interval(values, confidence)
