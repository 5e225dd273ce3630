"""Saturation points: what is claimed, and how often falsely."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
from bench.simulate.claims import CURVES, Curve, saturation_claims
from bench.simulate.shapes import Shape, bimodal, normal, slowed_down
from hypothesis import given
from hypothesis import strategies as st

from strakes.statistics.saturation import Level, Saturation, saturation

TRIES = 400
TOLERANCE = 3.7 * math.sqrt(0.1 * 0.9 / TRIES)


def study(medians: Mapping[float, float], blocks: int = 8, noise: float = 0.01, seed: int = 1) -> Saturation:
    generator = random.Random(seed)
    levels = [
        Level(x, {block: middle * generator.uniform(1 - noise, 1 + noise) for block in range(blocks)})
        for x, middle in medians.items()
    ]
    return saturation(levels, 0.9)


def test_the_smallest_level_of_a_plateau_is_named() -> None:
    found = study({1: 40.0, 2: 70.0, 4: 99.0, 8: 100.0, 16: 99.5})
    assert (found.verdict, found.x) == ("saturated", 4)
    assert found.ratio is not None and found.ratio.interval is not None
    assert found.ratio.interval.low >= 0.95
    assert found.ratio.interval.confidence == 0.9
    assert found.below_x == 2 and found.gain is not None and found.gain.interval is not None
    assert found.gain.interval.low > 1


def test_a_peak_in_the_middle_is_named() -> None:
    found = study({1: 40.0, 2: 100.0, 4: 80.0, 8: 60.0})
    assert (found.verdict, found.x, found.best_x) == ("saturated", 2, 2)


def test_a_rate_that_still_rises_says_so() -> None:
    found = study({1: 10.0, 2: 20.0, 4: 40.0})
    assert (found.verdict, found.x, found.rival_x) == ("grows", 4, 2)


def test_a_largest_level_that_only_equals_the_others_does_not_grow() -> None:
    assert study({1: 10.0, 2: 100.0, 4: 100.0, 8: 100.0}, blocks=20).verdict == "saturated"
    for seed in range(20):
        assert study({1: 100.0, 2: 100.0, 4: 100.0}, noise=0.1, seed=seed).verdict != "grows"


def test_enough_is_not_yet_less_is_worse() -> None:
    """Two levels of the same rate: whether the smaller one is enough may be open, and is then not called worse."""
    found = study({1: 99.0, 2: 100.0}, blocks=12, noise=0.04)
    assert found.verdict in ("suffices", "saturated", "inconclusive")
    assert found.below_x is None or found.verdict == "suffices"


def test_six_blocks_are_enough_and_five_are_not() -> None:
    medians: Mapping[float, float] = {1: 40.0, 2: 100.0, 4: 100.0}
    assert study(medians, blocks=6).x == 2
    assert study(medians, blocks=5) == Saturation(None, None, study(medians, blocks=5).best_x, None, "inconclusive", 1)
    assert study(medians, blocks=1).more_runs == 5


def test_wide_intervals_earn_nothing_and_say_what_it_would_take() -> None:
    found = study({1: 40.0, 2: 100.0, 4: 100.0}, blocks=8, noise=0.3)
    assert (found.verdict, found.x) == ("inconclusive", None)
    assert found.more_runs is None or found.more_runs > 0


def test_the_guess_of_more_runs_is_of_the_right_size() -> None:
    alike: Mapping[float, float] = {1: 100.0, 2: 100.0}
    guesses = sorted(
        found.more_runs for seed in range(40) if (found := study(alike, 8, 0.1, seed)).more_runs is not None
    )
    typical = guesses[len(guesses) // 2]
    decided = [study(alike, 8 + typical, 0.1, seed).verdict != "inconclusive" for seed in range(40)]
    decided_before = [study(alike, 8, 0.1, seed).verdict != "inconclusive" for seed in range(40)]
    assert sum(decided) > max(20, sum(decided_before))


def test_a_level_without_common_blocks_is_no_evidence() -> None:
    levels = [Level(1, dict.fromkeys(range(8), 10.0)), Level(2, dict.fromkeys(range(20, 28), 10.0))]
    assert saturation(levels, 0.9).verdict == "inconclusive"


def test_a_rate_of_zero_is_no_evidence() -> None:
    levels = [Level(1, dict.fromkeys(range(8), 10.0)), Level(2, dict.fromkeys(range(8), 0.0))]
    assert saturation(levels, 0.9).verdict == "inconclusive"


@pytest.mark.parametrize("xs", [[1.0], [1.0, 1.0]])
def test_fewer_than_two_different_levels_are_refused(xs: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two levels"):
        saturation([Level(x, {0: 1.0}) for x in xs], 0.9)


@given(st.randoms(use_true_random=False), st.sampled_from([0.5, 8.0]))
def test_neither_the_order_of_levels_nor_the_unit_matters(shuffler: random.Random, factor: float) -> None:
    levels = [
        Level(x, {block: x / (x + 1) * (1 + 0.01 * ((block * 7 + x) % 5)) for block in range(9)})
        for x in (1, 2, 8, 32, 64)
    ]
    scaled = [Level(level.x, {block: factor * rate for block, rate in level.values.items()}) for level in levels]
    shuffler.shuffle(scaled)
    one, other = saturation(levels, 0.9), saturation(scaled, 0.9)
    assert (one.x, one.verdict, one.rival_x) == (other.x, other.verdict, other.rival_x)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
@pytest.mark.parametrize(
    "shape", [normal(0.03), normal(0.1), slowed_down(0.1), bimodal(0.7, 0.6)], ids=lambda shape: shape.name
)
def test_false_claims_stay_within_the_error(curve: Curve, shape: Shape) -> None:
    for blocks in (5, 9):
        assert saturation_claims(curve, shape, blocks, TRIES, seed=blocks).false <= 0.1 + TOLERANCE


def test_steady_rates_are_decided_with_few_blocks() -> None:
    plateau = next(curve for curve in CURVES if curve.medians == (0.5, 0.8, 1.0, 1.0))
    assert saturation_claims(plateau, normal(0.01), 7, 200, seed=1).smallest > 0.95
    assert saturation_claims(plateau, normal(0.03), 18, 200, seed=1).smallest > 0.85


@given(st.lists(st.floats(0.2, 5.0), min_size=18, max_size=18))
def test_what_slows_whole_blocks_changes_no_claim(factors: list[float]) -> None:
    rates = {
        x: {block: x / (x + 1) * (1 + 0.02 * ((block * 7 + 3 * x) % 5)) for block in range(18)} for x in (1, 4, 16, 64)
    }
    plain = [Level(x, values) for x, values in rates.items()]
    slowed = [Level(x, {block: rate * factors[block] for block, rate in values.items()}) for x, values in rates.items()]
    one, other = saturation(plain, 0.9), saturation(slowed, 0.9)
    assert (one.x, one.verdict, one.rival_x) == (other.x, other.verdict, other.rival_x)
