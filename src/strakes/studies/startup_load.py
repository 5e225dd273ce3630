"""startup-load: load one input into all ranks, by number of readers and by layout. S1's first proof."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import StagePhase, TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Headline, Point, Reference, Series, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import bypasses_cache
from strakes.studies.scenario import ask_way, way_of
from strakes.studies.study import Context, Study
from strakes.targets.description import Layout

_TITLE = "reading the input of all ranks"
_BEFORE = "every rank reads"
# Labels of ways: of every rank, by the key of the cell, and of few readers of a node.
_EVERYBODY = {"0": _BEFORE}
_FEW = {
    False: ("{count} reader of this node, passed on", "{count} readers of this node, passed on"),
    True: ("{count} reader of each node, passed on", "{count} readers of each node, passed on"),
}


class StartupLoad(Study):
    """Input delivered per second: every rank reads it, or few readers broadcast it. The page cache is dropped first."""

    name = "startup-load"
    title = "Start-up load, before and after"
    question = "How much sooner do all ranks have their common input if few ranks read it and pass it on?"
    source = "S1"

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each way to load the input: numbers of readers, and layouts if they can be set."""
        ranks = context.crowd
        # Every rank holds the whole input in memory, and every node receives it.
        nodes = max(1, len(context.nodes))
        amount = max(
            64 * KIB, min(context.amount_bytes(ranks * nodes, 8 * MIB // nodes), context.memory_bytes // (16 * ranks))
        )
        if amount > MIB:
            amount -= amount % MIB
        ways: list[tuple[int, Layout | None]] = [(readers, None) for readers in (0, 1, 2) if readers <= ranks]
        cells: list[Cell | SkippedCell] = []
        if context.striping is None or context.striping.data_targets < 2:
            reason = context.no_striping or "there are fewer than two data targets to spread a file over"
            cells.append(self.skipped(reason, way="from all data targets"))
        else:
            stripes = (
                Layout(stripe_size_bytes=MIB, stripe_count=count) for count in (1, context.striping.data_targets)
            )
            ways += [(readers, layout) for layout in stripes for readers in (0, 1)]
        return [*(self._cell(context, ranks, amount, readers, layout) for readers, layout in ways), *cells]

    def _cell(self, context: Context, ranks: int, amount: int, readers: int, layout: Layout | None) -> Cell:
        transfer = min(MIB, amount)
        make = TransferPhase(
            "make", "write", "shared-file", "segmented", transfer, amount, sync="fsync", direct=bypasses_cache(context)
        )
        load = StagePhase("load", transfer, readers_per_node=readers, broadcast=readers > 0, cache="drop")
        way = f"{readers} reader{'s' if readers > 1 else ''} of {context.whose}, passed on" if readers else _BEFORE
        key = f"{self.name}/{readers}"
        settings: dict[str, Setting] = {"ranks": ranks, "readers": readers * max(1, len(context.nodes)) or ranks}
        if layout is not None:
            way += f", stripe count {layout.stripe_count}"
            key += f"-on-{layout.stripe_count}"
            settings["stripe_count"] = layout.stripe_count or 1
        measures = (Measure("load", "bytes_per_s", {"operation": "read"}),)
        return Cell(
            self.name, key, {**settings, "way": way}, Plan(ranks, (make, load), context.seed), measures, layout=layout
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the input delivered per second for each way, with S1's gain."""
        points = tuple(Point(_way(cell, results), cell.id) for cell in results.where())
        theirs = Reference(
            "S1",
            gettext(
                "S1: stripe count 1 to 16 and one reader per node: 10 minutes became 5 seconds, 4,096 cores (120 times)"
            ),
        )
        x, y = gettext("way"), gettext("input delivered")
        lines = (Series(gettext("input to all ranks"), points),)
        return [self.figure(lines, (x, "", "category"), (y, "B/s"), theirs)]

    def questions(self, results: Results) -> Sequence[Question]:
        """Ask which way is fastest, and how much faster each way is than every rank reading for itself."""
        before, others = _sides(results)
        return ask_way(self.name, _TITLE, before, others, lambda cell: _way(cell, results))

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate if every rank reads the input itself."""
        before, _ = _sides(results)
        return [Headline(gettext("input to all ranks, each reading it"), cell.id) for cell in before]


def _way(cell: Measured, results: Results) -> str:
    return way_of(cell, results, _EVERYBODY, _FEW)


def _sides(results: Results) -> tuple[list[Measured], list[Measured]]:
    usual = [cell for cell in results.where() if cell.settings["way"] == _BEFORE]
    return usual, [cell for cell in results.where() if cell not in usual]
