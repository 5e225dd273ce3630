"""Measure detection of planted changes, with an ablation: ``python -m bench.watch YEAR.csv.gz [--page]``."""

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
from bench.watch.year import KINDS, Detector, Score, ShiftedLevel, alarms_a_month, plants, read_series, score
from strakes.stats import change
from strakes.stats.change import Grade, Noise, Numbers
from strakes.watch.level import LevelDetector
from strakes.watch.values import WatchedSeries
from strakes.watch.watch import FOR_CHANCE

_PAGE = Path(__file__).parents[2] / "docs" / "watch.md"
_HALVES = ("even", "odd")
_ASKED = (0.5, 1.0, 3.0)
_TUNED_ON, _SEED, _PLANTS = 60127, 20261127, 4
_EQUAL = 1.1


@dataclass(frozen=True)
class Row:
    """The result of one detector on one half (even or odd) of the series."""

    name: str
    half: int
    alarms: float
    scores: Mapping[tuple[str, float], Score]

    @property
    def all(self) -> Score:
        """Score over all kinds of planted changes."""
        return sum(self.scores.values(), Score())

    def cells(self) -> Iterator[str]:
        """Yield the cells of a table."""
        yield from (self.name, _HALVES[self.half], f"{self.alarms:.2f}")
        yield from (f"{each.found:.0%}, {each.delay_days:.0f} d" for each in self.scores.values())
        yield from (f"{100 * sum(each.found for each in self.scores.values()):.0f}", f"{self.all.precision:.2f}")


def ours(alarms: float, grade: Grade = "confirmed") -> Detector:
    """Return our detector for ``alarms`` false alarms per month and series."""

    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        detector = LevelDetector(series.name, FOR_CHANCE * alarms)
        changes = []
        pairs = zip(series.times.tolist(), series.values.tolist(), strict=True)
        for told, (time_s, value) in enumerate(pairs):
            for event in detector.add(time_s, value):
                if event.ended_s is None and (grade == "early" or event.evidence["grade"] == grade):
                    assert event.size is not None and event.low is not None and event.high is not None
                    since = int(np.searchsorted(series.times, event.began_s))
                    changes.append(ShiftedLevel(since, told, event.size, event.low, event.high))
        return changes

    return detect


def judge(name: str, half: int, series: Sequence[WatchedSeries], detector: Detector) -> Row:
    """Return the result of a detector on the planted changes in one half (even or odd) of the series."""
    total = dict.fromkeys(KINDS, Score())
    for number, one in enumerate(series):
        for kind, each in score(one, plants(one, (_SEED, half, number), _PLANTS), detector).items():
            total[kind] += each
    return Row(name, half, alarms_a_month(series, detector), total)


def _memory(make: Callable[[Numbers], Noise]) -> Callable[[Numbers], Noise]:
    """Cache noise estimates, because series with different planted changes are equal before the change."""
    known: dict[bytes, Noise] = {}

    def noise(past: Numbers) -> Noise:
        key = past.tobytes()
        if key not in known:
            known[key] = make(past)
        return known[key]

    return noise


# Changed rule -> (Python name to patch -> new value).
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "all rules": {},
    "no drift of the level in the null paths": {"strakes.stats.change._DRIFT": 0.0},
    "no clipping": {"strakes.stats.change._CLIP": 1e6},
    "clipping at 4 scale units": {"strakes.stats.change._CLIP": 4.0},
    "no autocorrelation in the null paths": {"strakes.stats.change._autocorrelation": lambda _: 0.0},
    "past with its change points": {"strakes.stats.change.aligned": lambda past: past},
    "7 values after a change point instead of 5": {
        "strakes.stats.change.SHORTEST": {**change.SHORTEST, "confirmed": 7}
    },
    "changes of the last 32 values only": {"strakes.stats.change.REACH": 32},
    "first test after 30 values": {"strakes.stats.change.LEARN": 30, "strakes.watch.level.LEARN": 30},
    "no alarm for the end of an old gain": {"strakes.watch.level.REACH": 10**9},
    "rhythm of day and week also for daily values": {"strakes.watch.level.HOUR_S": 7 * 86400.0},
}


def ablated(patched: Mapping[str, Any], name: str, halves: Sequence[Sequence[WatchedSeries]]) -> list[Row]:
    """Return our detector's results on both halves with one rule removed or changed."""
    with ExitStack() as stack:
        for target, value in patched.items():
            stack.enter_context(mock.patch(target, value))
        stack.enter_context(mock.patch("strakes.stats.change.Noise", _memory(Noise)))
        return [judge(name, half, series, ours(1.0 / len(series))) for half, series in enumerate(halves)]


