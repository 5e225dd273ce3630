from __future__ import annotations

import math

import pytest

from strakes.tuning.tune_effects import effects
from tuning.landscapes import hill, search_of, searched


def test_only_the_factor_with_an_effect_matters() -> None:
    search = searched(search_of(1), lambda at: 100.0 * math.sqrt(int(at["transfer"])), budget=50, noise=0.05, seed=1)
    result = effects(search)
    assert result.matter == ("transfer",)
    (largest,) = [level for level in result.levels if (level.factor, level.level) == ("transfer", 8)]
    assert largest.low > 1 and largest.ratio == pytest.approx(8**0.5, rel=0.15)


def test_levels_are_compared_only_where_both_are_possible() -> None:
    result = effects(searched(search_of(4), hill, budget=60, noise=0.03, seed=4))
    (uring,) = [level for level in result.levels if level.level == "uring"]
    # uring requires eight writers, which are slow; it is 1.1 times as fast as POSIX with eight writers.
    assert 0.95 < uring.ratio < 1.25
