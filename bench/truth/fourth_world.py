"""What was true while a survey was made of a truth of :mod:`bench.truth.fourth`, and what was said of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

from bench.truth.fourth import Planted
from bench.truth.fourth_noise import Told
from bench.truth.planted import State
from strakes.plan import MetadataPhase, Phase
from strakes.store import Run

NEAR = 0.05
FORGIVEN = 0.005
OFTEN = 0.25
APART_S = 8.0
UNITS = {
    "B/s": 1.0,
    "KiB/s": 1024.0,
    "MiB/s": 1024.0**2,
    "GiB/s": 1024.0**3,
    "op/s": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "ns": 1e-9,
    "s": 1.0,
}

Answer = Literal["true", "false", "cannot be judged"]


@dataclass(frozen=True)
class Statement:
    """``kind`` in a few words; ``reason`` for the answer."""

    kind: str
    text: str
    answer: Answer
    reason: str = ""
    severe: bool = False


class Once(NamedTuple):
    """A phase that was run. ``rate`` is true of it, but for the noise's level and median."""

    at_s: float
    cell: str
    purpose: str
    phase: Phase
    ranks: int
    rate: float
    level: float
    state: State


class World:
    """What was true during one survey."""

    def __init__(self, run: Run, truth: Planted, noise: Told) -> None:
        self.truth, self.noise = truth, noise
        groups = [list(group) for _, group in itertools.groupby(truth.seen, key=lambda one: one.state.lot)]
        assert len(groups) == len(run.visits) == len(noise.levels), (len(groups), len(run.visits), len(noise.levels))
        self.all = [
            Once(one.state.now_s, visit.cell, visit.purpose, one.phase, one.ranks, one.rate, level, one.state)
            for group, visit, level in zip(groups, run.visits, noise.levels, strict=True)
            for one in group
        ]
        self.first_s = min((one.at_s for one in self.all if one.purpose == "measure"), default=0.0)
        self._measures = {
            cell.measure_id(measure.phase): (cell.key, measure.phase) for cell in run.cells for measure in cell.measures
        }
        self._cells = {cell.key: cell for cell in run.cells}

    def runs(self, measure: str, *, measured: bool = False) -> list[Once]:
        """Those of one measure, in time order."""
        cell, phase = self._measures.get(measure, ("", ""))
        wanted = ("measure",) if measured else ("measure", "confirm")
        return [one for one in self.all if one.cell == cell and one.phase.name == phase and one.purpose in wanted]

    def values(self, measure: str, unit: str, *, measured: bool = True, luck: bool = False) -> list[float]:
        """What was true of each run of a measure; with ``luck``, what that run was lucky to have."""
        values = []
        for one in self.runs(measure, measured=measured):
            rate = one.rate if luck or not self.truth.by_luck else self.truth.typical(one.phase, one.ranks, one.state)
            rate *= one.level * self.noise.median
            values.append(one.ranks / rate if unit == "s" else rate)
        return values

    def ratios(self, of: str, to: str, since_s: float = 0.0) -> list[float]:
        """How many times better one measure truly is than another at each moment that either was run."""
        first, second = self.runs(of), self.runs(to)
        if not (first and second):
            return []
        a, b = first[0], second[0]
        moments = sorted((one.state for one in (*first, *second) if one.at_s >= since_s), key=lambda state: state.now_s)
        typical = self.truth.typical
        # Of times, too: so many times shorter, for as much work of each rank.
        times = isinstance(a.phase, MetadataPhase) and self._is_time(of)
        scale = b.ranks / a.ranks if times else 1.0
        return [scale * typical(a.phase, a.ranks, now) / typical(b.phase, b.ranks, now) for now in moments]

    def readings(self, of: str, to: str, since_s: float = 0.0) -> list[list[float]]:
        """The same, and where the work itself makes a file system slow, what runs next to each other truly had."""
        readings = [self.ratios(of, to, since_s)]
        first, second = ([one for one in self.runs(measure) if one.at_s >= since_s] for measure in (of, to))
        if self.truth.wears and first and second:
            nearest = [min(second, key=lambda two, one=one: abs(two.at_s - one.at_s)) for one in first]  # type: ignore[misc]
            scale = second[0].ranks / first[0].ranks if self._is_time(of) else 1.0
            readings.append([scale * one.rate / two.rate for one, two in zip(first, nearest, strict=True)])
        return [reading for reading in readings if reading]

    def _is_time(self, measure: str) -> bool:
        cell, phase = self._measures[measure]
        found = [one.metric for one in self._cells[cell].measures if one.phase == phase]
        return "seconds_per_item" in found

    def relative(self, wanted: Callable[[Once], bool]) -> list[tuple[float, float]]:
        """When phases were run, and how fast they truly were against the median of their like."""
        chosen = [one for one in self.all if wanted(one)]
        like: dict[tuple[Phase, int], list[float]] = {}
        for one in chosen:
            like.setdefault((one.phase, one.ranks), []).append(one.rate * one.level)
        return [
            (one.at_s, one.rate * one.level / median(values))
            for one in chosen
            if len(values := like[one.phase, one.ranks]) >= 3
        ]

    @property
    def remembers(self) -> bool:
        """Whether anything changes, but by luck that has no memory."""
        return len(self.truth.states) > 1 or max(self.noise.levels) > 1.001 * min(self.noise.levels)


def spread(values: Sequence[float]) -> float:
    return max(values) / min(values) if values else 1.0


def shown(values: Sequence[float]) -> str:
    return f"{min(values):.4g} to {max(values):.4g}, median {median(values):.4g}"


def is_cached(measure: str, world: World) -> bool:
    runs = world.runs(measure)
    return bool(runs) and not world.truth.uncounted and world.truth.from_cache(runs[0].phase) > NEAR


def seconds(text: str) -> float:
    """Return a time as reports show it.

    >>> seconds("1 min 30 s"), seconds("44.1 s")
    (90.0, 44.1)
    """
    units = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "min": 60.0, "h": 3600.0}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (ms|us|s|min|h)\b", text))
