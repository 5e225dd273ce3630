"""The live watch: hanging and failing probes, sources that do not answer, stepped clocks, and pauses."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from live_parts import Clock, Creates, Scheduled, Scripted, longest_s, probed, steps
from mounts import faulty_mounted
from strakes.base.errors import EnvironmentLacksError, MeasurementError
from strakes.model.service_level import judge, parse_service_level
from strakes.runs.messages import LoggedOperation
from strakes.targets import calls, workspace
from strakes.targets.clean import clean
from strakes.targets.mountinfo import Mount
from strakes.targets.removal import Left, remove_with_limit
from strakes.watch.alerts import AlertSender
from strakes.watch.histogram import Histogram
from strakes.watch.live import NO_BREAK, Break, LiveWatch
from strakes.watch.outages import Outages
from strakes.watch.page import render_watch_page
from strakes.watch.probing import CreateTest, DirectoryProbe
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch


def test_a_server_that_is_unavailable_for_an_hour_is_reported_once_and_when_it_is_back(tmp_path: Path) -> None:
    clock, told = Clock(), list[WatchEvent]()
    source = Scripted(
        {
            second: CounterReading("script", second, full={"t": 0.1})
            for second in [*range(1000, 1100), *range(4700, 4800)]
        }
    )
    live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    steps(live, clock, 4800, 10)
    assert [event.text for event in told] == [
        "script cannot be read: the server does not answer",
        "script can be read again; for 1 h it could not be read: the server does not answer",
    ]
    (gap,) = Ring(tmp_path).events()
    assert (gap.began_s, gap.ended_s) == (1100.0, 4700.0)


def test_a_short_fail_over_stays_in_the_metrics_for_five_minutes(tmp_path: Path) -> None:
    clock = Clock()

    class Restarted(Scripted):
        def read(self, time_s: float) -> CounterReading:
            serving = {"MDT0000": 900.0 if time_s < 1100 else 1108.0} if not 1100 <= time_s < 1110 else {}
            return CounterReading("script", time_s, serving=serving)

    live = LiveWatch([], [Restarted({})], Ring(tmp_path), AlertSender(), clock=clock)
    seen = {}
    while clock.now_s < 1600:
        live.step()
        seen[clock.now_s] = len(live.metrics.now["alarms"])
        clock.now_s += 10
    assert sum(seen.values()) == 31 and not seen[1590.0] and live.metrics.now["events"] == {"outage": 1}


@pytest.mark.parametrize("hangs", [range(1000, 1060), range(1100, 1142), range(1100, 1300)])
def test_a_file_system_that_hangs_is_an_alarm_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: range
) -> None:
    (alarm, over), ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, hangs))
    assert alarm.kind == "outage" and alarm.alarm and alarm.text == f"{tmp_path}/v is unavailable, for at least 35 s"
    assert alarm.key == over.key and over.low is not None and over.high is not None
    assert over.low == pytest.approx(len(hangs) - 1, abs=2) and over.high == pytest.approx(len(hangs) + 2, abs=2)
    assert alarm.began_s == pytest.approx(hangs.start, abs=1) and over.ended_s == pytest.approx(hangs.stop, abs=1)
    assert longest_s(ring) == pytest.approx(len(hangs), rel=0.05)
    # The store has the event once, with its end. A new watch does not open it again.
    assert ring.events() == [over]
    again = LiveWatch([], [], Ring(tmp_path / "store"), AlertSender([]), probe=False, clock=lambda: 1401.0)
    again.step()
    assert not again.metrics.now["alarms"] and ring.events()[:1] == [over]


def test_a_hang_that_is_over_does_not_pause_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Crawls(Scheduled):
        """A probe whose operations take 6 s each after 1100 s, with no results before ``told_until_s``."""

        told_until_s = 0.0

        def take(self) -> list[LoggedOperation]:
            if 1100 <= self.clock.now_s < self.told_until_s:
                return []
            done = super().take()
            crawl_s = iter(range(1100, 1300, 6))
            return [
                replace(each, begun_s=float(at := next(crawl_s)), ended_s=at + 6.0)
                if 1100 <= each.due_s < 1130
                else each
                for each in done
            ]

    for told_until_s, texts in ((1300.0, 0), (1129.0, 1)):
        (place := tmp_path / f"{told_until_s:g}").mkdir()

        class Late(Crawls):
            pass

        Late.told_until_s = told_until_s
        told, _ = probed(place, monkeypatch, Late)
        assert sum("pauses for" in event.text for event in told) == texts, told


def test_a_stopped_engine_of_the_probe_is_a_gap_and_no_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(Scheduled):
        def take(self) -> list[LoggedOperation]:
            self.is_stopped = 1100 <= self.clock.now_s + 1 < 1150
            return super().take()

    told, ring = probed(tmp_path, monkeypatch, lambda clock: Stopped(clock, range(1100, 1150)))
    assert [event.kind for event in told] == ["gap", "gap"] and "a signal has stopped its engine" in told[0].text
    assert told[1].ended_s == pytest.approx(1160, abs=2) and longest_s(ring) < 0.01


def test_minutes_without_an_answer_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(1100, 1500)), until_s=1490)
    kept = judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows())
    slow = judge(parse_service_level("p99 of create <= 20 min in 99 % of minutes"), ring.rows())
    assert kept.bad == pytest.approx(390 / 60, abs=1.1) and kept.minutes == pytest.approx(490 / 60, abs=0.1)
    assert slow.bad == 0


def test_minutes_in_which_the_probe_cannot_start_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = list[CreateTest]()

    def hangs(answer: CreateTest) -> int:
        tries.append(answer)
        if len(tries) < 5:
            raise MeasurementError("does not answer")
        return 0

    monkeypatch.setattr(CreateTest, "run", hangs)
    told, ring = probed(tmp_path, monkeypatch, Scheduled)
    kept = judge(parse_service_level("p99 of read <= 20 ms in 99 % of minutes"), ring.rows())
    assert kept.bad == kept.minutes == 4
    create = judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows())
    assert create.bad == 4 and create.minutes == pytest.approx(400 / 60, abs=0.1)
    assert [event.kind for event in told] == ["gap", "outage", "gap", "outage"]


def test_a_hang_at_the_start_is_an_alarm_and_leaves_one_waiting_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, children = tmp_path / "release", list[subprocess.Popen[bytes]]()
    begin = calls.begin

    def hang(call: calls.Call, directory: str, name: str, *, stderr: int) -> subprocess.Popen[bytes]:
        if children:
            return begin(call, directory, name, stderr=stderr)
        waits = f"while [ ! -e {release} ]; do sleep 0.05; done"
        children.append(subprocess.Popen(["sh", "-c", waits], stderr=subprocess.PIPE))
        return children[0]

    monkeypatch.setattr(calls, "begin", hang)
    monkeypatch.setattr(calls, "LIMIT_S", 0.2)

    class Begins(Scheduled):
        def __enter__(self) -> Begins:
            began.append(self.clock.now_s)
            return self

    began = list[float]()
    clock, told = Clock(), list[WatchEvent]()
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Begins(clock))
    level = parse_service_level("p50 of create <= 500 ms in 99 % of minutes")
    ring = Ring(tmp_path / "store")
    (tmp_path / "v").mkdir()
    live = LiveWatch([tmp_path / "v"], [], ring, AlertSender([]), levels=[level], say=told.append, clock=clock)
    while clock.now_s < 1400:
        if clock.now_s == 1205:
            release.touch()
            children[0].wait()
        live.step()
        clock.now_s += 1
    live.close()
    cannot, alarm, works, over = told
    assert cannot.text.endswith("/v cannot work: the file system does not answer within 0.2 s")
    assert alarm.kind == "outage" and alarm.told_s <= 1040 and alarm.began_s == pytest.approx(1000, abs=1)
    assert began == [1205.0] and works.key == cannot.key and over.key == alarm.key
    assert works.ended_s == 1205 and over.ended_s == pytest.approx(1205, abs=1)
    assert judge(level, ring.rows()).bad == pytest.approx(4, abs=1) and not list((tmp_path / "v").iterdir())


def test_a_removed_directory_is_a_gap_and_not_a_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Removed(Scheduled):
        def take(self) -> list[LoggedOperation]:
            if self.clock.now_s == 1100:
                shutil.rmtree(tmp_path / "v")
            return super().take()

    told, ring = probed(tmp_path, monkeypatch, lambda clock: Removed(clock, range(0), range(1101, 2000), "ENOENT"))
    (gap,) = told
    assert gap.text == f"the probe of {tmp_path}/v cannot work: no such directory"
    assert gap.began_s == pytest.approx(1101, abs=11)
    assert longest_s(ring) < 0.01


def test_failed_operations_are_reported_and_count_as_infinite_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(0), range(1100, 1150), "EIO"))
    begins, ends = told
    assert begins.text == f"operations of the probe of {tmp_path}/v fail (create: Input/output error)"
    assert ends.key == begins.key and ends.text.endswith(": 50 operations failed, and none since")
    assert ends.ended_s == 1149 and longest_s(ring) == float("inf")
    assert "failed" in render_watch_page(ring, 0.0, 2000.0, ())
    assert 1 <= judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows()).bad <= 2


@pytest.mark.parametrize("until_s", [1200, 2000])
def test_a_probe_starts_again_although_its_old_files_remain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until_s: int
) -> None:
    """The probe's files remain while the file system is read-only. They do not prevent a new probe."""
    clocks = list[Clock]()

    class ReadOnly(Scheduled):
        def take(self) -> list[LoggedOperation]:
            clocks.append(self.clock)
            if 1120 <= self.clock.now_s < until_s:
                raise MeasurementError("cannot continue", why="the plan could not be ended")
            return super().take()

    remove = remove_with_limit

    def refuse(parent: int, name: str, path: str, directory: int = -1) -> tuple[Left, ...]:
        if clocks[-1].now_s < until_s:
            return (Left(path, "Read-only file system"),)
        return remove(parent, name, path, directory)

    def refuse_again(_parent: int, _name: str, _directory: int, path: str) -> tuple[Left, ...]:
        return refuse(_parent, _name, path, _directory)

    monkeypatch.setattr(workspace, "remove_with_limit", refuse)
    monkeypatch.setattr(workspace, "remove_workspace", refuse_again)
    told, ring = probed(tmp_path, monkeypatch, lambda clock: ReadOnly(clock, range(0), range(1100, 1200), "EROFS"))
    cannot = next(event for event in told if "cannot work" in event.text)
    assert cannot.text.endswith("cannot work: its operations fail (create: Read-only file system)")
    if until_s < 1400:
        again = next(event for event in told if "works again" in event.text)
        assert again.key == cannot.key and list(ring.rows())[-1].figures and not list((tmp_path / "v").iterdir())
    else:
        (left,) = (tmp_path / "v").iterdir()
        assert told[-1].text == f"{left} could not be removed (Read-only file system): run strakes clean {tmp_path}/v"


