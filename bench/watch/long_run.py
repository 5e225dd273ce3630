"""What a watch takes over a simulated month: ``python -m bench.watch.long_run --days 31``.

The watch itself runs, with a store, figures and all detectors, on a clock that jumps. What it reads is made up: two
directories with their probes (the operations are made up, too), 26 targets and their disks, and jobs and clients
that come and go, a thousand of each at a time. So this is what strakes computes and keeps; what the probes and
reading real counters take is measured on real systems (docs/guide/watch.md).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.watch.sections import write_section
from strakes.launch.messages import LoggedOperation
from strakes.watch.alerts import AlertSender
from strakes.watch.live import LiveWatch
from strakes.watch.own_load import own_load
from strakes.watch.probed import OPERATIONS, RATE_PER_S, Probed
from strakes.watch.reading import DATA_TARGETS, DISKS, METADATA_TARGETS, CounterReading, Work
from strakes.watch.ring import DAY_S, TIERS, Ring

_BEGIN_S = 1.76e9
_EVERY_S, _SECOND_S, _MINUTE_S = 10.0, 1.0, 60.0
_DIRECTORIES, _TARGETS, _JOBS, _FIGURES = 2, 24, 1000, 20
# A job stays for an hour.
_STAYS_S = 3600.0
_LIVE_S = 1800.0
_MIB = 2.0**20


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = _BEGIN_S

    def __call__(self) -> float:
        return self.now_s


class MadeUpProbe:
    """Operations as they would have been since the last time: log-normal, slower by day."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock, self._until_s = clock, clock.now_s
        self._generator = np.random.default_rng(seed)

    def take(self) -> list[LoggedOperation]:
        """Return what has been felt since the last time."""
        due = np.arange(self._until_s, self._clock.now_s, 1 / RATE_PER_S)
        self._until_s = self._clock.now_s
        usual = 0.004 * (1.5 + np.sin(2 * np.pi * self._clock.now_s / DAY_S))
        found = []
        for rank, kind in enumerate(OPERATIONS):
            took = usual * np.exp(0.7 * self._generator.standard_normal(len(due)))
            found += [
                LoggedOperation(kind, rank, number, begun_s, begun_s, begun_s + took_s, "")
                for number, (begun_s, took_s) in enumerate(zip(due.tolist(), took.tolist(), strict=True))
            ]
        return found


