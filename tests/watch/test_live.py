"""The watch as it runs: probes, sources that fail, clocks that step, a process that is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from strakes.accept.service_level import judge, parse_service_level
from strakes.errors import EnvironmentLacksError, MeasurementError
from strakes.launch.messages import LoggedOperation
from strakes.targets.clean import others_at_work
from strakes.targets.mountinfo import Mount
from strakes.watch.alerts import AlertSender, Way, to_alertmanager
from strakes.watch.clocks import NO_BREAK, Break
from strakes.watch.live import LiveWatch
from strakes.watch.page import render_watch_page
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring, RingRow
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch


class Scripted:
    """A source whose readings are given; it fails where there is none."""

    name, every_s = "script", 10.0

    def __init__(self, readings: dict[int, CounterReading]) -> None:
        self.readings = readings

    def read(self, time_s: float) -> CounterReading:
        return self.readings.get(int(time_s), CounterReading("script", time_s, missing=("the server does not answer",)))

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        return ()


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_server_that_is_gone_for_an_hour_is_told_once_and_when_it_is_back(tmp_path: Path) -> None:
    clock, told = Clock(), list[WatchEvent]()
    source = Scripted(
        {
            second: CounterReading("script", second, full={"t": 0.1})
            for second in [*range(1000, 1100), *range(4700, 4800)]
        }
    )
    live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    while clock.now_s < 4800:
        live.step()
        clock.now_s += 10
    assert [event.text for event in told] == [
        "script: cannot be read: the server does not answer",
        "script: is read again; it could not be read for 1 h: the server does not answer",
    ]
    (gap,) = Ring(tmp_path).events()
    assert (gap.began_s, gap.ended_s) == (1100.0, 4700.0)


@pytest.mark.parametrize("step_s", [-7200.0, 7200.0])
def test_a_clock_that_steps_is_told_and_the_watch_goes_on(tmp_path: Path, step_s: float) -> None:
    clock, told = Clock(), list[WatchEvent]()
    clock.now_s = 100_000.0

    class Always(Scripted):
        def read(self, time_s: float) -> CounterReading:
            return CounterReading("script", time_s, full={"t": 0.95 if len(told) and time_s % 7 else 0.1})

    live = LiveWatch([], [Always({})], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    for _ in range(5):
        live.step()
        clock.now_s += 10
    clock.now_s += step_s
    for _ in range(5):
        live.step()
        clock.now_s += 10
    said = "the clock was set back" if step_s < 0 else "nothing was read for"
    assert told[0].kind == "gap" and said in told[0].text
    assert "saturation" in [event.kind for event in told]


def test_a_short_fail_over_is_an_alert_for_five_minutes(tmp_path: Path) -> None:
    posted: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    clock = Clock()

    class Restarted(Scripted):
        def read(self, time_s: float) -> CounterReading:
            serving = {"MDT0000": 900.0 if time_s < 1100 else 1108.0} if not 1100 <= time_s < 1110 else {}
            return CounterReading("script", time_s, serving=serving)

    alerts = AlertSender([to_alertmanager(f"http://127.0.0.1:{server.server_port}")])
    live = LiveWatch([], [Restarted({})], Ring(tmp_path), alerts, clock=clock)
    seen = {}
    while clock.now_s < 1600:
        live.step()
        seen[clock.now_s] = len(live.metrics.now.alarms)
        clock.now_s += 10
    alerts.settle()
    server.shutdown()
    server.server_close()
    (alert,) = posted
    lasted_s = (datetime.fromisoformat(alert["endsAt"]) - datetime.fromisoformat(alert["startsAt"])).total_seconds()
    assert 300 <= lasted_s <= 360
    assert sum(seen.values()) == 31 and not seen[1590.0] and live.metrics.now.events == {"fail-over": 1}


class Creates:
    """A probe that creates a file each second, slowly until ``slow_until_s``."""

    slow_until_s = 0.0

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __enter__(self) -> Creates:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def take(self) -> list[LoggedOperation]:
        took_s = 0.05 if self.clock.now_s < self.slow_until_s else 0.001
        return [LoggedOperation("file-cycle", 0, 0, self.clock.now_s, self.clock.now_s, self.clock.now_s + took_s, "")]


class Scheduled(Creates):
    """Creates due each second; one that begins while the file system is frozen ends with that, the rest after it.

    ``errno`` is what those say that are due from ``fails_s`` on.
    """

    def __init__(self, clock: Clock, frozen_s: range = range(0), fails_s: range = range(0), errno: str = "") -> None:
        super().__init__(clock)
        self.frozen_s, self.fails_s, self.errno = frozen_s, fails_s, errno
        self.next_s = clock.now_s

    def take(self) -> list[LoggedOperation]:
        done: list[LoggedOperation] = []
        while self.next_s <= self.clock.now_s and self.clock.now_s not in self.frozen_s:
            thawed = max([self.next_s, self.frozen_s.stop if self.next_s in self.frozen_s else 0.0])
            begun = self.next_s if self.next_s == self.frozen_s.start else thawed
            errno = self.errno if self.next_s in self.fails_s else ""
            done.append(LoggedOperation("file-cycle", 0, 0, self.next_s, begun, thawed + 0.001, errno))
            self.next_s += 1
        return done


def probed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: Callable[[Clock], object], until_s: int = 1400
) -> tuple[list[WatchEvent], Ring]:
    """Return what is told of a directory with such a probe, and what was kept."""
    clock, told, probes = Clock(), list[WatchEvent](), list[object]()

    def begin(*_: object, **__: object) -> object:
        probes.append(probe(clock))
        return probes[-1]

    monkeypatch.setattr("strakes.watch.live.Probe", begin)
    (tmp_path / "v").mkdir()
    live = LiveWatch([tmp_path / "v"], [], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=clock)
    while clock.now_s < until_s:
        live.step()
        clock.now_s += 1
    live.close()
    return told, Ring(tmp_path / "store")


def longest_s(ring: Ring) -> float:
    return max(histogram.percentile(1.0) for row in ring.rows() for histogram in row.figures.values())


def test_a_file_system_that_hangs_is_told_while_it_does_and_how_long_operations_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(1100, 1142)))
    begins, ends = told
    assert begins.kind == "gap" and begins.key == ends.key and begins.began_s == 1100 and begins.told_s == 1115
    assert begins.text == f"no answer to create on {tmp_path}/v for 15 s"
    assert ends.text == f"operations on {tmp_path}/v waited up to 42 s" and ends.ended_s == pytest.approx(1142, abs=1)
    assert 41 < longest_s(ring) < 44


def test_a_file_system_that_hangs_for_minutes_is_an_alarm_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(1100, 1300)))
    first, alarm, *over = told
    assert (alarm.kind, alarm.told_s, alarm.alarm) == ("fail-over", 1220, True)
    assert alarm.text == f"{tmp_path}/v does not answer, for at least 2 min"
    assert [event.key for event in over] == [first.key, alarm.key]
    assert [event.size for event in over] == pytest.approx([200, 200], abs=1)
    # The store has each once, and it is over; nothing of it lasts when a watch begins again.
    assert ring.events() == over
    again = LiveWatch([], [], Ring(tmp_path / "store"), AlertSender([]), probe=False, clock=lambda: 1401.0)
    again.step()
    assert not again.metrics.now.alarms and ring.events()[:2] == over


def test_minutes_in_which_nothing_was_answered_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(1100, 1500)), until_s=1490)
    kept = judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows())
    slow = judge(parse_service_level("p99 of create <= 20 min in 99 % of minutes"), ring.rows())
    assert kept.bad == pytest.approx(390 / 60, abs=1.1) and kept.minutes == pytest.approx(490 / 60, abs=0.1)
    assert slow.bad == 0


def test_minutes_are_bad_in_which_the_probe_cannot_begin_for_want_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[Path]()

    def hangs(directory: Path) -> None:
        tries.append(directory)
        if len(tries) < 5:
            raise MeasurementError("does not answer", where=str(directory))

    monkeypatch.setattr("strakes.watch.live.require_answer", hangs)
    told, ring = probed(tmp_path, monkeypatch, Scheduled)
    kept = judge(parse_service_level("p99 of read <= 20 ms in 99 % of minutes"), ring.rows())
    # The minute at whose end it begins is not known.
    assert kept.bad == kept.minutes == 3
    create = judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows())
    assert create.bad == 3 and create.minutes == pytest.approx(400 / 60 - 1, abs=0.1)
    assert [event.ended_s for event in told] == [None, 1240.0]


def test_a_file_system_that_hangs_before_anything_was_done_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, ends = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(1000, 1060)))[0]
    assert begins.text == f"no answer to create, read and write on {tmp_path}/v for 15 s"
    assert begins.key == ends.key and ends.size == pytest.approx(59, abs=2)


def test_a_directory_that_is_removed_is_a_gap_and_no_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Removed(Scheduled):
        def take(self) -> list[LoggedOperation]:
            if self.clock.now_s == 1100:
                shutil.rmtree(tmp_path / "v")
            return super().take()

    told, ring = probed(tmp_path, monkeypatch, lambda clock: Removed(clock, range(0), range(1101, 2000), "ENOENT"))
    (gap,) = told
    assert gap.text == f"the probe of {tmp_path}/v cannot work: there is no such directory"
    assert longest_s(ring) < 0.01


def test_operations_that_fail_are_told_and_are_worse_than_any_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, ring = probed(tmp_path, monkeypatch, lambda clock: Scheduled(clock, range(0), range(1100, 1150), "EIO"))
    begins, ends = told
    assert begins.text == f"operations of the probe of {tmp_path}/v fail (create: Input/output error)"
    assert ends.key == begins.key and ends.text.endswith("; it was 50 operations, and none in the last 60 s")
    assert ends.ended_s == 1149 and longest_s(ring) == float("inf")
    assert "failed" in render_watch_page(ring, 0.0, 2000.0, ())
    level = judge(parse_service_level("p99 of create <= 20 ms in 99 % of minutes"), ring.rows())
    assert 1 <= level.bad <= 2


def test_a_watch_that_was_stopped_takes_nothing_of_that_for_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = Clock(), list[WatchEvent]()
    monkeypatch.setattr("strakes.watch.live.Probe", lambda *_, **__: Scheduled(clock, range(1100, 1495)))
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
def test_a_clock_that_is_set_is_told_once(tmp_path: Path, step_s: float) -> None:
    clock, told = Clock(), list[WatchEvent]()
    clock.now_s = 100_000.0

    class Always(Scripted):
        def read(self, time_s: float) -> CounterReading:
            return CounterReading("script", time_s, full={"t": 0.1})

    live = LiveWatch([], [Always({})], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    for second in range(100):
        live.step(Break(stepped_s=step_s) if second == 50 else NO_BREAK)
        clock.now_s += 1 + step_s * (second == 49)
    (gap,) = told
    assert gap.text == f"the clock was set {'forward' if step_s > 0 else 'back'} by 2 h"


def test_a_source_that_does_not_answer_is_asked_soon_again(tmp_path: Path) -> None:
    clock, told = Clock(), list[WatchEvent]()
    source = Scripted({second: CounterReading("script", second) for second in (*range(1100), *range(1230, 2000))})
    source.every_s = 200.0
    live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), say=told.append, clock=clock)
    while clock.now_s < 1500:
        live.step()
        clock.now_s += 1
    lost, again = told
    assert lost.told_s == 1200 and again.ended_s == 1230


def test_what_lies_below_an_unmounted_file_system_is_not_probed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told, points = Clock(), list[WatchEvent](), ["/scratch"]
    monkeypatch.setattr("strakes.watch.live.Probe", lambda *_, **__: Failing())
    monkeypatch.setattr(
        "strakes.watch.mounted.find_mount", lambda *_: Mount(1, 0, 0, 1, "/", points[0], (), "xfs", "s", ())
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
    assert cannot.key == again.key and again.ended_s is not None and 1300 <= again.ended_s <= 1360


def test_a_service_level_that_fails_goes_on_failing_after_a_restart_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = Clock(), list[WatchEvent]()
    clock.now_s = 100_000.0
    probe = Creates(clock)
    monkeypatch.setattr("strakes.watch.live.Probe", lambda *_, **__: probe)
    level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    probe.slow_until_s = clock.now_s + 900
    for until_s in (101_000.0, 104_000.0):
        live = LiveWatch(
            [tmp_path], [], Ring(tmp_path / "store"), AlertSender([]), levels=[level], say=told.append, clock=clock
        )
        while clock.now_s < until_s:
            live.step()
            clock.now_s += 1
        live.close()
    failed, kept = told
    assert failed.key == kept.key and failed.ended_s is None and kept.ended_s is not None
    assert "exceeded in 1" in failed.text and "times as often as it may be" in failed.text
    assert "lately it is exceeded no more often" in kept.text and not live.metrics.now.alarms


def test_what_a_killed_watch_left_is_removed_when_it_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, store = tmp_path / "fs", tmp_path / "store"
    place.mkdir()
    monkeypatch.setattr("strakes.watch.live.Probe", lambda *_, **__: Creates(Clock()))
    script = (
        "import os, sys; from pathlib import Path; from strakes.targets.workspace import Workspace;"
        "w = Workspace.create(Path(sys.argv[1]), sys.argv[2]); os._exit(9)"
    )
    left = f"watch-{Ring(store).identity}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", script, str(place), left], env=environment, check=False)
    (before,) = place.iterdir()
    (before / "left").write_text("")
    live = LiveWatch([place], [], Ring(store), AlertSender([]))
    live.step()
    (now,) = place.iterdir()
    # It is not taken for a measurement, which others must not disturb.
    assert now == before and not (now / "left").exists() and not others_at_work(place, "20260101-000000-demo-1a2b")
    live.close()
    assert not list(place.iterdir())


def test_what_an_earlier_watch_saw_no_end_of_is_closed(tmp_path: Path) -> None:
    Ring(tmp_path).add_event(WatchEvent("fail-over", "OST0000", 1000.0, 1060.0, "OST0000 is away"))
    LiveWatch([], [], Ring(tmp_path), AlertSender([]), clock=lambda: 9000.0)
    (event,) = Ring(tmp_path).events()
    assert event.ended_s == 1060.0 and event.text == "OST0000 is away (the watch ended before it was over)"


def test_an_alarm_goes_on_when_the_watch_begins_again(tmp_path: Path) -> None:
    clock, told, sent = Clock(), list[WatchEvent](), list[WatchEvent]()
    full = {second: 0.95 if second < 1300 else 0.1 for second in range(1000, 9000)}

    def watch(targets: tuple[str, ...]) -> LiveWatch:
        source = Scripted(
            {second: CounterReading("script", second, full=dict.fromkeys(targets, now)) for second, now in full.items()}
        )
        alerts = AlertSender([Way("all", sent.append, repeats=True)])
        return LiveWatch([], [source], Ring(tmp_path), alerts, probe=False, say=told.append, clock=clock)

    def run(live: LiveWatch, until_s: float) -> None:
        while clock.now_s < until_s:
            live.step()
            live._alerts.settle()
            clock.now_s += 1

    run(watch(("t", "u")), 1100.0)
    second = watch(("t",))
    run(second, 1250.0)
    # Both last, by what is known; no second alarm of either.
    assert len(second.metrics.now.alarms) == 2
    assert {event.began_s for event in sent} == {1000.0} and {event.subject for event in sent} == {"t", "u"}
    assert sum(event.subject == "u" for event in sent) >= 3
    run(second, 2100.0)
    assert not second.metrics.now.alarms
    ends = {event.subject: event for event in Ring(tmp_path).events()}
    assert (ends["t"].began_s, ends["t"].ended_s) == (1000.0, 1300.0)
    assert ends["u"].text.endswith("(the watch ended before it was over)") and ends["u"].ended_s == 1060.0


def test_a_page_does_not_say_that_something_lasts_when_the_watch_no_longer_runs(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.add_event(WatchEvent("heavy", "job 7", 1000.0, 1030.0, "job 7 causes 90% of the load"))
    ring.add(RingRow(1000.0, 60.0, {}))
    during, later = (render_watch_page(ring, 0.0, until_s, ()) for until_s in (1100.0, 9000.0))
    assert ">lasts<" in during and ">lasts<" not in later and ">not known<" in later
    assert "1 alarm, 0 other changes" in during and "Alarms are in bold" in during
    assert "Nothing was recorded" in render_watch_page(ring, 5000.0, 9000.0, ())


def test_a_watch_without_a_probe_says_for_how_long_it_did_not_run(tmp_path: Path) -> None:
    clock, told = Clock(), list[WatchEvent]()
    source = Scripted({second: CounterReading("script", second, full={"t": 0.1}) for second in range(1000, 9000)})
    for pause_s in (3600, 0):
        live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), probe=False, say=told.append, clock=clock)
        for _ in range(200):
            live.step()
            clock.now_s += 1
        clock.now_s += pause_s
    assert [event.text for event in told] == ["nothing was recorded in the 1 h before this watch began"]


@pytest.mark.long
def test_the_watch_probes_serves_and_survives_kill_9(tmp_path: Path, strakes: StrakesRunner) -> None:
    place, store = tmp_path / "fs", tmp_path / "store"
    place.mkdir()
    words = [sys.executable, "-m", "strakes", "watch", str(place), "--store", str(store), "--metrics", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}

    def start() -> tuple[subprocess.Popen[str], str]:
        with open(tmp_path / "said", "w+") as said:
            process = subprocess.Popen(words, env=environment, stdout=said, text=True)
        while "metrics: " not in (text := (tmp_path / "said").read_text()) and process.poll() is None:
            time.sleep(0.2)
        return process, text.split()[1]

    process, url = start()
    deadline = time.monotonic() + 150
    while not list(store.glob("rows-*")) and time.monotonic() < deadline:
        time.sleep(1)
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert "strakes_watch_latency_seconds" in answer.read().decode()
    process.kill()
    process.wait()
    kept = [path.read_bytes() for path in store.glob("rows-*")]
    process, _ = start()
    time.sleep(10)
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0
    assert [path.read_bytes()[: len(before)] for path, before in zip(store.glob("rows-*"), kept, strict=True)] == kept
    done = strakes("watch", "report", "--store", str(store), "--html", str(tmp_path / "page.html"))
    assert done.returncode == 0 and "probe create" in (tmp_path / "page.html").read_text()
    assert not list(place.iterdir())  # also what was left by kill -9


def test_a_probe_that_is_kept_waiting_between_two_plans_has_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, watch, stalls = Clock(), Watch(), list[tuple[float, float]]()
    monkeypatch.setattr(watch, "add_stalls", stalls.extend)

    class Kept:
        def __enter__(self) -> Kept:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def take(self) -> list[LoggedOperation]:
            # Nothing is due for half a minute: the next plan cannot make its files.
            if 1010 < clock.now_s < 1040:
                return []
            return [LoggedOperation("file-read", 0, 0, clock.now_s, clock.now_s, clock.now_s + 0.001, "")]

    monkeypatch.setattr("strakes.watch.live.Probe", lambda *_, **__: Kept())
    live = LiveWatch([tmp_path], [], Ring(tmp_path / "store"), AlertSender([]), watch=watch, clock=clock)
    while clock.now_s < 1060:
        live.step()
        clock.now_s += 1
    live.close()
    assert stalls == [(1011.0, 1040.0)]
