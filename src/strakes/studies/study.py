"""What a study is: factors become cells, results become figures, findings and advice. All of it pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from strakes.findings.answers import Claim, Question
from strakes.findings.cell import Cell
from strakes.findings.portrait import (
    Figure,
    Finding,
    Headline,
    IntervalOf,
    Reference,
    Series,
    Setting,
    SkippedCell,
)
from strakes.findings.results import Measured, Results
from strakes.plan import Stop
from strakes.targets.description import Description, Striping
from strakes.units import GIB, KIB, MIB

# From this length of phases on, reads and removals are to be as long: what makes their files may then take so many
# phases for their sake, well below what ends a phase.
LASTING_S = 0.5
_LONGER_MAKING = 2.0
# No plan may last longer (schemas/plan.json).
_DAY_S = 86_400.0
# Of an axis: what is on it, its unit and how it is drawn; y axes fit what is drawn.
XAxis = tuple[str, str, Literal["log", "linear", "category"]]
YAxis = tuple[str, str]
Verdict = Literal["measured", "holds", "does-not", "forecast", "inconclusive", "unknown"]
# What it takes where a figure is not exact enough.
NARROWER = "a narrower interval: give a larger --budget"
BANDWIDTH: YAxis = ("bandwidth", "B/s")
OPERATIONS: YAxis = ("operations a second", "op/s")


@dataclass(frozen=True)
class Pilot:
    """First rough rates, one short run each, only used to choose amounts.

    ``overhead_s``: what its visit took beside its phases. ``removes_per_s`` is 0 where nobody looked.
    """

    write_bytes_per_s: float
    read_bytes_per_s: float
    creates_per_s: float
    overhead_s: float = 0.0
    removes_per_s: float = 0.0


@dataclass(frozen=True)
class Context:
    """What a study may know when it chooses its cells. Sizes in bytes, times in seconds.

    ``direct_io`` None: O_DIRECT could not be tried. ``max_bytes`` and ``max_items`` are the most one plan may put on
    the target. ``striping``: the layouts that may be asked for, None where none can be set, for the reason
    ``no_striping``. ``full`` asks for every level. ``description``: the file system's parts, where a study asked for
    them. ``files``, ``data_per_rank``: how many files and bytes were asked for, where that was said.
    ``least_priority``: cells that matter less than this are left to a larger budget. ``most_ranks``: cells with more
    are left out. ``nodes``: how many ranks each host can have, where there are several.
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
    data_per_rank: int | None = None
    least_priority: int = 9
    nodes: Mapping[str, int] = field(default_factory=dict)

    @property
    def shift(self) -> int:
        """By how many ranks reads are shifted so that another node wrote what each reads; 0 on a single node."""
        each = min(self.nodes.values(), default=0)
        return each if len(self.nodes) > 1 and each * len(self.nodes) == self.team else 0

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
        """Ranks of studies that do not vary them.

        All that were asked for, else every processor, at most four, at least two.
        """
        return self.most_ranks or max(2, min(self.cpus, 4))

    def amount_bytes(self, ranks: int, multiple_of: int = 8 * MIB) -> int:
        """Bytes per rank that take about one phase, a multiple of ``multiple_of`` where the limits allow it.

        Every transfer size divides it of which it holds some: a power of two, in surveys also 5, 6 or 7 quarters of
        one; what was asked for is a multiple.
        """
        if self.data_per_rank is not None:
            whole = self.data_per_rank // multiple_of * multiple_of
            return whole or max(64 * KIB, power_of_two_at_most(self.data_per_rank))
        # What reads move was written before: where reads are faster, writes last longer, so that both take a phase.
        wanted = self._at_once(self.pilot.write_bytes_per_s, self.pilot.read_bytes_per_s) / ranks
        cap = min(self.max_bytes / ranks, GIB)
        amount = max(wanted, multiple_of)
        most = min(amount, cap)
        power = power_of_two_at_most(most)
        quarters = power if self.full or power < multiple_of else int(4 * most / power) * (power // 4)
        return max(64 * KIB, quarters)

    def items(self, ranks: int) -> int:
        """Files per rank that take about one phase to create, or as many in all as were asked for."""
        if self.files is not None:
            return max(1, min(-(-self.files // ranks), (self.max_items - 2) // ranks - 1))
        wanted = self._at_once(self.pilot.creates_per_s, self.pilot.removes_per_s) / ranks
        return int(max(8, min(wanted, (self.max_items - 2) / ranks - 1, 200_000)))

    def _at_once(self, making: float, using: float) -> float:
        """Return how much takes about a phase to make, or, where phases last, to use as well."""
        return making * self.phase_s * (longer_making(using / making) if self.phase_s >= LASTING_S else 1.0)

    def stonewall(self, times: float = 3.0) -> Stop:
        """Return when a phase ends that takes ``times`` as long as planned; its rate is of what it did until then."""
        return Stop("stonewall", min(_DAY_S, round(times * self.phase_s, 3)))


def longer_making(faster: float) -> float:
    """Return how many phases making takes where using what was made is so many times as fast.

    >>> [longer_making(faster) for faster in (0.5, 1.5, 8.0)]
    [1.0, 1.5, 2.0]
    """
    return max(1.0, min(faster, _LONGER_MAKING))


def power_of_two_at_most(value: float) -> int:
    """Return the largest power of two <= value, at least 1.

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

    # Whether what it says is about the file system alone; a user's own plan may be about a cache, too.
    of_file_system = True

    # Whether its visits are drills, which nobody may start without saying so.
    interrupts_service = False

    @property
    def identity(self) -> str:
        """Text that has to be equal for a run to be resumed."""
        return self.name

    @abstractmethod
    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return the cells to measure here, and those that cannot be, with the reason."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """Return what to draw."""

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return what can be stated beyond the answers to questions, each with its verdict."""
        return ()

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Of the findings those that sum up one file system, and are wanted of each where two are compared."""
        return ()

    def means(self, results: Results) -> Mapping[str, Sequence[Measured]]:
        """Return the rates whose arithmetic mean the source gives as one figure, by the title of that figure."""
        return {}

    def questions(self, results: Results) -> Sequence[Question]:
        """Return the decisions that the measured cells can answer."""
        return ()

    def claims(self, results: Results) -> Sequence[Claim]:
        """Return the published statements that the measured cells can confirm or refute."""
        return ()

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the one or two figures of the summary screen."""
        return ()

    def skipped(self, reason: str, **settings: Setting) -> SkippedCell:
        """Return a cell of this study that cannot be measured here."""
        return SkippedCell(self.name, settings, reason)

    def figure(
        self, lines: Sequence[Series], x: XAxis, y: YAxis, *references: Reference, title: str = "", question: str = ""
    ) -> Figure:
        """Return a figure of this study, with its title and question where no others are given."""
        return Figure(self.name, title or self.title, question or self.question, *x, *y, tuple(lines), references)

    def finding(
        self,
        name: str,
        statement: str,
        verdict: Verdict,
        evidence: tuple[str, ...],
        interval: IntervalOf | None = None,
        needs: str = "",
        tone: Literal["good", "bad", "neutral"] = "neutral",
    ) -> Finding:
        """Return a finding of this study, whose id is the study's name and ``name``."""
        return Finding(f"{self.name}-{name}", self.name, statement, verdict, evidence, interval, needs, tone)