def test_minutes_of_a_full_file_system_are_bad_for_creates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: CreateTest) -> int:
        return errno.ENOSPC

    class Full(Scheduled):
        def __enter__(self) -> Full:
            if 1060 <= self.clock.now_s < 1300:
                raise EnvironmentLacksError("the file system is full")
            return self

        def take(self) -> list[LoggedOperation]:
            if self.clock.now_s >= 1060:
                raise MeasurementError("cannot continue")
            return super().take()

    monkeypatch.setattr(CreateTest, "run", refused)
    _, ring = probed(tmp_path, monkeypatch, Full, until_s=1300)
    create = judge(parse_service_level("p50 of create <= 20 ms in 99 % of minutes"), ring.rows())
    assert create.bad == pytest.approx(4, abs=0.1) and create.minutes == pytest.approx(5, abs=0.1)
    # A full file system says nothing about writes to existing files.
    assert not judge(parse_service_level("p50 of write <= 20 ms in 99 % of minutes"), ring.rows()).minutes


def test_a_minute_without_operations_has_no_latency_in_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Scheduled(clock, range(1100, 2000)))
    monkeypatch.setattr("strakes.watch.probing._HANGS_S", 1000.0)
    live = LiveWatch([tmp_path], [], Ring(tmp_path / "store"), AlertSender([]), clock=clock)
    shown = {}
    while clock.now_s < 1300:
        live.step()
        shown[clock.now_s] = bool(live.metrics.now["latencies"])
        clock.now_s += 1
    live.close()
    assert shown[1100] and not shown[1250]


