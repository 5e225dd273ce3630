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


def test_thousands_of_jobs_are_asked_for_less_often_than_the_rest() -> None:
    asked: list[tuple[str, ...]] = []
    spent_s = [0.0]

    def lctl(argv: Sequence[str], timeout_s: float = 1.0) -> Completed:
        asked.append(tuple(argv))
        jobs = any("job_stats" in word for word in argv)
        spent_s[0] += 0.35 if jobs else 0.01
        text = "obdfilter.fs-OST0000.kbytestotal=100\n"
        if jobs:
            text += "obdfilter.fs-OST0000.job_stats=job_stats:\n- job_id: a\n  write: { samples: 7, unit: usecs }\n"
        return Completed(tuple(argv), 0, text, "")

    source = LustreSource("server", lctl, SERVER_PARAMETERS, disks=False, spent_s=lambda: spent_s[0])
    seen = [bool(source.read(time_s).jobs) for time_s in map(float, range(1000, 1100, 10))]
    assert seen == [True, *[False] * 4, True, *[False] * 4]
    # A clock that was set back makes it due.
    assert source.read(100.0).jobs and len(asked) == 11


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


def test_a_target_whose_counters_are_not_understood_is_not_away() -> None:
    stats = "mdt.fs-MDT0000.md_stats=\nsnapshot_time {0}.0 secs.nsecs\nstart_time 900.0 secs.nsecs\n"
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1200, 5):
        text = "mdt.fs-MDT0000.md_stats=\n - who knows\n" if 1050 <= second < 1070 else stats.format(second)
        events += watch.add(read_text("server", second, text))
    assert not events


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


def served(second: float, away: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Return what a server serves of which some targets are away for a while, and then begin anew."""
    return {
        target: 900.0 if second < gone_s else back_s
        for target, (gone_s, back_s) in away.items()
        if not gone_s <= second < back_s
    }


def events_of_server(away: dict[str, tuple[float, float]], silent: range = range(0)) -> list[WatchEvent]:
    watch = Watch()
    return [
        event
        for second in range(1000, 1400, 5)
        if second not in silent
        for event in watch.add(CounterReading("oss1", second, serving=served(second, away)))
    ]


def test_a_server_that_is_restarted_is_one_event_with_all_its_targets() -> None:
    away = {f"fs-OST000{number}": (1051.0 + number, 1088.0 + number) for number in range(4)}
    (event,) = events_of_server(away)
    assert event.subject == "fs-OST0000, fs-OST0001, fs-OST0002, fs-OST0003"
    assert event.text.startswith("4 targets of oss1 were away for about ") and event.text.endswith(event.subject)


def test_of_targets_that_were_away_for_different_times_the_longest_and_the_shortest_are_told() -> None:
    (event,) = events_of_server({"fs-OST0000": (1051.0, 1078.0), "fs-OST0001": (1053.0, 1099.0)})
    assert (
        "2 targets of oss1 were away, fs-OST0001 for about 4" in event.text and "fs-OST0000 for about 2" in event.text
    )
    assert event.size is not None and 40 <= event.size <= 50


def test_a_target_that_stays_away_when_its_server_is_back_is_told_alone() -> None:
    away = {"fs-OST0000": (1051.0, 1133.0), "fs-OST0001": (1051.0, 1133.0), "fs-OST0002": (1051.0, 1253.0)}
    both, some_back, alone, last = events_of_server(away)
    assert both.key == some_back.key and both.ended_s is None and some_back.ended_s is not None
    assert both.text.startswith("3 targets of oss1 are away, for at least 60 s: ")
    assert some_back.text.startswith("2 targets of oss1 were away")
    assert alone.key == last.key and alone.text.startswith("fs-OST0002 is away, for at least 1")
    assert last.size is not None and 195 <= last.size <= 208


def test_a_server_that_is_silent_was_away_all_that_time() -> None:
    away = {"fs-OST0000": (1102.0, 1196.0), "fs-OST0001": (1102.0, 1196.0)}
    (event,) = events_of_server(away, silent=range(1101, 1195))
    assert event.size is not None and abs(event.size - 94) < 3.5
    assert event.low is not None and event.high is not None and event.low <= 94 <= event.high


def test_a_client_that_misses_a_target_before_the_next_reading_narrows_its_begin() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1200, 30):
        serving = served(second, {"fs-MDT0000": (1031.0, 1073.0)})
        waits = () if second < 1090 else (Interruption("fs-MDT0000", 1032, 1080),)
        events += watch.add(CounterReading("client", second - 1, waits=waits))
        events += watch.add(CounterReading("server", second, serving=serving))
    (event,) = events
    assert event.size is not None and abs(event.size - 42) < 2 and event.low is not None and 35 < event.low <= 42


def test_what_a_client_missed_for_long_is_over_when_its_silent_server_is_back() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        waits = () if second < 1053 else (Interruption("fs-MDT0000", 1051, None if second < 1160 else 1155),)
        events += watch.add(CounterReading("client", second - 1, waits=waits))
        if not 1050 < second < 1150:
            serving = {"fs-MDT0000": 900.0 if second < 1051 else 1146.0}
            events += watch.add(CounterReading("server", second, serving=serving))
    first, last = events
    assert first.key == last.key and first.ended_s is None and last.ended_s is not None


def test_a_client_that_misses_all_targets_of_a_server_tells_it_once() -> None:
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1300, 5):
        ended = None if second < 1140 else 1136
        waits = tuple(Interruption(f"fs-OST000{number}", 1050 + number, ended) for number in range(3))
        events += watch.add(CounterReading("client", second, waits=waits if second > 1052 else ()))
    first, last = events
    assert first.key == last.key and first.text.startswith("3 targets do not answer a client, for at least ")
    assert last.text.startswith("3 targets did not serve a client, fs-OST0000 for 86 s (± 1 s): fs-OST0000")


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


def test_a_client_whose_lctl_tells_nothing_says_what_it_cannot_tell() -> None:
    answers = {"lctl": Completed(("lctl",), 0, "", ""), "cat": Completed(("cat",), 0, first_block()[2], "")}

    def ask(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        return replace(answers[argv[0]], argv=tuple(argv))

    source = LustreSource("client", ask, (*CLIENT_PARAMETERS, *SERVER_PARAMETERS), disks=True, alone=True)
    reading = source.read(5.0)
    assert reading.work and not reading.missing
    told = [line.partition(":")[0] for line in source.lacking(reading)]
    assert told == ["slow targets", "who causes the load", "fail-overs"]
    answers["lctl"] = replace(answers["lctl"], status=1)
    assert source.read(15.0).missing == ("lctl get_param failed and said nothing",)


def test_targets_of_this_machine_are_those_of_the_directory() -> None:
    watch, events = Watch(), list[WatchEvent]()
    away = {f"fs-OST000{number}": (1051.0, 1138.0) for number in range(2)}
    for second in range(1000, 1300, 5):
        events += watch.add(CounterReading("/mnt client and host", second, serving=served(second, away)))
    first, last = events
    assert first.text.startswith("2 targets of /mnt are away, ") and last.text.startswith(
        "2 targets of /mnt were away "
    )
