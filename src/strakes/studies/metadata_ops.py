"""metadata-ops: mdtest's six operations, open-close, rename, small files and synchronous creation. S2, figures 5-8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import MetadataOperation, MetadataPhase, Stop
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Finding, Headline, IntervalOf, Point, Reference, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.stats.interval import smallest_runs
from strakes.studies.compose import ask, ask_level, from_memory, series
from strakes.studies.study import Context, Study

SIX: tuple[MetadataOperation, ...] = ("dir-create", "dir-stat", "dir-remove", "file-create", "file-stat", "file-remove")
_COMPARED: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_SMALL_FILE = 4 * KIB
_SYNCED = "create, synchronised"
_CHURNED = "file-create, churned"
_LEAST_BUSY_PERCENT = 1.0
_MOST_SYNCED = 5000
# With more levels of ranks than this, a further figure has the ranks on its axis.
_FEW_LEVELS = 2
# In execution order.
OPERATIONS: tuple[MetadataOperation, ...] = (
    "dir-create",
    "dir-stat",
    "dir-remove",
    "file-create",
    "file-stat",
    "file-open-close",
    "file-rename",
    "file-remove",
)
_TITLES = {
    "churned-create": _CHURNED,
    "small-create": "create 4 KiB",
    "small-read": "read 4 KiB",
    "synced-create": _SYNCED,
}
# Labels of a line with one rank and with several, by kind of directory.
_LINES = {
    "unique": ("{count} rank, unique directory", "{count} ranks, unique directory"),
    "shared": ("{count} rank, shared directory", "{count} ranks, shared directory"),
}


class MetadataOps(Study):
    """Rate of each operation by number of ranks, in one directory per rank and in one shared directory."""

    name = "metadata-ops"
    title = "Metadata operations"
    question = "How many files and directories per second does each operation reach?"
    source = "S2"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each number of ranks and kind of directory; skip a cell if too few files may be created."""
        teams = sorted({1, 2, context.team, 8, 16} if context.full else {1, context.team})
        cells: list[Cell | SkippedCell] = []
        for ranks in teams:
            for directory in ("unique", "shared"):
                if directory == "shared" and (ranks == 1 or (context.full and ranks != teams[-1])):
                    continue  # one rank cannot share, and S2 used one directory per rank
                settings = {"ranks": ranks, "directory": directory}
                if context.max_items < 16 * ranks:
                    cells.append(self.skipped(f"only {context.max_items} files may be created here", **settings))
                else:
                    most = ranks == teams[-1] and directory == "unique"
                    cells.append(self._cell(context, ranks, directory, most=most))
        return cells

    def _cell(self, context: Context, ranks: int, directory: str, *, most: bool) -> Cell:
        """Return a cell: all operations with --full, else mdtest's six (most ranks, own directories) or three."""
        operations = OPERATIONS if context.full else SIX if most else _COMPARED
        items, stop = context.items(ranks), context.stonewall()
        where: Literal["shared", "unique"] = "shared" if directory == "shared" else "unique"
        phases = [MetadataPhase(operation, operation, where, items, stop=stop) for operation in operations]
        # Some file systems create files slowly after the same number of files has been removed. The time limit is
        # shorter, because on a slow file system the earlier phases have already used theirs.
        again: tuple[MetadataOperation, ...] = ("file-create", "file-remove") if most else ()
        shorter = Stop("stonewall", round(context.phase_s, 3))
        phases += [
            MetadataPhase(f"churned-{what.removeprefix('file-')}", what, where, items, files="churned", stop=shorter)
            for what in again
        ]
        if context.full:
            phases += self._small(context, ranks, where)
            # Like a metadata server that commits each change to its device before it replies.
            synced = min(items, _MOST_SYNCED)
            phases.append(
                MetadataPhase("synced-create", "file-create", where, synced, files="synced", fsync=True, stop=stop)
            )
        priority = 1 if context.full or ranks == context.team else 3
        return self._of(context, ranks, directory, phases, priority=priority, measured=phases)

    def _small(self, context: Context, ranks: int, where: Literal["shared", "unique"]) -> list[MetadataPhase]:
        """Return phases that create and read files of 4 KiB."""
        files = max(8, min(context.items(ranks) // 2, context.max_bytes // (2 * _SMALL_FILE * ranks)))
        kinds: tuple[tuple[str, MetadataOperation], ...] = (
            ("small-create", "file-create"),
            ("small-read", "file-read"),
        )
        stop = context.stonewall()
        return [
            MetadataPhase(name, kind, where, files, files="small", file_bytes=_SMALL_FILE, stop=stop)
            for name, kind in kinds
        ]

    def _of(
        self,
        context: Context,
        ranks: int,
        directory: str,
        phases: Sequence[MetadataPhase],
        *,
        priority: int,
        measured: Sequence[MetadataPhase],
    ) -> Cell:
        return Cell(
            self.name,
            f"{self.name}/{directory}/{ranks}",
            {"ranks": ranks, "directory": directory},
            Plan(ranks, tuple(phases), context.seed),
            tuple(
                Measure(phase.name, metric, {"operation": _TITLES.get(phase.name, phase.name)})
                for metric in ("operations_per_s", "device_busy")
                for phase in measured
                if phase.name != "churned-remove"
            ),
            priority=priority,
        )

    def _order(self) -> list[str]:
        return [*OPERATIONS, *_TITLES.values()]

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the rate of each operation, the rates by ranks and the device utilisation, with S2's results."""
        lines = []
        levels = results.levels("ranks")
        for directory in ("unique", "shared"):
            # The levels in between are in the figure by ranks.
            for ranks in dict.fromkeys((*levels[:1], *levels[-1:])) if len(levels) > _FEW_LEVELS else levels:
                cells = {
                    str(cell.settings["operation"]): cell.id for cell in results.where(directory=directory, ranks=ranks)
                }
                points = tuple(
                    Point(gettext(operation), cells[operation]) for operation in self._order() if operation in cells
                )
                if points:
                    lines.append(Series(ngettext(*_LINES[directory], int(ranks)), points))
        theirs = Reference(
            "S2",
            gettext(
                "S2 compared two metadata devices by the mean of the six mdtest operations: +60 - 70 % for SSD; "
                "its rates are not comparable with one client"
            ),
        )
        x, y = gettext("operation"), gettext("operations per second")
        return [
            self.figure(lines, (x, "", "category"), (y, "op/s"), theirs),
            *self._over_scale(results),
            *self._devices(results),
        ]

    def _over_scale(self, results: Results) -> list[Figure]:
        """Return the rate of mdtest's six operations by number of ranks, as in S2's figures 5 to 8."""
        if len(results.levels("ranks")) <= _FEW_LEVELS:
            return []
        lines = [
            line
            for operation in SIX
            for line in series(gettext(operation), results.where(operation=operation, directory="unique"), "ranks")
        ]
        return [
            self.figure(
                lines,
                (gettext("ranks"), "", "log"),
                (gettext("operations per second"), "op/s"),
                title=gettext("Metadata operations over scale"),
                question=gettext("How do the rates of mdtest's six operations grow with the number of ranks?"),
            )
        ]

    def _devices(self, results: Results) -> list[Figure]:
        """Return the utilisation of the busiest device of this node, with S2's for reference."""
        lines = []
        levels = results.levels("ranks")
        for ranks in dict.fromkeys((*levels[:1], *levels[-1:])):
            cells = {
                str(cell.settings["operation"]): cell.id
                for cell in results.beside("device_busy", directory="unique", ranks=ranks)
            }
            points = tuple(
                Point(gettext(operation), cells[operation]) for operation in (*SIX, _SYNCED) if operation in cells
            )
            if points:
                lines.append(Series(ngettext("{count} rank", "{count} ranks", int(ranks)), points))
        if not lines:
            return []
        theirs = tuple(
            Reference(
                "S2",
                text,
                label=gettext("{source}, published: {what}", source="S2", what=what),
                points=tuple((gettext(operation), busy) for operation in SIX),
            )
            for busy, text, what in (
                (20.0, gettext("S2: about 20 % busy throughout: 8 SATA SSDs in RAID 10"), "SSD"),
                (
                    100.0,
                    gettext("S2: about 100 % busy throughout: 10 near-line SAS disks in RAID 10"),
                    gettext("disks"),
                ),
            )
        )
        return [
            self.figure(
                lines,
                (gettext("operation"), "", "category"),
                (_which_device(results), "%"),
                *theirs,
                title=gettext("Metadata operations: device utilisation"),
                question=gettext("Is the device the limit?"),
            )
        ]

    def _busy(self, results: Results, ranks: Setting) -> list[Finding]:
        cells = [
            figure
            for figure in results.beside("device_busy", directory="unique", ranks=ranks)
            if figure.settings["operation"] in (*SIX, _SYNCED)
        ]
        if not cells:
            return []
        busiest = max(cells, key=lambda figure: figure.estimate.median if figure.estimate else 0.0)
        cell = busiest.estimate
        assert cell is not None
        # The operations do not use this device.
        if (cell.median if cell.high is None else cell.high) < _LEAST_BUSY_PERCENT:
            return []
        text = ngettext(
            "The {device} is {busy} % busy during {operation} with {count} rank (S2: about 20 % on SSDs, 100 % on "
            "disks).",
            "The {device} is {busy} % busy during {operation} with {count} ranks (S2: about 20 % on SSDs, 100 % on "
            "disks).",
            int(ranks),
            device=_which_device(results),
            busy=f"{cell.median:.0f}",
            operation=gettext(str(busiest.settings["operation"])),
        )
        if cell.low is None or cell.high is None:
            needs = gettext("at least {blocks} blocks", blocks=smallest_runs(results.confidence))
            return [self.finding("device", text, "inconclusive", (busiest.id,), needs=needs)]
        interval = IntervalOf(cell.low, cell.high, cell.confidence, gettext("time that the device was busy"), "%")
        return [self.finding("device", text, "measured", (busiest.id,), interval)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask for directories per rank or shared, for enough ranks, and for the cost of creating after removals."""
        ranks = results.levels("ranks")
        if not ranks:
            return []
        questions: list[Question] = []
        for operation in _COMPARED:
            unique, shared = (
                results.where(operation=operation, ranks=ranks[-1], directory=directory)
                for directory in ("unique", "shared")
            )
            title = ngettext(
                "directories, {operation} by {count} rank",
                "directories, {operation} by {count} ranks",
                int(ranks[-1]),
                operation=operation,
            )
            options = [(gettext("one per rank"), unique), (gettext("one shared directory"), shared)]
            questions += ask(self.name, f"{operation}-directories", title, options)
            by_ranks = results.where(operation=operation, directory="unique")
            title = gettext("ranks, {operation}", operation=operation)
            questions += ask_level(self.name, f"{operation}-scaling", title, by_ranks, "ranks")
        fresh, churned = (
            results.where(operation=operation, ranks=ranks[-1], directory="unique")
            for operation in ("file-create", _CHURNED)
        )
        options = [(gettext("before removals"), fresh), (gettext("after removing the same number of files"), churned)]
        return [*questions, *ask(self.name, "churned", gettext("creating"), options, advises=False)]

    def findings(self, results: Results) -> Sequence[Finding]:
        """Return the summaries."""
        return self.summaries(results)

    def summaries(self, results: Results) -> Sequence[Finding]:
        """Return the utilisation of the busiest device with the most ranks."""
        ranks = results.levels("ranks")
        return self._busy(results, ranks[-1]) if ranks else []

    def means(self, results: Results) -> Mapping[str, tuple[str, Sequence[Measured]]]:
        """Return mdtest's six operations with a directory per rank, by number of ranks, most first (S2, figure 7)."""
        means = {}
        for ranks in reversed(results.levels("ranks")):
            six = [cell for name in SIX for cell in results.where(operation=name, ranks=ranks, directory="unique")]
            if len(six) == len(SIX):
                title = ngettext(
                    "mean of the six operations, {count} rank", "mean of the six operations, {count} ranks", int(ranks)
                )
                means[str(ranks)] = title, six
        return means

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return create, stat and remove rates with the most ranks, except rates of this node's memory."""
        ranks = results.levels("ranks")
        return [
            Headline(
                ngettext(
                    "{operation} ({count} rank)", "{operation} ({count} ranks)", int(ranks[-1]), operation=operation
                ),
                cell.id,
            )
            for operation in _COMPARED
            for cell in (results.where(operation=operation, ranks=ranks[-1], directory="unique") if ranks else ())
            if not from_memory(cell, results.facts)
        ]


def _which_device(results: Results) -> str:
    if results.facts.get("block_device"):
        return gettext("device of the file system")
    return gettext("busiest device of this node")
