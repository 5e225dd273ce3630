"""startup-load, restart-dump: common I/O strategies of applications, and alternatives. Source: Tian et al. (2020)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from strakes.base.language import gettext, ngettext
from strakes.base.units import KIB, MIB
from strakes.model.answers import Question
from strakes.model.cell import Cell, Measure
from strakes.model.phases import Sharing, StagePhase, TransferPhase
from strakes.model.plan import Phase
from strakes.model.portrait import Figure, Series, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import ask, bandwidths, bars
from strakes.studies.study import BANDWIDTH, Cells, Context, Study
from strakes.targets.description import Layout


class _Scenario(Study):
    source = "S1"
    names: ClassVar[Mapping[str, str]]
    numbers: ClassVar[Mapping[bool, tuple[str, str]]]
    titles: ClassVar[Mapping[str, str]]
    striped: ClassVar[Sequence[str]]

    @abstractmethod
    def ways(self, context: Context) -> Iterable[str]:
        """Return the names of the I/O strategies to measure with the default layout."""

    @abstractmethod
    def work(self, context: Context, way: str) -> tuple[dict[str, Setting], Sequence[Phase], Sequence[Measure]]:
        """Return the settings, the phases and the measures of an I/O strategy."""

    def cells(self, context: Context) -> Cells:
        for way in self.ways(context):
            yield self._cell(context, way, None)
        if context.striping is None or context.striping.data_targets < 2:
            reason = context.no_striping or "there are fewer than two data targets to spread a file over"
            yield self.skipped(reason, way="all data targets")
            return
        for stripes in (1, context.striping.data_targets):
            for way in self.striped:
                if int(way) <= context.crowd:
                    yield self._cell(context, way, stripes)

    def _cell(self, context: Context, way: str, stripes: int | None) -> Cell:
        settings, phases, measures = self.work(context, way)
        if stripes is None:
            return self.cell(context, way, settings, phases, measures)
        layout = Layout(stripe_size_bytes=MIB, stripe_count=stripes)
        settings["stripe_count"] = stripes
        return self.cell(context, f"{way}-on-{stripes}", settings, phases, measures, layout=layout)

    def label(self, cell: Measured, results: Results) -> str:
        name, _, stripes = _key(cell).partition("-on-")
        if name in self.names:
            way = gettext(self.names[name])
        else:
            way = ngettext(*self.numbers[bool(results.facts.get("nodes"))], int(name))
        return gettext("{way}, stripe count {stripe_count}", way=way, stripe_count=stripes) if stripes else way

    def bars(self, results: Results) -> list[Series]:
        return [
            bars(gettext(operation), results.where(operation=operation), lambda cell: self.label(cell, results))
            for operation in self.titles
        ]

    def questions(self, results: Results) -> Sequence[Question]:
        questions = []
        for operation, title in self.titles.items():
            options = [(self.label(cell, results), [cell]) for cell in results.where(operation=operation)]
            keys = [_key(cells[0]) for _, cells in options]
            usual = options[keys.index("0")] if "0" in keys else ("", [])
            options.sort(key=lambda option: option is not usual)
            questions += ask(self.name, f"best-{title}", gettext(title), options)
            for label, cells in options[1:]:
                name = f"{cells[0].id.split('/', 1)[1]}-speed-up"
                speed_up = gettext("{title}: speed-up", title=gettext(title))
                questions += ask(self.name, name, speed_up, [usual, (label, cells)], advises=False)
        return questions


class StartupLoad(_Scenario):
    """Rate at which all ranks get the input, if every rank reads it, or if a few ranks read and broadcast it."""

    name = "startup-load"
    title = "Start-up load, before and after"
    question = "How much sooner do all ranks have their common input if few ranks read it and pass it on?"
    names: ClassVar = {"0": "every rank reads"}
    numbers: ClassVar = {
        False: ("{count} reader of this node, passed on", "{count} readers of this node, passed on"),
        True: ("{count} reader of each node, passed on", "{count} readers of each node, passed on"),
    }

    titles: ClassVar = {"read": "reading the input of all ranks"}
    striped: ClassVar = ("0", "1")

    def ways(self, context: Context) -> Iterable[str]:
        return map(str, range(min(2, context.crowd) + 1))

    def work(self, context: Context, way: str) -> tuple[dict[str, Setting], Sequence[Phase], Sequence[Measure]]:
        ranks, readers = context.crowd, int(way)
        nodes = max(1, len(context.nodes))
        amount = max(
            64 * KIB, min(context.amount_bytes(ranks * nodes, 8 * MIB // nodes), context.memory_bytes // (16 * ranks))
        )
        if amount > MIB:
            amount -= amount % MIB
        transfer = min(MIB, amount)
        make = TransferPhase(
            "make", "write", "shared-file", "segmented", transfer, amount, sync="fsync", direct=context.bypasses_cache
        )
        load = StagePhase("load", transfer, readers_per_node=readers, broadcast=readers > 0, cache="drop")
        measures = (Measure("load", "bytes_per_s", {"operation": "read"}),)
        return {"ranks": ranks, "readers": readers * nodes or ranks}, (make, load), measures

    def figures(self, results: Results) -> Sequence[Figure]:
        theirs = gettext(
            "Tian et al. (2020): with 16 stripes instead of 1 and one reader per node, 4,096 cores got their input in "
            "5 s instead of 10 min"
        )
        y = gettext("input delivered"), "B/s"
        return [self.figure(self.bars(results), (gettext("way"), "", "category"), y, self.published(theirs))]


class RestartDump(_Scenario):
    """Bandwidth of a restart dump by every rank or by a few writers, to one shared file or to a file per rank."""

    name = "restart-dump"
    title = "Restart dump, before and after"
    question = "How much sooner is the state of all ranks saved with few writers and more data targets?"
    names: ClassVar = {"0": "every rank writes for itself", "own": "a file for each process"}
    numbers: ClassVar = {
        False: ("{count} writer of this node", "{count} writers of this node"),
        True: ("{count} writer of each node", "{count} writers of each node"),
    }

    titles: ClassVar = {"dump": "writing restart dumps", "restart": "reading restart dumps"}
    striped: ClassVar = ("0", "2")

    def ways(self, context: Context) -> Iterable[str]:
        return ("0", "own", *(str(writers) for writers in (1, 2, 4, 8) if writers < context.crowd))

    def work(self, context: Context, way: str) -> tuple[dict[str, Setting], Sequence[Phase], Sequence[Measure]]:
        ranks, stop, own = context.crowd, context.stonewall(), way == "own"
        writers, amount = 0 if own else int(way), context.amount_bytes(ranks)
        transfer = min(MIB, max(64 * KIB, amount))
        files: Sharing = "file-per-process" if own else "shared-file"
        dump = TransferPhase(
            "dump", "write", files, "segmented", transfer, amount, writers=writers, sync="fsync", stop=stop
        )
        load = TransferPhase("restart", "read", files, "segmented", transfer, amount, cache="drop", stop=stop)
        settings: dict[str, Setting] = {"ranks": ranks, "writers": writers or ranks}
        settings["files"] = "own" if own else "shared"
        return settings, (dump, *context.uncached(load)), bandwidths(*self.titles)

    def figures(self, results: Results) -> Sequence[Figure]:
        theirs = gettext(
            "Tian et al. (2020): with 16 stripes instead of 4 and 8 writers per node, 8,192 processes needed 15 % less "
            "time"
        )
        return [self.figure(self.bars(results), (gettext("way"), "", "category"), BANDWIDTH, self.published(theirs))]


def _key(cell: Measured) -> str:
    return cell.id.rpartition("/")[2].partition(":")[0]
