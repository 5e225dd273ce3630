"""Pooled rates."""

from __future__ import annotations

from statistics import harmonic_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.stats.pooled import pooled_rate


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), st.floats(1, 1e9))
def test_for_equal_work_the_pooled_rate_is_the_harmonic_mean(seconds: list[float], work: float) -> None:
    assert pooled_rate([work] * len(seconds), seconds) == pytest.approx(
        harmonic_mean([work / each for each in seconds])
    )


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(0.01, 100)), min_size=1, max_size=20))
def test_the_pooled_rate_is_between_the_slowest_and_the_fastest_run(runs: list[tuple[float, float]]) -> None:
    rates = [work / seconds for work, seconds in runs]
    pooled = pooled_rate([work for work, _ in runs], [seconds for _, seconds in runs])
    assert min(rates) * (1 - 1e-9) <= pooled <= max(rates) * (1 + 1e-9)


@pytest.mark.parametrize(("work", "seconds"), [([], []), ([1.0], [1.0, 2.0]), ([1.0], [0.0])])
def test_invalid_work_or_time_is_refused(work: list[float], seconds: list[float]) -> None:
    with pytest.raises(ValueError, match="a pooled rate needs"):
        pooled_rate(work, seconds)
