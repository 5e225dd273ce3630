"""Measure how well changes are found, and what each rule contributes: ``python -m bench.watch YEAR.csv.gz [--page]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from bench.watch.rivals import GRIDS
from bench.watch.year import KINDS, Detector, Score, alarms_a_month, plants, read_series, score
from strakes.statistics import change
from strakes.statistics.change import Grade, Noise, Numbers
from strakes.watch.level import LevelChange, LevelDetector
from strakes.watch.values import ShiftedLevel, WatchedSeries
from strakes.watch.watch import FOR_CHANCE

_PAGE = Path(__file__).parents[2] / "docs" / "watch.md"
_HALVES = ("even", "odd")
_ASKED = (0.5, 1.0, 2.0)
_TUNED_ON, _SEED, _PLANTS = 60127, 20261127, 1
_EQUAL = 1.1


@dataclass(frozen=True)
class Row:
    """The result of one detector on one half."""

    name: str
    half: int
    alarms: float
    scores: Mapping[tuple[str, float], Score]

    @property
    def all(self) -> Score:
        """Counts over all kinds of plants."""
        return sum(self.scores.values(), Score())

    def cells(self) -> Iterator[str]:
        """Yield the cells of a table."""
        yield from (self.name, _HALVES[self.half], f"{self.alarms:.2f}")
        yield from (f"{each.found:.0%}, {each.delay_days:.0f} d" for each in self.scores.values())
        yield from (f"{100 * sum(each.found for each in self.scores.values()):.0f}", f"{self.all.precision:.2f}")


def ours(alarms: float, grade: Grade = "confirmed") -> Detector:
    """Return our detector of one series at this number of alarms a month."""

    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        detector = LevelDetector(FOR_CHANCE * alarms)
        changes = []
        pairs = zip(series.times.tolist(), series.values.tolist(), strict=True)
        for told, (time_s, value) in enumerate(pairs):
            news = detector.add(time_s, value)
            if isinstance(news, LevelChange) and (grade == "early" or news.grade == grade):
                since = int(np.searchsorted(series.times, news.began_s))
                changes.append(ShiftedLevel(since, told, news.ratio, news.low, news.high))
        return changes

    return detect


def judge(name: str, half: int, series: Sequence[WatchedSeries], detector: Detector) -> Row:
    """Return the row of a detector."""
    total = dict.fromkeys(KINDS, Score())
    for number, one in enumerate(series):
        for kind, each in score(one, plants(one, (_SEED, half, number), _PLANTS), detector).items():
            total[kind] += each
    return Row(name, half, alarms_a_month(series, detector), total)


def _memory(make: Callable[[Numbers], Noise]) -> Callable[[Numbers], Noise]:
    """Estimate the noise of each past once: until its plant, a series is the same for all plants."""
    known: dict[bytes, Noise] = {}

    def noise(past: Numbers) -> Noise:
        key = past.tobytes()
        if key not in known:
            known[key] = make(past)
        return known[key]

    return noise


# Name of the removed or changed rule -> patched names.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "all rules": {},
    "no drift of the level in the null paths": {"strakes.statistics.change._DRIFT": 0.0},
    "no clipping": {"strakes.statistics.change._CLIP": 1e6},
    "clipping at 4 scale units": {"strakes.statistics.change._CLIP": 4.0},
    "no autocorrelation in the null paths": {"strakes.statistics.change._autocorrelation": lambda _: 0.0},
    "past with its change points": {"strakes.statistics.change.aligned": lambda past: past},
    "5 values after a change point instead of 7": {
        "strakes.statistics.change.SHORTEST": {**change.SHORTEST, "confirmed": 5}
    },
    "changes of the last 32 values only": {"strakes.statistics.change.REACH": 32},
    "first test after 30 values": {"strakes.statistics.change.LEARN": 30, "strakes.watch.level.LEARN": 30},
    "rhythm of day and week also for daily values": {"strakes.watch.level.HOUR_S": 7 * 86400.0},
}


def ablated(patched: Mapping[str, Any], name: str, halves: Sequence[Sequence[WatchedSeries]]) -> list[Row]:
    """Return the rows of our detector with names of its modules replaced."""
    with ExitStack() as stack:
        for target, value in patched.items():
            stack.enter_context(mock.patch(target, value))
        stack.enter_context(mock.patch("strakes.statistics.change.Noise", _memory(Noise)))
        return [judge(name, half, series, ours(1.0 / len(series))) for half, series in enumerate(halves)]


def contest(halves: Sequence[Sequence[WatchedSeries]]) -> list[Row]:
    """Return the rows of our detector at three rates and of all settings of its rivals."""
    rows = []
    with mock.patch("strakes.statistics.change.Noise", _memory(Noise)):
        for half, series in enumerate(halves):
            count = len(series)
            rows += [judge(f"strakes, {asked:g} asked for", half, series, ours(asked / count)) for asked in _ASKED]
            rows.append(judge("strakes, early warnings", half, series, ours(1.0 / count, "early")))
    for name, grid in GRIDS.items():
        for settings, detector in grid.items():
            rows += [judge(f"{name}, {settings}", half, series, detector) for half, series in enumerate(halves)]
    return rows


def _table(rows: Sequence[Row]) -> str:
    head = ["detector", "half", "alarms a month", "-10 %", "-20 %", "-40 %", "a week of -40 %", "sum", "precision"]
    lines = [head, ["---"] * len(head), *(list(row.cells()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _best(rows: Sequence[Row]) -> list[Row]:
    """Return our rows, and of each rival and half the best setting for each number of our alarms."""
    kept = [row for row in rows if row.name.startswith("strakes")]
    for name in GRIDS:
        for half in range(len(_HALVES)):
            of_rival = [row for row in rows if row.name.startswith(name) and row.half == half]
            for mine in [row for row in kept if row.half == half and "asked" in row.name]:
                allowed = [row for row in of_rival if row.alarms <= _EQUAL * mine.alarms]
                best = max(allowed, key=_found, default=None)
                if best is not None and best not in kept:
                    kept.append(best)
    return sorted(kept, key=lambda row: row.half)


def _found(row: Row) -> int:
    return len(row.all.delays_s)


def _targets(rows: Sequence[Row]) -> str:
    lines = ["| half | asked | alarms a month | found by strakes | by the best PELT with no more alarms | precision |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for mine in [row for row in rows if "asked" in row.name]:
        of_half = [row for row in rows if row.half == mine.half and row.name.startswith("PELT")]
        allowed = [row for row in of_half if row.alarms <= _EQUAL * mine.alarms]
        best = max(allowed, key=_found, default=None)
        rival = "no setting has so few" if best is None else f"{_found(best)} ({best.alarms:.2f} a month)"
        asked = mine.name.split()[1]
        cells = (_HALVES[mine.half], asked, f"{mine.alarms:.2f}", str(_found(mine)), rival, f"{mine.all.precision:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(rows: Sequence[Row], removed: Sequence[Row]) -> str:
    """Return docs/watch.md."""
    of_default = [row for row in rows if "1 asked" in row.name]
    coverage = sum((row.all for row in of_default), Score()).coverage
    return f"""# How well `strakes watch` finds changes

