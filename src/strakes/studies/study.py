"""Base class of studies, which plan measurements of a file system and derive answers and figures from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from strakes.base.language import gettext
from strakes.base.units import GIB, KIB, MIB, counted, format_bytes
from strakes.model.answers import Claim, Question
from strakes.model.cell import PLAIN, Cell, Measure, Place
from strakes.model.phases import Access, MetadataPhase, Sharing, SmallFilesPhase, Stop, StreamPhase, TransferPhase
from strakes.model.plan import Phase, Plan, WholePhase
from strakes.model.portrait import Figure, Finding, Headline, IntervalOf, Point, Reference, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.stats.interval import Interval
from strakes.studies.compose import from_memory, from_own_cache, interval_of, title_of
from strakes.targets.description import Description, Layout, Striping
from strakes.targets.mountinfo import own_cache

# If phases take this number of seconds or more, writes take longer, so that faster reads have enough data.
LASTING_S = 0.5
_MAKING_TIMES = 2.0  # Maximum duration of these writes as a multiple of the usual duration.
# Maximum share of a node's memory for the buffers of all ranks, and the size that is always allowed. Twice the share
# takes over 1 GB on a node with 16 GiB.
_BUFFERS_SHARE, _LEAST_BUFFERS_BYTES = 1 / 32, 128 * MIB
_AVAILABLE_SHARE = 0.8  # Maximum share of the available memory for the buffers of a user's plan, as in the engine.
_PIECE_BYTES = MIB  # Maximum buffer of a rank for small files (kMostWriteBytes, kMostBufferBytes in engine/workload).
# Maximum duration of a phase in seconds: one day, as in schemas/plan.json.
_DAY_S = 86_400.0
# Valid values of --data-per-rank in bytes: minimum, maximum (2^30 transfers of 1 KiB) and unit.
LEAST_PER_RANK, MOST_PER_RANK, PER_RANK_STEP = MIB, 1024 * GIB, 256 * KIB
Cells = Iterable[Cell | SkippedCell]
XAxis = tuple[str, str, Literal["log", "linear", "category"]]
YAxis = tuple[str, str]
Verdict = Literal["measured", "holds", "does-not", "forecast", "inconclusive", "unknown"]
MORE_BUDGET = "a larger --budget is needed"
NARROWER = "a narrower interval: give a larger --budget"
BANDWIDTH: YAxis = ("bandwidth", "B/s")
OPERATIONS: YAxis = ("operations a second", "op/s")


def _buffer_bytes(phase: WholePhase) -> int:
    if isinstance(phase, SmallFilesPhase):
        units = (phase.read_unit_bytes, phase.write_unit_bytes, *(call.unit_bytes for call in phase.flow))
        return min(_PIECE_BYTES, max(units))
    if isinstance(phase, MetadataPhase):
        return min(_PIECE_BYTES, phase.file_bytes)
    sizes = (getattr(phase, name, 0) for name in ("transfer_bytes", "size_high_bytes", "file_bytes", "sample_bytes"))
    stream = phase.block_bytes if isinstance(phase, StreamPhase) else 0
    return max(*sizes, stream) * getattr(phase, "queue_depth", 1)


@dataclass(frozen=True)
class Pilot:
    """Rough rates from short pilot measurements. Studies use them to choose amounts of data and numbers of files.

    ``overhead_s``: seconds of a trial outside all phases. ``removes_per_s``: 0 if not measured.
    """

    write_bytes_per_s: float
    read_bytes_per_s: float
    creates_per_s: float
    overhead_s: float = 0.0
    removes_per_s: float = 0.0


@dataclass(frozen=True)
class Context:
    """Facts from which a study chooses its measurements. Sizes are in bytes, times in seconds.

    ``max_bytes``, ``max_items``: limits of one plan. ``most_ranks``: maximum number of ranks. ``full``: measure every
    value of each setting. ``least_priority``: leave out measurements with a larger (less important) priority number.
    ``files``, ``data_per_rank``: requested by the user. ``nodes``: maximum number of ranks by host (empty: one host).
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
        """Return the distance in ranks between writer and reader of a file on different nodes, or 0 on one node."""
        each = min(self.nodes.values(), default=0)
        return each if len(self.nodes) > 1 and each * len(self.nodes) == self.team else 0

    @property
    def whose(self) -> str:
        """Return "each node", or "this node" for a single node."""
        return "each node" if len(self.nodes) > 1 else "this node"

    @property
    def crowd(self) -> int:
        """Return the number of ranks for studies that need many: ``most_ranks`` if given, else twice :attr:`team`."""
        return self.most_ranks or 2 * self.team

    @property
    def team(self) -> int:
        """Return the usual number of ranks: ``most_ranks`` if given, else one per processor (at least 2, at most 4)."""
        return self.most_ranks or max(2, min(self.cpus, 4))

    def amount_bytes(self, ranks: int, multiple_of: int = 8 * MIB) -> int:
        """Return the bytes per rank that one phase can write, at least ``multiple_of`` if the limits allow it.

        The result is a power of two or, without ``full``, also 5/4, 6/4 or 7/4 of a power of two. An amount requested
        by the user is rounded down to a multiple of ``multiple_of``.
        """
        if self.data_per_rank is not None:
            asked = min(self.data_per_rank, MOST_PER_RANK)
            return asked // multiple_of * multiple_of or max(64 * KIB, power_of_two_at_most(asked))
        wanted = self._at_once(self.pilot.write_bytes_per_s, self.pilot.read_bytes_per_s) / ranks
        cap = min(self.max_bytes / ranks, GIB)
        amount = max(wanted, multiple_of)
        most = min(amount, cap)
        power = power_of_two_at_most(most)
        quarters = power if self.full or power < multiple_of else int(4 * most / power) * (power // 4)
        return max(64 * KIB, quarters)

    def too_little(self, needed: int, ranks: int) -> str:
        """Return as text the reason why a rank cannot use ``needed`` bytes."""
        if self.data_per_rank is not None:
            return "a larger --data-per-rank is needed"
        if needed > min(self.max_bytes / ranks, GIB):
            return "needs more data per rank than fits here"
        return "a larger --budget is needed: with this budget, phases are too short for such requests"

    def why_too_large(self, plan: Plan, available_bytes: int | None = None) -> str:
        """Return as text why a plan needs too many ranks, bytes, files or too much memory, or "" if it fits.

        ``available_bytes``: the available memory, if the user wrote the plan. On other nodes, the engine checks it.
        """
        if self.most_ranks is not None and plan.ranks > self.most_ranks:
            return f"needs {counted(plan.ranks, 'rank')}, but at most {self.most_ranks} are allowed (--ranks)"
        size, files = plan.bytes_on_target(), plan.inodes_on_target()
        if size > self.max_bytes or files > self.max_items:
            return f"needs {format_bytes(size)} and {counted(files, 'file')}, more than strakes may use here"
        on_node = max(self.nodes.values(), default=1) / max(1, sum(self.nodes.values()))
        buffers = int(on_node * max(ranks * _buffer_bytes(phase) for phase, ranks in plan.each()))
        most = max(_LEAST_BUFFERS_BYTES, int(_BUFFERS_SHARE * self.memory_bytes))
        if available_bytes is not None:
            most = int(_AVAILABLE_SHARE * available_bytes) if len(self.nodes) <= 1 else buffers
        if buffers > most:
            return f"needs {format_bytes(buffers)} of memory for buffers on {self.whose}: use fewer --ranks there"
        return ""

    def items(self, ranks: int) -> int:
        """Return the number of files per rank: the number that one phase can create, or the user's request."""
        if self.files is not None:
            return max(1, min(-(-self.files // ranks), (self.max_items - 2) // ranks - 1))
        wanted = self._at_once(self.pilot.creates_per_s, self.pilot.removes_per_s) / ranks
        return int(max(8, min(wanted, (self.max_items - 2) / ranks - 1, 200_000)))

    def _at_once(self, making: float, using: float) -> float:
        longer = max(1.0, min(using / making, _MAKING_TIMES)) if self.phase_s >= LASTING_S else 1.0
        return making * self.phase_s * longer

    def write_and_read(
        self,
        transfer: int,
        amount: int,
        files: Sharing = "file-per-process",
        access: Access = "segmented",
        segments: int = 1,
        *,
        direct: bool = False,
        rank_shift: int = 0,
        stop: Stop | None = None,
    ) -> tuple[WholePhase, ...]:
        """Return phases that write ``amount`` bytes per rank with fsync, drop the page cache, and read the data."""
        stop = stop or self.stonewall()
        write = TransferPhase(
            "write", "write", files, access, transfer, amount, segments, direct=direct, sync="fsync", stop=stop
        )
        read = replace(write, name="read", operation="read", sync="close", cache="drop", rank_shift=rank_shift)
        return (write, *self.uncached(read))

    def uncached(self, read: TransferPhase) -> tuple[TransferPhase, ...]:
        """Return a read phase whose files are not in the client's cache.

        If that cache cannot be dropped, another phase first writes the files with O_DIRECT, which bypasses the cache.
        """
        if read.direct or read.rank_shift or not self.bypasses_cache:
            return (read,)
        each = read.block_bytes * read.segments
        make = TransferPhase(
            "make", "write", read.layout, "segmented", min(each, MIB), each, files="made", direct=True, sync="fsync"
        )
        return make, replace(read, files="made")

    @property
    def bypasses_cache(self) -> bool:
        """Return whether files must be written with O_DIRECT, because a cache of the client cannot be dropped."""
        return self.full and bool(self.direct_io) and bool(own_cache(self.file_system))

    def stonewall(self, times: float = 3.0) -> Stop:
        """Return a rule that ends a phase after ``times`` times its planned duration."""
        return Stop("stonewall", min(_DAY_S, round(times * self.phase_s, 3)))


def power_of_two_at_most(value: float) -> int:
    """Return the largest power of two that does not exceed ``value``, but at least 1.

    >>> power_of_two_at_most(1000), power_of_two_at_most(4096), power_of_two_at_most(0.3)
    (512, 4096, 1)
    """
    return 1 << max(0, int(value).bit_length() - 1)


class Study(ABC):
    """Base class of studies: questions about a file system, and the measurements that answer them."""

    name: str
    title: str
    question: str
    source: str
    # Whether this study needs the pilot's rates to choose amounts of data and numbers of files.
    needs_pilot = True
    # Whether `strakes survey` includes this study, which must be short and need only a directory.
    in_survey = False
    needs_description = False
    # Keys of measurements that a survey repeats with several times the work, to recognise bursts.
    measured_longer: Sequence[str] = ()
    # Number of rounds, if each round adds files to those of earlier rounds, else 0.
    visits_in_sequence = 0
    # Whether trials are fail-over drills, which need the explicit consent of the user.
    interrupts_service = False
    # File system settings named on the command line. Plans of an earlier run (--like) may change no other settings.
    varied: Sequence[Mapping[str, str]] = ()
    alone = ""
    elsewhere = "Provide what the reason names, or choose another study: strakes study list."
    # Published ratio (minimum, maximum) of mean rates on file systems A and B, for the first mean in :meth:`means`.
    published_ratio: tuple[float, float] | None = None

    @property
    def identity(self) -> str:
        """Return a text that identifies the study. Only a run with the same text can be resumed."""
        return self.name

    @abstractmethod
    def cells(self, context: Context) -> Cells:
        """Return the measurements to make, and the skipped measurements with reasons."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the figures to draw."""

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return statements about the results, each with a verdict."""
        return self.summaries(results)

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Return the findings to show for each of two compared file systems."""
        return ()

    def means(self, results: Results) -> Mapping[str, tuple[str, Sequence[Measured]]]:
        """Return the groups of measurements over which the publication averages: name -> title and measurements."""
        return {}

    def questions(self, results: Results) -> Sequence[Question]:
        """Return the questions that the measured cells can answer."""
        return ()

    def claims(self, results: Results) -> Sequence[Claim]:
        """Return the published statements that the measured cells can confirm or refute."""
        return ()

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of each operation at the largest values of the settings. Cached results are omitted."""
        facts = results.facts
        cells = [cell for cell in results.where() if not (from_own_cache(cell, facts) or from_memory(cell, facts))]
        last = {(cell.settings.get("operation"), cell.settings.get("io")): cell for cell in cells}
        return [Headline(title_of(cell), cell.id) for cell in last.values()]

    def cell(
        self,
        context: Context,
        key: str,
        settings: Mapping[str, Setting],
        phases: Sequence[Phase],
        measures: Sequence[Measure],
        *,
        ranks: int | None = None,
        ranks_per_node: int | None = None,
        priority: int = 1,
        layout: Layout | None = None,
        place: Place = PLAIN,
    ) -> Cell:
        """Return a measurement of this study. ``ranks``: number of ranks, by default the setting "ranks".

        ``measures``: further quantities. Raises ValueError if ``settings`` and a measure set the same setting.
        """
        for measure in measures:
            if twice := sorted(settings.keys() & measure.settings):
                raise ValueError(f"{self.name}/{key}: the cell and its measure {measure.suffix} both set {twice}")
        plan = Plan(ranks or int(settings["ranks"]), tuple(phases), context.seed, ranks_per_node)
        return Cell(
            self.name,
            f"{self.name}/{key}",
            settings,
            plan,
            tuple(measures),
            priority=priority,
            layout=layout,
            place=place,
        )

    def skipped(self, reason: str, **settings: Setting) -> SkippedCell:
        """Return a cell that cannot be measured, with the reason."""
        return SkippedCell(self.name, settings, reason)

    def too_few_files(self, context: Context, **settings: Setting) -> SkippedCell:
        """Return a measurement that is skipped because it needs more files than allowed."""
        return self.skipped(f"only {context.max_items} files may be created here", **settings)

    def published(
        self,
        text: str,
        x_low: float | None = None,
        x_high: float | None = None,
        *,
        what: str = "",
        points: Sequence[tuple[float | str, float]] = (),
    ) -> Reference:
        """Return a published result to draw in a figure of this study. ``what``: label of its points."""
        label = gettext("{source}, published: {what}", source=self.source, what=what) if what else ""
        return Reference(self.source, text, x_low, x_high, label, tuple(points))

    def figure(
        self, lines: Sequence[Series], x: XAxis, y: YAxis, *references: Reference, title: str = "", question: str = ""
    ) -> Figure:
        """Return a figure with a translated y label. Title and question default to those of the study."""
        title, question = title or gettext(self.title), question or gettext(self.question)
        label, unit = y
        return Figure(self.name, title, question, *x, gettext(label), unit, tuple(lines), references)

    def of_phases(self, results: Results, x: str, name_of: Callable[[Measured], str]) -> list[Figure]:
        """Return two figures: one of rates in B/s, one of rates in op/s."""
        figures = []
        for unit, label in (("B/s", gettext("bandwidth")), ("op/s", gettext("operations per second"))):
            points = tuple(Point(name_of(cell), cell.id) for cell in results.where() if cell.unit == unit)
            title = gettext("{title}: {text}", title=gettext(self.title), text=label)
            if points:
                figures.append(self.figure([Series(label, points)], (x, "", "category"), (label, unit), title=title))
        return figures

    def estimated(
        self,
        name: str,
        statement: str,
        evidence: tuple[str, ...],
        interval: Interval | None,
        of: str,
        unit: str,
        needs: str,
    ) -> Finding:
        """Return a finding, inconclusive if ``interval`` is None. ``of``: quantity of the interval, as text."""
        if interval is None:
            return self.finding(name, statement, "inconclusive", evidence, needs=needs)
        return self.finding(name, statement, "measured", evidence, interval_of(interval, of, unit))

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
        """Return a finding of this study. Its id consists of the study's name and ``name``."""
        return Finding(f"{self.name}-{name}", self.name, statement, verdict, evidence, interval, needs, tone)
