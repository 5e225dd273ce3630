"""A live source that asks `lctl` tells the same as the recording of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from strakes.targets.command import Completed
from strakes.targets.description import Interruption
from strakes.watch.lustre import CLIENT_PARAMETERS, SERVER_PARAMETERS, read_text
from strakes.watch.reading import CounterReading
from strakes.watch.recorded import open_lines, readings
from strakes.watch.sources import LustreSource, reading_of_counters
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

RECORDING = Path(__file__).parent / "recordings" / "day.srv.gz"


def first_block() -> tuple[float, str, str]:
    with open_lines(RECORDING) as file:
        time_s = float(next(file).split()[1])
        lines = []
        for line in file:
            if line.startswith("### "):
                break
            lines.append(line)
    disks = [line for line in lines if line.split()[:1][0].isdecimal() and " vd" in line]
    return time_s, "".join(line for line in lines if line not in disks), "".join(disks)


def test_a_source_reads_what_was_recorded() -> None:
    time_s, parameters, disks = first_block()
    asked = []

    def lctl(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        asked.append(tuple(argv))
        return Completed(tuple(argv), 0, parameters if argv[0] == "lctl" else disks, "")

    live = LustreSource("server", lctl, SERVER_PARAMETERS, disks=True).read(time_s)
    recorded = next(readings([RECORDING]))
    assert live.work == recorded.work and live.serving == recorded.serving and live.full == recorded.full
    assert [words[0] for words in asked] == ["lctl", "cat"] and not live.missing


def test_a_server_that_refuses_is_said() -> None:
    def lctl(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        error = "error: get_param: param_path 'mdt/*/md_stats': Permission denied\n"
        return Completed(tuple(argv), 13, "", error)

    reading = LustreSource("server", lctl, SERVER_PARAMETERS, disks=False).read(5.0)
    assert reading.missing and "Permission denied" in reading.missing[0] and reading.serving is None


def test_the_only_target_of_a_server_that_is_away_is_told() -> None:
    stats = "mdt.fs-MDT0000.md_stats=\nsnapshot_time {0}.0 secs.nsecs\nstart_time {1}.0 secs.nsecs\n"
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1200, 5):
        away = 1050 <= second < 1070
        text = "" if away else stats.format(second, 900 if second < 1050 else 1068)
        events += watch.add(read_text("server", second, text))
    (event,) = events
    assert event.subject == "fs-MDT0000" and event.size is not None and 15 <= event.size <= 25


def test_a_target_that_a_client_misses_before_its_server_tells_is_told_once() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1200, 5):
        serving = {} if 1050 <= second < 1080 else {"fs-MDT0000": 900.0 if second < 1050 else 1078.0}
        waits = () if second < 1048 else (Interruption("fs-MDT0000", 1046, None if second < 1085 else 1083),)
        events += watch.add(CounterReading("client", second - 1, waits=waits))
        events += watch.add(CounterReading("server", second, serving=serving))
    (event,) = events
    assert event.evidence["client_connected_unix_s"] == 1083


def test_a_long_absence_is_one_event_from_its_begin_to_its_end() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        serving = {} if 1050 <= second < 1150 else {"fs-MDT0000": 900.0 if second < 1050 else 1148.0}
        events += watch.add(CounterReading("server", second, serving=serving))
    first, last = events
    assert first.key == last.key and first.ended_s is None and last.ended_s is not None


def test_a_client_that_forgets_when_it_lost_a_target_is_told_once() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        began = 1050 if second < 1100 else min(second, 1150) - 50
        ended = 1150 if second > 1150 else None
        waits = () if second < 1055 else (Interruption("fs-MDT0000", began, ended, or_earlier=second >= 1100),)
        events += watch.add(CounterReading("client", second, waits=waits))
    first, last = events
    assert first.key == last.key and first.began_s == 1050 and last.ended_s == 1150 and last.size == 100


def test_another_server_for_a_rank_is_another_beginning() -> None:
    numbers: dict[str, float] = {}

    def since(target: str, number: float, time_s: float) -> float:
        changed = numbers.get(target, number) != number
        numbers[target] = number
        return time_s if changed else 0.0

    first = reading_of_counters("ceph", 100.0, {"rank 0": {"server_number": 4.0}}, since)
    second = reading_of_counters("ceph", 130.0, {"rank 0": {"server_number": 7.0}}, since)
    assert first.serving == {"rank 0": 0.0} and second.serving == {"rank 0": 130.0}


def test_a_lustre_client_without_servers_says_what_it_cannot_tell() -> None:
    def lctl(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        return Completed(tuple(argv), 0, "mdc.fs-MDT0000-mdc-1.state=current_state: FULL\nstate_history:\n", "")

    source = LustreSource("client", lctl, CLIENT_PARAMETERS, disks=False, alone=True)
    reading = source.read(5.0)
    assert not reading.missing
    assert [line.partition(":")[0] for line in source.lacking(reading)] == ["slow targets", "who causes the load"]
    assert replace(source, alone=False).lacking(reading) == ()
