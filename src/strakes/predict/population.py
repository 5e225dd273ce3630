"""Parameters for the growth of file systems' rates, fitted to published measurements."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Population:
    """Distribution of growth over file systems, in natural logarithms of rates and scales.

    The exponent in ranks falls from 1 to 0, with the decay length ``length`` in the logarithm of ranks. ``deviation``:
    its standard deviation between file systems. ``scatter``: standard deviation of a measurement from the power law.
    ``ends``: standard deviations from the median to the lower and upper end of an 80 % interval, after measuring one,
    two, or at least three sizes. ``targets``, ``files``: mean and deviation of the exponents in targets and files.
    """

    deviation: float
    length: float
    scatter: float
    ends: tuple[tuple[float, float], ...]
    targets: tuple[float, float]
    files: tuple[float, float]


@lru_cache(maxsize=1)
def fitted() -> Population:
    """Return the population that `python -m bench.prediction DATA --fit` wrote into population.toml."""
    return Population(**tomllib.loads(files(__package__).joinpath("population.toml").read_text(encoding="utf-8")))
