"""Choose and store the cells of a run, based on facts about the file system and on rates of a pilot measurement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, NoReturn

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.units import counted
from strakes.model.cell import PLAIN, Cell, Place
from strakes.model.plan_read import validate_plan_document
from strakes.model.portrait import SkippedCell
from strakes.model.record import from_record
from strakes.runs.choice import with_launcher
from strakes.runs.launch import Launch
from strakes.runs.records import AmountsChosen, CellSkipped, FactsFound, TargetDescribed, Visit
from strakes.runs.run import Run, told_as_damage
from strakes.stats.interval import median
from strakes.studies.study import Context, Pilot
from strakes.survey.lacking import Absent, without_absent
from strakes.survey.pilot import (
    LONGER,
    NO_PILOT,
    beside_phases_s,
    faster,
    longer,
    pilot_from_samples,
    pilot_plan,
    smallest_plan,
    with_write_back,
)
from strakes.survey.preparation import choose_cells, chooses_phases, make_context, room_of, team_size, why_left_out
from strakes.survey.request import ProgressDisplay
from strakes.survey.session import BESIDE, LIMIT_FACTOR, Session, note_load, shortest_limit_s, visit_cell
from strakes.survey.verdicts import visit_s
from strakes.targets.knowledge import unlike_targets
from strakes.targets.workspace import Workspace

# Length of a pilot phase as a share of the budget, and its maximum in seconds.
_PILOT_SHARE = 0.01
_LONGEST_PILOT_PHASE_S = 0.5
# Number of pilot trials. The fastest counts, because the first is often slow. Doubling the number doubles the time.
_PILOTS = 2
# Number of trials whose median duration gives the overhead outside phases. Time grows in proportion.
_SMALLEST_PILOTS = 3
# Quantiles of the cells' planned durations. Trials of these three cells show how far to reduce the pilot's rates.
_REHEARSED = (1 / 6, 1 / 2, 5 / 6)
# Maximum expected time of a measurement with several times the work, as a share of the budget.
_LONGER_SHARE = 0.04
# Bytes and files (2^50) that suffice for any run, to find out whether too little space is why nothing can be measured.
_AMPLE = 1 << 50


def gather_facts(session: Session) -> Mapping[str, Any]:
    """Return facts about the file system, and store them in the run. For a resumed run, return the stored facts."""
    if session.writer.run.facts:
        return session.writer.run.facts
    target, environment = session.target, session.writer.run.environment
    striping = target.striping()
    if any(study.needs_pilot for study in session.request.studies):
        note_load(session)
    facts = {
        **asdict(target.facts(session.workspace.path)),
        "path": str(target.path),
        "cpus": environment["cpus"],
        "memory_bytes": environment["memory_bytes"],
        "striping": None if striping is None else asdict(striping),
        "no_striping": "" if striping else next((limit.why for limit in target.limits() if "layout" in limit.what), ""),
    }
    facts["nodes"] = _compare_nodes(
        session.request.launch, environment["engine"].get("nodes", {}), session.workspace, session.progress
    )
    if "against" in session.sides:
        other = session.sides["against"]
        facts["against"] = {**asdict(other.target.facts(other.workspace.path)), "path": str(other.target.path)}
    if session.request.beside:
        facts["beside"] = [
            {**asdict(side.target.facts(side.workspace.path)), "path": str(side.target.path)}
            for name, side in session.sides.items()
            if name.startswith(BESIDE)
        ]
    session.writer.append_event(FactsFound(facts))
    if facts["remote"]:
        described = session.description = target.describe()
        session.writer.append_event(TargetDescribed(asdict(described), tuple(unlike_targets(described))))
    return facts


def settle_cells(session: Session, facts: Mapping[str, Any]) -> tuple[list[Cell], float]:
    """Return the cells and the length of phases in seconds, as stored or as chosen after a pilot measurement."""
    if session.writer.run.cells:
        chosen = session.writer.run.events_of(AmountsChosen)[0]
        session.pilot = from_record(Pilot, chosen.pilot)
        return session.writer.run.cells, chosen.phase_s
    request = session.request
    rooms = {str(request.directory): room_of(request, facts)}
    for further in (*([facts["against"]] if "against" in facts else []), *facts.get("beside", [])):
        rooms[further["path"]] = room_of(request, further)
    room = (min(own[0] for own in rooms.values()), min(own[1] for own in rooms.values()))
    if request.like is not None:
        return _cells_like(session, request.like, room)
    pilot = _pilot(session, facts, room) if any(study.needs_pilot for study in request.studies) else NO_PILOT
    session.pilot = pilot
    if session.description is None and any(study.needs_description for study in request.studies):
        session.description = session.target.describe()
    context = make_context(request, facts, pilot, room, session.description)
    cells, skipped = choose_cells(request, context)
    if chooses_phases(request, context) and pilot != NO_PILOT and context.phase_s > _LONGEST_PILOT_PHASE_S:
        pilot = session.pilot = _sustained(session, cells, context)
        context = make_context(request, facts, pilot, room, session.description)
        cells, skipped = choose_cells(request, context)
    if not cells:
        why = "; ".join([*sorted({skipped_cell.reason for skipped_cell in skipped}), *session.target.trouble()])
        if choose_cells(request, replace(context, max_bytes=_AMPLE, max_items=_AMPLE))[0]:
            remedy = "Measure less, or give a directory with more free space or on another file system."
        else:
            remedy = with_launcher(" ".join(dict.fromkeys(study.elsewhere for study in request.studies)))
        too_small = [
            path
            for path, own in rooms.items()
            if not choose_cells(request, make_context(request, facts, pilot, own, session.description))[0]
        ]
        where = ", ".join(too_small) or str(request.directory)
        raise BadInputError("nothing can be measured in this directory", where=where, why=why, remedy=remedy)
    absent = session.writer.run.environment["engine"].get("absent", {})
    cells, lacking = without_absent(cells, absent)
    if not cells:
        refuse_all(session, lacking, absent)
    left_out = sum(skipped_cell.reason == why_left_out(context) for skipped_cell in skipped)
    session.writer.append_event(AmountsChosen(context.phase_s, asdict(pilot), *room, left_out=left_out))
    for skipped_cell in (*skipped, *lacking):
        session.writer.append_event(CellSkipped(skipped_cell.study, skipped_cell.settings, skipped_cell.reason))
    session.writer.write_cells(cells)
    _measure_longer(session, cells, context)
    return cells, context.phase_s


def _measure_longer(session: Session, cells: list[Cell], context: Context) -> None:
    """Measure some cells twice with a multiple of their usual work, if space and budget allow it."""
    keys = {key for study in session.request.studies for key in study.measured_longer}
    for cell in [cell for cell in cells if cell.key in keys]:
        longer_cell = replace(cell, key=f"{LONGER}{cell.key}", plan=longer(cell.plan))
        expected_s = visit_s(longer_cell, context.pilot, context.phase_s)
        size, files = longer_cell.plan.bytes_on_target(), longer_cell.plan.inodes_on_target()
        if size > context.max_bytes or files > context.max_items:
            continue
        for _ in range(_PILOTS if expected_s <= _LONGER_SHARE * session.request.budget_s else 0):
            _piloted(session, longer_cell, expected_s)


def refuse_all(session: Session, lacking: list[SkippedCell], absent: Absent) -> NoReturn:
    """Raise EnvironmentLacksError that lists reasons and remedies. Called if every cell is skipped."""
    reasons = dict.fromkeys(skipped_cell.reason for skipped_cell in lacking)
    remedies = dict.fromkeys(
        with_launcher(absence["remedy"])
        for name, absence in absent.items()
        if any(why.startswith(f"{name}: ") for why in reasons)
    )
    raise EnvironmentLacksError(
        "every cell is skipped", where=str(session.request.directory), why="; ".join(reasons), remedy=" ".join(remedies)
    )


def _cells_like(session: Session, like: Run, room: tuple[int, int]) -> tuple[list[Cell], float]:
    wanted = {study.name for study in session.request.studies}
    cells = [cell for cell in like.cells if cell.study in wanted and cell.place.target in session.sides]
    stored = like.events_of(AmountsChosen)
    if not cells or not stored:
        raise BadInputError(
            "the run given with --like has no cells of this study", where=like.id, remedy="List the runs: strakes runs"
        )
    with told_as_damage(like):
        for cell in cells:
            validate_plan_document(cell.plan.to_json())
            # Refuse plans that no study makes, because another user may have written them.
            if cell.plan.memory_hog_bytes or any(phase.backend == "s3" for phase, _ in cell.plan.each()):
                raise ValueError("a plan takes memory of the node, or writes to an object store")
        sizes = [(cell.plan.bytes_on_target(), cell.plan.inodes_on_target()) for cell in cells]
        largest = max(size[0] for size in sizes), max(size[1] for size in sizes)
        session.pilot = pilot = from_record(Pilot, stored[0].pilot)
        if not min(pilot.write_bytes_per_s, pilot.read_bytes_per_s, pilot.creates_per_s) > 0:
            raise ValueError("the rates of the pilot must be positive")
    if largest[0] > room[0] or largest[1] > room[1]:
        why = (
            f"its plans need {largest[0]:,} bytes and {counted(largest[1], 'file')}; {room[0]:,} and "
            f"{room[1]:,} may be used here"
        )
        raise BadInputError(
            "the plans of the run given with --like need too much space",
            where=like.id,
            why=why,
            remedy="Free some space.",
        )
    session.writer.append_event(replace(stored[0], like=like.id))
    session.writer.write_cells(cells)
    return cells, stored[0].phase_s


def _pilot(session: Session, facts: Mapping[str, Any], room: tuple[int, int]) -> Pilot:
    session.progress.update("pilot", 0.0, "measuring rough rates to choose the amounts")
    seconds = max(0.02, min(_LONGEST_PILOT_PHASE_S, session.request.budget_s * _PILOT_SHARE))
    plan = pilot_plan(team_size(facts["cpus"], session.request.launch), *room, seconds, session.request.seed)
    pilots = []
    for side in session.sides:
        cell = Cell("pilot", "pilot", {}, plan, (), place=Place(target="against" if side else ""))
        visits = [_piloted(session, cell) for _ in range(_PILOTS)]
        rates = faster([pilot_from_samples(visit.samples) for visit in visits])
        smallest = replace(cell, plan=smallest_plan(plan.ranks, session.request.seed))
        beside_s = [beside_phases_s(_piloted(session, smallest)) for _ in range(_SMALLEST_PILOTS)]
        overhead_s = median(beside_s)
        made = sum(sample.operations for sample in visits[-1].samples if sample.name == "create")
        if made:
            rates = with_write_back(rates, made, max(0.0, beside_s[0] - overhead_s))
        pilots.append(replace(rates, overhead_s=overhead_s))
    return min(pilots, key=lambda pilot: pilot.write_bytes_per_s)


def _piloted(session: Session, cell: Cell, expected_s: float = 0.0) -> Visit:
    while True:
        limit_s = max(shortest_limit_s(session.request), LIMIT_FACTOR * expected_s)
        visit = visit_cell(session, cell, "pilot", 0, limit_s)
        if visit.ended != "yielded":
            return visit


def _sustained(session: Session, cells: list[Cell], context: Context) -> Pilot:
    """Return the pilot's rates, reduced if longer trials are slower (for example, if servers first write to memory)."""
    pilot = context.pilot
    phases_s = {
        cell.key: visit_s(cell, pilot, context.phase_s) - pilot.overhead_s
        for cell in cells
        if cell.place == PLAIN and cell.layout is None and not cell.knobs and cell.plan.bytes_on_target()
    }
    ordered = sorted((cell for cell in cells if phases_s.get(cell.key)), key=lambda cell: phases_s[cell.key])
    slower = []
    for share in _REHEARSED if len(ordered) >= len(_REHEARSED) else ():
        cell = ordered[int(share * len(ordered))]
        visit = _piloted(session, replace(cell, key=f"pilot/{cell.key}"), phases_s[cell.key])
        slower.append((visit.elapsed_s - pilot.overhead_s) / phases_s[cell.key])
    slowness = max(1.0, median(slower)) if slower else 1.0
    return replace(
        pilot, write_bytes_per_s=pilot.write_bytes_per_s / slowness, read_bytes_per_s=pilot.read_bytes_per_s / slowness
    )


