"""Recorded outages of Lustre servers: unmounted targets and a killed server.

Lines of a recording: ``TIME client STATE`` (the connection to MDT0001), ``TIME server TARGET:RECOVERY...``, and ``END
create BEGIN`` (a creation that waited from BEGIN to END).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.targets.description import Interruption
from strakes.watch.lustre import read_text
from strakes.watch.outages import Outages
from strakes.watch.reading import CounterReading
from strakes.watch.recorded import readings
from strakes.watch.values import WatchEvent, line

RECORDINGS = Path(__file__).parent / "recordings"
MDT, OST = "labfs-MDT0001", "fs-OST0000"


def drill(name: str, *sources: str) -> Iterator[CounterReading]:
    """Yield the readings of a recorded drill by some of the sources "client", "server" and "probe"."""
    began_s, hangs = 0.0, list[tuple[float, float]]()
    rows = [line.split(" ", 2) for line in (RECORDINGS / f"drill-{name}.txt").read_text().splitlines()]
    # The recording of the crash ends as soon as the client is connected again, so its last state is repeated.
    ((_, _, last),) = [row for row in rows if row[1] == "client"][-1:]
    rows += [[f"{float(rows[-1][0]) + 10 * step:.2f}", "client", last] for step in range(1, 6)]
    for ended, source, begin in rows:
        if source == "create":
            hangs.append((float(begin), float(ended)))
    for at, source, state in rows:
        now_s = float(at)
        if source == "client" and "probe" in sources:
            for begin_s, end_s in hangs:
                if now_s - begin_s >= 15:
                    yield CounterReading(
                        "probe",
                        now_s,
                        waits=(Interruption("/labfs", begin_s, end_s if now_s >= end_s else None, within_s=1.0),),
                    )
        if source not in sources:
            continue
        if source == "client":
            works = state == "FULL"
            began_s = began_s or (0.0 if works else now_s)
            waits = (Interruption(MDT, began_s, now_s if works else None),) if began_s else ()
            began_s = 0.0 if works else began_s
            yield CounterReading("client", now_s, waits=waits, connected={MDT: float(works)})
        elif source == "server":
            states = dict(part.split(":") for part in state.split() if ":" in part)
            listed = {f"labfs-{target}": status for target, status in states.items()}
            recovering = frozenset(each for each, status in listed.items() if status not in ("COMPLETE", "INACTIVE"))
            yield CounterReading("server", now_s, serving=dict.fromkeys(listed, 0.0), recovering=recovering)


def events_of(stream: Iterator[CounterReading]) -> list[WatchEvent]:
    outages = Outages()
    return [event for reading in stream for event in outages.add(reading)]


@pytest.mark.parametrize("sources", [("client", "server", "probe"), ("client",), ("server",), ("client", "probe")])
@pytest.mark.parametrize(
    ("name", "unmounted", "unserved"),
    [
        ("failover", (1795232496.0, 1795232518.5), (1795232492.1, 1795232525.7)),
        ("replay", (1795232686.9, 1795232705.9), (1795232681.3, 1795232713.2)),
        ("crash", (1795233024.4, 1795233099.1), (1795233024.4, 1795233137.1)),
    ],
)
def test_a_recorded_drill_is_one_outage_with_bounds_that_hold(
    name: str, unmounted: tuple[float, float], unserved: tuple[float, float], sources: tuple[str, ...]
) -> None:
    if (name, sources) == ("crash", ("server",)):
        pytest.skip("the server was not read before it crashed")
    events = events_of(drill(name, *sources))
    *begins, end = events
    assert len(begins) <= 1 and {event.key for event in events} == {end.key}
    assert end.kind == "outage" and end.subject == MDT and end.ended_s is not None
    assert end.low is not None and end.high is not None
    # A client cannot distinguish the recovery from the outage before it.
    assert end.low <= unserved[1] - unserved[0] and end.high >= unmounted[1] - unmounted[0]
    assert end.high - end.low <= 65 and end.low > 0
    assert unserved[0] - 15 <= end.began_s <= unserved[0] + 12
    assert unmounted[1] - 1 <= end.ended_s <= unserved[1] + 2


def test_a_killed_server_is_reported_within_half_a_minute_of_the_first_lost_connection() -> None:
    begin, _ = events_of(drill("crash", "client", "probe"))
    assert begin.ended_s is None and begin.told_s <= 1795233040.3 + 30
    assert begin.text.startswith(f"{MDT} is unavailable, for at least ")


@pytest.mark.parametrize("names", [("day.srv.gz", "day.cli.gz"), ("day.srv.gz",), ("day.cli.gz",)])
def test_a_short_unmount_of_the_recorded_day_is_reported_once(names: tuple[str, ...]) -> None:
    (event,) = events_of(readings([RECORDINGS / name for name in names]))
    assert event.low is not None and event.high is not None and event.low <= 6.5 <= 7.4 <= event.high <= 27
    assert event.told_s <= 1795325275.3 + 60


def lctl(kind: str, target: str, changes: Iterable[tuple[float, str]]) -> str:
    changes = [(900, "FULL"), *changes][-16:]
    lines = "".join(f" - [ {at:.0f}, {state} ]\n" for at, state in changes)
    return f"{kind}.{target}-{kind}-ff.state=\ncurrent_state: {changes[-1][1]}\nstate_history:\n{lines}"


def told(outages_of: Mapping[str, Iterable[tuple[int, int]]], passed: Sequence[str] = ("REPLAY",)) -> list[WatchEvent]:
    """Return the events of a client that is read every 10 s. ``outages_of``: (begin, end) of the outages by target."""
    outages, events = Outages(), list[WatchEvent]()
    for now_s in range(1000, 1600, 10):
        text = ""
        for target, spans in outages_of.items():
            changes = [
                change
                for begin, end in spans
                for change in (
                    (begin, "DISCONN"),
                    (end, "CONNECTING"),
                    *((end, state) for state in passed),
                    (end, "FULL"),
                )
                if change[0] <= now_s
            ]
            text += lctl("mdc" if "MDT" in target else "osc", target, changes)
        events += outages.add(read_text("client", now_s, text))
    return events


@pytest.mark.parametrize(
    ("lasts_s", "passed", "is_outage"),
    [(0, (), False), (9, (), False), (11, (), True), (1, ("REPLAY",), True), (6, ("EVICTED",), True)],
)
@pytest.mark.parametrize("begin", [1100, 1105])
def test_a_short_reconnect_to_a_server_that_kept_its_state_is_no_outage(
    lasts_s: int, passed: Sequence[str], is_outage: bool, begin: int
) -> None:
    assert bool(told({MDT: [(begin, begin + lasts_s)]}, passed)) == is_outage


@pytest.mark.parametrize(("pause_s", "number"), [(5, 1), (15, 2), (40, 2), (100, 2)])
def test_a_target_that_served_for_10_s_in_between_has_two_outages(pause_s: int, number: int) -> None:
    events = told({MDT: [(1100, 1160), (1160 + pause_s, 1300)], OST: [(1100, 1160), (1160 + pause_s, 1300)]})
    ends = [event for event in events if event.ended_s is not None]
    assert [event.subject for event in ends] == [f"{OST}, {MDT}"] * number
    assert len({event.key for event in events}) == number
    if number == 2:
        begins = [(1100, 1160), (1160 + pause_s, 1300)]
        for event, (began_s, ended_s) in zip(ends, begins, strict=True):
            assert event.low is not None and event.high is not None
            assert event.low <= ended_s - began_s <= event.high <= ended_s - began_s + 30


@pytest.mark.parametrize(
    ("step_s", "served_s", "has_client"),
    [(10, 20, False), (5, 12, False), (5, 12, True), (10, 12, True), (5, 25, True)],
)
def test_two_outages_are_reported_if_the_server_lists_the_target_between_them(
    step_s: int, served_s: int, has_client: bool
) -> None:
    """The client keeps 16 states and retries every 5 s, so the begin of the first outage is soon lost."""
    begins = (1101, 1101 + 31 + served_s)
    retries = [
        (at, state) for begin in begins for at in range(begin, begin + 24, 5) for state in ("CONNECTING", "DISCONN")
    ]
    ends = [(begin + 24, state) for begin in begins for state in ("CONNECTING", "REPLAY", "REPLAY_WAIT")]
    changes = sorted([*retries, *ends, *((begin + 31, "FULL") for begin in begins)], key=lambda each: each[0])
    outages, events = Outages(), list[WatchEvent]()
    for now_s in range(1000, 1500, step_s):
        begin = max((each for each in begins if each <= now_s), default=900)
        there = {} if begin <= now_s < begin + 24 else {MDT: begin + 24.0}
        recovering = frozenset(there if begin <= now_s < begin + 31 else ())
        events += outages.add(CounterReading("mds", now_s, serving={OST: 900.0} | there, recovering=recovering))
        if has_client:
            seen = [each for each in changes if each[0] <= now_s]
            events += outages.add(read_text("client", now_s, lctl("mdc", MDT, seen)))
    ended = [event for event in events if event.ended_s]
    assert len({event.key for event in events}) == len(ended) == 2
    assert all((event.low or 0) <= 31 and 24 <= (event.high or 0) <= 31 + 2 * step_s for event in ended)


@pytest.mark.parametrize("has_client", [True, False])
def test_an_idle_target_of_a_dead_server_belongs_to_the_same_outage(has_client: bool) -> None:
    outages, events = Outages(), list[WatchEvent]()
    for now_s in range(1000, 1400, 5):
        if not 1105 <= now_s < 1175:
            serving = dict.fromkeys((MDT, OST), 900.0 if now_s < 1105 else 1172.0)
            recovering = frozenset(serving if 1175 <= now_s < 1190 else ())
            events += outages.add(CounterReading("srv", now_s, serving=serving, recovering=recovering))
        if has_client:
            changes = [(1108, "DISCONN"), *((1172, state) for state in ("CONNECTING", "REPLAY")), (1190, "FULL")]
            seen = lctl("mdc", MDT, [each for each in changes if each[0] <= now_s])
            events += outages.add(read_text("client", now_s, seen))
    end = events[-1]
    assert {event.key for event in events} == {end.key} and f"{OST}, {MDT} for " in end.text
    assert 1100 <= end.began_s <= 1115 and (end.low or 0) >= 60 * has_client


def test_targets_that_return_at_different_times_have_their_own_durations() -> None:
    event = told({MDT: [(1100, 1160)], OST: [(1100, 1400)]})[-1]
    assert event.text == (f"2 targets were unavailable: {MDT} for 59 s to 86 s; {OST} for 4 min 59 s to 5 min 26 s")
    assert (event.low, event.high) == (59, 326)


def test_an_outage_whose_begin_the_client_forgot_is_reported_once() -> None:
    """The client keeps 16 states and retries every 2 s, so the begin of the outage is lost after 16 s."""
    changes = [(2 * number, state) for number in range(30) for state in ("CONNECTING", "DISCONN")]
    events, outages = list[WatchEvent](), Outages()
    for now_s in range(1000, 1200, 5):
        history = [(1000 + at, state) for at, state in changes if 1000 + at <= now_s][-16:]
        history += [(1070, "FULL")] * (now_s >= 1070)
        events += outages.add(read_text("client", now_s, lctl("mdc", "lus-MDT0001", history)))
    assert {event.subject for event in events} == {"lus-MDT0001"} and len({event.key for event in events}) == 1
    assert events[-1].ended_s == pytest.approx(1070, abs=2)


def test_a_fail_over_names_both_servers() -> None:
    outages, events = Outages(), list[WatchEvent]()
    for now_s in range(1000, 1300, 5):
        there = {OST: 900.0} if now_s < 1100 else {}
        other = {OST: 1130.0} if now_s >= 1130 else {}
        events += outages.add(CounterReading("srv1", now_s, serving={"fs-MDT0000": 900.0} | there))
        events += outages.add(CounterReading("srv2", now_s + 1, serving={"fs-OST0001": 900.0} | other))
    begin, end = events
    assert begin.key == end.key and begin.ended_s is None
    assert end.text == f"{OST} was unavailable for 30 s to 36 s; failed over from srv1 to srv2"


def cleared(recovered: Mapping[int, float], waits: tuple[Interruption, ...] = ()) -> list[WatchEvent]:
    """Return the events of a target whose counters restart at 1102.

    ``recovered``: end of the last recovery by the second at which a server reports it. ``waits``: interruptions that
    the client reports.
    """

    def end(second: int) -> Mapping[str, float]:
        known = [value for since, value in recovered.items() if second >= since]
        return {OST: known[-1]} if known else {}

    outages, events = Outages(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        serving = {OST: 900.0 if second < 1102 else 1102.0}
        events += outages.add(CounterReading("oss", second, serving=serving, recovered=end(second)))
        events += outages.add(CounterReading("client", second + 1, waits=waits if second > 1120 else ()))
    return events


@pytest.mark.parametrize(
    ("recovered", "reported"),
    [({1000: 901.0}, 0), ({}, 0), ({1000: 901.0, 1104: 1104.0}, 1), ({1104: 1104.0}, 1)],
    ids=["no recovery since", "no recovery ever", "a new recovery", "the first recovery"],
)
def test_counters_cleared_by_hand_are_not_an_outage(recovered: dict[int, float], reported: int) -> None:
    assert len(cleared(recovered)) == reported


def test_an_interruption_of_a_client_proves_an_outage() -> None:
    (event,) = cleared({1000: 901.0}, (Interruption(OST, 1101, 1104),))
    assert event.subject == OST


@pytest.mark.parametrize(
    ("counts_since", "lacks", "reported"), [(900.0, 1, 0), (900.0, 20, 2), (0.0, 1, 1), (0.0, 0, 0)]
)
def test_one_incomplete_reading_of_a_server_is_not_an_outage(counts_since: float, lacks: int, reported: int) -> None:
    outages, events = Outages(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        serving = {"fs-MDT0000": 900.0} | ({} if 1100 <= second < 1100 + 5 * lacks else {OST: counts_since})
        events += outages.add(CounterReading("oss", second, serving=serving))
    assert len(events) == reported and len({event.key for event in events}) == min(reported, 1)


@pytest.mark.parametrize(("waits_s", "texts"), [(20, 0), (100, 2)])
def test_a_directory_that_hangs_is_an_outage_after_half_a_minute(waits_s: int, texts: int) -> None:
    outages, events = Outages(), list[WatchEvent]()
    for second in range(1015, 1300):
        ended_s = 1000.0 + waits_s if second >= 1000 + waits_s else None
        waits = (Interruption("/scratch", 1000.0, ended_s),) if ended_s is None or second == ended_s else ()
        events += outages.add(CounterReading("probe", second, waits=waits))
        events += outages.add(CounterReading("client", second))
    assert len(events) == texts
    if events:
        assert events[0].text == "/scratch is unavailable, for at least 35 s"
        assert events[1].low == pytest.approx(99, abs=2) and events[1].high == pytest.approx(102, abs=2)


def test_a_target_counts_as_connected_only_if_all_its_connections_are() -> None:
    def connected(*states: tuple[str, int]) -> Mapping[str, float]:
        lines = [
            f"osc.{OST}-osc-{number}.state=\ncurrent_state: {state}\nstate_history:\n - [ {since}, {state} ]\n"
            for number, (state, since) in enumerate(states)
        ]
        return read_text("client", 5.0, "".join(lines)).connected

    assert connected(("FULL", 10), ("FULL", 20)) == connected(("FULL", 20), ("FULL", 10)) == {OST: 20.0}
    assert connected(("IDLE", 10), ("FULL", 20)) == connected(("FULL", 20), ("DISCONN", 30)) == {OST: 0.0}


def test_locks_are_read_only_from_namespaces_of_servers() -> None:
    names = ("lus-MDT0000-osp-MDT0001", "mdt-lus-MDT0001_UUID", "filter-lus-OST0001_UUID", "lus-OST0001-osc-MDT0001")
    text = "".join(f"ldlm.namespaces.{name}.pool.limit=10\nldlm.namespaces.{name}.pool.granted=70\n" for name in names)
    assert set(read_text("srv2", 5.0, text).locks) == {"mdt-lus-MDT0001_UUID", "filter-lus-OST0001_UUID"}


def test_a_restarted_watch_reports_the_end_of_an_open_outage_and_no_ended_one_again() -> None:
    first = WatchEvent("outage", "a", 100.0, 160.0, "a was unavailable", ended_s=130.0)
    second = WatchEvent("outage", "b", 900.0, 930.0, "b is unavailable")
    outages, events = Outages(), list[WatchEvent]()
    outages.resume(1000.0, [first, second])
    waits = (Interruption("a", 95.0, 131.0), Interruption("b", 902.0, 1050.0), Interruption("c", 980.0, 990.0))
    for now_s in range(1100, 1300, 10):
        events += outages.add(CounterReading("client", now_s, waits=waits))
    assert {event.subject: event.ended_s for event in events} == pytest.approx({"b": 1050, "c": 990}, abs=2)


def behind(clock_s: int) -> WatchEvent:
    """Return the last event of an outage from 1105 to 1225 of the server's clock; the client is ``clock_s`` behind."""
    stream = []
    for now_s in range(1003, 1500, 10):
        there = {OST: 900.0 if now_s < 1105 else 1225.0} if not 1105 <= now_s < 1225 else {}
        recovered = {OST: 1234.0} if now_s >= 1233 else {}
        if not 1105 <= now_s < 1215:
            stream.append(CounterReading("oss", now_s, serving={"fs-MDT0000": 900.0} | there, recovered=recovered))
        changes = [(1109, "DISCONN"), (1227, "CONNECTING"), (1227, "REPLAY"), (1233, "FULL")]
        seen = [(at - clock_s, state) for at, state in changes if at <= now_s - 3]
        stream.append(read_text("client", now_s - 3 - clock_s, lctl("osc", OST, seen)))
    return events_of(iter(sorted(stream, key=lambda reading: reading.time_s)))[-1]


