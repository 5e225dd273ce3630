"""Restart of a watch that ended or was killed: remaining files, open events and gaps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from live_parts import Clock, Creates, Scripted, steps
from strakes.model.service_level import parse_service_level
from strakes.targets.clean import others_at_work
from strakes.targets.description import Interruption
from strakes.watch.alerts import AlertSender
from strakes.watch.live import LiveWatch
from strakes.watch.page import render_watch_page
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring, RingRow
from strakes.watch.values import WatchEvent


def test_a_service_level_missed_for_five_minutes_is_an_alarm_until_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = Clock(), list[WatchEvent]()
    clock.now_s = 100_000.0
    probe = Creates(clock)
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: probe)
    level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    probe.slow_until_s = clock.now_s + 900
    live = LiveWatch(
        [tmp_path], [], Ring(tmp_path / "store"), AlertSender([]), levels=[level], say=told.append, clock=clock
    )
    steps(live, clock, 102_000.0)
    live.close()
    failed, kept = told
    assert failed.key == kept.key and failed.ended_s is None and kept.ended_s is not None
    assert failed.text.endswith("exceeded in each of the last 5 minutes") and kept.text.endswith("met again")
    assert not live.metrics.now["alarms"]


def test_the_remains_of_a_killed_watch_are_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, store = tmp_path / "fs", tmp_path / "store"
    place.mkdir()
    monkeypatch.setattr("strakes.watch.probing.Probe", lambda *_, **__: Creates(Clock()))
    script = (
        "import os, sys; from pathlib import Path; from strakes.targets.workspace import Workspace;"
        "w = Workspace.create(Path(sys.argv[1]), sys.argv[2]); os._exit(9)"
    )
    left = f"watch-{Ring(store).identity}"
    subprocess.run([sys.executable, "-c", script, str(place), left], check=False)
    (before,) = place.iterdir()
    (before / "left").write_text("")
    live = LiveWatch([place], [], Ring(store), AlertSender([]))
    live.step()
    (now,) = place.iterdir()
    # A watch is not a measurement, so it does not count as another run in this directory.
    assert now == before and not (now / "left").exists() and not others_at_work(place, "20260101-000000-demo-1a2b")
    live.close()
    assert not list(place.iterdir())


def test_rows_of_a_later_time_hide_neither_an_outage_nor_a_gap(tmp_path: Path) -> None:
    clock, told = Clock(), list[WatchEvent]()
    Ring(tmp_path).add(RingRow(900_000.0, 60.0, {}))
    Ring(tmp_path).add_event(WatchEvent("outage", "OST1", 1000.0, 899_000.0, "OST1 is away"))
    readings = {
        second: CounterReading("script", second, waits=(Interruption("OST0", 1100, 1200 if second > 1200 else None),))
        for second in range(1101, 1400)
    }
    clock.now_s = 1100.0
    ring, source = Ring(tmp_path), Scripted(readings)
    live = LiveWatch([], [source], ring, AlertSender([]), probe=False, say=told.append, clock=clock)
    steps(live, clock, 1390.0)
    assert [event.ended_s is None for event in told if event.kind == "outage"] == [True, False]
    gap, (closed, *_) = told[0], Ring(tmp_path).events()
    assert "set back by at least 10 d" in gap.text and gap.ended_s == closed.ended_s == 1100.0
    assert closed.text == "OST1 is away (the watch ended before the event ended)"


def test_the_page_does_not_call_an_event_ongoing_after_the_watch_ended(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.add_event(WatchEvent("heavy", "job 7", 1000.0, 1030.0, "job 7 causes 90% of the load"))
    ring.add(RingRow(1000.0, 60.0, {}))
    during, later = (render_watch_page(ring, 0.0, until_s, ()) for until_s in (1100.0, 9000.0))
    assert ">lasts<" in during and ">lasts<" not in later and ">not known<" in later
    assert "1 alarm, 0 other changes" in during and "Alarms are in bold" in during
    assert "Nothing was recorded" in render_watch_page(ring, 5000.0, 9000.0, ())


@pytest.mark.parametrize(("began_s", "ended_s"), [(1150, 1180), (1050, 1090), (1020, 1400)])
@pytest.mark.parametrize("again_s", [1185, 1500])
def test_an_outage_during_which_the_watch_was_killed_is_reported_once(
    tmp_path: Path, began_s: int, ended_s: int, again_s: int
) -> None:
    clock, told = Clock(), list[WatchEvent]()

    def reading(second: int) -> CounterReading:
        ended = ended_s if second > ended_s else None
        waits = () if second <= began_s else (Interruption("OST0", began_s, ended),)
        return CounterReading("script", second, waits=waits)

    source = Scripted({second: reading(second) for second in range(1000, 9000)})
    for begins_s, killed_s in ((1000, 1165), (again_s, 1800), (1800, 2100)):
        clock.now_s = begins_s
        live = LiveWatch([], [source], Ring(tmp_path), AlertSender([]), probe=False, say=told.append, clock=clock)
        steps(live, clock, killed_s)
    outages = [event for event in told if event.kind == "outage"]
    (onset_s,) = {event.began_s for event in outages}
    assert onset_s == pytest.approx(began_s, abs=1)
    assert sum(event.ended_s is not None for event in outages) == 1
    (kept,) = (event for event in Ring(tmp_path).events() if event.kind == "outage")
    assert kept.ended_s == pytest.approx(ended_s, abs=2) and "(the watch ended" not in kept.text
