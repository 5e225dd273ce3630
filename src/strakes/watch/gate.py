"""Before and after a date: did an upgrade cost anything? Hours are compared with the same hours of the week."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strakes.watch.calibration import resampled_medians
from strakes.watch.ring import RingRow

_HOUR_S = 3600.0
FEWEST_HOURS = 24
MARGIN = 0.05
Verdict = Literal["SLOWER", "FASTER", "SAME", "INCONCLUSIVE"]


@dataclass(frozen=True)
class Gate:
    """``ratio`` of latencies, after / before, with its 90 % interval; ``needs``: what it would take to decide."""

    figure: str
    verdict: Verdict
    ratio: float
    low: float
    high: float
    hours_before: int
    hours_after: int
    needs: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        if math.isnan(self.ratio):
            return f"{self.figure}: {self.verdict}; {self.needs}"
        interval = f"{self.ratio - 1:+.1%} ({self.low - 1:+.1%} to {self.high - 1:+.1%})"
        text = (
            f"{self.figure}: {self.verdict}, latency {interval}; "
            f"{self.hours_before} hours before, {self.hours_after} after"
        )
        return f"{text}; {self.needs}" if self.needs else text


def compare(before: Iterable[RingRow], after: Iterable[RingRow], margin: float = MARGIN) -> list[Gate]:
    """Return a verdict for each figure that both have: medians of hours, less what that hour of the day usually is."""
    earlier, later = _hours(before), _hours(after)
    return [_gate(name, earlier.get(name, {}), later.get(name, {}), margin) for name in sorted({*earlier, *later})]


def _hours(rows: Iterable[RingRow]) -> dict[str, dict[int, float]]:
    collected: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        for name, histogram in row.figures.items():
            if histogram.count and 0 < (middle := histogram.middle()) < math.inf:
                collected.setdefault(name, {}).setdefault(int(row.time_s // _HOUR_S), []).append(math.log(middle))
    return {name: {hour: float(np.median(v)) for hour, v in hours.items()} for name, hours in collected.items()}


def _gate(name: str, before: dict[int, float], after: dict[int, float], margin: float) -> Gate:
    if min(len(before), len(after)) < FEWEST_HOURS:
        needs = f"{FEWEST_HOURS} hours on each side are needed; there are {len(before)} before and {len(after)} after"
        return Gate(name, "INCONCLUSIVE", math.nan, math.nan, math.nan, len(before), len(after), needs)
    level = float(np.median(list(before.values())))
    rhythm = {
        hour: float(np.median([value for at, value in before.items() if at % 24 == hour])) - level
        for hour in {at % 24 for at in before}
    }
    first, second = (
        np.array([value - rhythm.get(at % 24, 0.0) for at, value in side.items()]) for side in (before, after)
    )
    differences = resampled_medians(second, 1) - resampled_medians(first, 2)
    ratio = math.exp(float(np.median(second) - np.median(first)))
    low, high = (math.exp(float(bound)) for bound in np.percentile(differences, [5, 95]))
    if low >= 1 - margin and high <= 1 + margin:
        verdict: Verdict = "SAME"
    elif low > 1:
        verdict = "SLOWER"
    elif high < 1:
        verdict = "FASTER"
    else:
        verdict = "INCONCLUSIVE"
    needs = "more hours after the change" if verdict == "INCONCLUSIVE" else ""
    return Gate(name, verdict, ratio, low, high, len(before), len(after), needs)