@pytest.mark.parametrize("clock_s", [-40, -3, 0, 8, 20, 40])
def test_bounds_hold_although_the_clock_of_the_client_differs(clock_s: int) -> None:
    event = behind(clock_s)
    assert event.low is not None and event.high is not None and event.low <= 128 and event.high >= 120
    assert event.low <= event.high and event.low >= 60


@given(
    st.lists(st.tuples(st.sampled_from(("oss", "one", "two")), st.integers(0, 60), st.integers(-90, 90)), max_size=60)
)
def test_bounds_of_an_outage_never_contradict_each_other(rows: list[tuple[str, int, int]]) -> None:
    outages, now_s = Outages(), 1000.0
    for source, step_s, other_s in [*rows, *(("oss", 60, 1),) * 3, *(("one", 60, 0), ("two", 60, 0)) * 3]:
        now_s += step_s
        if source == "oss":
            there = {OST: now_s - abs(other_s)} if other_s % 3 else {}
            recovering = frozenset({OST} if other_s % 3 == 2 and other_s != 1 else ())
            reading = CounterReading(source, now_s, serving=there, recovering=recovering)
        else:
            ended_s = None if other_s % 2 else now_s + other_s
            waits = (Interruption(OST, min(now_s + other_s, ended_s or math.inf) - 20, ended_s),)
            reading = CounterReading(source, now_s, waits=waits)
        for event in outages.add(reading):
            assert event.low is None or event.high is None or 0 <= event.low <= event.high