class MadeUpCounters:
    """A source of everything that can be read."""

    name = "made up"

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s

    def read(self, time_s: float) -> CounterReading:
        """Return counters as they stand."""
        passed_s = time_s - _BEGIN_S
        data = {f"OST{number:04x}": self._work(passed_s, number) for number in range(_TARGETS)}
        disks = {f"sd{number}": work for number, work in enumerate(data.values())}
        metadata = {f"MDT{number:04x}": self._work(passed_s, 100 + number) for number in range(2)}
        first = int(passed_s // _STAYS_S) * _JOBS // 10
        busy = {str(first + number): passed_s * (1 + number % 7) for number in range(_JOBS)}
        return CounterReading(
            self.name,
            time_s,
            work={DATA_TARGETS: data, DISKS: disks, METADATA_TARGETS: metadata},
            jobs={"MDT0000": {f"job{name}": count for name, count in busy.items()}},
            job_bytes={"OST0000": {f"job{name}": 4096 * count for name, count in busy.items()}},
            clients={f"client{name}": count for name, count in busy.items()},
            full=dict.fromkeys(data, 0.5),
            figures={
                f"figure {number}": 5 + np.sin(time_s / 7000 + number) + np.sin(time_s * 1.7 + number)
                for number in range(_FIGURES)
            },
        )

    @staticmethod
    def _work(passed_s: float, number: int) -> Work:
        requests = 50 * passed_s * (1 + number % 3)
        return Work(requests, requests * 0.004 * (1 + 0.1 * np.sin(passed_s / 900 + number)), 4096 * requests)

    def lacking(self, reading: CounterReading) -> tuple[str, ...]:
        """Nothing is."""
        return ()


def run(store: Path, seconds: float, step_s: float) -> Iterator[float]:
    """Yield after each step the seconds that have passed."""
    clock = Clock()
    watch = LiveWatch([], [MadeUpCounters(max(_EVERY_S, step_s))], Ring(store), AlertSender([]), clock=clock)
    watch._probes = [
        Probed(Path(f"/scratch{number}"), probe=MadeUpProbe(clock, number))  # type: ignore[arg-type]
        for number in range(_DIRECTORIES)
    ]
    while clock.now_s < _BEGIN_S + seconds:
        clock.now_s += step_s
        watch.step()
        yield clock.now_s - _BEGIN_S


def kept_mib(store: Path) -> float:
    """Return how much the store holds."""
    return sum(path.stat().st_size for path in store.iterdir()) / _MIB


def day_sizes(store: Path, now_s: float) -> tuple[float, ...]:
    """Return what the last whole day takes, in MiB, as minutes, ten minutes and hours: all of the store is merged."""
    day = int(now_s // DAY_S) - 1
    ring, sizes = Ring(store), []
    for width, keep_s in TIERS:
        (path,) = store.glob(f"rows-{width:04d}-*{day}.jsonl")
        sizes.append(path.stat().st_size / _MIB)
        ring.thin((day + 1) * DAY_S + keep_s)
    return tuple(sizes)


def store_mib(days: float, sizes: Sequence[float], events: float) -> float:
    """Return what a store holds after so many days; ``sizes``: of a day in each width, ``events``: of those of a day."""
    ages_s = [0.0, *(keep_s + DAY_S for _, keep_s in TIERS)]
    spent = [min(days * DAY_S, end) - min(days * DAY_S, begin) for begin, end in pairwise(ages_s)]
    return days * events + sum(size * span_s / DAY_S for size, span_s in zip(sizes, spent, strict=True))


def main() -> None:
    """Print a row for each few days."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch.long_run", description=__doc__)
    parser.add_argument("--days", type=float, default=31.0, help="at least 3")
    parser.add_argument("--page", action="store_true", help="write it into docs/watch.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        begun_s = time.process_time()
        live_s = max(run(Path(directory), _LIVE_S, _SECOND_S))
        took_s = time.process_time() - begun_s
    rows = ["| simulated days | processor, s | memory, MiB | store, MiB |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as directory:
        begun_s, next_s = time.process_time(), 0.0
        for passed_s in run(Path(directory), chosen.days * DAY_S, _MINUTE_S):
            if passed_s >= next_s or passed_s >= chosen.days * DAY_S:
                next_s = passed_s + chosen.days * DAY_S / 8
                used_s, memory_mib = time.process_time() - begun_s, own_load().memory_bytes / _MIB
                rows.append(
                    f"| {passed_s / DAY_S:.1f} | {used_s:.0f} | {memory_mib:.0f} | {kept_mib(Path(directory)):.1f} |"
                )
                print(rows[-1], flush=True)
        events = (Path(directory) / "events.jsonl").stat().st_size / _MIB / chosen.days
        sizes = day_sizes(Path(directory), _BEGIN_S + chosen.days * DAY_S)
    text = f"""The simulated watch has {_DIRECTORIES} directories, {_TARGETS + 2} targets, {_JOBS} jobs and {_JOBS} clients at a time
({_JOBS // 10} of each are replaced each hour) and {_FIGURES} further figures. The table is from a simulation in steps of a minute. With the real
steps of a second and readings every {_EVERY_S:.0f} s, strakes itself takes {took_s / live_s:.2%} of a processor (half an hour,
simulated; probes and the reading of real counters add to that). This table is made by `python -m bench.watch.long_run --page`.

A day takes {sizes[0]:.2f} MiB as minutes, {sizes[1]:.2f} MiB as ten minutes and {sizes[2]:.2f} MiB as hours; the events of a day, which are
kept for ever, take {events:.2f} MiB. From that follow {store_mib(30, sizes, events):.0f} MiB after a month, {store_mib(365, sizes, events):.0f} MiB after a year and {store_mib(5 * 365, sizes, events):.0f} MiB after five.

""" + "\n".join(rows)
    print(text)
    if chosen.page:
        write_section("long run", text + "\n")


if __name__ == "__main__":
    main()
