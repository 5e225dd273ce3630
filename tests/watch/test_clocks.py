"""An outage seen by machines whose clocks differ is reported once, with correct bounds on its duration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strakes.targets.description import Interruption
from strakes.watch.clocks import clocks_ahead, set_back
from strakes.watch.outages import Outages
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent

MDT, OST = "fs-MDT0001", "fs-OST0001"
FAIL_OVER = ("srv1", "srv2")
RESTART = ("srv2", "srv2")


def recorded(moves: tuple[str, str], source: str, ahead_s: float) -> list[CounterReading]:
    """Return readings of two servers and a client. The clock of ``source`` is ``ahead_s`` ahead.

    Server ``moves[0]`` loses MDT0001 at 3000, and its readings end then if another server takes over. Server
    ``moves[1]`` mounts MDT0001 at 3030 and ends its recovery at 3044. The client notices the loss at 3009.
    """

    def all_readings() -> Iterator[CounterReading]:
        old, new = moves
        for now_s in range(1000, 5000, 5):
            for server in ("srv1", "srv2"):
                if old != new and server == old and now_s >= 3000:
                    continue
                there = {f"fs-OST000{server[-1]}": 900.0}
                if (server == old and now_s < 3000) or (server == new and now_s >= 3030):
                    there[MDT] = 900.0 if now_s < 3000 else 3030.0
                recovers = MDT in there and 3030 <= now_s < 3044
                served = dict.fromkeys(there, now_s * 10.0)
                recovered = {MDT: 3044.0} if now_s >= 3044 and MDT in there else {}
                yield CounterReading(
                    server,
                    now_s,
                    serving=there,
                    served=served,
                    recovering=frozenset({MDT} if recovers else ()),
                    recovered=recovered,
                )
            waits = (Interruption(MDT, 3009.0, 3045.0 if now_s >= 3045 else None),) if now_s >= 3009 else ()
            connected = {MDT: 0.0 if 3009 <= now_s < 3045 else 800.0, OST: 800.0}
            yield CounterReading("client", now_s, serving={}, waits=waits, connected=connected)

    shifted = (set_back(each, -ahead_s if each.source == source else 0.0) for each in all_readings())
    return sorted(shifted, key=lambda reading: reading.time_s)


def outages_of(readings: list[CounterReading]) -> list[WatchEvent]:
    outages = Outages()
    events = [event for reading in readings for event in outages.add(reading)]
    return list({event.key: event for event in events}.values())


@pytest.mark.parametrize("moves", [FAIL_OVER, RESTART], ids=["fail-over", "restart"])
@pytest.mark.parametrize("source", ["srv1", "srv2", "client"])
@pytest.mark.parametrize("ahead_s", [-300, -90, -40, 0, 40, 90, 300])
def test_an_outage_is_reported_once_although_clocks_differ(moves: tuple[str, str], source: str, ahead_s: float) -> None:
    readings = recorded(moves, source, ahead_s)
    found = clocks_ahead(readings)
    # srv1 shows only the loss of the target, known within 25 s, and nothing if it had no outage.
    if abs(ahead_s) > (50 if source == "srv1" else 0) and (source, moves) != ("srv1", RESTART):
        assert found == {source: pytest.approx(ahead_s, abs=26)}
    corrected = [set_back(reading, found.get(reading.source, 0.0)) for reading in readings]
    (event,) = outages_of(sorted(corrected, key=lambda reading: reading.time_s))
    assert event.text.startswith(f"{MDT} was unavailable for ") and event.subject == MDT
    assert ("failed over from srv1 to srv2" in event.text) == (moves == FAIL_OVER)
    # The target was not mounted for 30 s, and did not serve clients for 45 s.
    assert event.low is not None and event.high is not None and event.low <= 45 and event.high >= 30


@pytest.mark.parametrize("ahead_s", [-90, 90])
def test_a_client_that_replays_its_requests_was_not_cut_off_from_a_target_that_served_others(ahead_s: float) -> None:
    events = outages_of(recorded(RESTART, "srv2", ahead_s))
    assert not any("cut off" in event.text for event in events if event.ended_s is not None)


def test_a_client_without_a_network_shows_no_difference_of_clocks() -> None:
    readings = recorded(RESTART, "client", 0)
    readings += [
        CounterReading("other", now_s, waits=(Interruption(MDT, 2800, 2900, evicted=True),), connected={MDT: 1.0})
        for now_s in range(2900, 4000, 5)
    ]
    assert clocks_ahead(readings) == {}


def test_a_wait_whose_begin_the_client_forgot_shows_no_difference_of_clocks() -> None:
    readings = [
        CounterReading(
            "srv",
            now_s,
            serving={OST: 900.0} if 3000 <= now_s < 3300 else {OST: 900.0, MDT: 900.0},
            recovered={MDT: 3310.0} if now_s >= 3310 else {},
        )
        for now_s in range(2900, 3500, 5)
    ]
    for now_s in range(3315, 3500, 5):
        waits = (Interruption(MDT, now_s - 215.0, 3311.0, or_earlier=True),)
        readings.append(CounterReading("client", now_s, serving={}, waits=waits))
    assert clocks_ahead(readings) == {}
