"""startup-load: load one input into all ranks, by readers and layout. First case of Tian et al. (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import StagePhase, TransferPhase
from strakes.model.portrait import Figure, Headline
from strakes.model.results import Results
from strakes.studies.compose import bars, bypasses_cache
from strakes.studies.scenario import Scenario
from strakes.studies.study import Cells, Context


class StartupLoad(Scenario):
    """Input bytes delivered per second, read by every rank or broadcast by few readers. The page cache is dropped."""

    name = "startup-load"
    title = "Start-up load, before and after"
    question = "How much sooner do all ranks have their common input if few ranks read it and pass it on?"
    names: ClassVar = {"0": "every rank reads"}
    numbers: ClassVar = {
        False: ("{count} reader of this node, passed on", "{count} readers of this node, passed on"),
        True: ("{count} reader of each node, passed on", "{count} readers of each node, passed on"),
    }

    def cells(self, context: Context) -> Cells:
        """Return a cell for each way to load the input: numbers of readers, and layouts if they can be set."""
        ranks = context.crowd
        # Every rank holds the whole input in memory, and every node receives it.
        nodes = max(1, len(context.nodes))
        amount = max(
            64 * KIB, min(context.amount_bytes(ranks * nodes, 8 * MIB // nodes), context.memory_bytes // (16 * ranks))
        )
        if amount > MIB:
            amount -= amount % MIB
        for readers in range(min(2, ranks) + 1):
            yield self._cell(context, ranks, amount, readers)
        if context.striping is None or context.striping.data_targets < 2:
            reason = context.no_striping or "there are fewer than two data targets to spread a file over"
            yield self.skipped(reason, way="from all data targets")
            return
        for stripes in (1, context.striping.data_targets):
            for readers in (0, 1):
                yield self._cell(context, ranks, amount, readers, stripes)

    def _cell(self, context: Context, ranks: int, amount: int, readers: int, stripes: int | None = None) -> Cell:
        transfer = min(MIB, amount)
        make = TransferPhase(
            "make", "write", "shared-file", "segmented", transfer, amount, sync="fsync", direct=bypasses_cache(context)
        )
        load = StagePhase("load", transfer, readers_per_node=readers, broadcast=readers > 0, cache="drop")
        settings = {"ranks": ranks, "readers": readers * max(1, len(context.nodes)) or ranks}
        measures = (Measure("load", "bytes_per_s", {"operation": "read"}),)
        return self.way(context, f"{readers}", settings, (make, load), measures, stripes)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the input bytes delivered per second for each way of reading, with the published gain."""
        line = bars(gettext("input to all ranks"), results.where(), lambda cell: self.label(cell, results))
        theirs = gettext(
            "Tian et al. (2020): 16 stripes, not 1, and one reader per node: 5 seconds, not 10 minutes, for 4,096 cores"
        )
        y = gettext("input delivered"), "B/s"
        return [self.figure([line], (gettext("way"), "", "category"), y, self.published(theirs))]

    def questions(self, results: Results) -> Sequence[Question]:
        """Return the questions which way is fastest, and how much faster each way is than reading by every rank."""
        return self.ask_way("reading the input of all ranks", "read", results)

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate if every rank reads the input itself."""
        return [
            Headline(gettext("input to all ranks, each reading it"), cell.id) for cell in self.usual(results, "read")
        ]