def test_the_time_while_the_watch_was_stopped_is_not_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Clock(), list[WatchEvent]()
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Scheduled(clock, range(1100, 1495)))
    source = Scripted({second: CounterReading("script", second) for second in range(1000, 2000)})
    live = LiveWatch([tmp_path], [source], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=clock)
    since = NO_BREAK
    while clock.now_s < 1600:
        live.step(since)
        since = Break(stopped_s=395.0) if clock.now_s == 1099 else NO_BREAK
        clock.now_s += 1 + since.stopped_s
    live.close()
    (gap,) = told
    assert gap.text == "the watch was stopped for 6 min 35 s: nothing of that time is counted"
    assert (gap.began_s, gap.ended_s) == (1100.0, 1495.0)
    ring = Ring(tmp_path / "store")
    assert longest_s(ring) < 0.01 and sum(row.seconds for row in ring.rows()) == pytest.approx(205, abs=2)


@pytest.mark.parametrize("step_s", [-7200.0, 7200.0])
@pytest.mark.parametrize("noticed", [True, False])
def test_a_set_clock_is_reported_once(tmp_path: Path, step_s: float, noticed: bool) -> None:
    clock, told = Clock(), list[WatchEvent]()
    clock.now_s = 100_000.0

    class Always(Scripted):
        def read(self, time_s: float) -> CounterReading:
            return CounterReading("script", time_s, full={"t": 0.1})

    live = LiveWatch([], [Always({})], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    for second in range(100):
        live.step(Break(stepped_s=step_s) if second == 50 and noticed else NO_BREAK)
        clock.now_s += 1 + step_s * (second == 49)
    (gap,) = told
    if noticed:
        assert gap.text == f"the clock was set {'forward' if step_s > 0 else 'back'} by 2 h"
        assert f'<td class="short"></td><td>{gap.text}</td>' in render_watch_page(Ring(tmp_path), 0.0, 200_000.0, ())
    else:
        assert ("the clock was set back" if step_s < 0 else "nothing was read for") in gap.text


class Limited(Scripted):
    def read(self, time_s: float) -> CounterReading:
        if 1100 <= time_s < 1230:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().read(time_s)


@pytest.mark.parametrize("kind", [Scripted, Limited])
def test_a_source_that_does_not_answer_is_soon_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Scripted]
) -> None:
    clock, told = Clock(), list[WatchEvent]()
    source = kind({second: CounterReading("script", second) for second in (*range(1100), *range(1230, 2000))})
    source.every_s = 200.0
    live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    steps(live, clock, 1500)
    lost, again = told
    assert lost.told_s == 1200 and again.told_s == 1230
    assert again.began_s == lost.began_s == 1200 and again.ended_s == 1230
    monkeypatch.setattr("strakes.watch.live.is_ending", lambda: clock.now_s > 2000)
    steps(live, clock, 2500)
    assert told == [lost, again]  # A tool that strakes kills at its end says nothing about the source.


