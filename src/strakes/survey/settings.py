"""Try the file system settings of cells once; cells whose settings cannot be changed are left out."""

from __future__ import annotations

from strakes.base.errors import BadInputError, StrakesError
from strakes.control.knob_change import changed
from strakes.model.cell import Cell
from strakes.runs.records import CellSkipped
from strakes.survey.session import Session


def settable_cells(session: Session, cells: list[Cell]) -> list[Cell]:
    """Return the cells whose settings can be changed. Raises BadInputError if no cell is left.

    Each setting is changed once and restored at once.
    """
    why: dict[str, str] = {}
    kept = []
    for cell in cells:
        wish = repr(sorted(cell.knobs.items()))
        if cell.knobs and wish not in why:
            why[wish] = _refusal(session, cell)
        if why.get(wish):
            session.writer.append_event(CellSkipped(cell.study, cell.settings, why[wish]))
        else:
            kept.append(cell)
    if not kept:
        raise BadInputError(
            "the settings that the study varies cannot be changed here",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(filter(None, why.values()))),
            remedy="strakes knobs list DIR shows which can, and who may.",
        )
    return kept


def _refusal(session: Session, cell: Cell) -> str:
    try:
        with changed(session.sides[cell.place.target].target, cell.knobs) as change:
            return "; ".join(change.remarks)
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
