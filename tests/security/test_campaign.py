"""Randomised faults; repeat a failing seed by ``python -m security.campaign SEED`` in ``tests``."""

from __future__ import annotations

import pytest

from conftest import one_in
from security.campaign.seeds import run_seed


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_the_promises_hold_under_random_faults(seed: int) -> None:
    assert run_seed(seed, ("run", "knobs", "lab", "nodes", "drill"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_the_promises_hold_under_random_faults_of_every_command(seed: int) -> None:
    assert run_seed(seed)
