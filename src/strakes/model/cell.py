"""Cells: combinations of a study's settings, each with its plan and the quantities to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.model.place import PLAIN, Place
from strakes.model.plan import Plan
from strakes.model.portrait import Setting
from strakes.model.record import Record
from strakes.targets.description import Layout

Metric = Literal[
    "bytes_per_s",
    "operations_per_s",
    "seconds_per_item",
    "elapsed_s",
    "recovery_first_s",
    "recovery_median_s",
    "recovery_last_s",
    "device_busy",
    "iowait",
    "memory_available",
    "servers_memory",
    "utilisation",
]

UNITS: Mapping[Metric, str] = {
    "bytes_per_s": "B/s",
    "operations_per_s": "op/s",
    "seconds_per_item": "s",
    "elapsed_s": "s",
    "recovery_first_s": "s",
    "recovery_median_s": "s",
    "recovery_last_s": "s",
    "device_busy": "%",
    "iowait": "%",
    "memory_available": "B",
    "servers_memory": "B",
    "utilisation": "%",
}
# A phase has at most one of these metrics, and any number of others.
_ONE_OF_A_PHASE: tuple[Metric, ...] = ("bytes_per_s", "operations_per_s", "seconds_per_item")
# Metrics of the load of machines and accelerators. The precision of a run does not depend on them.
SIDE_METRICS = tuple(metric for metric, unit in UNITS.items() if unit in ("%", "B"))

# Placeholder for the plan of measurements by another tool.
NO_PLAN = Plan(0, ())


@dataclass(frozen=True)
class Measure:
    """One quantity measured in one phase of a plan. ``settings``: settings of the phase, besides those of its cell."""

    phase: str
    metric: Metric
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def is_side(self) -> bool:
        """Return whether the metric is a load of machines or accelerators."""
        return self.metric in SIDE_METRICS

    @property
    def suffix(self) -> str:
        """Return the end of the measurement's id: the phase and, unless it is a usual one, the metric."""
        return self.phase if self.metric in _ONE_OF_A_PHASE else f"{self.phase}:{self.metric}"


@dataclass(frozen=True)
class Cell(Record):
    """One combination of a study's settings, with its plan and the quantities to measure.

    ``priority``: 1 is omitted last if the budget is short. ``layout``: required layout of the files (None: the
    default). ``precision``: required relative half-width of intervals (None: that of the run). ``fingerprint``: hash of
    the plan or, for a cell ``imported`` from another tool, of the settings that must agree in comparisons. ``knobs``:
    settings of the file system during the measurement.
    """

    ALWAYS = ("measures", "priority")

    study: str
    key: str
    settings: Mapping[str, Setting]
    plan: Plan = NO_PLAN
    measures: tuple[Measure, ...] = ()
    priority: int = 1
    layout: Layout | None = None
    place: Place = PLAIN
    precision: float | None = None
    fingerprint: str = field(default="", compare=False)
    imported: bool = False
    knobs: Mapping[str, str] = field(default_factory=dict)

    def measure_id(self, phase: str) -> str:
        """Return the id of the main measure of a phase, which findings cite."""
        return f"{self.key}:{phase}"
