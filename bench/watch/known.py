"""Three detectors that are well known, each online, with grids of their settings. All look at log rates.

The first 60 runs give centre and spread (median, MAD); after an alarm a detector learns again from the 30 runs that
follow the change.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from bench.watch.yardstick import Detector, TargetChange, TargetDetector
from strakes.watch.equals import shares_of_equals
from strakes.watch.values import Numbers, ShiftedLevel, WatchedSeries

_LEARN, _LEARN_AGAIN = 60, 30
_REMEMBERED = 20_000


def cusum(reference: float, bound: float) -> Detector:
    """Page's cumulative sums to both sides (Biometrika 41 (1954) 100)."""

    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        logs = np.log(series.values)
        changes: list[ShiftedLevel] = []
        begin, learn = 0, _LEARN
        while begin + learn < len(logs):
            centre, spread = _centre(logs[begin : begin + learn])
            told = since = -1
            sums = [0.0, 0.0]
            starts = [begin + learn, begin + learn]
            values = np.clip((logs[begin + learn :] - centre) / spread, -4, 4).tolist()
            for index, value in enumerate(values, begin + learn):
                for side, signed in enumerate((value, -value)):
                    sums[side] = max(0.0, sums[side] + signed - reference)
                    if sums[side] == 0.0:
                        starts[side] = index + 1
                if max(sums) > bound:
                    told, since = index, min(starts[int(np.argmax(sums))], index)
                    break
            if told < 0:
                break
            changes.append(_change(logs, begin, since, told))
            begin, learn = since, _LEARN_AGAIN
        return changes

    return detect


def page_hinkley(tolerance: float, bound: float) -> Detector:
    """Page-Hinkley: deviations from the running mean, to both sides."""

    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        logs = np.log(series.values)
        changes: list[ShiftedLevel] = []
        begin, learn = 0, _LEARN
        while begin + learn < len(logs):
            centre, spread = _centre(logs[begin : begin + learn])
            values = np.clip((logs[begin:] - centre) / spread, -4, 4)
            means = np.cumsum(values) / np.arange(1, len(values) + 1)
            told = -1
            since = begin
            for side in (1, -1):
                sums = np.cumsum((side * (values - means) - tolerance)[learn:])
                excess = sums - np.minimum.accumulate(np.minimum(sums, 0))
                over = np.flatnonzero(excess > bound)
                if len(over) and (told < 0 or begin + learn + over[0] < told):
                    told = begin + learn + int(over[0])
                    since = begin + learn + int(np.argmin(sums[: over[0] + 1]))
            if told < 0:
                break
            since = min(since, told)
            changes.append(_change(logs, begin, since, told))
            begin, learn = since, _LEARN_AGAIN
        return changes

    return detect


def ruptures_kernel(penalty: float, least: int) -> Detector:
    """PELT with a linear kernel (`ruptures`) on the last 150 runs, every second run; a new last segment is an alarm."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ruptures
    # Until its plant begins, a series is the same for all plants.
    known: dict[tuple[bytes, int], list[int]] = {}

    def cuts(window: Numbers, learn: int) -> list[int]:
        key = (window.tobytes(), learn)
        if key not in known:
            if len(known) > _REMEMBERED:
                known.clear()
            centre, spread = _centre(window[:learn])
            scaled = np.clip((window - centre) / spread, -4, 4)
            fitted = ruptures.KernelCPD(kernel="linear", min_size=least).fit(scaled[:, None])
            known[key] = fitted.predict(pen=penalty)[:-1]
        return known[key]

    def detect(series: WatchedSeries) -> list[ShiftedLevel]:
        logs = np.log(series.values)
        changes: list[ShiftedLevel] = []
        begin, learn = 0, _LEARN
        index = learn
        while index < len(logs):
            window = logs[max(begin, index - 150) : index + 1]
            places = cuts(window, learn)
            if places and len(window) >= learn:
                since = max(begin, index - 150) + places[-1]
                changes.append(_change(logs, begin, since, index))
                begin, learn = since, _LEARN_AGAIN
                index = max(index + 1, begin + learn)
            else:
                index += 2
        return changes

    return detect


def of_targets(detector: Detector) -> TargetDetector:
    """Apply a detector to each target's share of what the others do; only falls are told."""

    def detect(times: Numbers, rows: Numbers) -> Sequence[TargetChange]:
        shares = shares_of_equals([WatchedSeries(str(target), times, row) for target, row in enumerate(rows)])
        return [
            TargetChange(target, change.since, change.told, change.ratio)
            for target, share in enumerate(shares)
            for change in detector(share)
            if change.ratio < 1
        ]

    return detect


GRIDS: Mapping[str, Mapping[str, Detector]] = {
    "CUSUM": {f"k={k} h={h}": cusum(k, h) for k, h in product((0.25, 0.5, 1.0), (4, 6, 8, 12, 16, 24, 32))},
    "Page-Hinkley": {f"δ={d} λ={b}": page_hinkley(d, b) for d, b in product((0.1, 0.25, 0.5), (6, 10, 16, 24, 36, 48))},
    "ruptures": {f"pen={p} min={m}": ruptures_kernel(p, m) for p, m in product((10, 20, 40, 80, 160), (3, 7))},
}


def _centre(values: Numbers) -> tuple[float, float]:
    centre = float(np.median(values))
    return centre, max(1.4826 * float(np.median(np.abs(values - centre))), 1e-6)


def _change(logs: Numbers, begin: int, since: int, told: int) -> ShiftedLevel:
    before = float(np.median(logs[begin : max(since, begin + 1)]))
    ratio = float(np.exp(np.median(logs[since : told + 1]) - before))
    return ShiftedLevel(since, told, ratio, ratio, ratio, 0.0)
