"""Other days than the recorded one: what is planted is told, and nothing else; `python -m bench.watch.days` has more."""

from __future__ import annotations

import pytest
from bench.watch.blocks import Recording, take_apart
from bench.watch.days import RECORDINGS, days, watch_day

DAYS = {day.name: day for day in days(1)}
FEW = (
    "slow, away, noisy",
    "three times the same noisy job",
    "two servers, four targets",
    "a standstill while a metadata target is away",
    "a server reboots",
    "all targets slow",
    "a break of two minutes",
)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return take_apart(RECORDINGS)


@pytest.mark.parametrize("name", FEW)
def test_another_day_is_told_as_it_was(name: str, recording: Recording) -> None:
    verdict = watch_day(DAYS[name], recording)
    assert verdict.good, (verdict.lacking, verdict.wrong, verdict.false)
