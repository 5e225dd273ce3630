"""Measure how well changes are found: ``python -m bench.watch YEAR.csv.gz``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.watch.changes import find_changes, remember_calibrations
from bench.watch.contest import judge, tune
from bench.watch.kept import keep, read_kept
from bench.watch.known import GRIDS
from bench.watch.page import render
from bench.watch.yardstick import PLANTS, TARGETS, Detector, explained_by_chance, read_series
from strakes.watch.watch import ALARMS_A_MONTH, FOR_CHANCE, FOR_CHANCE_OF_EQUALS


def main() -> None:
    """Print the page; it takes an hour of one processor."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("year", type=Path)
    parser.add_argument("--plants", type=int, default=PLANTS, help="of levels and weeks")
    parser.add_argument("--target-plants", type=int, default=PLANTS, help="of slow targets: each takes 16 series")
    parser.add_argument(
        "--tuned", action="append", default=[], metavar="NAME:SETTINGS", help="a rival's settings from an earlier run"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep results there; those that are there stay")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="judge these detectors alone")
    parser.add_argument("--all", action="store_true", help="plant in every series, also those used for choosing")
    chosen = parser.parse_args()
    remember_calibrations()
    tuned = dict(text.split(":", 1) for text in chosen.tuned)
    year = read_series(chosen.year)
    # Every second series was used to choose how our detector works: it is judged on the others.
    series = year if chosen.all else year[1::2]
    plants = {"level": chosen.plants, "target": chosen.target_plants}

    def ours(alarms_a_month: float, *, confirm: bool = False) -> Detector:
        return lambda one: find_changes(one, alarms_a_month, confirm=confirm)

    # Slow targets are sought as `strakes watch replay --equals` does by default: its series share one alarm a month.
    of_equals = ours(FOR_CHANCE_OF_EQUALS * ALARMS_A_MONTH / TARGETS, confirm=True)
    contestants = read_kept(chosen.keep)
    for name in ("strakes", *GRIDS):
        if name in contestants or (chosen.only and name not in chosen.only):
            continue
        if name == "strakes":
            settings = "the default: one a month for all series, or all equals"
            judged = judge(
                series, year, name, settings, ours(FOR_CHANCE * ALARMS_A_MONTH / len(year)), plants, of_equals
            )
        else:
            settings, detector = (tuned[name], GRIDS[name][tuned[name]]) if name in tuned else tune(year, name)
            judged = judge(series, year, name, settings, detector, plants)
        contestants[name] = judged
        print(judged, flush=True)
        keep(chosen.keep, contestants.values())
    ordered = [contestants[name] for name in ("strakes", *GRIDS) if name in contestants]
    print(render(ordered, explained_by_chance(year), len(year), len(series)))


if __name__ == "__main__":
    main()
