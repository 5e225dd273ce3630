"""target-baseline: rate of each target alone, to find slow or broken ones. Source: Booher and Kulkarni, step 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from strakes.base.language import gettext
from strakes.base.units import MIB
from strakes.model.answers import Claim, Part
from strakes.model.cell import Cell, Place
from strakes.model.phases import AMOUNT, MetadataOperation, MetadataPhase
from strakes.model.portrait import Figure, Setting
from strakes.model.results import Measured, Results
from strakes.studies.compose import WRITE_AND_READ, bars, operation_of, rates
from strakes.studies.study import BANDWIDTH, OPERATIONS, Cells, Context, Study
from strakes.targets.description import Description, Layout, Placement, StorageTarget

# A target is slow below this share of the other targets' rate. At 0.9, equal targets would look slow under load.
SLOW_SHARE = 0.8
_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-remove")
_STATEMENTS = {
    "metadata": "The metadata target {target} is at least {share} times as fast as the others",
    "data": "The data target {target} is at least {share} times as fast as the others",
}


class TargetBaseline(Study):
    """Rates of the same work on each target alone, and a comparison of each target with all other targets."""

    name = "target-baseline"
    title = "Each target alone"
    question = "Is any metadata or data target slower than the others?"
    source = "S4"
    needs_description = True

    def cells(self, context: Context) -> Cells:
        parts = context.description or Description("", "")
        metadata = [(part.name, part.index) for part in parts.metadata_targets if part.index is not None]
        for kind, number in (("metadata", len(metadata)), ("data", len(parts.data_targets))):
            if number < 2:
                seen = f"{number or 'none'} is visible here ({context.file_system})"
                yield self.skipped(f"two or more {kind} targets are needed; {seen}", kind=kind)
        for name, index in metadata if len(metadata) >= 2 else ():
            yield self._metadata_cell(context, name, index)
        for target in parts.data_targets if len(parts.data_targets) >= 2 else ():
            layout = layout_on(target, parts, context.file_system)
            if layout is None:
                reason = "files cannot be put on this target alone, because no pool contains only this target"
                yield self.skipped(reason, kind="data", target=target.name)
                continue
            amount, stop = context.amount_bytes(context.team), context.stonewall(1)
            settings: dict[str, Setting] = {"kind": "data", "target": target.name, "ranks": context.team}
            phases = context.write_and_read(min(MIB, amount), amount, stop=stop)
            yield self.cell(context, f"data/{target.name}", settings, phases, WRITE_AND_READ, layout=layout)

    def _metadata_cell(self, context: Context, name: str, index: int) -> Cell:
        ranks, items = context.team, context.items(context.team)
        stop = context.stonewall(1)
        phases = tuple(
            # Clients cache the attributes of their own files, so each rank stats the files of another rank.
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
        place = Place(
            placement=Placement("manual", (index,)),
            entries={f"items.{rank}.tree": Placement("inherit") for rank in range(ranks)},
            kept=f"metadata-{index}",
        )
        settings: dict[str, Setting] = {"kind": "metadata", "target": name, "ranks": ranks}
        return self.cell(context, f"metadata/{name}", settings, phases, rates(*_OPERATIONS), place=place)

    def figures(self, results: Results) -> Sequence[Figure]:
        theirs = gettext("in Booher and Kulkarni, all five metadata targets were equally fast")
        return [
            self.figure(
                [bars(operation_of(cells[0]), cells, _target_of) for cells in _by_operation(results, kind)],
                (x, "", "category"),
                y,
                self.published(theirs),
                title=title,
            )
            for kind, title, x, y in (
                ("metadata", gettext("Each metadata target alone"), gettext("metadata target"), OPERATIONS),
                ("data", gettext("Each data target alone"), gettext("data target"), BANDWIDTH),
            )
            if results.where(kind=kind)
        ]

    def claims(self, results: Results) -> Sequence[Claim]:
        return [claim for kind in ("metadata", "data") for claim in self._of_kind(kind, results)]

    def _of_kind(self, kind: str, results: Results) -> list[Claim]:
        targets = list(dict.fromkeys(map(_target_of, results.where(kind=kind))))
        if len(targets) < 2:
            return []
        claims = []
        for target in targets:
            parts = []
            for cells in _by_operation(results, kind):
                own = tuple(cell.id for cell in cells if _target_of(cell) == target)
                others = tuple(cell.id for cell in cells if len(targets) > 2 or _target_of(cell) != target)
                if own and others:
                    parts.append(Part(operation_of(cells[0]), own, others, SLOW_SHARE, math.inf))
            statement = gettext(_STATEMENTS[kind], target=target, share=SLOW_SHARE)
            claims.append(Claim(f"{self.name}-{kind}-{target}", self.name, statement, tuple(parts)))
        return claims


def _target_of(cell: Measured) -> str:
    return str(cell.settings["target"])


def _by_operation(results: Results, kind: str) -> list[list[Measured]]:
    operations = dict.fromkeys(cell.settings["operation"] for cell in results.where(kind=kind))
    return [results.where(kind=kind, operation=operation) for operation in operations]


def layout_on(target: StorageTarget, parts: Description, file_system: str) -> Layout | None:
    """Return a layout that puts files only on this target, or None if there is none.

    On Lustre, the layout names the target's index. On other file systems, it names a pool with only this target.
    """
    if file_system == "lustre" and target.index is not None:
        return Layout(stripe_count=1, first_target=target.index)
    for pool in target.pools:
        if sum(pool in other.pools for other in parts.data_targets) == 1:
            return Layout(pool=pool)
    return None
