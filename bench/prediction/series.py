"""The yardstick on published series: the value furthest out is forecast from the others.

Fixed before the values were looked at. *Error* is |forecast / published - 1|; stated is the median over the series
(aim: at most
15 %), and how many of the 80 % intervals hold the published value. Series of two values have nothing to learn a shape
from: their
second value is forecast from the first with what is typical, and stated apart.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Series:
    """One figure against one scale, in the order of the scale. ``points``: (scale, value)."""

    name: str
    source: str
    unit: str
    scale: str
    points: tuple[tuple[float, float], ...]

    @property
    def shown(self) -> Sequence[tuple[float, float]]:
        """All but the value furthest out."""
        return self.points[:-1]

    @property
    def left_out(self) -> tuple[float, float]:
        """The value furthest out."""
        return self.points[-1]


def read_series(path: Path) -> tuple[Series, ...]:
    """Read ``series.csv`` of the data of others."""
    points: dict[tuple[str, str, str, str], list[tuple[float, float]]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["series"], row["source"], row["unit"], row["x_name"]
            points[name].append((float(row["x"]), float(row["value"])))
    return tuple(Series(*name, tuple(sorted(values))) for name, values in points.items())
