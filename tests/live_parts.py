"""Test doubles for a watch: a manual clock, and sources and probes with scripted results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from strakes.runs.messages import LoggedOperation
from strakes.watch.alerts import AlertSender
from strakes.watch.histogram import Histogram
from strakes.watch.live import LiveWatch
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring
from strakes.watch.values import WatchEvent


def histogram_of(values: Iterable[float]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


class Scripted:
    """A source with scripted readings by time (s); at other times the server does not answer."""

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


def steps(live: LiveWatch, clock: Clock, until_s: float, every_s: float = 1.0) -> None:
    while clock.now_s < until_s:
        live.step()
        clock.now_s += every_s


class Creates:
    """A probe that creates a file each second; a creation takes 50 ms before ``slow_until_s``, and 1 ms later."""

    slow_until_s, is_stopped = 0.0, False

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
    """A probe that should create a file each second, on a file system that does not answer during ``frozen_s``.

    The first creation in ``frozen_s`` waits until its end, and the later ones start only then. Creations in ``fails_s``
    fail with ``errno``.
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
    clock, told, probes = Clock(), list[WatchEvent](), list[object]()

    def begin(*_: object, **__: object) -> object:
        probes.append(probe(clock))
        return probes[-1]

    monkeypatch.setattr("strakes.watch.probing.Probe", begin)
    (tmp_path / "v").mkdir()
    live = LiveWatch([tmp_path / "v"], [], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=clock)
    steps(live, clock, until_s)
    live.close()
    return told, Ring(tmp_path / "store")


def longest_s(ring: Ring) -> float:
    return max(histogram.percentile(1.0) for row in ring.rows() for histogram in row.figures.values())
