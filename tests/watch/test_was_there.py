"""What looks like a fail-over in the counters of a server, and is none: nobody was without the target."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from strakes.targets.description import Interruption
from strakes.watch.lustre import read_text
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

OST = "fs-OST0000"


def counted_anew(
    connected: Mapping[int, float],
    recovered: Mapping[int, float],
    waits: tuple[Interruption, ...] = (),
) -> list[WatchEvent]:
    """A target that counts from 1102 on; ``connected`` and ``recovered``: what is told from a second on."""
    watch, events = Watch(), list[WatchEvent]()

    def now(told: Mapping[int, float], second: int) -> dict[str, float]:
        values = [value for since, value in told.items() if second >= since]
        return {OST: values[-1]} if values else {}

    for second in range(1000, 1300, 5):
        serving = {OST: 900.0 if second < 1102 else 1102.0}
        events += watch.add(CounterReading("oss", second, serving=serving, recovered=now(recovered, second)))
        heard = waits if second > 1120 else ()
        events += watch.add(CounterReading("client", second + 1, connected=now(connected, second), waits=heard))
    return events


@pytest.mark.parametrize(
    ("connected", "recovered", "alarms"),
    [
        # Counters were set to zero: the client stayed connected, or the server has waited for no clients since.
        ({1000: 500.0}, {}, 0),
        ({}, {1000: 901.0}, 0),
        # Nothing tells.
        ({}, {}, 1),
        # The client notices late.
        ({1000: 500.0, 1121: 0.0, 1127: 1126.0}, {}, 1),
        # A client whose clock is far behind; the server has waited for clients.
        ({1000: 500.0}, {1000: 901.0, 1104: 1104.0}, 1),
        # The client is no longer read.
        ({1000: 500.0, 1105: 0.0}, {}, 1),
    ],
)
def test_counters_that_were_set_to_zero_are_no_fail_over(
    connected: dict[int, float], recovered: dict[int, float], alarms: int
) -> None:
    assert len(counted_anew(connected, recovered)) == alarms


def test_what_a_client_missed_is_told_whatever_another_says() -> None:
    (event,) = counted_anew({1000: 500.0}, {}, (Interruption(OST, 1101, 1104),))
    assert event.kind == "fail-over"


@pytest.mark.parametrize(("counts_since", "lacks", "alarms"), [(900.0, 1, 0), (900.0, 20, 2), (0.0, 1, 1)])
def test_a_target_that_went_on_counting_was_not_away(counts_since: float, lacks: int, alarms: int) -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        serving = {"fs-MDT0000": 900.0} | ({} if 1100 <= second < 1100 + 5 * lacks else {OST: counts_since})
        events += watch.add(CounterReading("oss", second, serving=serving))
    # One that was told as being away is told as being back.
    assert len(events) == alarms and len({event.key for event in events}) == min(alarms, 1)


def test_a_target_is_connected_where_all_connections_of_its_client_are() -> None:
    def connected(*states: tuple[str, int]) -> Mapping[str, float]:
        lines = [
            f"osc.{OST}-osc-{number}.state=\ncurrent_state: {state}\nstate_history:\n - [ {since}, {state} ]\n"
            for number, (state, since) in enumerate(states)
        ]
        return read_text("client", 5.0, "".join(lines)).connected

    assert connected(("FULL", 10), ("FULL", 20)) == connected(("FULL", 20), ("FULL", 10)) == {OST: 20.0}
    assert connected(("IDLE", 10), ("FULL", 20)) == connected(("FULL", 20), ("DISCONN", 30)) == {OST: 0.0}
