"""How rates of file systems grow: parameters fitted to systems that others measured."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class Population:
    """Distribution of growth over file systems, in natural logarithms of the rate by those of the scale.

    The exponent in ranks starts at 1 and reverts to ``exponent`` (plus that of a kind of figure in ``kinds``) over
    ``length``, with a standard deviation of ``deviation``. ``each``: standard deviation of a further exponent in the
    ranks of one client. ``scatter``: median and logarithmic standard deviation of
    the scatter of one measurement. ``ends``: standard deviations from the median to both ends of an 80 % interval, for
    one, two, three or more sizes. ``targets``, ``files``: mean and standard deviation of the exponents in metadata or
    data targets, and in files.
    """

    exponent: float
    deviation: float
    length: float
    each: float
    kinds: Mapping[str, float]
    scatter: tuple[float, float]
    ends: tuple[tuple[float, float], ...]
    targets: tuple[float, float]
    files: tuple[float, float]


@lru_cache(maxsize=1)
def fitted() -> Population:
    """Return the population that `python -m bench.prediction DATA --fit` wrote into population.toml."""
    return Population(**tomllib.loads(files(__package__).joinpath("population.toml").read_text(encoding="utf-8")))


# Words in the name of an operation, and the kind of figure that they stand for.
_KINDS = {
    "create": ("create", "mkdir", "mknod"),
    "stat": ("stat", "open", "lookup", "readdir", "close"),
    "remove": ("remove", "unlink", "rmdir", "delete"),
}


def kind_of(operation: str, unit: str) -> str:
    """Return the kind of figure of an operation: data, create, stat, remove, or an empty text.

    >>> kind_of("file-create", "op/s"), kind_of("write", "B/s"), kind_of("rename", "op/s")
    ('create', 'data', '')
    """
    if unit == "B/s":
        return "data"
    words = operation.lower()
    return next((kind for kind, names in _KINDS.items() if any(name in words for name in names)), "")
