"""A landscape without its noise, and its noise by itself: logarithms of all runs as effects of each setting and of every two together.

On a busy machine the held-out runs of a setting are too few to say what it is worth. What is left of each run beside the fit is the noise
that runs really had; it is drawn from again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bench.tuning.grids import Grid
from bench.tuning.landscape import Landscape
from strakes.tune.surrogate import Array


@dataclass(frozen=True)
class Smooth:
    """Logarithms of the values of all settings, with all data and with a share, and what single runs differed from them by."""

    full: Array
    low: Array
    noise: Array
    noise_low: Array

    def share(self, number: int) -> float:
        """Of the best setting."""
        return float(np.exp(self.full[number] - self.full.max()))


def smooth(landscape: Landscape, grid: Grid) -> Smooth:
    """Fitted to every run, held out or not."""
    design = _design(grid)
    full, noise = _fit(design, [*_runs(landscape.full), *_runs(landscape.held)])
    low, noise_low = _fit(design, _runs(landscape.low))
    return Smooth(full, low, noise, noise_low)


def _runs(values: list[dict[int, float]]) -> list[tuple[int, int, float]]:
    return [(number, block, float(np.log(value))) for number, one in enumerate(values) for block, value in one.items()]


def _design(grid: Grid) -> Array:
    """A column for each level, and for each two levels of two factors."""
    space = grid.space
    columns = [np.ones(len(space.points))]
    varying = [which for which, factor in enumerate(space.factors) if len(factor.levels) > 1]

    def at(which: int) -> list[Array]:
        return [np.array([float(point[which] == level) for point in space.points]) for level in space.factors[which].levels[1:]]

    for which in varying:
        columns += at(which)
    for a, b in combinations(varying, 2):
        columns += [first * second for first in at(a) for second in at(b)]
    return np.column_stack(columns)


def _fit(design: Array, runs: list[tuple[int, int, float]]) -> tuple[Array, Array]:
    numbers = np.array([number for number, _, _ in runs])
    blocks = np.array([block for _, block, _ in runs])
    values = np.array([value for _, _, value in runs])
    # What a whole block was slower by is no property of a setting.
    others = np.column_stack([(blocks == block).astype(float) for block in sorted(set(blocks))[1:]] or [np.zeros(len(runs))])
    left = np.column_stack([design[numbers], others])
    solved = np.linalg.lstsq(left, values, rcond=None)[0]
    rest = values - left @ solved
    # The fit takes as many degrees of freedom as it has columns.
    freed = float(np.sqrt(len(values) / max(1, len(values) - np.linalg.matrix_rank(left))))
    return np.asarray(design @ solved[: design.shape[1]]), rest * freed
