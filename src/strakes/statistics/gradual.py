"""Whether a series of runs went steadily up or down, which looks like runs that resemble the one before them.

Two straight lines, with a jump between them where there is one, are held against what runs that resemble each other do
anyway: what they explain, in standard errors of such runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The fewest runs of a line.
SHORTEST = 5
# Of simulated autoregressions of order 1, of 20 to 300 runs, about one in 500 is beyond this at a correlation of 0.95,
# and fewer at lower ones.
BEYOND = 24.0
_LINES = 5
_MOST_ALIKE = 0.95


def rest_of_lines(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return what two straight lines leave of the ranks; None where that is no less than of runs that wander.

    >>> rest = rest_of_lines([run + (0.1 if run % 3 else -0.2) for run in range(30)])
    >>> rest is not None and bool(abs(rest).max() < 0.5)
    True
    >>> rest_of_lines([1.0, 2.0, 1.5] * 10) is None
    True
    """
    import numpy as np

    series = centred_ranks(np.asarray(values, dtype=float))
    runs = len(series)
    if runs < 2 * SHORTEST:
        return None
    splits = np.arange(SHORTEST, runs - SHORTEST + 1)
    left = _left(series, np.zeros_like(splits), splits) + _left(series, splits, np.full_like(splits, runs))
    split = int(splits[left.argmin()])
    rest = np.concatenate([_off_line(part) for part in (series[:split], series[split:])])
    power, whole = float((rest**2).sum()), float(((series - series.mean()) ** 2).sum())
    if whole == 0:
        return None
    correlation = float((rest[1:] * rest[:-1]).sum()) / max(power, 1e-300)
    alike = min(_MOST_ALIKE, max(0.0, correlation + (1 + 3 * correlation) / runs))
    explained = math.sqrt((whole - power) / max(power, 1e-9 * whole) * (runs - _LINES))
    return rest if explained * math.sqrt((1 - alike) / (1 + alike)) > BEYOND else None


def centred_ranks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many values are below each, ties as half, from their middle."""
    import numpy as np

    ordered = np.sort(series)
    ranks = (np.searchsorted(ordered, series, "left") + np.searchsorted(ordered, series, "right")) / 2
    return np.asarray(ranks - ranks.mean())


def _left(series: NDArray[np.float64], since: NDArray[np.intp], until: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the sum of squares that a line from each ``since`` to each ``until`` leaves."""
    import numpy as np

    places = np.arange(len(series), dtype=float)
    sums = [
        np.concatenate([[0.0], np.cumsum(each)])
        for each in (np.ones_like(places), places, places**2, series, places * series, series**2)
    ]
    count, x, xx, y, xy, yy = (of[until] - of[since] for of in sums)
    slope = (xy - x * y / count) / (xx - x * x / count)
    return np.asarray(yy - y * y / count - slope * (xy - x * y / count))


def _off_line(part: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    places = np.arange(len(part)) - (len(part) - 1) / 2
    slope = float((places * part).sum() / (places**2).sum())
    return np.asarray(part - part.mean() - slope * places)
