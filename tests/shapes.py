"""Distributions of benchmark rates around 1, each with its true median."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Shape:
    """A distribution of rates: name, median and sampler."""

    name: str
    median: float
    draw: Draw


def normal(deviation: float) -> Shape:
    return Shape(f"normal, {100 * deviation:.0f} %", 1.0, lambda of, size: 1 + deviation * of.standard_normal(size))


def heavy_tailed(scale: float) -> Shape:
    """Return a distribution whose logarithm is Student's t with 3 degrees of freedom: far outliers on both sides."""

    def draw(generator: np.random.Generator, size: tuple[int, ...]) -> Array:
        import numpy as np

        return np.asarray(np.exp(scale * generator.standard_t(3, size)))

    return Shape(f"log of Student t₃, {scale:g}", 1.0, draw)


def slowed_down(scale: float) -> Shape:
    """Return rates of a system with rare, long stalls.

    The time of a run is 1 plus ``scale`` times a Lomax variable of index 1.5 (infinite variance).
    """
    median = 1 / (1 + scale * (2 ** (1 / 1.5) - 1))
    return Shape(f"Pareto stalls, {scale:g}", median, lambda of, size: 1 / (1 + scale * of.pareto(1.5, size)))


def bimodal(share: float, low: float, noise: float = 0.03) -> Shape:

    def draw(generator: np.random.Generator, size: tuple[int, ...]) -> Array:
        import numpy as np

        return np.where(generator.random(size) < share, 1.0, low) * (1 + noise * generator.standard_normal(size))

    def below(rate: float) -> float:
        fast, slow = ((rate / mode - 1) / noise / math.sqrt(2) for mode in (1.0, low))
        return share * (1 + math.erf(fast)) / 2 + (1 - share) * (1 + math.erf(slow)) / 2

    bottom, top = low / 2, 2.0
    for _ in range(60):
        middle = (bottom + top) / 2
        bottom, top = (middle, top) if below(middle) < 0.5 else (bottom, middle)
    return Shape(f"two modes, {100 * share:.0f} % at 1, {100 * (1 - share):.0f} % at {low:g}", bottom, draw)
