"""The survey itself: prepares, measures in blocks, confirms, and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, InterruptedByUser, MeasurementError
from strakes.launch.choice import engine_for
from strakes.launch.engine import Engine
from strakes.launch.messages import PlanResult
from strakes.plan import MetadataPhase, Plan
from strakes.portrait.build import rule_of
from strakes.portrait.collect import cell_record, collect
from strakes.portrait.model import SkippedCell
from strakes.statistics.interval import smallest_runs
from strakes.store import Run, RunWriter, Store
from strakes.studies.base import UNITS, Advice, Cell, Pilot
from strakes.studies.compose import better_ratio
from strakes.studies.place import Place
from strakes.studies.results import Results
from strakes.survey.pilot import NO_PILOT, pilot_from_samples, pilot_plan
from strakes.survey.places import Places
from strakes.survey.preparation import (
    MEASURE_SHARE,
    cell_from_record,
    choose_cells,
    limits,
    make_context,
    memory_available_bytes,
    team_size,
)
from strakes.survey.prepared import files_kept, grown, prepare, rounds_begun, why_not
from strakes.survey.request import Progress, Request
from strakes.survey.schedule import Schedule
from strakes.survey.settled import is_settled, runs_saved
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.calls import UnansweredError
from strakes.targets.model import Layout, layout_record
from strakes.targets.registry import detect
from strakes.targets.unlike import unlike_targets
from strakes.targets.workspace import Workspace
from strakes.units import format_value

# A plan that takes this many times what was expected, and this long at least, is given up.
_LIMIT_FACTOR = 20.0
_SHORTEST_LIMIT_S = 60.0
# With a small budget nobody wants to wait so long for what will not come.
_LIMIT_BUDGETS = 2.0
_SHORTEST_LIMIT_OF_ALL_S = 20.0
# More fresh runs than this do not settle a contest that is still open.
_MOST_CONFIRM_ROUNDS = 12
# How long directories get to move to the targets they were placed on, and which share of the budget at most.
_MOVING_S = 12.0
_MOVING_SHARE = 0.1
# Looking for cells that need no more runs takes at most this share of the time.
_THINKING_SHARE = 0.02
# The pilot's share of the budget, over its three phases, and the longest that one of them may take.
_PILOT_SHARE = 0.01
_LONGEST_PILOT_PHASE_S = 0.5


@dataclass(frozen=True)
class _Side:
    """One file system that is measured: usually the only one."""

    workspace: Workspace
    target: Target
    places: Places
    watch: Watch


@dataclass
class _Session:
    """Everything alive during a run. ``sides``: the file system measured, under "", and the one it is measured ``against``."""

    request: Request
    writer: RunWriter
    engine: Engine
    sides: Mapping[str, _Side]
    progress: Progress
    started: float
    spent_before_s: float
    visits: list[dict[str, Any]]
    cells: list[Cell] = field(default_factory=list)
    block_thought_of: int = 0
    thought_s: float = 0.0

    @property
    def workspace(self) -> Workspace:
        return self.sides[""].workspace

    @property
    def target(self) -> Target:
        return self.sides[""].target

    def elapsed_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.started

    def left_s(self, share: float = 1.0) -> float:
        return self.request.budget_s * share - self.elapsed_s()


def perform(request: Request, store: Store, progress: Progress) -> RunWriter:
    """Runs the request to its end and returns the closed run.

    Raises BadInputError before the target is touched, EnvironmentLacksError without an engine, MeasurementError when the target fails;
    KeyboardInterrupt ends it in order. In every case the run keeps what was measured and the target is left as it was.
    """
    target = detect(request.directory)
    try:
        return _perform(request, target, store, progress)
    except UnansweredError as error:
        raise error.naming(target.trouble()) from error


def _perform(request: Request, target: Target, store: Store, progress: Progress) -> RunWriter:
    with engine_for(request.launch) as engine:
        hello = engine.start()
        if request.resume is None:
            environment = {**target.environment(), "engine": asdict(hello)}
            writer = store.create(request.kind, request.name, request.directory, request.options(), environment)
        else:
            writer = store.resume(request.resume or None, request.fingerprint())
            request = replace(request, seed=writer.run.manifest["options"]["seed"])
        try:
            with ExitStack() as stack:
                visits = list(writer.run.visits)
                spent_s = sum(visit["elapsed_s"] for visit in visits)
                # What a population has grown to is gone on with, where it was kept.
                adopt = bool(visits) and any(study.visits_in_sequence for study in request.studies)
                sides = {"": _side(stack, target, writer.id, keep=request.keep, adopt=adopt)}
                if request.against is not None:
                    sides["against"] = _side(stack, detect(request.against), f"{writer.id}.against", keep=request.keep, adopt=adopt)
                session = _Session(request, writer, engine, sides, progress, time.monotonic(), spent_s, visits)
                facts = _facts(session)
                cells, phase_s = _cells(session, facts)
                cells = _placed(session, _laid_out(session, cells))
                if any(study.visits_in_sequence for study in request.studies):
                    _measure_in_sequence(session, cells, phase_s)
                else:
                    _measure(session, cells, phase_s, facts)
                    _confirm(session, cells, facts)
                progress.update("cleaning up", 1.0, "")
        except KeyboardInterrupt:
            writer.finish("interrupted")
            remedy = "Go on where it stopped: the same command with --resume."
            raise InterruptedByUser("interrupted; what was measured is kept", where=f"run {writer.id}", remedy=remedy) from None
        except BaseException:
            if store.open(writer.id).visits:
                writer.finish("failed")
            else:
                store.discard(writer)  # refused before anything was measured: not a run
            raise
    writer.finish("complete")
    return writer


def _side(stack: ExitStack, target: Target, run_id: str, *, keep: bool, adopt: bool) -> _Side:
    workspace = stack.enter_context(Workspace.create(target.path, run_id, keep=keep, adopt=adopt))
    return _Side(workspace, target, Places(workspace.path, target), Watch(target))


def _facts(session: _Session) -> Mapping[str, Any]:
    """Facts of the target, kept in the run; asked once and read back on resume."""
    for event in session.writer.run.events:
        if event["event"] == "facts":
            return dict(event["facts"])
    target, environment = session.target, session.writer.run.environment
    striping = target.striping()
    facts = {
        **asdict(target.facts(session.workspace.path)),
        "path": str(target.path),
        "cpus": environment["cpus"],
        "memory_bytes": environment["memory_bytes"],
        "striping": None if striping is None else asdict(striping),
        "no_striping": "" if striping else next((limit.why for limit in target.limits() if "layout" in limit.what), ""),
    }
    if "against" in session.sides:
        other = session.sides["against"]
        facts["against"] = {**asdict(other.target.facts(other.workspace.path)), "path": str(other.target.path)}
    session.writer.append_event({"event": "facts", "facts": facts})
    if facts["remote"]:
        described = target.describe()
        session.writer.append_event({"event": "description", "description": asdict(described), "unlike": list(unlike_targets(described))})
    return facts


def _cells(session: _Session, facts: Mapping[str, Any]) -> tuple[list[Cell], float]:
    """The run's cells: chosen after a pilot, or as stored when resuming."""
    if session.writer.run.cells:
        stored = next(event for event in session.writer.run.events if event["event"] == "context")
        return [cell_from_record(record) for record in session.writer.run.cells], float(stored["phase_s"])
    request = session.request
    room = limits(facts, memory_available_bytes(), request.full, request.files)
    if "against" in facts:
        other = limits(facts["against"], memory_available_bytes(), request.full, request.files)
        room = (min(room[0], other[0]), min(room[1], other[1]))
    if request.like is not None:
        return _cells_like(session, request.like, room)
    pilot = _pilot(session, facts, room) if any(study.needs_pilot for study in request.studies) else NO_PILOT
    described = session.target.describe() if any(study.needs_description for study in request.studies) else None
    context = make_context(request, facts, pilot, room, described)
    cells, skipped = choose_cells(request.studies, context)
    if not cells:
        why = "; ".join(sorted({one.reason for one in skipped}))
        remedy = "Ask for less, or give a directory with more room, or one on a file system that can do this."
        raise BadInputError("nothing can be measured here", where=str(request.directory), why=why, remedy=remedy)
    session.writer.append_event(
        {"event": "context", "phase_s": context.phase_s, "pilot": asdict(pilot), "max_bytes": room[0], "max_items": room[1]}
    )
    for one in skipped:
        session.writer.append_event({"event": "skipped", **asdict(one)})
    session.writer.write_cells([cell_record(cell) for cell in cells])
    return cells, context.phase_s


