"""What each detector finds at the same number of alarms: ``python -m bench.watch.curve YEAR.csv.gz``.

A detector that may alarm more often finds more, so found shares are held against each other at equal rates of alarms on
the series as they are. A rival may choose, for each rate, the setting of its grid that finds most of these very plants;
ours has one setting, how many alarms a month are asked for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from bench.watch.changes import Finder, remember_calibrations
from bench.watch.contest import KINDS
from bench.watch.known import GRIDS
from bench.watch.yardstick import (
    DAY_S,
    Detector,
    Plant,
    as_they_are,
    in_time,
    planted,
    plants,
    read_series,
    within,
)
from strakes.watch.causes import cause_of
from strakes.watch.values import Numbers, WatchedSeries
from strakes.watch.watch import FOR_CHANCE

_PAGE = Path(__file__).parents[2] / "docs" / "watch.md"
ASKED = (0.2, 0.35, 0.7, 1.0, 1.4, 2.0)
# Alarms a month of all judged series together.
RATES = (0.45, 0.6, 1.0)
# Of a normal distribution, on each side of a 90 % interval.
_SIGMAS = 1.645


@dataclass(frozen=True)
class Point:
    """A detector with one setting: its alarms a month, and how long after each plant it was told; NaN: it was not."""

    name: str
    settings: str
    a_month: float
    planted: int
    delays_s: Mapping[tuple[str, float], tuple[float, ...]]

    def hits(self, kind: tuple[str, float]) -> Numbers:
        """Return for each plant of a kind 1 where it was found, else 0."""
        return np.isfinite(self.delays_s[kind]).astype(np.float64)

    @property
    def found(self) -> float:
        """The found shares of all kinds, summed."""
        return sum(float(self.hits(kind).mean()) for kind in self.delays_s)


def points(
    series: Sequence[WatchedSeries], name: str, grid: Mapping[str, Detector], seed: int, count: int
) -> Iterator[Point]:
    """Return a point for each setting that alarms no more often than the highest rate."""
    for settings, detector in grid.items():
        a_month = as_they_are(series, detector).a_month
        if a_month <= max(RATES):
            delays = {kind: _delays(series, list(plants(series, *kind, seed, count)), detector) for kind in KINDS}
            yield Point(name, settings, a_month, count, delays)


def _delays(series: Sequence[WatchedSeries], all_plants: Sequence[Plant], detector: Detector) -> tuple[float, ...]:
    delays = []
    for plant in all_plants:
        whole = planted(series[plant.series], plant)
        begun = whole.times[min(plant.at, len(whole.times) - 1)]
        # Detectors are online: what comes after the last time at which it may be told changes nothing.
        end = int(np.searchsorted(whole.times, begun + within(plant), side="right"))
        causes = {column: values[:end] for column, values in whole.causes.items()}
        trial = replace(whole, times=whole.times[:end], values=whole.values[:end], causes=causes)
        told = (
            float(trial.times[change.told] - begun)
            for change in detector(trial)
            if change.ratio < 1 and in_time(trial, plant, change) and not cause_of(trial, change)
        )
        delays.append(next(told, math.nan))
    return tuple(delays)


def best_at(all_points: Sequence[Point], name: str, rate: float) -> Point | None:
    """Return the point of a detector that finds most at no more alarms than ``rate``."""
    allowed = [point for point in all_points if point.name == name and point.a_month <= rate]
    return max(allowed, key=lambda point: point.found, default=None)


def table(all_points: Sequence[Point]) -> str:
    """Return a row for each rate and detector: found share and median delay of each kind."""
    lines = [
        f"| at most, a month | detector | settings | alarms a month | {_kinds()} |",
        "| --- |" + " --- |" * (3 + len(KINDS)),
    ]
    for rate in RATES:
        for name in dict.fromkeys(point.name for point in all_points):
            point = best_at(all_points, name, rate)
            if point is None:
                lines.append(f"| {rate:g} | {name} | none of its settings |" + " |" * (1 + len(KINDS)))
                continue
            cells = [_cell(point, kind) for kind in KINDS]
            lines.append(f"| {rate:g} | {name} | {point.settings} | {point.a_month:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _kinds() -> str:
    return " | ".join(f"{'a week of' if kind == 'week' else 'level'} {ratio - 1:+.0%}" for kind, ratio in KINDS)


def _cell(point: Point, kind: tuple[str, float]) -> str:
    hits, found_after = point.hits(kind), [delay for delay in point.delays_s[kind] if math.isfinite(delay)]
    low, high = share_interval(int(hits.sum()), len(hits))
    after = f", {median(found_after) / DAY_S:.0f} d" if found_after else ""
    return f"{hits.mean():.0%} ({100 * low:.0f}-{high:.0%}){after}"


def share_interval(found: int, planted: int) -> tuple[float, float]:
    """Return the 90 % interval of a share (Wilson).

    >>> [round(bound, 2) for bound in share_interval(50, 100)]
    [0.42, 0.58]
    """
    share, wide = found / planted, _SIGMAS**2 / planted
    middle = (share + wide / 2) / (1 + wide)
    half = math.sqrt(share * (1 - share) * wide + wide**2 / 4) / (1 + wide)
    return max(0.0, middle - half), min(1.0, middle + half)


def differences(all_points: Sequence[Point]) -> str:
    """Return a row for each rate: found share less that of the rival that finds most of that kind, by pairs of plants."""
    lines = []
    for rate in RATES:
        best = {name: best_at(all_points, name, rate) for name in dict.fromkeys(point.name for point in all_points)}
        ours, cells = best.pop("strakes"), []
        rivals = [point for point in best.values() if point is not None]
        for kind in KINDS if ours is not None and rivals else ():
            rival = max(rivals, key=lambda point: float(point.hits(kind).sum()))
            apart = ours.hits(kind) - rival.hits(kind)  # type: ignore[union-attr]
            half = _SIGMAS * float(apart.std()) / math.sqrt(len(apart))
            cells.append(f"{100 * apart.mean():+.0f} ± {100 * half:.0f} ({rival.name})")
        lines.append(f"| {rate:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def render(all_points: Sequence[Point], series: int, half: str, seed: int) -> str:
    """Return the page docs/watch.md."""
    return f"""# How well `strakes watch` finds what changed

