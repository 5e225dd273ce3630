"""Well-known online change detectors on log rates, each with a grid of settings.

Centre and scale (median, MAD) are learned from the first 60 runs, and after an alarm from the 30 runs after the change.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from bench.watch.year import Detector, ShiftedLevel
from strakes.stats.change import Numbers, scale_of
from strakes.watch.values import WatchedSeries

_LEARN, _LEARN_AGAIN = 60, 30
_CLIP = 4.0
Scan = Callable[[Numbers, int], tuple[int, int] | None]
"""Takes scaled values since the last change and the number of learned values. Returns indices of change and alarm."""


def _online(scan: Scan) -> Detector:
    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        logs = np.log(series.values)
        changes: list[ShiftedLevel] = []
        begin, learn = 0, _LEARN
        while begin + learn < len(logs):
            learned = logs[begin : begin + learn]
            scaled = np.clip((logs[begin:] - np.median(learned)) / scale_of(learned), -_CLIP, _CLIP)
            if (found := scan(scaled, learn)) is None:
                break
            since, told = begin + found[0], begin + found[1]
            before = float(np.median(logs[begin : max(since, begin + 1)]))
            ratio = float(np.exp(np.median(logs[since : told + 1]) - before))
            changes.append(ShiftedLevel(since, told, ratio, ratio, ratio))
            begin, learn = since, _LEARN_AGAIN
        return changes

    return detect


def cusum(reference: float, bound: float) -> Detector:
    """Return a two-sided CUSUM detector (Page, Biometrika 41 (1954) 100)."""

    def scan(values: Numbers, learn: int) -> tuple[int, int] | None:
        sums, starts = [0.0, 0.0], [learn, learn]
        for index, value in enumerate(values[learn:].tolist(), learn):
            for side, signed in enumerate((value, -value)):
                sums[side] = max(0.0, sums[side] + signed - reference)
                if sums[side] == 0.0:
                    starts[side] = index + 1
                if sums[side] > bound:
                    return min(starts[side], index), index
        return None

    return _online(scan)


def page_hinkley(tolerance: float, bound: float) -> Detector:
    """Return a two-sided Page-Hinkley detector, which sums deviations from the running mean."""

    def scan(values: Numbers, learn: int) -> tuple[int, int] | None:
        means = np.cumsum(values) / np.arange(1, len(values) + 1)
        found = []
        for side in (1, -1):
            sums = np.cumsum((side * (values - means) - tolerance)[learn:])
            over = np.flatnonzero(sums - np.minimum.accumulate(np.minimum(sums, 0)) > bound)
            if len(over):
                found.append((learn + int(over[0]), learn + int(np.argmin(sums[: over[0] + 1]))))
        if not found:
            return None
        told, since = min(found)
        return min(since, told), told

    return _online(scan)


def pelt(penalty: float, shortest: int) -> Detector:
    """Return a detector that runs PELT (package ruptures) on the last 150 runs, at every second run."""

    def scan(values: Numbers, learn: int) -> tuple[int, int] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ruptures
        for told in range(learn, len(values), 2):
            window = values[max(0, told - 150) : told + 1]
            cuts = ruptures.KernelCPD(kernel="linear", min_size=shortest).fit(window[:, None]).predict(pen=penalty)
            if len(cuts) > 1:
                return told + 1 - len(window) + int(cuts[-2]), told
        return None

    return _online(scan)


GRIDS: Mapping[str, Mapping[str, Detector]] = {
    "PELT": {f"penalty {p}, {m} values": pelt(p, m) for p, m in product((30, 40, 60), (5, 7))},
    "CUSUM": {f"k={k} h={h}": cusum(k, h) for k, h in product((1.0,), (6, 8, 12, 16))},
    "Page-Hinkley": {f"δ={d} λ={b}": page_hinkley(d, b) for d, b in product((0.5,), (10, 16, 24))},
}