def _cells_like(session: _Session, like: Run, room: tuple[int, int]) -> tuple[list[Cell], float]:
    """The very cells of another run, so that the two can be compared."""
    wanted = {study.name for study in session.request.studies}
    cells = [cell_from_record(record) for record in like.cells if record["study"] in wanted]
    stored = next((event for event in like.events if event["event"] == "context"), None)
    if not cells or stored is None:
        raise BadInputError("that run has no cells of this study", where=like.id, remedy="strakes runs lists what was measured.")
    largest = max(cell.plan.bytes_on_target() for cell in cells), max(cell.plan.inodes_on_target() for cell in cells)
    if largest[0] > room[0] or largest[1] > room[1]:
        why = f"its plans need {largest[0]:,} bytes and {largest[1]:,} files; {room[0]:,} and {room[1]:,} may be used"
        raise BadInputError("the plans of that run do not fit here", where=like.id, why=why, remedy="Free some space.")
    session.writer.append_event({**stored, "like": like.id})
    session.writer.write_cells([cell_record(cell) for cell in cells])
    return cells, float(stored["phase_s"])


def _placed(session: _Session, cells: list[Cell]) -> list[Cell]:
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


def _make_kept(session: _Session, cells: list[Cell]) -> None:
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


def _laid_out(session: _Session, cells: list[Cell]) -> list[Cell]:
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


