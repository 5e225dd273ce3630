"""Eight minutes of counters recorded on a real server and client yield exactly the true events."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from conftest import StrakesRunner
from strakes.watch.recorded import readings
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

RECORDINGS = Path(__file__).parent / "recordings"


def truth() -> dict[str, float]:
    rows = (line.split(" ", 1) for line in (RECORDINGS / "day.events").read_text().splitlines())
    return {what: float(when) for when, what in rows}


def events_of(*names: str) -> list[WatchEvent]:
    watch = Watch()
    return [event for reading in readings([RECORDINGS / name for name in names]) for event in watch.add(reading)]


@pytest.fixture(scope="module")
def events() -> list[WatchEvent]:
    return events_of("day.srv.gz", "day.cli.gz")


def of(events: list[WatchEvent], kind: str) -> list[WatchEvent]:
    return [event for event in events if event.kind == kind]


def test_only_the_true_events_are_reported(events: list[WatchEvent]) -> None:
    expected = {("heavy", "noisyjob.1000"), ("slow-target", "data target labfs-OST0001"), ("outage", "labfs-MDT0001")}
    assert {(event.kind, event.subject) for event in events} == expected
    assert len({event.key for event in events}) == 3


def test_the_noisy_job_is_named_while_it_is_noisy(events: list[WatchEvent]) -> None:
    begun, ended = of(events, "heavy")
    assert truth()["noisy job begins"] - 20 <= begun.began_s and begun.told_s <= truth()["noisy job ends"]
    assert ended.ended_s == pytest.approx(truth()["noisy job ends"], abs=40)


def test_the_slow_target_is_named_within_two_minutes(events: list[WatchEvent]) -> None:
    begun, ended = of(events, "slow-target")
    assert truth()["OST0001 slow"] <= begun.told_s <= truth()["OST0001 slow"] + 100
    assert ended.ended_s == pytest.approx(truth()["OST0001 normal"], abs=40)


@pytest.mark.parametrize(
    "content", ["### 1795000000\n\x07%$\n", "### 1795000000\n", "### 1795000000\nfoo.bar=\nbaz 1\n"]
)
def test_a_recording_without_readable_data_is_refused(tmp_path: Path, strakes: StrakesRunner, content: str) -> None:
    (tmp_path / "server.txt").write_text(content)
    done = strakes("watch", "replay", str(tmp_path / "server.txt"))
    assert done.returncode == 2 and "the recording has no readable counters" in done.stderr


def test_times_of_a_recording_may_be_in_milliseconds(tmp_path: Path) -> None:
    lines = gzip.decompress((RECORDINGS / "day.srv.gz").read_bytes()).decode().splitlines(keepends=True)[:4000]
    late = [f"### {float(line[4:]) * 1000:.0f}\n" if line.startswith("### ") else line for line in lines]
    (tmp_path / "s.txt").write_text("".join(lines))
    (tmp_path / "ms.txt").write_text("".join(late))
    seconds, milliseconds = ([each.time_s for each in readings([tmp_path / name])] for name in ("s.txt", "ms.txt"))
    assert milliseconds == pytest.approx(seconds, abs=0.01) and len(seconds) > 1
