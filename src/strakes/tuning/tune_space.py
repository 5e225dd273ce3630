"""The search space: factors with their values, and constraints on combinations of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from strakes.base.errors import BadInputError
from strakes.model.portrait import Setting

Point = tuple[Setting, ...]


@dataclass(frozen=True)
class Factor:
    """A parameter to vary. ``levels``: its values. ``default``: one of these values.

    ``ordered``: neighbouring values have similar effects, as for sizes and counts.
    """

    name: str
    levels: tuple[Setting, ...]
    default: Setting
    ordered: bool = True

    def __post_init__(self) -> None:
        if self.default not in self.levels or len(set(self.levels)) != len(self.levels):
            raise ValueError(f"{self.name}: {self.default!r} is not in {self.levels!r}, or a level is repeated")


@dataclass(frozen=True)
class Constraint:
    """A condition on combinations of values. ``why``: reason in words."""

    why: str
    holds: Callable[[Mapping[str, Setting]], bool]


@dataclass(frozen=True)
class SearchSpace:
    """All combinations of values that fulfil the constraints.

    >>> space = SearchSpace((Factor("writers", (1, 8), 8), Factor("direct", (False, True), False, ordered=False)))
    >>> space.default, len(space.points), space.settings(space.points[0])
    ((8, False), 4, {'writers': 1, 'direct': False})
    """

    factors: tuple[Factor, ...]
    constraints: tuple[Constraint, ...] = ()
    only: tuple[Point, ...] = ()  # the only possible combinations; empty: all combinations

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Return all allowed combinations. Raises BadInputError if the default is not allowed."""
        for constraint in self.constraints:
            if not constraint.holds(self.settings(self.default)):
                raise BadInputError("the application uses a setting that is not supported here", why=constraint.why)
        points = self.only or product(*(factor.levels for factor in self.factors))
        return tuple(point for point in points if all(each.holds(self.settings(point)) for each in self.constraints))

    @cached_property
    def default(self) -> Point:
        """Return the present setting of the application."""
        return tuple(factor.default for factor in self.factors)

    @cached_property
    def numbers(self) -> Mapping[Point, int]:
        """Return point -> index of the point in ``points``."""
        return {point: number for number, point in enumerate(self.points)}

    def settings(self, point: Sequence[Setting]) -> dict[str, Setting]:
        """Return factor -> value of a point (combination of values)."""
        return {factor.name: level for factor, level in zip(self.factors, point, strict=True)}
