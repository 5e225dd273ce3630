"""writers: bandwidth by number of writers that gather the data of other ranks. Source: Tian et al. (2020)."""

from __future__ import annotations

from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import KIB, MIB, format_bytes
from strakes.model.answers import Question
from strakes.model.cell import Cell
from strakes.model.phases import TransferPhase
from strakes.model.portrait import Figure, Setting, SkippedCell
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, ask_level, lines
from strakes.studies.study import Cells, Context, Study, power_of_two_at_most
from strakes.targets.description import Layout

_SIZES = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB)
# Compared numbers of ranks, and bytes per rank while the number of ranks or the stripe count varies.
_TEAMS, _TEAM_BYTES = (4, 64), MIB


class Writers(Study):
    """Bandwidth if a few ranks gather the data of all others and write a file each. The time includes gathering."""

    name = "writers"
    title = "Writers"
    question = "How many processes of a node should write, depending on how much data each has?"
    source = "S1"

    def cells(self, context: Context) -> Cells:
        ranks = each = 16
        if len(context.nodes) > 1:
            each = power_of_two_at_most(min(context.nodes.values()))
            ranks = each * len(context.nodes)
        levels: list[tuple[int, int, int, Layout | None]] = [(ranks, each, size, None) for size in _SIZES]
        if context.striping is not None and context.striping.data_targets > 1:
            levels += [(ranks, each, _TEAM_BYTES, Layout(MIB, count)) for count in (1, context.striping.data_targets)]
        if each == ranks:
            levels += [(team, team, _TEAM_BYTES, None) for team in _TEAMS]
        return [
            self._cell(context, writers, *level)
            for level in levels
            for writers in [2**power for power in range(level[1].bit_length())]
        ]

    def _cell(
        self, context: Context, writers: int, ranks: int, each: int, size: int, layout: Layout | None
    ) -> Cell | SkippedCell:
        settings: dict[str, Setting] = {"writers": writers, "data_bytes": size, "ranks": ranks}
        key = f"{size}-of-{ranks}/{writers}"
        if layout is not None:
            settings["stripe_count"] = layout.stripe_count or 1
            key += f"-on-{layout.stripe_count}"
        if ranks * size > context.max_bytes:
            return self.skipped(f"{format_bytes(ranks * size)} are more than strakes may use here", **settings)
        phase = TransferPhase(
            "write",
            "write",
            "file-per-process" if writers == each else "file-per-writer",
            "segmented",
            min(size, MIB),
            size,
            writers=0 if writers == each else writers,
            sync="fsync",
            stop=context.stonewall(),
        )
        per_node = each if each < ranks else None
        return self.cell(context, key, settings, (phase,), WRITE_AND_READ[:1], ranks_per_node=per_node, layout=layout)

    def figures(self, results: Results) -> Sequence[Figure]:
        text = gettext(
            "Tian et al. (2020) advise at most 1,000 writers in total, at most 16 times the stripe count, and about "
            "8 per node; with 1 GiB per process, 256 writers were best"
        )
        writers = gettext("writers of each node") if results.facts.get("nodes") else gettext("writers of this node")
        drawn = lines("writers", ((_title(cells[0]), cells) for cells in _groups(results)))
        y = gettext("bandwidth of all ranks"), "B/s"
        return [self.figure(drawn, (writers, "", "log"), y, self.published(text, 8, 32))]

    def questions(self, results: Results) -> Sequence[Question]:
        questions = []
        for cells in _groups(results):
            of, name = cells[0].settings, cells[0].id.split("/")[1]
            if "stripe_count" in of:
                name += f"-stripe-count-{of['stripe_count']}"
            title = gettext("writers, {work}", work=_title(cells[0]))
            questions += ask_level(self.name, name, title, cells, "writers")
        everybody = [
            cell
            for cell in results.where(data_bytes=_TEAM_BYTES)
            if cell.settings["writers"] == cell.settings["ranks"] and "stripe_count" not in cell.settings
        ]
        title = gettext("ranks that write {size} each", size=format_bytes(_TEAM_BYTES))
        return [*questions, *ask_level(self.name, "all-ranks", title, everybody, "ranks")]


def _groups(results: Results) -> list[list[Measured]]:
    groups: dict[tuple[Setting | None, ...], list[Measured]] = {}
    for cell in results.where():
        others = tuple(cell.settings.get(name) for name in ("data_bytes", "ranks", "stripe_count"))
        groups.setdefault(others, []).append(cell)
    return list(groups.values())


def _title(cell: Measured) -> str:
    return gettext(
        "{size} of each of {ranks} ranks, stripe count {stripe_count}"
        if "stripe_count" in cell.settings
        else "{size} of each of {ranks} ranks",
        size=format_bytes(float(cell.settings["data_bytes"])),
        ranks=cell.settings["ranks"],
        stripe_count=cell.settings.get("stripe_count"),
    )
