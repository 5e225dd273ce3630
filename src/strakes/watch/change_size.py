"""How large a change of level can have been that was told when it first stood out.

A change is told because its last values stand out, and is dated where it fits best: so it looks larger than it is, and
the few values since it began say little. Both is what a change of a known size shows that is added to paths of chance
and told by the same rules. The interval holds the sizes of which what was seen is neither among the largest twentieth
nor among the smallest (Neyman, Phil. Trans. A 236 (1937) 333; for values looked at until they stand out: Jennison and
Turnbull, Group Sequential Methods (1999) 8.4). A size of which too few are told looks as the next larger one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strakes.watch.calibration import LONGEST, WINDOWS, Calibration, noise_paths, scores, spreads_of, window_sums
from strakes.watch.values import Numbers

# Sizes that are tried, as multiples of the one that was seen.
_TRIED = (0.15, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
_OUTSIDE = 0.05
_PATHS, _FEWEST = 200, 20


@dataclass(frozen=True)
class Seen:
    """A change looks as large as ``size``, of so many ``values`` since it began, which ``differ`` by so much."""

    size: float
    values: int
    differ: float


def seen(values: Numbers, before: float) -> Seen:
    """Return how a change looks, by the values since it began and the level before it."""
    return Seen(float(np.median(values)) - before, len(values), float(np.ptp(values)))


def interval_of_change(
    past: Numbers,
    begins: list[int],
    looks: Seen,
    calibration: Calibration,
    bound: float,
    look: Callable[[Numbers, Numbers, float, float, int], Seen],
) -> tuple[float, float]:
    """Return the 90 % interval of a change that ``looks`` so; it has the same sign.

    ``begins``: of regimes of the past. ``bound``: from which standing on a change is told. ``look``: how one looks, by
    the past, the recent values, level and spread of the past, and the window that stands out.
    """
    paths = noise_paths(past, begins, np.random.default_rng(1))[:_PATHS]
    before, chance = paths[:, : len(past)], paths[:, len(past) :]
    levels, spreads = np.median(before, axis=1).tolist(), spreads_of(before).tolist()
    larger = np.full(len(_TRIED), np.nan)
    for place, multiple in enumerate(_TRIED):
        after = chance.copy()
        after[:, LONGEST:] += multiple * looks.size
        sums = window_sums(scores(before, after))
        # Path, value, window.
        standings = calibration.standings(np.moveaxis(sums, 0, 2)).max(axis=2)
        told = standings.max(axis=2) >= bound
        first = told.argmax(axis=1)
        rows = np.flatnonzero(told.any(axis=1) & (first >= LONGEST))
        windows = [WINDOWS[best] for best in standings[rows, first[rows]].argmax(axis=1)]
        likes = [
            look(before[row], after[row, first[row] + 1 - LONGEST : first[row] + 1], levels[row], spreads[row], window)
            for row, window in zip(rows, windows, strict=True)
        ]
        sizes = [like.size / looks.size for like in likes if _alike(like, looks)]
        if len(sizes) >= _FEWEST:
            larger[place] = np.mean(np.array(sizes) >= 1)
    known = np.flatnonzero(~np.isnan(larger))
    low, high = 0.0, _TRIED[-1]
    if len(known):
        shares = np.maximum.accumulate(np.interp(_TRIED, np.array(_TRIED)[known], larger[known]))
        low = float(np.interp(_OUTSIDE, shares, _TRIED)) if shares[0] < _OUTSIDE else 0.0
        high = float(np.interp(1 - _OUTSIDE, shares, _TRIED))
    ends = min(low, 1.0) * looks.size, max(high, 1.0) * looks.size
    return min(ends), max(ends)


def _alike(like: Seen, seen: Seen) -> bool:
    """Tell whether one says something of the other: told of few values, some of before it, a change looks smaller."""
    far = abs(seen.size)
    return 2 * like.values > seen.values and (like.differ > far) == (seen.differ > far)