@pytest.mark.parametrize("server_saw_it", [False, True])
def test_an_outage_that_began_before_the_recording_has_no_upper_bound(server_saw_it: bool) -> None:
    outages, events = Outages(), list[WatchEvent]()
    if server_saw_it:
        outages.add(CounterReading("oss", 700.0, serving={OST: 600.0}))
    changes = [(at + more, state) for at in range(800, 1100, 5) for more, state in ((0, "CONNECTING"), (4, "DISCONN"))]
    for now_s in range(1000, 1300, 10):
        history = [change for change in changes if change[0] <= now_s][-16:]
        history += [(1100, "REPLAY"), (1100, "FULL")] * (now_s >= 1100)
        events += outages.add(read_text("client", now_s, lctl("osc", OST, history)))
    end = events[-1]
    assert end.ended_s is not None and end.low is not None and 100 <= end.low <= 300
    if server_saw_it:
        assert end.high is not None and 400 <= end.high <= 410
    else:
        assert end.high is None and " was unavailable for at least " in line(end) and "lasted about" not in line(end)


def lost_connection(lasts_s: int, requests_s: int, passed: Sequence[str] = (), until_s: int = 1600) -> list[WatchEvent]:
    """Return the events if a client loses two targets at 1105 and their servers then do ``requests_s`` requests/s."""
    outages, events = Outages(), list[WatchEvent]()
    for now_s in range(1000, until_s, 10):
        changes = [(1105, "DISCONN"), *((1105 + lasts_s, state) for state in ("CONNECTING", *passed, "FULL"))]
        seen = [change for change in changes if change[0] <= now_s]
        events += outages.add(read_text("client", now_s, lctl("mdc", MDT, seen) + lctl("osc", OST, seen)))
        done = min(now_s, 1110) * 5 + (now_s - 1000) * requests_s
        counts = (
            f"snapshot_time {now_s}.0 secs.nsecs\nstart_time 900.0 secs.nsecs\nelapsed_time {now_s - 900}.0 secs.nsecs"
        )
        counts += (
            f"\nstatfs {now_s} samples [usecs] 1 9 {now_s} {now_s}\nopen {done} samples [usecs] 1 9 {done} {done}\n"
        )
        text = f"mdt.{MDT}.md_stats=\n{counts}obdfilter.{OST}.stats=\n{counts}"
        events += outages.add(read_text("server", now_s + 1, text))
    return events


@pytest.mark.parametrize(
    ("lasts_s", "passed", "said"),
    [(60, (), ": fs-OST0000, labfs-MDT0001 for 59 s to "), (1, ("EVICTED",), "; a client was evicted")],
)
def test_targets_that_serve_other_clients_have_no_outage_if_one_client_is_cut_off(
    lasts_s: int, passed: Sequence[str], said: str
) -> None:
    (event,) = lost_connection(lasts_s, 3, passed)
    assert event.text.startswith("client was cut off from 2 targets, while other clients were served: ")
    assert event.subject == "client" and said in event.text and event.ended_s == pytest.approx(1105 + lasts_s, abs=15)
    assert event.low is not None and event.high is not None and event.low <= lasts_s <= event.high


def test_a_client_that_stays_cut_off_is_reported_before_its_end() -> None:
    (begin,) = lost_connection(900, 3)
    assert begin.ended_s is None and begin.told_s <= 1190
    assert begin.text.startswith("client was cut off from 2 targets, while other clients were served, for at least ")


def test_targets_that_serve_no_requests_while_a_client_waits_have_an_outage() -> None:
    *_, event = lost_connection(60, 0)
    assert event.text.startswith("2 targets of server were unavailable: ") and event.subject == f"{OST}, {MDT}"