def _pilot(session: _Session, facts: Mapping[str, Any], room: tuple[int, int]) -> Pilot:
    session.progress.update("pilot", 0.0, "first rough rates, to choose the amounts")
    seconds = max(0.02, min(_LONGEST_PILOT_PHASE_S, session.request.budget_s * _PILOT_SHARE))
    plan = pilot_plan(team_size(facts["cpus"], session.request.launch), *room, seconds, session.request.seed)
    pilots = []
    for side in session.sides:
        cell = Cell("pilot", "pilot", {}, plan, (), place=Place(target="against" if side else ""))
        visit = _visit(session, cell, "pilot", 0, _shortest_limit_s(session.request))
        pilots.append(pilot_from_samples({sample["name"]: sample for sample in visit["samples"]}))
    # The amounts have to suit the slower one, too.
    return min(pilots, key=lambda pilot: pilot.write_bytes_per_s)


def _measure(session: _Session, cells: list[Cell], phase_s: float, facts: Mapping[str, Any]) -> None:
    """Blocks over all open cells until every interval is reached or the measuring share of the budget is spent."""
    request = session.request
    session.cells = cells
    schedule = Schedule(cells, rule_of(request.options()), request.seed, phase_s, smallest_runs(request.confidence))
    for visit in session.visits:
        if visit["purpose"] == "measure":
            schedule.record(visit)
    for event in session.writer.run.events:
        if event["event"] == "settled":
            schedule.settle(event["cell"])
    share = MEASURE_SHARE
    while session.left_s(share) > 0:
        _settle(session, schedule, facts)
        for cell in schedule.fit(session.left_s(share)):
            reason = f"no time for {smallest_runs(request.confidence)} runs within the budget"
            session.writer.append_event({"event": "dropped", "cell": cell.key, "reason": reason})
        block = schedule.next_block()
        if not block:
            return
        for cell in block:
            expected_s = schedule.expected_s(cell)
            if schedule.block > 1 and expected_s > session.left_s(share):
                continue
            if session.left_s(share) <= 0:
                return
            _tell(session, schedule, cell)
            limit_s = max(_shortest_limit_s(session.request), _LIMIT_FACTOR * expected_s)
            schedule.record(_visit(session, cell, "measure", schedule.block, limit_s))
        if all(schedule.expected_s(cell) > session.left_s(share) for cell in schedule.open_cells()):
            return


