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

    ``curves``: probability that a file system saturates at 1, 4, 16, ... ranks. ``exponent``: exponent of the rate's
    growth with ranks after saturation. ``scatter``: standard deviation of a log rate between runs. ``wander``: standard
    deviation of the random walk around the curve when ranks grow by a factor of e. ``targets``, ``files``: mean and
    standard deviation of the exponent of the rate's growth with targets and with files.
    """

    curves: Sequence[float]
    exponent: float
    scatter: float
    wander: float
    targets: tuple[float, float]
    files: tuple[float, float]


@lru_cache(maxsize=1)
def fitted() -> Population:
    """Return the parameters in population.toml, which ``python -m bench.prediction DATA --fit`` writes."""
    return Population(**tomllib.loads(files(__package__).joinpath("population.toml").read_text(encoding="utf-8")))