Written by `python -m bench.watch.curve YEAR.csv.gz --page`; `bench/watch/yardstick.py` says what is planted and what
counts as found. The year is Cori's (TOKIO, NERSC, 2017), about one run of each benchmark a day. Its series are halved:
the rules of strakes were chosen on the even ones, and all are judged here on the {half} ones: {series} series,
{all_points[0].planted} plants of each kind (seed {seed}).

A detector that may alarm more often finds more, so all are compared at the same number of alarms, counted on these
series without plants: those that nothing in the columns explains, of all of them together. For each such number every
rival has the setting of its grid that finds most of these very plants, and strakes as many alarms as are asked for.
Of all settings, no more than {max(RATES):g} alarm a month is looked at.

Each cell: found share with its 90 % interval (binomial), and median delay in days. Noise and rhythm are those of the
year.

{table(all_points)}

How much more strakes finds than the rival that finds most of that kind, in points of 100, with 90 % intervals (all have
the same plants; that the rival is chosen among three by these very plants is not counted):

| at most, a month | {_kinds()} |
| --- |{" --- |" * len(KINDS)}
{differences(all_points)}

The settings of the rivals fit this year. How often they, and strakes, alarm on made-up series in which nothing changes:
`python -m bench.watch.quiet`.

Precision (found / told) and slow targets are not in this table: `python -m bench.watch YEAR.csv.gz`, which takes
an hour or more of one processor.
"""


def of_ours(series: int) -> dict[str, Detector]:
    """Return our detector at several numbers of alarms that are asked for, as ``strakes watch`` shares them out."""
    return {f"{asked:g} asked": Finder(FOR_CHANCE * asked / series) for asked in ASKED}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch.curve", description=__doc__)
    parser.add_argument("year", type=Path)
    parser.add_argument("--plants", type=int, default=200, help="of each kind")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--half", choices=("even", "odd"), default="odd", help="ours was chosen on the even series")
    parser.add_argument("--page", action="store_true", help="write docs/watch.md")
    chosen = parser.parse_args()
    remember_calibrations()
    series = read_series(chosen.year)[chosen.half == "odd" :: 2]
    grids = {"strakes": of_ours(len(series)), **GRIDS}
    all_points = []
    for name, grid in grids.items():
        for point in points(series, name, grid, chosen.seed, chosen.plants):
            all_points.append(point)
            print(point.name, point.settings, f"{point.a_month:.2f} a month, found {point.found:.2f}", flush=True)
    text = render(all_points, len(series), chosen.half, chosen.seed)
    print(text)
    if chosen.page:
        _PAGE.write_text(text)


if __name__ == "__main__":
    main()
