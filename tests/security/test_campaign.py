"""Faults in an order that a seed draws; a seed that fails is tried again with: python -I tests/security/campaign.py SEED."""

from __future__ import annotations

import pytest

from security.campaign import run_seed


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_faults_a_seed_draws_nothing_is_lost_or_left(seed: int) -> None:
    assert run_seed(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_seeds_lose_and_leave_nothing(seed: int) -> None:
    assert run_seed(seed)
