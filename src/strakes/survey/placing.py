"""Directories with a layout for their files, or on chosen metadata targets, made for cells.

Cells that cannot have them are left out.
"""

from __future__ import annotations

import time
from dataclasses import replace

from strakes.errors import BadInputError, MeasurementError
from strakes.findings.cell import Cell
from strakes.measure.prepared import prepare, try_place
from strakes.store.records import CellSkipped, DirectoryPlaced, LayoutGiven
from strakes.survey.session import Session
from strakes.targets.description import Layout

# How long directories get to move to the targets they were placed on, and which share of the budget at most.
_MOVING_S = 12.0
_MOVING_SHARE = 0.1


def make_layouts(session: Session, cells: list[Cell]) -> list[Cell]:
    """Make directories for the cells' layouts; return the cells whose layout is really given.

    What files get is kept in the run.
    """
    refused: set[Layout | None] = set()
    why: list[str] = []
    before = session.writer.run.events
    for applied in (
        given
        for name, side in session.sides.items()
        for given in side.places.make(c for c in cells if c.place.target == name)
    ):
        event = LayoutGiven(
            applied.wanted, applied.given and replace(applied.given, components=()), applied.differences
        )
        if event not in before:
            session.writer.append_event(event)
        if applied.differences:
            refused.add(applied.wanted)
            why += applied.differences
    for cell in cells:
        skipped = CellSkipped(cell.study, cell.settings, "the file system did not give it the layout asked for")
        if cell.layout in refused and skipped not in before:
            session.writer.append_event(skipped)
    kept = [cell for cell in cells if cell.layout not in refused]
    if not kept:
        raise MeasurementError(
            "the file system gives none of the layouts asked for",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(why)),
            remedy="strakes target DIR shows what can be set here.",
        )
    return kept


def place_cells(session: Session, cells: list[Cell]) -> list[Cell]:
    """Try each wish for a place once; return the cells whose directories can be made where they ask for."""
    refused: dict[str, str] = {}
    kept = []
    for cell in cells:
        wish = repr((cell.place.target, cell.place.placement, sorted(map(repr, set(cell.place.entries.values())))))
        if cell.place.placement is None and not cell.place.entries:
            kept.append(cell)
            continue
        if wish not in refused:
            side = session.sides[cell.place.target]
            refused[wish] = try_place(side.target, side.workspace.path, f"try{len(refused)}", cell.place)
        if refused[wish]:
            session.writer.append_event(CellSkipped(cell.study, cell.settings, refused[wish]))
        else:
            kept.append(cell)
    _make_kept_directories(session, kept)
    if not kept:
        raise BadInputError(
            "no directory can be placed as the study needs it",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(filter(None, refused.values()))),
            remedy="strakes target DIR shows what can be set here.",
        )
    return kept


def _make_kept_directories(session: Session, cells: list[Cell]) -> None:
    """Make the directories that stay, and give the file system time to move them to their targets.

    Ceph does so every few seconds.
    """
    placed = [cell for cell in cells if cell.place.kept and cell.place.placement is not None]
    for cell in placed:
        side = session.sides[cell.place.target]
        session.progress.update("placing directories", 0.0, cell.key)
        given = prepare(side.target, side.workspace.path, cell.place.kept, cell.place)
        session.writer.append_event(DirectoryPlaced(cell.key, given))
    if any(session.sides[cell.place.target].target.mount.remote for cell in placed):
        session.progress.update("placing directories", 0.0, "waiting until they have moved to their targets")
        time.sleep(min(_MOVING_S, _MOVING_SHARE * session.request.budget_s))
