"""Faults in an order that a seed draws; a seed that fails draws the same again: ``python -m security.campaign SEED`` in ``tests``."""

from __future__ import annotations

import pytest

from conftest import one_in
from security.campaign.seeds import run_seed


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_whatever_faults_a_seed_draws_the_promises_hold(seed: int) -> None:
    assert run_seed(seed, ("run", "knobs", "lab", "nodes", "drill"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_many_seeds_over_all_acts_keep_the_promises(seed: int) -> None:
    assert run_seed(seed)
