"""A cell: one setting of a study's factors, its plan, and the figures taken from the plan's phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from strakes.findings.place import PLAIN, Place
from strakes.findings.portrait import Setting
from strakes.findings.record import Record
from strakes.plan import Plan
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
# A phase has one of these; of the others it may have several.
_ONE_OF_A_PHASE: tuple[Metric, ...] = ("bytes_per_s", "operations_per_s", "seconds_per_item")
# What the machine did meanwhile, and accelerators of a training: shown beside the rates, never a reason to repeat a
# cell.
SIDE_METRICS: tuple[Metric, ...] = (
    "device_busy",
    "iowait",
    "memory_available",
    "servers_memory",
    "utilisation",
)

# The phases of another tool are not known.
NO_PLAN = Plan(0, ())


@dataclass(frozen=True)
class Measure:
    """One figure taken from one phase of a cell's plan. ``settings`` are added to the cell's settings."""

    phase: str
    metric: Metric
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def is_side(self) -> bool:
        """Whether it only accompanies the rate of its phase."""
        return self.metric in SIDE_METRICS

    @property
    def suffix(self) -> str:
        """Part of the measure's id after the cell's key."""
        return self.phase if self.metric in _ONE_OF_A_PHASE else f"{self.phase}:{self.metric}"


@dataclass(frozen=True)
class Cell(Record):
    """One setting of a study's factors: its plan and the measures taken from it.

    ``priority`` 1 is measured unless the budget is very short, higher ones if time allows. ``layout``: required of its
    files; None: the default. ``precision``: the relative half-width to reach, if it is not the run's own.
    ``fingerprint``: of the plan; the fingerprint of an ``imported`` cell, which has no plan, covers the settings that
    must agree for two runs to be alike. ``knobs``: settings of the file system during its visits; they are put back.
    """

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

    def always_written(self) -> Sequence[str]:
        """Return what earlier versions look for."""
        return ("measures", "priority")

    def measure_id(self, phase: str) -> str:
        """Return the id under which one measured phase of this cell appears in findings."""
        return f"{self.key}:{phase}"