def _settle(session: _Session, schedule: Schedule, facts: Mapping[str, Any]) -> None:
    """Ends the cells that can change nothing any more; thinking about it may take a small share of the time that has passed."""
    rule = rule_of(session.request.options())
    open_cells = [cell for cell in schedule.open_cells() if schedule.runs(cell.key) >= max(rule.smallest_runs, cell.least_runs)]
    if not open_cells or session.block_thought_of == schedule.block:
        return
    session.block_thought_of = schedule.block
    began = time.monotonic()
    records = [cell_record(cell) for study in session.request.studies for cell in session.cells if cell.study == study.name]
    everything = collect(records, session.visits, rule, facts)
    for cell in open_cells:
        if session.thought_s + time.monotonic() - began > _THINKING_SHARE * session.elapsed_s():
            break
        study = next(one for one in session.request.studies if one.name == cell.study)
        results = everything.of_study(study.name)
        ids = frozenset(f"{cell.key}:{measure.suffix}" for measure in cell.measures if not measure.is_side)
        if is_settled(study, results, ids, rule.relative_half_width):
            saved_s = runs_saved([results.get(one) for one in ids], rule) * schedule.expected_s(cell)
            session.writer.append_event({"event": "settled", "cell": cell.key, "runs": schedule.runs(cell.key), "saved_s": saved_s})
            schedule.settle(cell.key)
    session.thought_s += time.monotonic() - began


def _tell(session: _Session, schedule: Schedule, cell: Cell) -> None:
    """What is measured now and what is known of it."""
    measure = cell.measures[0]
    judgement = schedule.judge(cell.key, measure.phase)
    detail = f"block {schedule.block}, {len(schedule.open_cells())} cells open"
    if judgement is not None and judgement.estimate.interval is not None:
        unit = UNITS[measure.metric]
        low, high = judgement.estimate.interval.low, judgement.estimate.interval.high
        so_far = f"{format_value(judgement.estimate.median, unit)} [{format_value(low, unit)} - {format_value(high, unit)}]"
        detail = f"{measure.phase} {so_far}; {detail}"
    session.progress.update(cell.key, session.elapsed_s() / session.request.budget_s, detail)


def _confirm(session: _Session, cells: list[Cell], facts: Mapping[str, Any]) -> None:
    """Measures what is to be advised against its runner-up again, on fresh interleaved runs."""
    rule = rule_of(session.request.options())
    records = [cell_record(cell) for cell in cells]
    results = collect(records, session.visits, rule, facts)
    contests = [advice for study in session.request.studies for advice in study.advice(results.of_study(study.name))]
    by_key = {cell.key: cell for cell in cells}
    first_block = 1 + max((visit["block"] for visit in session.visits), default=0)
    for block in range(first_block, first_block + _MOST_CONFIRM_ROUNDS):
        results = collect(records, session.visits, rule, facts)
        open_contests = [one for one in contests if not _settled(one, results)]
        keys = sorted({identifier.rsplit(":", 1)[0] for one in open_contests for identifier in (one.chosen, one.against)})
        if block % 2:
            keys.reverse()
        expected_s = sum(_usual_s(session, key) for key in keys)
        if not keys or expected_s > session.left_s():
            return
        for key in keys:
            session.progress.update(
                f"confirming: {key}", session.elapsed_s() / session.request.budget_s, f"{len(open_contests)} recommendations open"
            )
            limit_s = max(_shortest_limit_s(session.request), _LIMIT_FACTOR * _usual_s(session, key))
            _visit(session, by_key[key], "confirm", block, limit_s)


def _settled(advice: Advice, results: Results) -> bool:
    """The fresh runs alone already show the advice, or refute it."""
    ratio = better_ratio(results.get(advice.chosen), results.get(advice.against), results.confidence, purpose="confirm")
    if ratio is None or ratio.interval is None:
        return False
    return ratio.interval.low >= advice.threshold or ratio.interval.high < advice.threshold


def _shortest_limit_s(request: Request) -> float:
    return max(_SHORTEST_LIMIT_OF_ALL_S, min(_SHORTEST_LIMIT_S, _LIMIT_BUDGETS * request.budget_s))


