"""Prepare the layouts, metadata targets and file system settings of cells, and leave out cells where this fails."""

from __future__ import annotations

import time
from dataclasses import replace

from strakes.base.errors import BadInputError, MeasurementError, StrakesError
from strakes.model.cell import Cell
from strakes.runs.records import CellSkipped, DirectoryPlaced, LayoutGiven
from strakes.studies.measure_directories import prepare, try_place
from strakes.studies.study import MORE_BUDGET
from strakes.survey.session import Session
from strakes.targets.calls import UnansweredError
from strakes.targets.description import Layout

# Maximum wait until directories have moved to their metadata targets: in seconds, and as a share of the budget.
_MOVING_S = 12.0
_MOVING_SHARE = 0.1
# After this share of the budget, leave out less important cells whose directories must be placed on metadata targets.
_PLACING_SHARE = 0.15


def make_layouts(session: Session, cells: list[Cell]) -> list[Cell]:
    """Create directories with the requested layouts. Return the measurements whose layout the file system accepted.

    The effective layouts are stored in the run. Raises MeasurementError if no measurement is left.
    """
    refused: set[Layout | None] = set()
    why: list[str] = []
    before = session.writer.run.events
    for applied in (
        made
        for name, side in session.sides.items()
        for made in side.places.make(c for c in cells if c.place.target == name)
    ):
        given = applied.given and replace(applied.given, components=())
        event = LayoutGiven(applied.wanted, given, applied.differences)
        if event not in before:
            session.writer.append_event(event)
        if applied.differences:
            refused.add(applied.wanted)
            why += applied.differences
    for cell in cells:
        skipped = CellSkipped(cell.study, cell.settings, "the file system did not apply the requested layout")
        if cell.layout in refused and skipped not in before:
            session.writer.append_event(skipped)
    kept = [cell for cell in cells if cell.layout not in refused]
    if not kept:
        raise MeasurementError(
            "the file system applies none of the requested layouts",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(why)),
            remedy="See which settings are possible here: strakes target DIR",
        )
    return kept


def place_cells(session: Session, cells: list[Cell]) -> list[Cell]:
    """Create the directories of cells on their metadata targets. Return the cells for which this succeeded.

    Less important cells are left out if placing takes too long. Raises BadInputError if no cell is left.
    """
    refused: dict[str, str] = {}
    kept = []
    for cell in sorted(cells, key=lambda cell: cell.priority):
        if cell.place.placement is None and not cell.place.entries:
            kept.append(cell)
            continue
        why = _refusal(session, cell, refused)
        if why:
            session.writer.append_event(CellSkipped(cell.study, cell.settings, why))
        else:
            kept.append(cell)
    moving = [session.sides[cell.place.target].target for cell in kept if cell.place.kept and cell.place.placement]
    if any(target.moves_directories for target in moving):
        session.progress.update("placing directories", 0.0, "waiting until they have moved to their targets")
        time.sleep(min(_MOVING_S, _MOVING_SHARE * session.request.budget_s))
    if not kept:
        raise BadInputError(
            "no directory can be placed on the targets that the study needs",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(filter(None, refused.values()))),
            remedy="See which settings are possible here: strakes target DIR",
        )
    return [cell for cell in cells if cell in kept]


def _refusal(session: Session, cell: Cell, refused: dict[str, str]) -> str:
    if cell.priority > 1 and session.elapsed_s() > _PLACING_SHARE * session.request.budget_s:
        return f"{MORE_BUDGET}: placing the directories of this cell takes too long"
    wish = repr((cell.place.target, cell.place.placement, sorted(map(repr, set(cell.place.entries.values())))))
    stays = bool(cell.place.kept and cell.place.placement)
    if wish not in refused or (stays and not refused[wish]):
        side = session.sides[cell.place.target]
        if stays:
            session.progress.update("placing directories", 0.0, cell.key)
            refused[wish] = _place(session, cell)
        else:
            refused[wish] = try_place(side.target, side.workspace.path, f"try{len(refused)}", cell.place)
    return refused[wish]


def _place(session: Session, cell: Cell) -> str:
    side = session.sides[cell.place.target]
    try:
        given = prepare(side.target, side.workspace.path, cell.place.name_in(1), cell.place)
    except UnansweredError:
        raise
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
    session.writer.append_event(DirectoryPlaced(cell.key, given))
    return ""


def settable_cells(session: Session, cells: list[Cell]) -> list[Cell]:
    """Return the measurements whose file system settings can be changed.

    As a test, each setting is changed once and restored immediately. Raises BadInputError if no measurement is left.
    """
    why: dict[str, str] = {}
    kept = []
    named = [knobs for study in session.request.studies for knobs in study.varied]
    for cell in cells:
        wish = repr(sorted(cell.knobs.items()))
        if cell.knobs and wish not in why:  # Cells of --like or --resume may change settings that --knob does not name.
            unnamed = f"--knob does not name {', '.join(cell.knobs)}"
            why[wish] = _setting_refusal(session, cell) if cell.knobs in named else unnamed
        if why.get(wish):
            session.writer.append_event(CellSkipped(cell.study, cell.settings, why[wish]))
        else:
            kept.append(cell)
    if not kept:
        raise BadInputError(
            "the settings that the study varies cannot be changed here",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(filter(None, why.values()))),
            remedy="See which settings can be changed, and by whom: strakes knobs list DIR",
        )
    return kept


def _setting_refusal(session: Session, cell: Cell) -> str:
    from strakes.control.knob_change import changed

    try:
        with changed(session.sides[cell.place.target].target, cell.knobs) as change:
            return "; ".join(change.remarks)
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
