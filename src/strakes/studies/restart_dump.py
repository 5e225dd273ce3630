"""restart-dump: dump and reload the state of all ranks, by writers and layout. Second case of Tian et al. (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.phases import Sharing, TransferPhase
from strakes.model.portrait import Figure, Headline, Setting
from strakes.model.results import Results
from strakes.studies.compose import bandwidths, bars, uncached
from strakes.studies.scenario import Scenario
from strakes.studies.study import BANDWIDTH, Cells, Context

_WRITERS = (1, 2, 4, 8)
# Titles of questions, by operation.
_TITLES = {"dump": "writing restart dumps", "restart": "reading restart dumps"}


class RestartDump(Scenario):
    """Bandwidth of writing and reading a dump: by every rank or few writers, in one shared file or a file per rank."""

    name = "restart-dump"
    title = "Restart dump, before and after"
    question = "How much sooner is the state of all ranks saved with few writers and more data targets?"
    names: ClassVar = {"0": "every rank writes for itself", "own": "a file for each process"}
    numbers: ClassVar = {
        False: ("{count} writer of this node", "{count} writers of this node"),
        True: ("{count} writer of each node", "{count} writers of each node"),
    }

    def cells(self, context: Context) -> Cells:
        """Return a cell for each way to write a dump: numbers of writers, and layouts if they can be set."""
        yield self._cell(context, 0)
        yield self._cell(context, 0, own=True)
        for writers in _WRITERS:
            if writers < context.crowd:
                yield self._cell(context, writers)
        if context.striping is None or context.striping.data_targets < 2:
            reason = context.no_striping or "there are fewer than two data targets to spread a file over"
            yield self.skipped(reason, way="on all data targets")
            return
        for stripes in (1, context.striping.data_targets):
            for writers in (0, 2):
                if writers <= context.crowd:
                    yield self._cell(context, writers, stripes)

    def _cell(self, context: Context, writers: int, stripes: int | None = None, *, own: bool = False) -> Cell:
        ranks, stop = context.crowd, context.stonewall()
        amount = context.amount_bytes(ranks)
        transfer = min(MIB, max(64 * KIB, amount))
        files: Sharing = "file-per-process" if own else "shared-file"
        dump = TransferPhase(
            "dump", "write", files, "segmented", transfer, amount, writers=writers, sync="fsync", stop=stop
        )
        load = TransferPhase("restart", "read", files, "segmented", transfer, amount, cache="drop", stop=stop)
        settings: dict[str, Setting] = {
            "ranks": ranks,
            "writers": writers or ranks,
            "files": "own" if own else "shared",
        }
        phases = (dump, *uncached(context, load))
        return self.way(context, "own" if own else f"{writers}", settings, phases, bandwidths(*_TITLES), stripes)

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the bandwidth of dump and restart for each way, with the published gain."""
        drawn = [
            bars(gettext(operation), results.where(operation=operation), lambda cell: self.label(cell, results))
            for operation in _TITLES
        ]
        theirs = gettext(
            "Tian et al. (2020): stripe count 16, not 4, and 8 writers per node saved 8,192 processes 15 % of the time"
        )
        return [self.figure(drawn, (gettext("way"), "", "category"), BANDWIDTH, self.published(theirs))]

    def questions(self, results: Results) -> Sequence[Question]:
        """Return the questions which way is fastest, and how much faster each way is than the usual way."""
        return [
            question for operation, title in _TITLES.items() for question in self.ask_way(title, operation, results)
        ]

    def headlines(self, results: Results) -> Sequence[Headline]:
        """Return the rate of a dump if every rank writes its part itself."""
        return [
            Headline(gettext("restart dump, every rank for itself"), cell.id) for cell in self.usual(results, "dump")
        ]
