"""target-baseline: rates of every metadata and data target alone, to find slow or broken ones. S4, step 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import MIB
from strakes.model.answers import Claim, Part
from strakes.model.cell import Cell, Measure
from strakes.model.phases import AMOUNT, MetadataOperation, MetadataPhase
from strakes.model.place import Place
from strakes.model.plan import Plan
from strakes.model.portrait import Figure, Point, Reference, Series, SkippedCell
from strakes.model.results import Results
from strakes.studies.compose import WRITE_AND_READ, write_and_read
from strakes.studies.study import Context, Study
from strakes.targets.description import DataTarget, Description, Layout, Placement

# A target below this share of the others' rate is slow. At 0.9 the test flags equal targets under load.
SLOW_SHARE = 0.8
_PAIR = 2
# Phases stop after this multiple of their planned time, so that a slow target does not use up the time of the others.
_STOP = 1
_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_STATEMENTS = {
    "metadata": "The metadata target {target} is at least {share} times as fast as the others",
    "data": "The data target {target} is at least {share} times as fast as the others",
}


class TargetBaseline(Study):
    """The same work on each target alone, and a comparison of each target with the others for each operation."""

    name = "target-baseline"
    title = "Each target alone"
    question = "Is any metadata or data target slower than the others?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Sequence[Cell | SkippedCell]:
        """Return a cell for each metadata and data target; skip a kind with fewer than two targets."""
        parts = context.description or Description("", "")
        metadata = [(part.name, part.index) for part in parts.metadata_targets if part.index is not None]
        cells: list[Cell | SkippedCell] = []
        for kind, number in (("metadata", len(metadata)), ("data", len(parts.data_targets))):
            if number < _PAIR:
                why = (
                    f"two or more {kind} targets are needed; {number or 'none'} is visible here ({context.file_system})"
                )
                cells.append(self.skipped(why, kind=kind))
        if len(metadata) >= _PAIR:
            cells += [self._metadata_cell(context, name, index) for name, index in metadata]
        for target in parts.data_targets if len(parts.data_targets) >= _PAIR else ():
            layout = layout_on(target, parts, context.file_system)
            if layout is None:
                reason = "files cannot be put on this target alone, because no pool contains only this target"
                cells.append(self.skipped(reason, kind="data", target=target.name))
            else:
                cells.append(self._data_cell(context, target.name, layout))
        return cells

    def _metadata_cell(self, context: Context, name: str, index: int) -> Cell:
        ranks, items = context.team, context.items(context.team)
        stop = context.stonewall(_STOP)
        phases = tuple(
            # Ranks stat the files of another rank, because their own client would answer for its files.
            MetadataPhase(
                operation,
                operation,
                "unique",
                items,
                rank_shift=int(operation == "file-stat"),
                stop=AMOUNT if operation == "file-remove" else stop,
            )
            for operation in _OPERATIONS
        )
        return Cell(
            self.name,
            f"{self.name}/metadata/{name}",
            {"kind": "metadata", "target": name, "ranks": ranks},
            Plan(ranks, phases, context.seed),
            tuple(Measure(phase.name, "operations_per_s", {"operation": phase.name}) for phase in phases),
            place=Place(
                placement=Placement("manual", (index,)),
                entries={f"items.{rank}.tree": Placement("inherit") for rank in range(ranks)},
                kept=f"metadata-{index}",
            ),
        )

    def _data_cell(self, context: Context, name: str, layout: Layout) -> Cell:
        ranks, amount, stop = context.team, context.amount_bytes(context.team), context.stonewall(_STOP)
        return Cell(
            self.name,
            f"{self.name}/data/{name}",
            {"kind": "data", "target": name, "ranks": ranks},
            Plan(ranks, write_and_read(context, min(MIB, amount), amount, stop=stop), context.seed),
            WRITE_AND_READ,
            layout=layout,
        )

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return one figure of the metadata targets and one of the data targets."""
        figures = []
        for kind, title, x, label, unit in (
            (
                "metadata",
                gettext("Each target alone: metadata targets"),
                gettext("metadata target"),
                gettext("operations a second"),
                "op/s",
            ),
            ("data", gettext("Each target alone: data targets"), gettext("data target"), gettext("bandwidth"), "B/s"),
        ):
            cells = results.where(kind=kind)
            lines = tuple(
                Series(
                    gettext(str(operation)),
                    tuple(
                        Point(str(cell.settings["target"]), cell.id)
                        for cell in cells
                        if cell.settings["operation"] == operation
                    ),
                )
                for operation in dict.fromkeys(cell.settings["operation"] for cell in cells)
            )
            if lines:
                text = gettext("S4 found its five metadata targets equally fast before it compared placements")
                theirs = Reference("S4", text)
                figures.append(self.figure(lines, (x, "", "category"), (label, unit), theirs, title=title))
        return figures

    def claims(self, results: Results) -> Sequence[Claim]:
        """Return a claim for each target: it reaches 0.8 of its kind's median rate, or of the only other target's."""
        return [claim for kind in ("metadata", "data") for claim in self._of_kind(kind, results)]

    def _of_kind(self, kind: str, results: Results) -> list[Claim]:
        cells = results.where(kind=kind)
        targets = list(dict.fromkeys(str(cell.settings["target"]) for cell in cells))
        operations = list(dict.fromkeys(str(cell.settings["operation"]) for cell in cells))
        if len(targets) < 2:
            return []
        claims = []
        for target in targets:
            parts = []
            for operation in operations:
                of_operation = results.where(kind=kind, operation=operation)
                own = tuple(cell.id for cell in of_operation if cell.settings["target"] == target)
                others = tuple(
                    cell.id for cell in of_operation if len(targets) > _PAIR or cell.settings["target"] != target
                )
                if own and others:
                    parts.append(Part(gettext(operation), own, others, SLOW_SHARE, math.inf))
            statement = gettext(_STATEMENTS[kind], target=target, share=SLOW_SHARE)
            claims.append(Claim(f"{self.name}-{kind}-{target}", self.name, statement, tuple(parts)))
        return claims


def layout_on(target: DataTarget, parts: Description, file_system: str) -> Layout | None:
    """Return a layout that puts files on this target alone.

    Lustre selects the target by its index, other file systems by a pool that contains only this target. Return None if
    neither is possible.
    """
    if file_system == "lustre" and target.index is not None:
        return Layout(stripe_count=1, first_target=target.index)
    for pool in target.pools:
        if sum(pool in other.pools for other in parts.data_targets) == 1:
            return Layout(pool=pool)
    return None