def contest(halves: Sequence[Sequence[WatchedSeries]]) -> list[Row]:
    """Return the results of our detector at three alarm rates and of its rivals with all their settings."""
    rows = []
    with mock.patch("strakes.stats.change.Noise", _memory(Noise)):
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


def _rival(mine: Row, rows: Sequence[Row], name: str = "PELT") -> Row | None:
    """Return a rival's best result with at most ``_EQUAL`` times the alarms of ``mine``, or None."""
    of_half = [row for row in rows if row.half == mine.half and row.name.startswith(name)]
    return max((row for row in of_half if row.alarms <= _EQUAL * mine.alarms), key=_found, default=None)


def _best(rows: Sequence[Row]) -> list[Row]:
    kept: list[Row] = []
    for half in range(len(_HALVES)):
        mine = [row for row in rows if row.half == half and row.name.startswith("strakes, ")]
        kept += [row for row in mine if "1 asked" in row.name or "early" in row.name]
        (default,) = (row for row in mine if "1 asked" in row.name)
        kept += [row for name in GRIDS if (row := _rival(default, rows, name)) is not None]
    return kept


def _found(row: Row) -> int:
    return len(row.all.delays_s)


def page(rows: Sequence[Row], removed: Sequence[Row]) -> str:
    """Return the text of docs/watch.md."""
    mine = [row for row in rows if "asked" in row.name]
    of_default = [row for row in mine if "1 asked" in row.name]
    found = " and ".join(str(_found(row)) for row in of_default)
    rivals = [_rival(row, rows) for row in of_default]
    rival = " and ".join("none" if row is None else str(_found(row)) for row in rivals)
    coverage = sum((row.all for row in of_default), Score()).coverage
    precision = min(row.all.precision for row in mine)
    alarms = [", ".join(f"{row.alarms:.2f}" for row in mine if row.half == half) for half in range(len(_HALVES))]
    return f"""# How well `strakes watch` finds changes
How to watch a file system: [guide/watch.md](guide/watch.md).

- **Does it find changes?** {found} of {of_default[0].all.planted} planted changes of -10 to -40 % in the halves of a year of daily benchmarks; PELT
  with the best penalty for these data finds {rival} at no more than {_EQUAL} times the alarms. The size is inside its 90 % interval in {coverage:.0%} of the cases.
- **Are its alarms right?** Precision is at least {precision:.2f}.
- **Does `--false-alarms-a-month` choose the number of alarms?** No. With 0.5, 1 and 3 there were {alarms[0]} alarms a month in one
  half and {alarms[1]} in the other. The option sets the penalty of a change point to the value that noise exceeds at this rate, from a
  bootstrap of the past of each series. Every change that exceeds it is reported, whatever the number of alarms.
- **How soon?** An early warning needs {change.SHORTEST["early"]} values after a change and is no alarm; {change.EARLY_FACTOR:g} times as many false
  ones are accepted. An alarm needs {change.SHORTEST["confirmed"]} values.

Made by `python -m bench.watch YEAR.csv.gz --page` from Cori (TOKIO, NERSC, 2017): 36 series in two halves, each a separate watch,
with {_PLANTS} plants of each kind in each series (seed {_SEED}). `bench/watch/year.py` defines plants, alarms and precision. The detector was
tuned on these series with other plants (seed {_TUNED_ON}): numbers of alarms and the ablation are not out of sample.

## Detectors
Each cell has the share found and the median delay. Rivals have the setting that finds most with at most {_EQUAL - 1:.0%} more
alarms than strakes at one false alarm a month.

{_table(_best(rows))}

## Ablation
One rule or constant is removed or changed at a time, at one false alarm a month: sums of the shares found, and precision.

{_removed(removed)}
"""


def _removed(rows: Sequence[Row]) -> str:
    lines = ["| rule | even: alarms a month | found | precision | odd: alarms a month | found | precision |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for even, odd in zip(rows[0::2], rows[1::2], strict=True):
        cells = [cell for row in (even, odd) for cell in (f"{row.alarms:.2f}", *list(row.cells())[-2:])]
        lines.append(f"| {' | '.join([even.name, *cells])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print the page. With ``--page``, write docs/watch.md."""
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