def _compare_nodes(
    launch: Launch, processes: Mapping[str, int], workspace: Workspace, progress: ProgressDisplay
) -> dict[str, Any]:
    if len(processes) < 2:
        return {}
    from strakes.runs.node_facts import examine

    facts: dict[str, Any] = {"processes": dict(processes)}
    progress.update("comparing the nodes", 0.0, f"{len(processes)} of them")
    token = os.urandom(8).hex()
    workspace.remove_file("nodes")
    workspace.write_file("nodes", token)
    try:
        nodes, differences = examine(
            replace(launch, ranks=len(processes), ranks_per_node=1), str(workspace.path), "nodes", token
        )
    except EnvironmentLacksError as error:
        why = f"{error.what}: {error.where} {error.why}".strip()
        progress.note(f"the nodes were not compared: {why}")
        return {**facts, "not_compared": why}
    finally:
        workspace.remove_file("nodes")
    wrong = [difference for difference in differences if difference.wrong]
    if wrong:
        raise EnvironmentLacksError(
            "these nodes cannot be measured together",
            where=", ".join(dict.fromkeys(difference.host for difference in wrong)),
            why="; ".join(f"{difference.host}: {difference.what}" for difference in wrong),
            remedy=wrong[0].remedy,
        )
    return {
        **facts,
        "compared": [asdict(node) for node in nodes],
        "differences": [asdict(difference) for difference in differences],
    }
