"""Extrapolate a least-squares line of values over sizes (Draper and Smith, Applied Regression Analysis, ch. 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Minimum number of values at each end of the line. Three values give a variance with a standard error of 100%.
FEWEST = 3


@dataclass(frozen=True)
class Forecast:
    """A predicted value. The interval contains one new measurement with probability ``confidence``."""

    value: float
    low: float
    high: float
    confidence: float


def forecast(points: Sequence[tuple[float, float]], at: float, confidence: float) -> Forecast | None:
    """Return a forecast from (size, value) points, or None with too few points. ``at``: size to forecast.

    >>> found = forecast([(1, 3.0), (1, 3.1), (1, 3.2), (200, 5.1), (200, 5.0), (200, 4.9)], 2000, 0.9)
    >>> round(found.value, 1), found.low < 22 < found.high
    (22.2, True)
    """
    from scipy.special import stdtrit

    sizes = [x for x, _ in points]
    if not sizes or min(sizes) == max(sizes) or min(sizes.count(min(sizes)), sizes.count(max(sizes))) < FEWEST:
        return None
    count, middle = len(points), sum(sizes) / len(sizes)
    spread = sum((x - middle) ** 2 for x in sizes)
    level = sum(y for _, y in points) / count
    slope = sum((x - middle) * y for x, y in points) / spread
    residual = sum((y - level - slope * (x - middle)) ** 2 for x, y in points) / (count - 2)
    error = math.sqrt(residual * (1 + 1 / count + (at - middle) ** 2 / spread))
    half = float(stdtrit(count - 2, (1 + confidence) / 2)) * error
    value = level + slope * (at - middle)
    return Forecast(value, value - half, value + half, confidence)
