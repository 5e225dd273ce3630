"""Cells: combinations of a study's settings, each with its plan, its directory and the quantities to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strakes.model.plan import Plan
from strakes.model.portrait import Setting
from strakes.model.record import Record
from strakes.targets.description import Layout, Placement

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
# Unit of a metric -> 1: more is better, -1: less is better, 0: neither (the load of a machine).
DIRECTIONS: Mapping[str, int] = {"B/s": 1, "op/s": 1, "s": -1, "%": 0, "B": 0}
# The main metrics. Each phase has at most one main metric.
_ONE_OF_A_PHASE: tuple[Metric, ...] = ("bytes_per_s", "operations_per_s", "seconds_per_item")

# Placeholder for the unknown plan of imported measurements.
NO_PLAN = Plan(0, ())


@dataclass(frozen=True)
class Place:
    """The directory where a plan runs, and the servers on which it and its subdirectories must be.

    ``target``: "against" for the second file system of a comparison. ``entries``: placements of subdirectories, by name
    (``items.0.tree``). ``kept``: name of a directory for all executions of the plan; if empty, each execution gets a
    new one. ``drawn``: each round of the study gets a new directory, so that a placement by hash varies. It is created
    one round early, because some file systems move a new directory to another server only later. Raises ValueError for
    a name that leads to another directory, such as "..", because another user may have written the plan.
    """

    target: Literal["", "against"] = ""
    placement: Placement | None = None
    entries: Mapping[str, Placement] = field(default_factory=dict)
    kept: str = ""
    drawn: bool = False

    def __post_init__(self) -> None:
        if bad := [name for name in (self.kept, *self.entries) if "/" in name or name in (".", "..") or "\0" in name]:
            raise ValueError(f"not the name of a directory: {bad[0]!r}")

    def name_in(self, block: int) -> str:
        """Return the name of the directory for all executions in a round, or "" if each execution gets a new one."""
        return f"{self.kept}-{block}" if self.drawn else self.kept

    def is_left_empty(self) -> bool:
        """Return whether the engine removes the files after each execution, so that the plan can be repeated."""
        return not self.kept or self.drawn

    def is_plain(self) -> bool:
        """Return whether the directory is new and needs no placement, so that the engine can create it."""
        return self.placement is None and not self.entries and not self.kept


PLAIN = Place()


@dataclass(frozen=True)
class Measure:
    """A quantity to measure in a phase of a plan. ``settings``: additional settings of this phase only."""

    phase: str
    metric: Metric
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def is_side(self) -> bool:
        """Return whether the metric is a load of machines or accelerators. Loads have no required precision."""
        return not DIRECTIONS[UNITS[self.metric]]

    @property
    def suffix(self) -> str:
        """Return the last part of the measurement's id: the phase, followed by the metric if it is no main metric."""
        return self.phase if self.metric in _ONE_OF_A_PHASE else f"{self.phase}:{self.metric}"


@dataclass(frozen=True)
class Cell(Record):
    """A combination of a study's settings, with its plan and the quantities to measure.

    ``priority``: if the budget is short, cells with larger numbers are omitted first. ``fingerprint``: hash of the
    plan or, for an ``imported`` cell, of the settings that must agree in comparisons.
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
    fingerprint: str = field(default="", compare=False)
    imported: bool = False
    knobs: Mapping[str, str] = field(default_factory=dict)

    def measure_id(self, phase: str) -> str:
        """Return the id that findings cite for the main metric of a phase."""
        return f"{self.key}:{phase}"
