"""restart-dump: dump and reload the state of all ranks, by number of writers and by layout. S1's second proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Headline, Point, Reference, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import uncached
from strakes.studies.scenario import ask_way, way_of
from strakes.studies.study import BANDWIDTH, Context, Study
from strakes.targets.description import Layout

_BEFORE, _OWN = "every rank writes for itself", "a file for each process"
_WRITERS = (1, 2, 4, 8)
# Labels of ways: of every rank, by the key of the cell, and of few writers of a node.
_EVERYBODY = {"0": _BEFORE, "own": _OWN}
_FEW = {
    False: ("{count} writer of this node", "{count} writers of this node"),
    True: ("{count} writer of each node", "{count} writers of each node"),
}


class RestartDump(Study):
    """Bandwidth of writing and reading back a dump: every rank or few writers, one shared file or one per rank."""

    name = "restart-dump"
    title = "Restart dump, before and after"
    question = "How much sooner is the state of all ranks saved with few writers and more data targets?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each way to write a dump: numbers of writers, and layouts if they can be set."""
        ranks = context.crowd
        amount = context.amount_bytes(ranks)
        cells: list[Cell | SkippedCell] = [
            self._cell(context, ranks, amount, 0, None),
            self._cell(context, ranks, amount, 0, None, own=True),
        ]
        cells += [self._cell(context, ranks, amount, writers, None) for writers in _WRITERS if writers < ranks]
        if context.striping is None or context.striping.data_targets < 2:
            reason = context.no_striping or "there are fewer than two data targets to spread a file over"
            cells.append(self.skipped(reason, way="on all data targets"))
        else:
            every = Layout(stripe_size_bytes=MIB, stripe_count=context.striping.data_targets)
            single = Layout(stripe_size_bytes=MIB, stripe_count=1)
            cells += [
                self._cell(context, ranks, amount, writers, layout)
                for layout in (single, every)
                for writers in (0, 2)
                if writers <= ranks
            ]
        return cells

    def _cell(
        self, context: Context, ranks: int, amount: int, writers: int, layout: Layout | None, *, own: bool = False
    ) -> Cell:
        transfer = min(MIB, max(64 * KIB, amount))
        stop = context.stonewall()
        files: Literal["file-per-process", "shared-file"] = "file-per-process" if own else "shared-file"
        dump = TransferPhase(
            "dump", "write", files, "segmented", transfer, amount, writers=writers, sync="fsync", stop=stop
        )
        load = TransferPhase("restart", "read", files, "segmented", transfer, amount, cache="drop", stop=stop)
        everybody = _OWN if own else _BEFORE
        way = f"{writers} writer{'s' if writers > 1 else ''} of {context.whose}" if writers else everybody
        key = f"{self.name}/{'own' if own else writers}"
        settings: dict[str, Setting] = {"ranks": ranks, "writers": writers or ranks}
        if layout is not None:
            way += f", stripe count {layout.stripe_count}"
            key += f"-on-{layout.stripe_count}"
            settings["stripe_count"] = layout.stripe_count or 1
        measures = (
            Measure("dump", "bytes_per_s", {"operation": "dump"}),
            Measure("restart", "bytes_per_s", {"operation": "restart"}),
        )
        return Cell(
            self.name,
            key,
            {**settings, "way": way},
            Plan(ranks, (dump, *uncached(context, load)), context.seed),
            measures,
            layout=layout,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the bandwidth of dump and restart for each way, with S1's gain."""
        lines = tuple(
            Series(
                gettext(operation),
                tuple(Point(_way(cell, results), cell.id) for cell in results.where(operation=operation)),
            )
            for operation in ("dump", "restart")
        )
        theirs = Reference(
            "S1",
            gettext(
                "S1: stripe count 4 to 16 and 8 writers per node took 15 % off the time at 8,192 processes (1.18 times)"
            ),
        )
        return [self.figure(lines, (gettext("way"), "", "category"), BANDWIDTH, theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask which way is fastest to dump and to restart, and how much faster each way is than the usual one."""
        return [
            question
            for operation, title in (("dump", "writing restart dumps"), ("restart", "reading restart dumps"))
            for question in ask_way(self.name, title, *_sides(results, operation), lambda cell: _way(cell, results))
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of a dump that every rank writes itself."""
        before, _ = _sides(results, "dump")
        return [Headline(gettext("restart dump, every rank for itself"), cell.id) for cell in before]


def _way(cell: Measured, results: Results) -> str:
    return way_of(cell, results, _EVERYBODY, _FEW)


def _sides(results: Results, operation: str) -> tuple[list[Measured], list[Measured]]:
    """Return the cells of the usual way, and the cells of all others."""
    cells = results.where(operation=operation)
    usual = [cell for cell in cells if cell.settings["way"] == _BEFORE]
    return usual, [cell for cell in cells if cell not in usual]
