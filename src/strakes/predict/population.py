"""Parameters for the growth of file systems' rates, fitted to published measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Population:
    """Distribution of growth over file systems, in natural logarithms of rates and scales.

    ``curves``: probability that 1, 4, 16, ... ranks saturate a file system. ``exponent``: exponent of growth in ranks
    beyond that. ``scatter``: standard deviation of a measurement. ``wander``: standard deviation of a system from its
    curve after a growth in ranks by a factor of e. ``targets``, ``files``: mean and deviation of the exponents in
    targets and files.
    """

    curves: Sequence[float]
    exponent: float
    scatter: float
    wander: float
    targets: tuple[float, float]
    files: tuple[float, float]


@lru_cache(maxsize=1)
def fitted() -> Population:
    """Return the population that `python -m bench.prediction DATA --fit` wrote into population.toml."""
    return Population(**tomllib.loads(files(__package__).joinpath("population.toml").read_text(encoding="utf-8")))
