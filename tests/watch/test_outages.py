"""Outages of the day of 26 November 2026: two Lustre servers killed and cut, as clients and servers reported them."""

from __future__ import annotations

from collections.abc import Callable

from strakes.targets.description import Interruption
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

TARGETS = ("lus-MDT0001", "lus-OST0001", "lus-OST0002")
EACH_S = 10.0


def outages(
    until_s: float,
    server: Callable[[float], CounterReading | None],
    waits: Callable[[float], tuple[Interruption, ...]],
) -> list[WatchEvent]:
    """Return the fail-overs as they were last reported; readings every 10 s from a client and from a server."""
    watch, events = Watch(), list[WatchEvent]()
    for step in range(int(until_s / EACH_S)):
        now_s = EACH_S * step
        waiting = waits(now_s)
        connected = {} if waiting else dict.fromkeys(TARGETS, 1.0)
        events += watch.add(CounterReading("client", now_s, waits=waiting, connected=connected))
        if (reading := server(now_s)) is not None:
            events += watch.add(reading)
    last = {event.key: event for event in events if event.kind == "fail-over"}
    return list(last.values())


def serving(now_s: float, start_s: float, *, recovering: bool = False, none: bool = False) -> CounterReading:
    targets = {} if none else dict.fromkeys(TARGETS, start_s)
    return CounterReading("srv2", now_s, serving=targets, recovering=frozenset(targets if recovering else ()))


def test_an_outage_that_clients_reported_is_not_reported_again_when_its_server_can_be_read() -> None:
    def server(now_s: float) -> CounterReading | None:
        return None if 500 <= now_s < 1100 else serving(now_s, 1.0 if now_s < 500 else 720.0)

    def waits(now_s: float) -> tuple[Interruption, ...]:
        if now_s < 510:
            return ()
        return tuple(Interruption(target, 505.0, 750.0 if now_s >= 750 else None, within_s=1.0) for target in TARGETS)

    (event,) = outages(1500, server, waits)
    assert (event.began_s, event.ended_s) == (505.0, 750.0)


def test_a_server_that_is_cut_again_during_recovery_has_one_outage_until_its_clients_are_back() -> None:
    def server(now_s: float) -> CounterReading | None:
        if 500 <= now_s < 700 or 860 <= now_s < 1000:
            return None
        if now_s < 500:
            return serving(now_s, 1.0)
        if now_s < 860:
            return serving(now_s, 750.0, recovering=True, none=now_s < 750)
        return serving(now_s, 1200.0, recovering=now_s < 1230, none=now_s < 1200)

    def waits(now_s: float) -> tuple[Interruption, ...]:
        if now_s < 510:
            return ()
        return tuple(Interruption(target, 505.0, 1230.0 if now_s >= 1230 else None, within_s=1.0) for target in TARGETS)

    (event,) = outages(1500, server, waits)
    assert event.began_s <= 510 and event.ended_s is not None and 1190 <= event.ended_s <= 1240
    assert "about 0 ns" not in event.text


def test_a_second_outage_after_the_clients_were_back_is_an_event_of_its_own() -> None:
    def server(now_s: float) -> CounterReading | None:
        if 500 <= now_s < 700 or 900 <= now_s < 1100:
            return None
        return serving(now_s, 1.0 if now_s < 500 else 690.0 if now_s < 900 else 1090.0)

    def waits(now_s: float) -> tuple[Interruption, ...]:
        spans = [(505.0, 695.0)] * (now_s >= 510) + [(905.0, 1095.0)] * (now_s >= 910)
        return tuple(
            Interruption(target, began_s, ended_s if now_s >= ended_s else None, within_s=1.0)
            for began_s, ended_s in spans
            for target in TARGETS
        )

    first, second = outages(1500, server, waits)
    assert first.ended_s is not None and second.ended_s is not None
    assert 500 <= first.began_s < first.ended_s <= 700 <= 900 <= second.began_s < second.ended_s <= 1100
