"""Directories with a layout for their files, or on chosen metadata targets, made for cells; cells that cannot have them are left out."""

from __future__ import annotations

import time
from dataclasses import asdict

from strakes.errors import BadInputError, MeasurementError
from strakes.portrait.model import SkippedCell
from strakes.studies.base import Cell
from strakes.survey.prepared import prepare, why_not
from strakes.survey.session import Session
from strakes.targets.model import Layout, layout_record

# How long directories get to move to the targets they were placed on, and which share of the budget at most.
_MOVING_S = 12.0
_MOVING_SHARE = 0.1


def laid_out(session: Session, cells: list[Cell]) -> list[Cell]:
    """The cells whose layout is really given: what was asked for and what files get is kept in the run, also where they differ."""
    refused: set[Layout | None] = set()
    why: list[str] = []
    before = session.writer.run.events
    for one in (given for name, side in session.sides.items() for given in side.places.make(c for c in cells if c.place.target == name)):
        given = None if one.given is None else layout_record(one.given)
        record = {"event": "layout", "wanted": layout_record(one.wanted), "given": given, "differences": list(one.differences)}
        if record not in before:
            session.writer.append_event(record)
        if one.differences:
            refused.add(one.wanted)
            why += one.differences
    for cell in cells:
        skipped = asdict(SkippedCell(cell.study, cell.settings, "its layout was not given as asked for"))
        if cell.layout in refused and {"event": "skipped", **skipped} not in before:
            session.writer.append_event({"event": "skipped", **skipped})
    kept = [cell for cell in cells if cell.layout not in refused]
    if not kept:
        raise MeasurementError(
            "no layout is given as asked for",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(why)),
            remedy="strakes target DIR says what can be set here.",
        )
    return kept


def placed(session: Session, cells: list[Cell]) -> list[Cell]:
    """The cells whose directories can be made where they ask for, tried once for each wish."""
    refused: dict[str, str] = {}
    kept = []
    for cell in cells:
        wish = repr((cell.place.target, cell.place.placement, sorted(map(repr, set(cell.place.entries.values())))))
        if cell.place.placement is None and not cell.place.entries:
            kept.append(cell)
            continue
        if wish not in refused:
            side = session.sides[cell.place.target]
            refused[wish] = why_not(side.target, side.workspace.path, f"try{len(refused)}", cell.place)
        if refused[wish]:
            skipped = asdict(SkippedCell(cell.study, cell.settings, refused[wish]))
            session.writer.append_event({"event": "skipped", **skipped})
        else:
            kept.append(cell)
    _make_kept(session, kept)
    if not kept:
        raise BadInputError(
            "no directory can be placed as this study needs it",
            where=str(session.request.directory),
            why="; ".join(dict.fromkeys(filter(None, refused.values()))),
            remedy="strakes target DIR says what can be set here.",
        )
    return kept


def _make_kept(session: Session, cells: list[Cell]) -> None:
    """Makes the directories that stay, and gives the file system time to move them to their targets: Ceph does so every few seconds."""
    placed = [cell for cell in cells if cell.place.kept and cell.place.placement is not None]
    for cell in placed:
        side = session.sides[cell.place.target]
        session.progress.update("placing directories", 0.0, cell.key)
        given = prepare(side.target, side.workspace.path, cell.place.kept, cell.place)
        session.writer.append_event({"event": "placed", "cell": cell.key, "given": given})
    if any(session.sides[cell.place.target].target.mount.remote for cell in placed):
        session.progress.update("placing directories", 0.0, "letting them move to their targets")
        time.sleep(min(_MOVING_S, _MOVING_SHARE * session.request.budget_s))
