"""Alarms on made-up series in which nothing changes: ``python -m bench.watch.quiet``.

Strakes is asked for several numbers of alarms a month, shared by 18 series; rivals have the settings that find most on
the recorded year at no more than one alarm a month. Falls are counted, one value a day, for 18 series together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bench.watch.changes import find_changes
from bench.watch.known import GRIDS
from bench.watch.yardstick import DAY_S, MONTH_S, Detector
from strakes.watch.values import Numbers, WatchedSeries
from strakes.watch.watch import FOR_CHANCE

_SERIES, _DAYS, _YEARS, _SEED = 18, 365, 60, 2002
_ASKED = (0.25, 0.5, 1.0, 2.0)
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


def falls_a_month(detector: Detector, make: Callable[[np.random.Generator], Numbers]) -> float:
    """Return how many falls are told a month, of all series together."""
    generator = np.random.default_rng(_SEED)
    times = np.asarray(1.5e9 + DAY_S * np.arange(_DAYS), dtype=np.float64)
    falls = 0
    for _ in range(_YEARS):
        series = WatchedSeries("", times, np.asarray(np.exp(0.15 * make(generator)), dtype=np.float64))
        falls += sum(change.ratio < 1 for change in detector(series))
    return falls * _SERIES / (_YEARS * _DAYS * DAY_S / MONTH_S)


def main() -> None:
    """Print a row for each detector."""
    detectors: dict[str, Detector] = {
        f"strakes, {asked:g} asked": lambda one, each=FOR_CHANCE * asked / _SERIES: find_changes(one, each)  # type: ignore[misc]
        for asked in _ASKED
    }
    detectors |= {f"{name}, {settings}": GRIDS[name][settings] for name, settings in _RIVALS}
    print(f"| alarms a month | {' | '.join(_SHAPES)} |\n| --- |{' --- |' * len(_SHAPES)}")
    for name, detector in detectors.items():
        cells = [f"{falls_a_month(detector, make):.2f}" for make in _SHAPES.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
