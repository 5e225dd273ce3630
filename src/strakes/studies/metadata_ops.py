"""metadata-ops: mdtest's six operations and five others. Source: Zeng et al. (2021), figures 5-8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure, Metric
from strakes.model.phases import AMOUNT, MetadataOperation, MetadataPhase, Stop
from strakes.model.portrait import Figure, Finding, Headline, Series, Setting
from strakes.model.results import Measured, Results
from strakes.stats.interval import smallest_runs
from strakes.studies.compose import ask, ask_level, bars, from_memory, interval_in, lines, operation_of
from strakes.studies.study import Cells, Context, Study

SIX: tuple[MetadataOperation, ...] = ("dir-create", "dir-stat", "dir-remove", "file-create", "file-stat", "file-remove")
_COMPARED: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_SMALL_FILE = 4 * KIB
_SYNCED = "create, synchronised"
_CHURNED = "file-create, churned"
_LEAST_BUSY_PERCENT = 1.0
_MOST_SYNCED_FILES = 5000
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
_LINES = {
    "unique": ("{count} rank, unique directory", "{count} ranks, unique directory"),
    "shared": ("{count} rank, shared directory", "{count} ranks, shared directory"),
}


class MetadataOps(Study):
    """Rate of each operation by number of ranks, with a separate directory per rank and with one shared directory."""

    name = "metadata-ops"
    title = "Metadata operations"
    question = "How many files and directories per second does each operation reach?"
    source = "S2"
    # Published ratio of the rates on SSDs and on disks: 1.6 to 1.7 (Zeng et al.), extended by 10 % at both ends.
    published_ratio = (1.6 / 1.1, 1.7 * 1.1)

    def cells(self, context: Context) -> Cells:
        teams = sorted({1, 2, context.team, 8, 16} if context.full else {1, context.team})
        directories: tuple[Literal["unique", "shared"], ...] = ("unique", "shared")
        for ranks in teams:
            for directory in directories:
                if directory == "shared" and (ranks == 1 or (context.full and ranks != teams[-1])):
                    continue  # Only separate directories can be compared with the published rates.
                if context.max_items < 16 * ranks:
                    yield self.too_few_files(context, ranks=ranks, directory=directory)
                else:
                    most = ranks == teams[-1] and directory == "unique"
                    yield self._cell(context, ranks, directory, most=most)

    def _cell(self, context: Context, ranks: int, where: Literal["shared", "unique"], *, most: bool) -> Cell:
        operations = OPERATIONS if context.full else SIX if most else _COMPARED
        items, stop = context.items(ranks), context.stonewall()
        removal = AMOUNT if most else stop
        phases = [
            MetadataPhase(each, each, where, items, stop=removal if each == "file-remove" else stop)
            for each in operations
        ]
        if most:
            # Measure creation again: some file systems create files slowly in a directory after many removals.
            shorter = Stop("stonewall", round(context.phase_s, 3))
            phases.append(MetadataPhase("churned-create", "file-create", where, items, stop=shorter))
        if context.full:
            small = max(8, min(items // 2, context.max_bytes // (2 * _SMALL_FILE * ranks)))
            create = MetadataPhase(
                "small-create", "file-create", where, small, files="small", file_bytes=_SMALL_FILE, stop=stop
            )
            phases += [create, replace(create, name="small-read", operation="file-read")]
            # Creates with fsync are as slow as on a metadata server that commits each change before it replies.
            synced = min(items, _MOST_SYNCED_FILES)
            phases.append(
                MetadataPhase("synced-create", "file-create", where, synced, files="synced", fsync=True, stop=stop)
            )
        metrics: tuple[Metric, ...] = ("operations_per_s", "device_busy")
        measures = [
            Measure(phase.name, metric, {"operation": _TITLES.get(phase.name, phase.name)})
            for metric in metrics
            for phase in phases
        ]
        settings: dict[str, Setting] = {"ranks": ranks, "directory": where}
        priority = 1 if context.full or ranks == context.team else 3
        return self.cell(context, f"{where}/{ranks}", settings, phases, measures, priority=priority)

    def figures(self, results: Results) -> Sequence[Figure]:
        levels = results.levels("ranks")
        shown = dict.fromkeys((*levels[:1], *levels[-1:]))
        drawn = [
            _in_order(ngettext(*_LINES[directory], int(ranks)), results.where(directory=directory, ranks=ranks))
            for directory in ("unique", "shared")
            for ranks in shown
        ]
        theirs = gettext(
            "Zeng et al. (2021): the mean of the six mdtest operations was 60 to 70 % higher on SSDs than on disks; "
            "the published rates are not comparable with rates of one client"
        )
        x, y = gettext("operation"), (gettext("operations per second"), "op/s")
        drawn = [line for line in drawn if line.points]
        first = self.figure(drawn, (x, "", "category"), y, self.published(theirs))
        return [first, *self._over_scale(results)]

    def _over_scale(self, results: Results) -> list[Figure]:
        if len(results.levels("ranks")) <= 2:
            return []
        of_six = ((gettext(name), results.where(operation=name, directory="unique")) for name in SIX)
        return [
            self.figure(
                lines("ranks", of_six),
                (gettext("ranks"), "", "log"),
                (gettext("operations per second"), "op/s"),
                title=gettext("Metadata operations by number of ranks"),
                question=gettext("How do the rates of mdtest's six operations grow with the number of ranks?"),
            )
        ]

    def _busy(self, results: Results, ranks: Setting) -> list[Finding]:
        cells = results.beside("device_busy", directory="unique", ranks=ranks)
        cells = [cell for cell in cells if cell.settings["operation"] in (*SIX, _SYNCED)]
        if not cells:
            return []
        busiest = max(cells, key=lambda figure: figure.estimate.median if figure.estimate else 0.0)
        cell = busiest.estimate
        assert cell is not None
        if (cell.median if cell.high is None else cell.high) < _LEAST_BUSY_PERCENT:
            return []
        device = "device of the file system" if results.facts.get("block_device") else "busiest device of this node"
        text = ngettext(
            "The {device} is {busy} % busy during {operation} with {count} rank (Zeng et al.: about 20 % on SSDs, "
            "100 % on disks).",
            "The {device} is {busy} % busy during {operation} with {count} ranks (Zeng et al.: about 20 % on SSDs, "
            "100 % on disks).",
            int(ranks),
            device=gettext(device),
            busy=f"{cell.median:.0f}",
            operation=operation_of(busiest),
        )
        needs = gettext("at least {blocks} blocks", blocks=smallest_runs(results.confidence))
        of = gettext("share of time in which the device was busy")
        return [self.estimated("device", text, (busiest.id,), interval_in(cell), of, "%", needs)]

    def questions(self, results: Results) -> Sequence[Question]:
        ranks = results.levels("ranks")
        if not ranks:
            return []
        questions: list[Question] = []
        for operation in _COMPARED:
            unique, shared = (
                results.where(operation=operation, ranks=ranks[-1], directory=directory)
                for directory in ("unique", "shared")
            )
            one, several = "directories, {operation} by {count} rank", "directories, {operation} by {count} ranks"
            title = ngettext(one, several, int(ranks[-1]), operation=operation)
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

    def summaries(self, results: Results) -> Sequence[Finding]:
        ranks = results.levels("ranks")
        return self._busy(results, ranks[-1]) if ranks else []

    def means(self, results: Results) -> Mapping[str, tuple[str, Sequence[Measured]]]:
        means = {}
        for ranks in reversed(results.levels("ranks")):
            six = [cell for name in SIX for cell in results.where(operation=name, ranks=ranks, directory="unique")]
            if len(six) == len(SIX):
                one, several = "mean of the six operations, {count} rank", "mean of the six operations, {count} ranks"
                title = ngettext(one, several, int(ranks))
                means[str(ranks)] = title, six
        return means

    def headlines(self, results: Results) -> Sequence[Headline]:
        ranks = results.levels("ranks")
        one, several = "{operation} ({count} rank)", "{operation} ({count} ranks)"
        return [
            Headline(ngettext(one, several, int(ranks[-1]), operation=operation), cell.id)
            for operation in _COMPARED
            for cell in (results.where(operation=operation, ranks=ranks[-1], directory="unique") if ranks else ())
            if not from_memory(cell, results.facts)
        ]


def _in_order(name: str, cells: Sequence[Measured]) -> Series:
    order = [*OPERATIONS, *_TITLES.values()]
    return bars(name, sorted(cells, key=lambda cell: order.index(str(cell.settings["operation"]))))
