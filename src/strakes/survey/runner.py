"""The survey itself: prepares, measures in blocks, confirms, and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, InterruptedByUser, MeasurementError
from strakes.launch.local import LocalEngine
from strakes.launch.messages import PlanResult
from strakes.plan import Plan
from strakes.portrait.build import rule_of
from strakes.portrait.collect import cell_record, collect
from strakes.portrait.model import SkippedCell
from strakes.statistics.interval import smallest_runs
from strakes.store import RunWriter, Store
from strakes.studies.base import UNITS, Advice, Cell, Pilot
from strakes.studies.compose import better_ratio
from strakes.studies.results import Results
from strakes.survey.pilot import NO_PILOT, pilot_from_samples, pilot_plan
from strakes.survey.places import Places
from strakes.survey.preparation import MEASURE_SHARE, cell_from_record, choose_cells, limits, make_context, memory_available_bytes
from strakes.survey.request import Progress, Request
from strakes.survey.schedule import Schedule
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.model import Layout, layout_record
from strakes.targets.registry import detect
from strakes.targets.unlike import unlike_targets
from strakes.targets.workspace import Workspace
from strakes.units import format_value

# A plan that takes this many times what was expected, and this long at least, is given up.
_LIMIT_FACTOR = 20.0
_SHORTEST_LIMIT_S = 60.0
# More fresh runs than this do not settle a contest that is still open.
_MOST_CONFIRM_ROUNDS = 12
# The pilot's share of the budget, over its three phases, and the longest that one of them may take.
_PILOT_SHARE = 0.01
_LONGEST_PILOT_PHASE_S = 0.5


@dataclass
class _Session:
    """Everything alive during a run."""

    request: Request
    writer: RunWriter
    engine: LocalEngine
    workspace: Workspace
    target: Target
    places: Places
    watch: Watch
    progress: Progress
    started: float
    spent_before_s: float
    visits: list[dict[str, Any]]

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
    with LocalEngine() as engine:
        hello = engine.start()
        if request.resume is None:
            environment = {**target.environment(), "engine": asdict(hello)}
            writer = store.create(request.kind, request.name, request.directory, request.options(), environment)
        else:
            writer = store.resume(request.resume or None, request.fingerprint())
            request = replace(request, seed=writer.run.manifest["options"]["seed"])
        try:
            with Workspace.create(request.directory, writer.id, keep=request.keep) as workspace:
                visits = list(writer.run.visits)
                spent_s = sum(visit["elapsed_s"] for visit in visits)
                places, watch = Places(workspace.path, target), Watch(target)
                session = _Session(request, writer, engine, workspace, target, places, watch, progress, time.monotonic(), spent_s, visits)
                facts = _facts(session)
                cells, phase_s = _cells(session, facts)
                cells = _laid_out(session, cells)
                _measure(session, cells, phase_s)
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
    room = limits(facts, memory_available_bytes(), request.full)
    pilot = _pilot(session, facts, room) if any(study.needs_pilot for study in request.studies) else NO_PILOT
    context = make_context(request, facts, pilot, room)
    cells, skipped = choose_cells(request.studies, context)
    if not cells:
        why = "; ".join(sorted({one.reason for one in skipped}))
        remedy = "Ask for less, or give a directory with more room."
        raise BadInputError("nothing fits here", where=str(request.directory), why=why, remedy=remedy)
    session.writer.append_event(
        {"event": "context", "phase_s": context.phase_s, "pilot": asdict(pilot), "max_bytes": room[0], "max_items": room[1]}
    )
    for one in skipped:
        session.writer.append_event({"event": "skipped", **asdict(one)})
    session.writer.write_cells([cell_record(cell) for cell in cells])
    return cells, context.phase_s


def _laid_out(session: _Session, cells: list[Cell]) -> list[Cell]:
    """The cells whose layout is really given: what was asked for and what files get is kept in the run, also where they differ."""
    refused: set[Layout | None] = set()
    why: list[str] = []
    before = session.writer.run.events
    for one in session.places.make(cells):
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
    plan = pilot_plan(max(2, min(facts["cpus"], 4)), *room, seconds, session.request.seed)
    visit = _visit(session, plan, None, "pilot", "pilot", 0, _SHORTEST_LIMIT_S)
    return pilot_from_samples({sample["name"]: sample for sample in visit["samples"]})


def _measure(session: _Session, cells: list[Cell], phase_s: float) -> None:
    """Blocks over all open cells until every interval is reached or the measuring share of the budget is spent."""
    request = session.request
    schedule = Schedule(cells, rule_of(request.options()), request.seed, phase_s, smallest_runs(request.confidence))
    for visit in session.visits:
        if visit["purpose"] == "measure":
            schedule.record(visit)
    share = MEASURE_SHARE
    while session.left_s(share) > 0:
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
            limit_s = max(_SHORTEST_LIMIT_S, _LIMIT_FACTOR * expected_s)
            schedule.record(_visit(session, cell.plan, cell.layout, cell.key, "measure", schedule.block, limit_s))
        if all(schedule.expected_s(cell) > session.left_s(share) for cell in schedule.open_cells()):
            return


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
            limit_s = max(_SHORTEST_LIMIT_S, _LIMIT_FACTOR * _usual_s(session, key))
            _visit(session, by_key[key].plan, by_key[key].layout, key, "confirm", block, limit_s)


def _settled(advice: Advice, results: Results) -> bool:
    """The fresh runs alone already show the advice, or refute it."""
    ratio = better_ratio(results.get(advice.chosen), results.get(advice.against), results.confidence, purpose="confirm")
    if ratio is None or ratio.interval is None:
        return False
    return ratio.interval.low >= advice.threshold or ratio.interval.high < advice.threshold


def _usual_s(session: _Session, key: str) -> float:
    durations = sorted(visit["elapsed_s"] for visit in session.visits if visit["cell"] == key)
    return float(durations[len(durations) // 2]) if durations else 0.0


def _visit(session: _Session, plan: Plan, layout: Layout | None, key: str, purpose: str, block: int, limit_s: float) -> dict[str, Any]:
    """Runs one plan and keeps what came of it. Raises MeasurementError when the target failed."""
    number = len(session.visits)
    place = session.places.of(layout)
    assert place is not None
    session.watch.begin()
    started_unix_s = time.time()
    started = time.monotonic()
    result = session.engine.run(plan, place, f"v{number}", limit_s)
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
        **(session.watch.end() if result.ended == "ok" else {}),
    }
    session.writer.append_visit(visit)
    session.visits.append(visit)
    if result.ended == "cancelled":
        raise KeyboardInterrupt
    if result.ended != "ok":
        raise _failure(result, session.workspace.path, key, session.target.trouble())
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
