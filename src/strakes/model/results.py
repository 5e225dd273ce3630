"""The measured values of a run, for studies and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from strakes.model.cell import DIRECTIONS
from strakes.model.portrait import CellEstimate, Setting
from strakes.model.sample import Sample


@dataclass(frozen=True)
class Observation:
    """A value from one phase in one execution of a plan. ``sample``: everything that was measured in the phase.

    ``servers``: counters of servers during the plan. ``at_s``: start of the plan, Unix time.
    """

    block: int
    purpose: str
    value: float
    sample: Sample
    servers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    at_s: float = 0.0


@dataclass(frozen=True)
class Measured:
    """A quantity, and its values with the same settings in time order.

    ``settings``: settings of the quantity's cell and phase. ``elsewhere``: another node wrote the data that was read.
    """

    id: str
    study: str
    settings: Mapping[str, Setting]
    unit: str
    observations: tuple[Observation, ...]
    estimate: CellEstimate | None
    elsewhere: bool = False

    @property
    def direction(self) -> int:
        """Return 1 for rates (higher is better), -1 for times (lower is better), and 0 for loads."""
        return DIRECTIONS[self.unit]

    @property
    def is_side(self) -> bool:
        """Return whether the quantity is a load (in % or bytes) instead of a rate or a time."""
        return not self.direction

    def by_block(self) -> dict[int, float]:
        """Return round number -> value. Only executions that count as measurements are included."""
        return {seen.block: seen.value for seen in self.observations if seen.purpose == "measure"}


@dataclass(frozen=True)
class Results:
    """The results of one study or of a whole survey."""

    measured: tuple[Measured, ...]
    confidence: float
    facts: Mapping[str, Any]

    @cached_property
    def _by_id(self) -> Mapping[str, Measured]:
        return {cell.id: cell for cell in self.measured}

    def get(self, measure_id: str) -> Measured:
        """Return the measurement with this id. Raises KeyError for an unknown id."""
        return self._by_id[measure_id]

    def of_study(self, study: str) -> Results:
        """Return the results of one study."""
        return replace(self, measured=tuple(cell for cell in self.measured if cell.study == study))

    def where(self, **settings: Setting) -> list[Measured]:
        """Return the measurements of rates and times with these settings, in the order of the study."""
        return [cell for cell in self._agreeing(settings) if not cell.is_side]

    def beside(self, metric: str, **settings: Setting) -> list[Measured]:
        """Return the measurements of a load, such as ``device_busy`` or ``iowait``, with these settings."""
        return [cell for cell in self._agreeing(settings) if cell.is_side and cell.id.endswith(f":{metric}")]

    def _agreeing(self, settings: Mapping[str, Setting]) -> list[Measured]:
        return [
            cell
            for cell in self.measured
            if cell.estimate is not None and all(cell.settings.get(key) == value for key, value in settings.items())
        ]

    def levels(self, factor: str) -> list[Setting]:
        """Return the measured values of a numeric setting in ascending order."""
        found = {cell.settings[factor] for cell in self.measured if factor in cell.settings and cell.estimate}
        return sorted(found, key=float)

    def ids(self, measured: Iterable[Measured]) -> tuple[str, ...]:
        """Return the ids of measurements, which a finding cites as evidence."""
        return tuple(cell.id for cell in measured)
