"""Alarms on made-up series in which nothing changes: ``python -m bench.watch.quiet``.

Strakes is asked for several numbers of alarms a month, shared by 18 series; rivals have the settings that find most on
the recorded year at no more than one alarm a month. Falls are counted, one value a day, for 18 series together.
``--page`` writes the table into docs/watch.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from bench.watch.changes import find_changes, remember_calibrations
from bench.watch.known import GRIDS
from bench.watch.sections import write_section
from bench.watch.yardstick import DAY_S, MONTH_S, Detector
from strakes.watch.values import Numbers, WatchedSeries
from strakes.watch.watch import FOR_CHANCE

_SERIES, _DAYS = 18, 365
_ASKED = (0.5, 1.0, 2.0)
_RIVALS = (("CUSUM", "k=1.0 h=12"), ("Page-Hinkley", "δ=0.5 λ=10"), ("ruptures", "pen=40 min=7"))


def _resembling(correlation: float) -> Callable[[np.random.Generator], Numbers]:
    def make(generator: np.random.Generator) -> Numbers:
        values = generator.standard_normal(_DAYS)
        values[1:] *= np.sqrt(1 - correlation**2)
        for day in range(1, _DAYS):
            values[day] += correlation * values[day - 1]
        return values

    return make


def _weekly(generator: np.random.Generator) -> Numbers:
    return np.asarray(generator.standard_normal(_DAYS) - 2.0 * (np.arange(_DAYS) % 7 >= 5))


_SHAPES: Mapping[str, Callable[[np.random.Generator], Numbers]] = {
    "independent": _resembling(0.0),
    "heavy tails (Student, 3)": lambda generator: generator.standard_t(3, _DAYS),
    "weekends lower": _weekly,
    "correlation 0.3": _resembling(0.3),
    "correlation 0.5": _resembling(0.5),
    "correlation 0.8": _resembling(0.8),
}


def falls_a_month(
    detectors: Mapping[str, Detector], make: Callable[[np.random.Generator], Numbers], years: int, seed: int
) -> dict[str, float]:
    """Return how many falls each tells a month, of all series together."""
    generator = np.random.default_rng(seed)
    times = np.asarray(1.5e9 + DAY_S * np.arange(_DAYS), dtype=np.float64)
    falls = dict.fromkeys(detectors, 0)
    for _ in range(years):
        # Until its first alarm a series is calibrated alike for all numbers of alarms.
        remember_calibrations()
        series = WatchedSeries("", times, np.asarray(np.exp(0.15 * make(generator)), dtype=np.float64))
        for name, detector in detectors.items():
            falls[name] += sum(change.ratio < 1 for change in detector(series))
    return {name: count * _SERIES / (years * _DAYS * DAY_S / MONTH_S) for name, count in falls.items()}


def main() -> None:
    """Print a row for each detector."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch.quiet", description=__doc__)
    parser.add_argument("--years", type=int, default=60, help="of each kind of series")
    parser.add_argument("--seed", type=int, default=2002)
    parser.add_argument("--page", action="store_true", help="write it into docs/watch.md")
    chosen = parser.parse_args()
    detectors: dict[str, Detector] = {
        f"strakes, {asked:g} allowed": lambda one, each=FOR_CHANCE * asked / _SERIES: find_changes(one, each)  # type: ignore[misc]
        for asked in _ASKED
    }
    detectors |= {f"{name}, {settings}": GRIDS[name][settings] for name, settings in _RIVALS}
    columns = {}
    for shape, make in _SHAPES.items():
        columns[shape] = falls_a_month(detectors, make, chosen.years, chosen.seed)
        print(shape, {name: round(falls, 2) for name, falls in columns[shape].items()}, flush=True)
    rows = [f"| {name} | {' | '.join(f'{falls[name]:.2f}' for falls in columns.values())} |" for name in detectors]
    text = f"""Alarms a month in {_SERIES} made-up series of one value a day in which nothing changes, so that every alarm is false:
{chosen.years} years of each kind, seed {chosen.seed}. Rivals have the settings that find most on the recorded year at no more than
one alarm a month there. This table is made by `python -m bench.watch.quiet --page`.

| alarms a month | {" | ".join(_SHAPES)} |
| --- |{" --- |" * len(_SHAPES)}
""" + "\n".join(rows)
    print(text)
    if chosen.page:
        write_section("quiet", text + "\n")


if __name__ == "__main__":
    main()
