"""Pair the figures of another tool with figures of strakes for the same work. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.base.language import gettext
from strakes.model.cell import Cell, Measure
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.portrait import Setting
from strakes.survey.compare_work import in_both
from strakes.survey.comparison import Unlike

_ABOUT_AS_MANY = 1.1
# Name in other tools -> name in plans.
_LAYOUTS = {"single-shared-file": "shared-file", "shared": "shared-file"}


def beside_imported(a: Sequence[Cell], b: Sequence[Cell]) -> tuple[list[tuple[Cell, Cell]], list[Unlike]]:
    """Return pairs of cells with one measure each, and figures without a counterpart.

    One of the two runs is imported: its figures have the names of phases, and the settings that the tool printed. The
    figures of a pair have the same name and agree in all settings that both have.
    """
    first, second = _single(a), _single(b)
    pairs: list[tuple[Cell, Cell]] = []
    unlike: list[Unlike] = []
    taken: set[int] = set()
    for cell in first:
        named = [other for other in second if other.measures[0].phase == cell.measures[0].phase]
        alike = [other for other in named if not _differences(cell, other)]
        if len(alike) == 1:
            pairs.append((cell, alike[0]))
            taken.add(id(alike[0]))
        elif alike:
            why = gettext("{count} figures of the other run have these settings", count=len(alike))
            unlike.append(Unlike(cell.key, why))
        else:
            why = "; ".join(_differences(cell, named[0])) if named else gettext("only in A")
            unlike.append(Unlike(cell.key, why))
            taken.update(id(other) for other in named)
    unlike += [
        Unlike(other.measure_id(other.measures[0].phase), gettext("only in B"))
        for other in second
        if id(other) not in taken
    ]
    return pairs, unlike


def _single(cells: Sequence[Cell]) -> list[Cell]:
    """Return a cell with one measure for each figure."""
    return [
        Cell(**{**vars(cell), "measures": (measure,)})
        for cell in cells
        for measure in cell.measures
        if not measure.is_side
    ]


def _differences(own: Cell, other: Cell) -> list[str]:
    ours, theirs = _facts(own, own.measures[0]), _facts(other, other.measures[0])
    return [
        in_both(key, ours[key], theirs[key])
        for key in ours
        if key in theirs and not _agree(key, ours[key], theirs[key])
    ]


def _agree(key: str, ours: Setting, theirs: Setting) -> bool:
    """Return whether both settings agree; a tree of directories may hold slightly fewer files than requested."""
    if key != "items":
        return ours == theirs
    return max(float(ours), float(theirs)) <= _ABOUT_AS_MANY * min(float(ours), float(theirs))


def _facts(cell: Cell, measure: Measure) -> Mapping[str, Setting]:
    """Return the known settings of a figure; for an imported one, the settings that its tool printed."""
    if cell.imported:
        facts = {key: cell.settings[key] for key in _TOLD if key in cell.settings}
        layout = str(facts.get("layout", ""))
        return {**facts, **({"layout": _LAYOUTS.get(layout, layout)} if layout else {}), "unit": measure.metric}
    phase, ranks = next((phase, ranks) for phase, ranks in cell.plan.each() if phase.name == measure.phase)
    facts = {"ranks": ranks, "unit": measure.metric}
    # If a phase ends by time, its amount of work is not a setting.
    by_amount = isinstance(phase, TransferPhase | MetadataPhase) and phase.stop.rule == "amount"
    if isinstance(phase, TransferPhase) and not by_amount:
        return {**facts, "transfer_bytes": phase.transfer_bytes, "layout": phase.layout}
    if isinstance(phase, TransferPhase):
        sizes = {"transfer_bytes": phase.transfer_bytes, "block_bytes": phase.block_bytes, "segments": phase.segments}
        return {**facts, **sizes, "layout": phase.layout}
    return {**facts, "items": phase.items * ranks} if isinstance(phase, MetadataPhase) and by_amount else facts


_TOLD = ("ranks", "transfer_bytes", "block_bytes", "segments", "layout", "items")
