"""A day composed from a recording yields exactly its planted events; ``python -m bench.watch.days`` tests more days."""

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
def test_exactly_the_events_of_a_composed_day_are_reported(name: str, recording: Recording) -> None:
    verdict = watch_day(DAYS[name], recording)
    assert verdict.good, (verdict.lacking, verdict.wrong, verdict.false)
