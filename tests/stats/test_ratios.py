"""Ratios of settings, verdicts on ratios, and corrections for several comparisons."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strakes.stats.interval import Estimate, Interval
from strakes.stats.ratios import Verdict, bonferroni, half_width_for, independent_ratio, paired_ratio, verdict

rates = st.floats(min_value=1.0, max_value=1e6)
runs = st.lists(rates, min_size=1, max_size=20)
blocks = st.dictionaries(st.integers(0, 12), rates, min_size=1)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.98])


@given(blocks, blocks, confidences)
def test_a_over_b_is_the_inverse_of_b_over_a(a: dict[int, float], b: dict[int, float], confidence: float) -> None:
    assume(a.keys() & b.keys())
    for one, other in (
        (paired_ratio(a, b, confidence), paired_ratio(b, a, confidence)),
        (
            independent_ratio(list(a.values()), list(b.values()), confidence),
            independent_ratio(list(b.values()), list(a.values()), confidence),
        ),
    ):
        assert one.median * other.median == pytest.approx(1) and (one.interval is None) == (other.interval is None)
        if one.interval and other.interval:
            assert one.interval.low * other.interval.high == pytest.approx(1)
            assert one.interval.low <= one.median * (1 + 1e-9) and one.median <= one.interval.high * (1 + 1e-9)


@given(blocks, blocks)
def test_the_slowdown_of_whole_blocks_cancels_in_a_paired_ratio(a: dict[int, float], slowed: dict[int, float]) -> None:
    assume(a.keys() & slowed.keys())
    b = {block: 2 * rate for block, rate in a.items()}
    both = [{block: rate * slowed.get(block, 1.0) for block, rate in side.items()} for side in (a, b)]
    ratio = paired_ratio(both[0], both[1], 0.9)
    assert ratio.median == pytest.approx(0.5)
    assert ratio.interval is None or ratio.interval.low == pytest.approx(0.5)


def test_only_common_blocks_count_and_none_are_refused() -> None:
    ratio = paired_ratio(dict.fromkeys(range(5), 10.0) | {9: 1e6}, dict.fromkeys(range(5), 5.0) | {7: 1e-6}, 0.9)
    assert ratio.runs == 5 and ratio.median == pytest.approx(2.0)
    with pytest.raises(ValueError, match="at least one value"):
        paired_ratio({1: 1.0}, {2: 1.0}, 0.9)


def test_a_rate_of_zero_leaves_a_ratio_without_interval() -> None:
    zero = {n: 0.0 if n == 3 else 10.0 for n in range(8)}
    full = dict.fromkeys(range(8), 5.0)
    assert paired_ratio(zero, full, 0.9) == Estimate(2.0, None, 8)
    assert independent_ratio(list(zero.values()), list(full.values()), 0.9).interval is None
    assert independent_ratio([1.0], [0.0], 0.9).median == math.inf


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.1, 1.3, Verdict.FASTER),
        (1.01, 1.2, Verdict.FASTER),
        (0.7, 0.9, Verdict.SLOWER),
        (0.97, 1.04, Verdict.SAME),
        (1.01, 1.04, Verdict.SAME),
        (0.9, 1.04, Verdict.INCONCLUSIVE),
        (0.9, 1.1, Verdict.INCONCLUSIVE),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(low: float, high: float, said: Verdict) -> None:
    assert verdict(Estimate((low + high) / 2, Interval(low, high, 0.9), 9), 0.05) is said


def test_no_interval_is_inconclusive_and_a_negative_margin_is_refused() -> None:
    assert verdict(Estimate(2.0, None, 3), 0.05) is Verdict.INCONCLUSIVE
    with pytest.raises(ValueError, match="must not be negative"):
        verdict(Estimate(2.0, None, 3), -0.05)


def test_equal_cells_with_the_precision_that_the_margin_requires_are_called_the_same() -> None:
    width = half_width_for(0.05)
    a = [100 * (1 + width * place / 4) for place in range(-4, 5)]
    assert verdict(independent_ratio(a, a, 0.99), 0.05) is Verdict.SAME


def test_bonferroni_divides_the_error_between_comparisons() -> None:
    assert bonferroni(0.9, 1) == pytest.approx(0.9) and bonferroni(0.9, 10) == pytest.approx(0.99)
    with pytest.raises(ValueError, match="at least 1"):
        bonferroni(0.9, 0)