def _usual_s(session: _Session, key: str) -> float:
    durations = sorted(visit["elapsed_s"] for visit in session.visits if visit["cell"] == key)
    return float(durations[len(durations) // 2]) if durations else 0.0


def _measure_in_sequence(session: _Session, cells: list[Cell], phase_s: float) -> None:
    """Every cell its number of visits, one after the other; then what they left is removed, and how long that takes is kept."""
    visits = max(study.visits_in_sequence for study in session.request.studies)
    done = [visit["cell"] for visit in session.visits if visit["purpose"] == "measure" and visit["ended"] == "ok"]
    wanted = [(cell, block) for cell in cells for block in range(1, visits + 1) if block > done.count(cell.key)]
    kept = {session.sides[cell.place.target].workspace.path / cell.place.kept for cell in cells if cell.place.kept}
    if done and not all(path.exists() for path in kept):
        remedy = "Begin anew without --resume, and with --keep where it is to be interrupted."
        raise BadInputError("what this run had made is gone", where=", ".join(map(str, sorted(kept))), remedy=remedy)
    for number, (cell, block) in enumerate(wanted, start=len(done) + 1):
        if session.left_s() <= 0:
            session.writer.append_event({"event": "dropped", "cell": cell.key, "reason": "the budget was spent; --resume goes on"})
            break
        session.progress.update(cell.key, number / (len(done) + len(wanted)), f"round {number} of {len(done) + len(wanted)}")
        _visit(session, cell, "measure", block, max(_SHORTEST_LIMIT_S, _LIMIT_FACTOR * phase_s))
    if not session.request.keep:
        _clear(session, cells)


def _clear(session: _Session, cells: list[Cell]) -> None:
    """Removes what kept places hold by the engine, with all its ranks, and keeps how long that took."""
    for target, name in dict.fromkeys((cell.place.target, cell.place.kept) for cell in cells if cell.place.kept):
        side = session.sides[target]
        session.progress.update("removing the population", 1.0, "")
        plan = Plan(cells[0].plan.ranks, (MetadataPhase("last", "file-create", "shared", 1),), session.request.seed)
        files = files_kept(session.visits, name)
        started = time.monotonic()
        result = session.engine.run(plan, side.workspace.path, name, _SHORTEST_LIMIT_S + session.elapsed_s(), prepared=True)
        elapsed_s = time.monotonic() - started
        if result.ended == "ok" and result.cleaned:
            session.writer.append_event({"event": "clean-up", "files": files, "elapsed_s": elapsed_s})


def _visit(session: _Session, cell: Cell, purpose: str, block: int, limit_s: float) -> dict[str, Any]:
    """Runs one plan and keeps what came of it. Raises MeasurementError when the target failed."""
    number, key = len(session.visits), cell.key
    side, place = session.sides[cell.place.target], cell.place
    directory = side.places.of(cell.layout)
    assert directory is not None
    name, plan = place.kept or f"v{number}", cell.plan
    # What making its directories takes is part of what a visit costs the budget.
    started_unix_s = time.time()
    started = time.monotonic()
    given = {} if place.is_plain() else prepare(side.target, directory, name, place)
    if place.kept:
        resumed = Run(session.writer.path).manifest.get("resumed", [])
        plan = grown(plan, rounds_begun(session.visits, place.kept, len(resumed)))
    side.watch.begin()
    if place.is_plain():
        result = session.engine.run(plan, directory, name, limit_s)
    else:
        result = session.engine.run(plan, directory, name, limit_s, keep=bool(place.kept), prepared=True)
    elapsed_s, ended_unix_s = time.monotonic() - started, time.time()
    visit: dict[str, Any] = {
        "visit": number,
        "block": block,
        "purpose": purpose,
        "cell": key,
        "started_unix_s": started_unix_s,
        "ended_unix_s": ended_unix_s,
        "elapsed_s": elapsed_s,
        "ended": result.ended,
        "samples": [dict(sample.raw) for sample in result.samples],
        "errors": [asdict(error) for error in result.errors],
        **(side.watch.end() if result.ended == "ok" else {}),
        **({"given": given} if given else {}),
        **({"kept": place.kept} if place.kept else {}),
    }
    session.writer.append_visit(visit)
    session.visits.append(visit)
    if result.ended == "cancelled":
        raise KeyboardInterrupt
    if result.ended != "ok":
        if not result.cleaned and not side.workspace.answers():
            side.workspace.leave_alone()
        raise _failure(result, side.workspace.path, key, side.target.trouble())
    return visit


def _failure(result: PlanResult, directory: Path, key: str, trouble: Sequence[str]) -> MeasurementError:
    """What the engine met, and which servers are not well."""
    if result.errors:
        error = result.errors[0]
        where = ", ".join(f"{name} {value}" for name, value in error.where.items())
        why = " ".join([f"{error.why.rstrip('.')}.", *trouble]) if trouble else error.why
        return MeasurementError(error.what, where=f"{directory}, {where} (cell {key})", why=why, remedy=error.remedy)
    return MeasurementError(
        f"the run ended as {result.ended!r}",
        where=f"{directory} (cell {key})",
        why=" ".join(trouble),
        remedy="The run's log in the store says what the engine wrote.",
    )
