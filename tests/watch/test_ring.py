"""The store of a watch: bounded size over months, crashes, full disks and damaged lines."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from live_parts import histogram_of
from mounts import fill_up, tmpfs_mounted
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.watch.alerts import AlertSender
from strakes.watch.histogram import Histogram
from strakes.watch.live import LiveWatch
from strakes.watch.page import render_watch_page
from strakes.watch.reading import CounterReading
from strakes.watch.ring import DAY_S, Ring, RingRow
from strakes.watch.values import WatchEvent

START_S = 20_000 * DAY_S


def row(time_s: float, generator: np.random.Generator, figures: int = 3, count: int = 60) -> RingRow:
    values = 0.01 * np.exp(0.5 * generator.standard_normal((figures, count)))
    return RingRow(
        time_s, 60.0, {f"/fs probe {number}": histogram_of(list(of)) for number, of in enumerate(values.tolist())}
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200), st.integers(0, 200))
def test_histograms_merge_without_loss(values: list[float], cut: int) -> None:
    whole, first, second = histogram_of(values), histogram_of(values[:cut]), histogram_of(values[cut:])
    first.update(second)
    assert first == whole and Histogram.from_json(whole.to_json()) == whole
    for share in (0.5, 0.99):
        truth = sorted(values)[max(0, int(np.ceil(share * len(values))) - 1)]
        assert abs(whole.percentile(share) / truth - 1) <= 0.026


def test_a_month_needs_less_than_200_mib_and_a_day_is_kept_for_400_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, ring = np.random.default_rng(1), Ring(tmp_path)
    for hour in range(30 * 24):
        ring.add(row(START_S + 3600 * hour, generator, figures=9))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 200 * 2**20 / 60
    ring.thin(START_S + 400.5 * DAY_S)
    assert len(list(ring.rows())) == 30 * 24
    ring.thin(START_S + 402.5 * DAY_S)
    assert min(one.time_s for one in ring.rows()) == START_S + DAY_S
    ring.thin(START_S + 402.5 * DAY_S)
    assert min(one.time_s for one in ring.rows()) == START_S + 2 * DAY_S
    monkeypatch.setattr(Path, "iterdir", Mock(side_effect=PermissionError(errno.EACCES, "denied")))
    with pytest.raises(EnvironmentLacksError, match="denied"):  # The directory is not taken for empty.
        ring.kept_until_s()


@pytest.mark.parametrize("cut", [1, 17, 60])
def test_a_torn_line_costs_only_itself(tmp_path: Path, cut: int) -> None:
    ring, generator = Ring(tmp_path), np.random.default_rng(3)
    for minute in range(5):
        ring.add(row(START_S + 60 * minute, generator))
    (path,) = tmp_path.glob("rows-*")
    os.truncate(path, path.stat().st_size - cut)
    (tmp_path.parent / "rows-000001.jsonl").write_text('{"a": 1}')  # of another program
    with pytest.raises(BadInputError, match="not the store of a watch"):
        Ring(tmp_path.parent).hold()
    again = Ring(tmp_path)  # The store of a watch that ran while its directory was removed and made again has no lock.
    again.hold()
    again.add(row(START_S + 600, generator))
    assert [one.time_s - START_S for one in again.rows()] == [0, 60, 120, 180, 600]


def test_the_last_version_of_an_event_counts(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.add_event(WatchEvent("heavy", "job", 1.0, 2.0, "begun"))
    ring.add_event(WatchEvent("heavy", "job", 1.0, 2.0, "begun", ended_s=5.0))
    ((event,)) = ring.events()
    assert event.ended_s == 5.0


def test_only_the_newest_events_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.watch.ring._MOST_EVENTS_BYTES", 1000)
    ring = Ring(tmp_path)
    for number in range(100):
        ring.add_event(WatchEvent("heavy", f"job {number}", 1.0 + number, 2.0, "begun"))
    subjects = [event.subject for event in ring.events()]
    assert 1 < len(subjects) < 10 and subjects[-1] == "job 99" and not ring.damaged["events.jsonl"]


@pytest.fixture
def small() -> Iterator[Path]:
    with tmpfs_mounted("64k") as place:
        yield place


def test_a_full_store_loses_no_written_row(small: Path) -> None:
    ring, generator = Ring(small), np.random.default_rng(4)
    kept = [minute for minute in range(200) if ring.add(row(START_S + 60 * minute, generator))]
    assert 0 < len(kept) < 200 and ring.lost == 200 - len(kept) and "space" in ring.why
    ring.thin(START_S + 30 * DAY_S)
    assert len(list(Ring(small).rows())) == len(kept)


def test_a_restarted_watch_reports_the_time_without_records(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    for minute in (-1440, 0, 1):
        ring.add(row(START_S + 60 * minute, np.random.default_rng(6)))
    now_s, told = START_S + 120 + 3600, list[WatchEvent]()
    for _ in range(2):
        live = LiveWatch([], [], Ring(tmp_path), AlertSender([]), say=told.append, clock=lambda: now_s)
        live.step()
        live.step()
        ring.add(row(now_s, np.random.default_rng(7)))
    (event,) = told
    assert (event.began_s, event.ended_s, event.alarm) == (START_S + 120, now_s, False)
    assert event.text == "nothing was recorded in the 1 h before this watch began"


class Away:
    name, every_s = "server", 10.0

    def read(self, time_s: float) -> CounterReading:
        return CounterReading(self.name, time_s, missing=(f"no answer at {time_s:.0f}",))

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        return ()


def test_a_watch_whose_store_is_full_says_so_once_and_goes_on(small: Path) -> None:
    fill_up(small / "others")
    now_s, told = START_S, list[WatchEvent]()
    live = LiveWatch([], [Away()], Ring(small), AlertSender([]), say=told.append, clock=lambda: now_s)
    for _ in range(3):
        live.step()
        now_s += 10
    texts = [event.text for event in told]
    assert len([text for text in texts if "the store cannot be written" in text]) == 1
    assert len([text for text in texts if "no answer" in text]) == 3
    (small / "others").unlink()
    live.step()
    # With free space again, the watch stores the events that it could not store before.
    expected = {told[-1].text, *(text for text in texts if "store" in text)}
    assert {event.text for event in Ring(small).events()} == expected


def test_events_without_end_do_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.runs.store_files._MOST_LINES_BYTES", 4096)
    ring = Ring(tmp_path)
    for number in range(100):
        ring.add_event(WatchEvent("saturation", f"OST{number}", START_S, START_S, "text"))
    assert 3500 < (tmp_path / "events.jsonl").stat().st_size <= 4096
    assert ring.failing and "this file may have" in ring.why


@pytest.mark.parametrize(
    "damage",
    [
        b'{"t":1728000000.0,"s":60.0,"f":{"/fs \xff probe 0":{"x":1}}}',
        b"\xff\xfe\x00",
        b'{"t":NaN,"s":60.0,"f":{}}',
        b'{"t":1e300,"s":60.0,"f":{}}',
        b'{"t":1728000000.0,"s":60.0,"f":{"/fs probe 0":{"401":1}}}',
        b'{"t":1728000000.0,"s":60.0,"f":{"/fs probe 0":{"1":-4}}}',
        b"[" * 100_000,
        b"5",
    ],
)
def test_damaged_lines_are_left_out_and_reported(tmp_path: Path, damage: bytes) -> None:
    ring, generator = Ring(tmp_path), np.random.default_rng(8)
    events = [WatchEvent("heavy", f"job {number}", START_S, START_S, "text") for number in range(2)]
    for number in range(2):
        ring.add(row(START_S + 60 * number, generator))
        ring.add_event(events[number])
        for path in tmp_path.glob("*.jsonl"):
            with path.open("ab") as file:
                file.write(damage + b'\n{"kind": "heavy", "subject": "x", "told_s": 1.0, "text": "no beginning"}\n')
    again = Ring(tmp_path)
    assert len(list(again.rows())) == 2 and again.events() == events and set(again.damaged.values()) == {4}
    assert again.kept_until_s() is not None
    assert "8 damaged lines of the store are left out" in render_watch_page(again, START_S - 60, START_S + 600, ())
    again.thin(START_S + 5 * DAY_S)
    assert sum(histogram.total() for one in again.rows() for histogram in one.figures.values()) == 2 * 3 * 60


def test_a_second_watch_does_not_use_a_store_in_use(tmp_path: Path) -> None:
    first = Ring(tmp_path)
    fcntl.flock(os.open(tmp_path, os.O_RDONLY), fcntl.LOCK_EX)  # as any user can who may read the directory
    first.hold()
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    with pytest.raises(BadInputError, match="another watch uses this store"):
        Ring(tmp_path).hold()
    Ring(tmp_path, to_read=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentLacksError, match="cannot write to the store"):
        Ring(tmp_path / "file")
    if os.geteuid() == 0:
        (tmp_path / "theirs" / "watch").mkdir(parents=True)
        os.chown(tmp_path / "theirs", 65534, 65534)
        with pytest.raises(EnvironmentLacksError, match="other users can replace files"):
            Ring(tmp_path / "theirs" / "watch")


def test_a_store_that_becomes_read_only_is_reported_with_the_number_of_lost_lines(small: Path) -> None:
    now_s, told = START_S, list[WatchEvent]()
    live = LiveWatch([], [Answers()], Ring(small), AlertSender([]), say=told.append, clock=lambda: now_s)
    for minute in range(60):
        if minute in (5, 20, 35, 50):
            words = ["mount", "-o", "remount,ro" if minute in (5, 35) else "remount,rw", str(small)]
            subprocess.run(words, check=True)
        for _ in range(6):
            live.step()
            now_s += 10
    for (first, second), lost in ((told[:2], 15), (told[2:], 30)):
        assert "Read-only file system" in first.text and first.key == second.key and second.ended_s is not None
        assert f"{lost} lines could not be stored" in second.text and 850 <= second.ended_s - second.began_s <= 1000
    assert live.metrics.now["missed"]["store"] == 30


class Answers(Away):
    def read(self, time_s: float) -> CounterReading:
        return CounterReading(self.name, time_s, full={"t": 0.1})


def test_a_line_longer_than_any_row_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    name = "\xe9" * 250_000  # of a target, from a server
    Ring(tmp_path).add_event(WatchEvent("slow-target", name, 0.0, 0.0, name, evidence={"target": name}))
    assert [len(event.text) for event in Ring(tmp_path, to_read=True).events()] == [4000]
    Ring(tmp_path).add(row(START_S, np.random.default_rng(3)))
    (path,) = tmp_path.glob("rows-*")
    os.truncate(path, 1 << 34)
    with pytest.raises(BadInputError, match="damaged") as refused:
        list(Ring(tmp_path, to_read=True).rows())
    assert "longer than 1 MiB" in str(refused.value)
