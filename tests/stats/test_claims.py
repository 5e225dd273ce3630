"""Verdicts on claims about ratios are wrong no more often than their grade allows."""

from __future__ import annotations

import math
import random

import pytest

from strakes.stats.claims import Bound, judge


def values(level: float, noise: float, seed: str) -> dict[int, float]:
    chance = random.Random(seed)
    return {block: level + chance.gauss(0, noise) for block in range(1, 13)}


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_at_most_one_run_in_twenty_is_sure_of_a_false_claim(ratio: float) -> None:
    # A claim is hardest to judge if the true ratio equals a bound of the claim.
    wrong = 0
    for run in range(200):
        claims = [
            [Bound(values(math.log(ratio), 0.15, f"{run}a{n}"), values(0.0, 0.15, f"{run}b{n}"), ratio, math.inf)]
            for n in range(7)
        ]
        wrong += any(one is not None and one.grade == "sure" for one in judge(claims))
    assert wrong <= 10


def test_a_claim_fails_if_one_of_its_parts_fails() -> None:
    fast, slow = values(1.0, 0.05, "a"), values(0.0, 0.05, "b")
    (found,) = judge([[Bound(fast, slow, 1.0, math.inf), Bound(slow, fast, 1.0, math.inf)]])
    assert found is not None and (found.holds, found.grade, found.part) == (False, "sure", 1)


def test_equal_settings_are_the_same_only_if_the_interval_is_narrow() -> None:
    def same(noise: float) -> tuple[bool, str]:
        (found,) = judge([[Bound(values(0.0, noise, "a"), values(0.0, noise, "b"), 1 / 1.1, 1.1)]])
        assert found is not None
        return found.holds, found.grade

    assert same(0.01) == (True, "sure") and same(0.4)[1] == "undecided"


def test_too_few_common_blocks_give_no_judgement() -> None:
    assert judge([[Bound({1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}, 1.0, math.inf)], []]) == [None, None]