def test_the_place_of_an_unmounted_file_system_is_not_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told, points = Clock(), list[WatchEvent](), ["/scratch"]
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Failing())
    monkeypatch.setattr(
        "strakes.watch.probing.find_mount", lambda *_: Mount(1, 0, 1, "/", points[0], (), "xfs", "s", ())
    )

    class Failing(Creates):
        def __init__(self) -> None:
            super().__init__(clock)

        def take(self) -> list[LoggedOperation]:
            if points[0] == "/":
                raise EnvironmentLacksError("the directory cannot be used")
            return super().take()

    live = LiveWatch([tmp_path], [], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=clock)
    for second in range(400):
        points[0] = "/" if 100 <= second < 300 else "/scratch"
        live.step()
        clock.now_s += 1
    live.close()
    cannot, again = told
    assert "cannot work: nothing is mounted on /scratch any more" in cannot.text and "works again" in again.text
    assert cannot.key == again.key and cannot.began_s == pytest.approx(1100, abs=1)
    assert again.ended_s == pytest.approx(1300, abs=11) and "; for 3 min" in again.text


def test_clean_removes_the_directory_of_a_test_that_was_interrupted() -> None:
    with faulty_mounted() as mounted:
        mounted.keep("unlink", "rmdir")
        CreateTest(mounted.place).run()
        mounted.mend()
        (name,) = os.listdir(mounted.place)
        assert clean(mounted.place).removed == (str(mounted.place / name),)


PARTS = (
    (Scripted, "read"),
    (Watch, "add"),
    (Outages, "add"),
    (Ring, "add"),
    (Ring, "add_event"),
    (DirectoryProbe, "step"),
)


@pytest.mark.parametrize(
    ("kind", "name"), [*PARTS, (DirectoryProbe, "waits_s"), (Histogram, "percentile"), (AlertSender, "tell")]
)
def test_a_defect_of_one_part_is_a_gap_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, name: str
) -> None:
    clock, told = Clock(), list[WatchEvent]()
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Scheduled(clock, range(1300, 1340)))
    source = Scripted({second: CounterReading("script", second) for second in range(2000) if second % 300 > 40})
    live = LiveWatch([tmp_path], [source], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=clock)
    with monkeypatch.context() as planted:
        steps(live, clock, 1200)
        planted.setattr(kind, name, lambda *_, **__: 1 / 0)
        steps(live, clock, 1400)
    steps(live, clock, 1700)
    live.close()
    defects = [event for event in told if "internal error in strakes: ZeroDivisionError(" in event.text]
    assert 1 <= len({event.key for event in defects}) <= 3 and defects[-1].ended_s is not None, told
