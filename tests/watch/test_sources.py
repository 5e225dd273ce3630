"""Live sources read lctl as in the recordings, and report what they cannot read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.targets.command import Completed
from strakes.watch.lustre import CLIENT_PARAMETERS, SERVER_PARAMETERS, read_text
from strakes.watch.recorded import last_versions, open_lines, readings
from strakes.watch.sources import LustreSource
from strakes.watch.values import WatchEvent, line
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


def test_lines_of_proc_do_not_hide_the_used_space_in_the_parameter_before_them() -> None:
    disk = f" 254 0 vda {' '.join(map(str, range(17)))}"
    for after in (disk, "cpu  57868 0 68439", f"{disk}\ncpu  57868 0 68439"):
        text = f"obdfilter.fs-OST0003.kbytesfree=0\nobdfilter.fs-OST0003.kbytestotal=100\n{after}\n"
        assert read_text("server", 5.0, text).full == {"fs-OST0003": 1.0}


@pytest.mark.parametrize("number", ["9" * 400, "9" * 39, str(2**64 - 1), "9" * 11])
def test_no_number_of_a_server_ends_the_watch(number: str) -> None:
    watch, (_, parameters, disks) = Watch(), first_block()
    state = "osc.a-OST0000-osc-b.state=current_state: FULL\nstate_history:\n - [ 5, DISCONN ]\n - [ 17, FULL ]\n"
    recovery = "obdfilter.a-OST0000.recovery_status=\nstatus: COMPLETE\nrecovery_start: 7\nrecovery_duration: 7\n"
    usual = f"{parameters}{state}{recovery}{disks}"
    hostile = re.sub(r"(?<![\w-])\d+", number, usual) + " 8 0 sda" + " 1" * 400_000
    events = [event for at in range(9) for event in watch.add(read_text("a", 10.0 * at, (usual, hostile)[at % 2]))]
    many = (WatchEvent("gap", "a", 0.0, at, "a" * 10_000) for at in map(float, range(10_000)))
    assert all(map(line, events)) and last_versions(many)[1] == "the first 1 take 32 MiB"


def test_slow_job_counters_are_read_less_often_than_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
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

    monkeypatch.setattr("strakes.watch.sources._spent_s", lambda: spent_s[0])
    source = LustreSource("server", lctl, SERVER_PARAMETERS, disks=False)
    seen = [bool(source.read(time_s).jobs) for time_s in map(float, range(1000, 1100, 10))]
    assert seen == [True, *[False] * 4, True, *[False] * 4]
    # After the clock is set back, a reading is due at once.
    assert source.read(100.0).jobs and len(asked) == 11


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [(13, "error: get_param: Permission denied\n", "Permission denied"), (1, "", "failed and said nothing")],
)
def test_a_server_that_refuses_is_reported(status: int, error: str, said: str) -> None:
    def lctl(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        return Completed(tuple(argv), status, "", error)

    reading = LustreSource("server", lctl, SERVER_PARAMETERS, disks=False).read(5.0)
    assert said in reading.missing[0] and reading.serving is None


def test_a_target_with_unknown_counters_is_not_an_outage() -> None:
    stats = "mdt.fs-MDT0000.md_stats=\nsnapshot_time {0}.0 secs.nsecs\nstart_time 900.0 secs.nsecs\n"
    watch, events = Watch(), list[WatchEvent]()
    for second in range(1000, 1200, 5):
        text = "mdt.fs-MDT0000.md_stats=\n - who knows\n" if 1050 <= second < 1070 else stats.format(second)
        events += watch.add(read_text("server", second, text))
    assert not events


@pytest.mark.parametrize(
    ("text", "outages"), [("mdc.fs-MDT0000-mdc-1.state=current_state: FULL\nstate_history:\n", []), ("", ["outages"])]
)
def test_a_lustre_client_without_servers_states_what_is_lacking(text: str, outages: list[str]) -> None:
    answers = {"lctl": Completed(("lctl",), 0, text, ""), "cat": Completed(("cat",), 0, first_block()[2], "")}

    def ask(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        return replace(answers[argv[0]], argv=tuple(argv))

    source = LustreSource("client", ask, (*CLIENT_PARAMETERS, *SERVER_PARAMETERS), disks=True, alone=True)
    reading = source.read(5.0)
    assert reading.work and not reading.missing
    told = [line.partition(":")[0] for line in source.lacking(reading)]
    assert told == ["slow targets", "who causes the load", *outages]
    assert replace(source, alone=False).lacking(reading) == ()
