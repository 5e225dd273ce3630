"""How rates of file systems grow: parameters fitted to systems that others measured."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Population:
    """Distribution of growth over file systems, in natural logarithms of rates and scales.

    The exponent in ranks falls from 1 towards ``exponent`` over ``length``. File systems differ from it with a standard
    deviation of ``deviation``. ``scatter``: of one measurement, with what the law misses. ``ends``: standard
    deviations from the median to both ends of an 80 % interval, for one, two, three or more sizes. ``targets``,
    ``files``: mean and standard deviation of the exponents in metadata or data targets, and in files.
    """

    exponent: float
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
