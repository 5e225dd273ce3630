"""Error rates and power of the grades; contrasts, shrinkage and adjusted p-values."""

from __future__ import annotations

import math
import random

import pytest
from bench.truth.__main__ import tally
from bench.truth.noise import autoregressive, level_shift, log_normal, neighbour
from bench.truth.world import EQUAL, planted
from hypothesis import given
from hypothesis import strategies as st

from strakes.stats.contrasts import contrast_of, holm, p_value, shrinkage_of, trimmed
from strakes.stats.grades import LOOKS, Choice, grade, settled_at

BLOCKS = range(1, 13)


def values(level: float, noise: float = 0.05, seed: int = 1) -> dict[int, float]:
    chance = random.Random(f"{seed}/{level}")
    return {block: level + chance.gauss(0, noise) for block in BLOCKS}


def test_the_better_of_two_is_chosen_and_sure() -> None:
    (answer,) = grade([Choice((values(0.0), values(math.log(1.5))))])
    assert answer is not None and (answer.chosen, answer.grade, answer.versus.level) == (1, "sure", 0)
    assert answer.versus.low < 1.5 < answer.versus.high


def test_the_first_sufficient_level_is_chosen_if_levels_are_ordered() -> None:
    levels = (values(-1.0), values(0.0), values(0.01), values(0.02))
    (answer,) = grade([Choice(levels, ordered=True)])
    assert answer is not None and (answer.chosen, answer.grade, answer.versus.level) == (1, "sure", 0)
    assert {one.level for one in answer.others} == {0, 2, 3}


def test_equal_levels_are_alike_within_a_stated_factor() -> None:
    (answer,) = grade([Choice((values(0.0, 0.02), values(0.001, 0.02)), ordered=True)])
    assert answer is not None and (answer.chosen, answer.grade, answer.within) == (0, "alike", 1.05)


def test_noise_gives_an_undecided_answer_and_fewer_than_three_blocks_none() -> None:
    noisy, few = grade([Choice((values(0.0, 1.0), values(0.1, 1.0))), Choice(({1: 0.0, 2: 0.0}, {1: 1.0, 2: 1.0}))])
    assert noisy is not None and noisy.grade == "undecided"
    assert few is None


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=12), st.lists(st.floats(-3, 3), min_size=12, max_size=12))
def test_the_slowdown_of_whole_blocks_cancels(differences: list[float], blocks: list[float]) -> None:
    a = {n: blocks[n] + difference for n, difference in enumerate(differences)}
    b = {n: blocks[n] for n in range(len(differences))}
    contrast, plain = contrast_of(a, b), trimmed(differences)
    assert contrast is not None and contrast.mean == pytest.approx(plain.mean, abs=1e-9)
    assert contrast.variance == pytest.approx(plain.variance, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_adjusted_p_values_are_never_smaller_and_keep_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert min(adjusted) <= len(p_values) * min(p_values) + 1e-12


def test_one_disturbed_block_does_not_hide_a_difference() -> None:
    disturbed = values(0.3)
    disturbed[5] -= 2.0
    contrast = contrast_of(disturbed, values(0.0))
    assert contrast is not None
    assert contrast.mean == pytest.approx(0.3, abs=0.06) and p_value(contrast) < 1e-4


def test_a_small_variance_by_chance_is_shrunk_towards_the_others() -> None:
    contrasts = [trimmed([random.Random(f"{n}/{k}").gauss(0, 0.1) for k in range(6)]) for n in range(12)]
    lucky = trimmed([0.001 * k for k in range(6)])
    moderated = shrinkage_of([*contrasts, lucky]).moderate(lucky)
    assert moderated.variance > 20 * lucky.variance and moderated.freedom > lucky.freedom


def test_an_answer_settled_at_an_interim_look_stays_sure() -> None:
    choices = [Choice((values(0.0), values(1.0))), Choice((values(0.0, 0.5), values(0.05, 0.5)))]
    assert settled_at(choices, min(LOOKS) - 1) == set() and settled_at(choices, min(LOOKS)) == {0}
    first, _ = grade(choices)
    assert first is not None and first.grade == "sure"


@pytest.mark.parametrize("noise", [log_normal(0.1), autoregressive(0.5, 0.15), neighbour(0.3, 0.5), level_shift(0.5)])
def test_surveys_of_equal_systems_are_hardly_ever_sure_of_a_difference(noise: object) -> None:
    found = tally(lambda _: EQUAL, noise, 12, 3, 120.0)  # type: ignore[arg-type]
    # With an error rate of 5 %, the probability of more than 3 wrong surveys in 12 is 0.2 %.
    assert found.false_sure <= 3


@pytest.mark.parametrize(("effect", "scatter", "least"), [(1.15, 0.05, 0.9), (1.3, 0.15, 0.7), (2.0, 0.3, 0.9)])
def test_planted_differences_are_found(effect: float, scatter: float, least: float) -> None:
    found = tally(lambda generator: planted(effect, generator), log_normal(scatter), 8, 4, 120.0)
    assert found.planted > 30 and found.found >= least * found.planted
    assert found.share_wrong("sure", "alike") <= 0.05


@pytest.mark.parametrize("ratio", [290, 1700])
def test_a_very_large_ratio_is_sure(ratio: float) -> None:
    chance = random.Random(3)
    fast = {block: chance.gauss(0, 0.2) for block in range(1, 11)}
    slow = {block: -math.log(ratio) + chance.gauss(0, 0.3) for block in range(1, 11)}
    (answer,) = grade([Choice((fast, slow))])
    assert answer is not None and answer.grade == "sure" and answer.versus.low < ratio < answer.versus.high
