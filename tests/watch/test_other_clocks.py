"""Servers and clients whose clocks differ tell one outage twice: each text says what it may be the same as."""

from __future__ import annotations

import pytest

from strakes.targets.description import Interruption
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

OST = "fs-OST0000"


@pytest.mark.parametrize(
    ("ahead_s", "lasts_s", "told"),
    [
        (
            3600,
            60,
            "; servers told of one as long, 1 h apart: the same if their clocks differ by that",
        ),
        (
            -3600,
            60,
            "; a client told of one as long, 1 h apart: the same if their clocks differ by that",
        ),
        (3600, 200, ""),
        (0, 60, ""),
    ],
)
def test_the_second_alarm_of_an_outage_says_that_clocks_may_differ(ahead_s: int, lasts_s: int, told: str) -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(10_000, 20_000, 5):
        serving = {} if 15_001 < second < 15_060 else {OST: 900.0 if second < 15_001 else 15_059.0}
        events += watch.add(CounterReading("oss", second, serving=serving))
        began_s = 15_002 + ahead_s
        ended_s = began_s + lasts_s
        waits = (Interruption(OST, began_s, ended_s if second > ended_s else None),) if second > began_s else ()
        events += watch.add(CounterReading("client", second + 1, waits=waits))
    over = [event for event in events if event.ended_s is not None]
    assert len(over) == (2 if ahead_s else 1)
    if told:
        assert over[-1].text.endswith(told)
    assert sum("clocks differ" in event.text for event in over) == bool(told)
