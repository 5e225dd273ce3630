"""The bottleneck test of S1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.statistics.bottleneck import Bottleneck, link_is_bottleneck
from strakes.statistics.interval import Estimate, Interval


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, Interval(low, high, 0.9), 9)


@given(st.floats(1, 100), st.floats(0, 50), st.floats(1, 100), st.floats(0, 50), st.integers(1, 40))
def test_a_verdict_holds_for_every_pair_of_rates_within_the_intervals(
    link: float, link_width: float, target: float, target_width: float, stripes: int
) -> None:
    found = link_is_bottleneck(estimate(link, link + link_width), estimate(target, target + target_width), stripes)
    corners = {x < y * stripes for x in (link, link + link_width) for y in (target, target + target_width)}
    expected = {frozenset({True}): "holds", frozenset({False}): "does-not", frozenset({True, False}): "inconclusive"}
    assert found.verdict == expected[frozenset(corners)]


@given(st.floats(1, 100), st.floats(1, 100))
def test_from_the_stripe_count_named_on_it_holds_and_below_it_does_not_surely(link: float, target: float) -> None:
    x, y = estimate(link, link * 1.1), estimate(target, target * 1.1)
    stripes = link_is_bottleneck(x, y, 1).from_stripes
    assert stripes is not None
    assert link_is_bottleneck(x, y, stripes).verdict == "holds"
    assert stripes == 1 or link_is_bottleneck(x, y, stripes - 1).verdict != "holds"


def test_the_published_case_is_reproduced() -> None:
    link, target = estimate(9.7, 9.9), estimate(1.4, 1.6)
    assert link_is_bottleneck(link, target, 4).verdict == "does-not"
    assert link_is_bottleneck(link, target, 8).verdict == "holds"


def test_without_an_interval_nothing_is_claimed() -> None:
    bare = Estimate(10.0, None, 3)
    assert link_is_bottleneck(bare, estimate(1, 2), 100) == Bottleneck("inconclusive", None)
    assert link_is_bottleneck(estimate(1, 2), bare, 100) == Bottleneck("inconclusive", None)


def test_a_target_that_may_stand_still_names_no_stripe_count() -> None:
    assert link_is_bottleneck(estimate(9, 11), estimate(0, 2), 4).from_stripes is None


def test_fewer_than_one_stripe_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one stripe"):
        link_is_bottleneck(estimate(1, 2), estimate(1, 2), 0)
