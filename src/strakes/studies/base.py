"""What a study is: factors become cells, results become figures, findings and advice. All of it pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from strakes.plan import Plan, Stop
from strakes.portrait.model import Figure, Finding, Headline, Setting, SkippedCell
from strakes.studies.place import PLAIN, Place
from strakes.studies.results import Results
from strakes.targets.model import Description, Layout, Striping
from strakes.units import GIB, KIB, MIB

Metric = Literal[
    "bytes_per_s",
    "operations_per_s",
    "seconds_per_item",
    "recovery_first_s",
    "recovery_median_s",
    "recovery_last_s",
    "device_busy",
    "iowait",
    "memory_available",
    "servers_memory",
]

UNITS: Mapping[Metric, str] = {
    "bytes_per_s": "B/s",
    "operations_per_s": "op/s",
    "seconds_per_item": "s",
    "recovery_first_s": "s",
    "recovery_median_s": "s",
    "recovery_last_s": "s",
    "device_busy": "%",
    "iowait": "%",
    "memory_available": "B",
    "servers_memory": "B",
}
# A phase has one of these; of the others it may have several.
_ONE_OF_A_PHASE: tuple[Metric, ...] = ("bytes_per_s", "operations_per_s", "seconds_per_item")
# What the machine did meanwhile: shown beside the rates, never a reason to repeat a cell.
SIDE_METRICS: tuple[Metric, ...] = ("device_busy", "iowait", "memory_available", "servers_memory")


@dataclass(frozen=True)
class Measure:
    """One figure taken from one phase of a cell's plan. ``settings`` are added to those of the cell."""

    phase: str
    metric: Metric
    settings: Mapping[str, Setting]

    @property
    def is_side(self) -> bool:
        """Whether it only accompanies the rate of its phase."""
        return self.metric in SIDE_METRICS

    @property
    def suffix(self) -> str:
        """What follows the cell's key in the measure's id."""
        return self.phase if self.metric in _ONE_OF_A_PHASE else f"{self.phase}:{self.metric}"


@dataclass(frozen=True)
class Cell:
    """One setting of a study's factors: the plan that is run for it and what is measured in that plan.

    ``priority`` 1 is measured whatever the budget, higher ones when it allows. ``layout`` is what its files are to have; None: what
    they have anyway. ``least_runs``: how many a finding needs, where that is
    more than the interval does. ``precision``: the relative half-width to reach, where it is not the run's own.
    """

    study: str
    key: str
    settings: Mapping[str, Setting]
    plan: Plan
    measures: tuple[Measure, ...]
    priority: int = 1
    layout: Layout | None = None
    place: Place = PLAIN
    least_runs: int = 0
    precision: float | None = None

    def measure_id(self, phase: str) -> str:
        """The id under which one measured phase of this cell appears in findings."""
        return f"{self.key}:{phase}"


@dataclass(frozen=True)
class Advice:
    """A recommendation still to be confirmed: ``chosen`` against ``against`` (measure ids) on fresh runs.

    It is confirmed when the lower bound of how much better ``chosen`` is, as a ratio, is at least ``threshold``.
    """

    setting: str
    value: str
    reason: str
    chosen: str
    against: str
    threshold: float
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Pilot:
    """First rough rates, one short run each, only used to choose amounts; ``overhead_s``: what its visit took beside its phases."""

    write_bytes_per_s: float
    read_bytes_per_s: float
    creates_per_s: float
    overhead_s: float = 0.0


@dataclass(frozen=True)
class Context:
    """What a study may know when it chooses its cells. Sizes in bytes, times in seconds.

    ``direct_io`` None: O_DIRECT could not be tried. ``max_bytes`` and ``max_items`` are the most one plan may put on the target.
    ``striping``: the layouts that may be asked for, None where none can be set, for the reason ``no_striping``. ``full`` asks for every
    level. ``description``: the file system's parts, where a study asked for them. ``files``: how many files were
    asked for, where that was said.
    ``most_ranks``: cells with more are left out. ``nodes``: how many ranks each host can have, where there are several.
    """

    file_system: str
    remote: bool
    direct_io: bool | None
    cpus: int
    memory_bytes: int
    max_bytes: int
    max_items: int
    phase_s: float
    pilot: Pilot
    seed: int
    full: bool = False
    striping: Striping | None = None
    no_striping: str = ""
    most_ranks: int | None = None
    description: Description | None = None
    files: int | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)

    @property
    def whose(self) -> str:
        """Of which node something is said that holds for every one."""
        return "each node" if len(self.nodes) > 1 else "this node"

    @property
    def crowd(self) -> int:
        """Ranks of studies that want more of them than processors: all that may take part."""
        return self.most_ranks or 2 * self.team

    @property
    def team(self) -> int:
        """Ranks of studies that do not vary them: all that were asked for, else every processor, at most four, at least two."""
        return self.most_ranks or max(2, min(self.cpus, 4))

    def amount_bytes(self, ranks: int, multiple_of: int = 8 * MIB) -> int:
        """Bytes per rank that take about one phase, a multiple of ``multiple_of`` where the limits allow it.

        A power of two, so that every transfer size of the studies divides it.
        """
        wanted = self.pilot.write_bytes_per_s * self.phase_s / ranks
        cap = min(self.max_bytes / ranks, GIB)
        amount = max(wanted, multiple_of)
        return max(64 * KIB, power_of_two_at_most(min(amount, cap)))

    def items(self, ranks: int) -> int:
        """Files per rank that take about one phase to create."""
        wanted = self.pilot.creates_per_s * self.phase_s / ranks
        return int(max(8, min(wanted, (self.max_items - 2) / ranks - 1, 200_000)))

    def stonewall(self) -> Stop:
        """A phase that turns out slow ends here; its rate stands on what it did until then."""
        return Stop("stonewall", round(3 * self.phase_s, 3))


def power_of_two_at_most(value: float) -> int:
    """The largest power of two <= value, at least 1.

    >>> power_of_two_at_most(1000), power_of_two_at_most(4096), power_of_two_at_most(0.3)
    (512, 4096, 1)
    """
    return 1 << max(0, int(value).bit_length() - 1)


class Study(ABC):
    """One question to a file system. Subclasses are stateless."""

    name: str
    title: str
    question: str
    source: str
    # Whether its amounts are chosen from first rough rates.
    needs_pilot = True
    # Whether `strakes survey` has it: those that need little time and nothing but a directory.
    in_survey = False
    # Whether its cells depend on the file system's parts.
    needs_description = False
    # Whether its cells are visited one after the other, each so often, because each goes on where the one before ended.
    visits_in_sequence = 0

    # Whether its visits are drills, which nobody may start without saying so.
    interrupts_service = False

    @property
    def identity(self) -> str:
        """What must agree for a run to be resumed."""
        return self.name

    @abstractmethod
    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """The cells to measure here, and those that cannot be, with the reason."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """What to draw."""

    @abstractmethod
    def findings(self, results: Results) -> Sequence[Finding]:
        """What can be stated, each with its verdict."""

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Of the findings those that sum up one file system, and are wanted of each where two are compared."""
        return ()

    def advice(self, results: Results) -> Sequence[Advice]:
        """What to recommend, if anything."""
        return ()

    def headlines(self, results: Results) -> Sequence[Headline]:
        """The one or two figures of the summary screen."""
        return ()
