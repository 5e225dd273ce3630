"""Measure how well changes are found: ``python -m bench.watch YEAR.csv.gz --keep FILE``.

Each part that FILE has is not run again. All parts take ten minutes of one processor.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.watch.changes import Finder, find_changes, remember_calibrations
from bench.watch.crossed import OURS, halves, judge, ours, tune
from bench.watch.kept import Kept, keep, read_kept
from bench.watch.known import GRIDS, of_targets
from bench.watch.page import render
from bench.watch.sections import write_section
from bench.watch.yardstick import TARGETS, Detector, as_they_are, plants, read_series, score_targets
from bench.watch.year import alarms_of
from strakes.watch.values import WatchedSeries
from strakes.watch.watch import ALARMS_A_MONTH, FOR_CHANCE, FOR_CHANCE_OF_EQUALS

_PARTS = ("tune", "rivals", "strakes", "year", "target-rivals", "target-strakes")
_TARGET_SEED, _COUNT = 90418, 67
_RATIOS = (0.9, 0.8, 0.6)


@dataclass
class Contest:
    """The year, and what is known of it so far."""

    series: Sequence[WatchedSeries]
    kept: Kept
    path: Path

    def run(self, part: str) -> None:
        """Run what a part still lacks; keep each result."""
        if part == "year":
            self._year()
        elif part == "tune":
            for half, watches in enumerate(halves(self.series)):
                # What is judged on one half was tuned on the other.
                if 1 - half not in self.kept.tuned:
                    self.kept.tuned[1 - half] = tune(watches, half)
                    keep(self.path, self.kept)
        else:
            for name in (OURS,) if part.endswith(OURS) else GRIDS:
                self._targets(name) if part.startswith("target") else self._levels(name)

    def _levels(self, name: str) -> None:
        for half, watches in enumerate(halves(self.series)):
            if (name, half) not in self.kept.judged:
                settings = "its defaults" if name == OURS else self.kept.tuned[half][name]
                make = ours(len(watches[0])) if name == OURS else partial(self._rival, name, half)
                self.kept.judged[name, half] = judge(watches, half, name, settings, make)
                keep(self.path, self.kept)

    def _targets(self, name: str) -> None:
        # As `strakes watch replay --equals` does by default: its series share one alarm a month.
        asked = FOR_CHANCE_OF_EQUALS * ALARMS_A_MONTH / TARGETS
        all_plants = [
            plant for ratio in _RATIOS for plant in plants(self.series, "target", ratio, _TARGET_SEED, _COUNT)
        ]
        left = {plant.series for plant in all_plants} - self.kept.targets_done(name)
        # A run that is stopped has series of every kind.
        for number in sorted(left, key=lambda number: (number % 5, number)):
            # The latest first: a finder goes once through what is alike.
            planted = sorted((each for each in all_plants if each.series == number), key=lambda each: -each.at)
            detector = of_targets(Finder(asked, confirm=True) if name == OURS else self._rival(name, number % 2))
            for ratio in _RATIOS:
                of_ratio = [plant for plant in planted if plant.ratio == ratio]
                self.kept.targets[name, number, ratio] = score_targets(self.series, of_ratio, detector)
            keep(self.path, self.kept)

    def _year(self) -> None:
        asked = FOR_CHANCE * ALARMS_A_MONTH / len(self.series)
        changes = {one.name: find_changes(one, asked) for one in self.series}
        as_it_is = as_they_are(self.series, lambda one: changes[one.name])
        rivals = [{name: self._rival(name, half) for name in GRIDS} for half in (0, 1)]
        self.kept.year = list(alarms_of(self.series, changes, rivals))
        self.kept.year_a_month = as_it_is.a_month
        keep(self.path, self.kept)

    def _rival(self, name: str, half: int) -> Detector:
        return GRIDS[name][self.kept.tuned[half][name]]


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("year", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FILE", required=True, help="keep results there")
    parser.add_argument("--part", action="append", choices=_PARTS, help="run only that; default: all")
    parser.add_argument("--page", action="store_true", help="write it into docs/watch.md")
    chosen = parser.parse_args()
    remember_calibrations()
    contest = Contest(read_series(chosen.year), read_kept(chosen.keep), chosen.keep)
    for part in chosen.part or _PARTS:
        contest.run(part)
    if all((name, half) in contest.kept.judged for name in (OURS, *GRIDS) for half in (0, 1)):
        text = render(contest.series, contest.kept)
        print(text)
        if chosen.page:
            write_section("found", text)


if __name__ == "__main__":
    main()