Made by `python -m bench.watch YEAR.csv.gz --page` from a year of daily benchmarks on Cori (TOKIO, NERSC, 2017): 36 series in
two halves, each a watch of its own, with {_PLANTS} plant of each kind in each series (seed {_SEED}). `bench/watch/year.py`
defines plants, alarms and precision.

The detector was tuned on these series with the planted changes of seed {_TUNED_ON}. The planted changes below are new; the series
are the same, so the numbers of alarms and the ablation are not out of sample.

A **confirmed change** is an alarm: a change point with at least {change.SHORTEST["confirmed"]} values after it, at the number of
alarms that was asked for. An **early warning** is none: {change.SHORTEST["early"]} values are enough, and {change.EARLY_FACTOR:g} times
as many false ones are accepted. It is printed and kept, and ends when the change is confirmed or gone.

## At equal numbers of alarms
{_targets(rows)}

{len(KINDS) * _PLANTS * 18} plants in each half. PELT is that of the package ruptures, with the best penalty for these data; strakes chooses its
penalty from the past of each series. The size of a found change is inside its 90 % interval in {coverage:.0%} of the cases.

## All detectors
Each cell has the share found and the median delay. Rivals have the setting that finds most with at most {_EQUAL - 1:.0%} more
alarms than strakes.

{_table(_best(rows))}

## Ablation
One rule or constant is removed or changed at a time, at one alarm a month.

{_table(removed)}

The rhythm of day and week is learned from hourly or more frequent values only.
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("year", type=Path)
    parser.add_argument("--page", action="store_true", help="write docs/watch.md")
    chosen = parser.parse_args()
    series = read_series(chosen.year)
    halves = [series[0::2], series[1::2]]
    removed = []
    for name, patched in ABLATIONS.items():
        removed += ablated(patched, name, halves)
        print(_table(removed[-2:]), flush=True)
    rows = contest(halves)
    text = page(rows, removed)
    print(text)
    if chosen.page:
        _PAGE.write_text(text)


if __name__ == "__main__":
    main()
