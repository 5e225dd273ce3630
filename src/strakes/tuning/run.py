"""Run a search on a file system: probe the target, measure blocks of trials, confirm the best setting and clean up."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.units import KIB
from strakes.control.knob_change import changed
from strakes.model.cell import Cell, Measure
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Setting
from strakes.runs.choice import engine_for, processes
from strakes.runs.engine import Engine
from strakes.runs.launch import Launch
from strakes.runs.messages import Hello
from strakes.runs.records import ConfirmationBegun, FactsFound, Visit
from strakes.runs.store import Store, ended_in_order
from strakes.runs.watchdog import servers_watched
from strakes.runs.writer import RunWriter
from strakes.studies.measure_directories import LayoutDirectories
from strakes.studies.measure_visit import (
    INTERRUPTED,
    MOST_INTERRUPTED,
    Site,
    begin_run,
    failure,
    make_visit,
    note_unread,
    open_site,
    require_end,
)
from strakes.studies.study import power_of_two_at_most
from strakes.survey.pilot import pilot_from_samples, pilot_plan
from strakes.survey.preparation import limits, memory_available_bytes
from strakes.survey.request import ProgressDisplay
from strakes.targets.calls import UnansweredError
from strakes.targets.description import Interruption
from strakes.targets.registry import detect
from strakes.targets.target import Target
from strakes.tuning.advise_app import App
from strakes.tuning.request import KIND, TuningRequest
from strakes.tuning.trial import NOT_SET, confirmation_of, knob_factors, observed, preparation_of, space_event, usual_of
from strakes.tuning.tune_offers import INTERFACES, LAYOUT_FACTORS, POSIX, Abilities, narrowed, offers
from strakes.tuning.tune_plans import TrialSize, has_shares, layout_of, phase_name, plan_of
from strakes.tuning.tune_search import Search, Trial
from strakes.tuning.tune_space import Constraint, SearchSpace
from strakes.tuning.tune_words import KNOB, levels_from, named, typed


def perform(request: TuningRequest, store: Store, progress: ProgressDisplay) -> RunWriter:
    """Search until the budget is spent, and return the finished run.

    Raises BadInputError for an impossible request, EnvironmentLacksError without an engine, and MeasurementError if the
    target fails. After an error or KeyboardInterrupt, the run keeps its measurements, and target and system are
    restored.
    """
    target = detect(request.directory, request.servers)
    try:
        with servers_watched([target]):
            target.require_answers()
            with engine_for(request.launch) as engine:
                hello, options, title = engine.start(), request.options(), request.app.title
                writer = begin_run(store, KIND, title, request.directory, options, target, hello, request.resume)
                with ended_in_order(store, writer), ExitStack() as stack:
                    if request.resume:
                        request = replace(request, seed=writer.run.manifest["options"]["seed"])
                    site = open_site(stack, engine, target, writer.id, keep=request.keep)
                    _Session(request, writer, site, hello, progress).search()
                    progress.update("cleaning up", 1.0, "")
            writer.finish("complete")
            return writer
    except UnansweredError as error:
        raise target.named(error) from None


class _Session:
    def __init__(
        self, request: TuningRequest, writer: RunWriter, site: Site, hello: Hello, progress: ProgressDisplay
    ) -> None:
        self.request, self.writer, self.site, self.hello, self.progress = request, writer, site, hello, progress
        self.visits = list(writer.run.visits)
        self.cells = {cell.key: cell for cell in writer.run.cells}
        looked = time.monotonic()
        self.spent_before_s: float = sum(visit.elapsed_s for visit in self.visits)
        progress.resumed(self.spent_before_s)
        progress.update("probing the file system", 0.0, "")
        self.space, self.scale = self._prepare()
        self.began = time.monotonic()
        self.budget_s = max(request.budget_s - (self.began - looked), request.budget_s / 2)
        told = observed(request.app, self.space, self.visits)
        self.history = Search(self.space, request.seed, request.confidence, told, confirmation_of(writer.run))
        self.confirmation_kept = self.history.confirmation is not None

    def _prepare(self) -> tuple[SearchSpace, TrialSize]:
        request, stored = self.request, preparation_of(self.writer.run)
        known = stored and stored[1]
        able, scale, facts, why_not = look(request.app, self.site, self.hello, request.launch, request.budget_s, known)
        factors, refused = knob_factors(self.site.target, request.knobs)
        offered = offers(request.app, able)
        space = SearchSpace((*offered.factors, *factors), offered.constraints)
        space = narrowed(space, levels_from(space, request.only))
        space, not_given = without_refused_layouts(space, self.site.places)
        if len(space.points) < 2:
            why = typed(space.settings(space.default))
            remedy = "Allow more levels with --only."
            raise BadInputError("there is nothing to search: only one setting is possible", why=why, remedy=remedy)
        scale = replace(scale, seed=request.seed)
        if stored is None:
            self.writer.append_event(FactsFound(facts))
            self.writer.append_event(space_event(space, scale, (*why_not, *refused, *not_given)))
        elif (space.factors, space.points, scale) != (stored[0].factors, stored[0].points, stored[1]):
            # Refuse a stored search that differs, because another user may have chosen its settings and file sizes.
            names = {named(factor.name) for factor in {*space.factors} ^ {*stored[0].factors}}
            names |= {"the size of trials"} if scale != stored[1] else set()
            what = "the stored search differs from the search that this command would start here"
            where = f"{self.writer.path} (run {self.writer.id})"
            why = f"in {', '.join(sorted(names)) or 'the combinations of settings'}"
            raise BadInputError(what, where=where, why=why, remedy="Start a new search without --resume.")
        return space, scale

    def search(self) -> None:
        while trials := self.history.next_block(self._spent(), self._cost):
            self._remember_confirmation()
            block = self.history.blocks
            app, space = self.request.app, self.space
            if has_shares(app) and not usual_of(app, space, self.visits):
                trials = [Trial(space.default, "screen"), *trials]
            for trial in trials:
                self._say(trial)
                self._keep(self._run(trial, block), trial)
        self._remember_confirmation()

    def _run(self, trial: Trial, block: int) -> Visit:
        settings, default = self.space.settings(trial.point), self.space.settings(self.space.default)
        purpose = "confirm" if trial.stage == "confirm" else "measure"
        planned = Visit(len(self.visits), block, purpose, stage=trial.stage, settings=settings)
        limit_s = _LIMIT_S + _LIMIT_FACTOR * self.scale.limit_s
        interruptions: list[Interruption] = []
        differ = any(name.startswith(KNOB) and level != default[name] for name, level in settings.items())
        # If one system setting differs from its default, set all, because a change of one setting may change others.
        knobs = {
            name.removeprefix(KNOB): str(level)
            for name, level in settings.items()
            if differ and name.startswith(KNOB) and level != NOT_SET
        }
        for _ in range(MOST_INTERRUPTED):
            conditions = changed(self.site.target, knobs) if knobs else nullcontext()
            visit = make_visit(self.site, self._cell(trial), planned, limit_s, conditions=conditions)
            interruptions += visit.interruptions
            if visit.ended != INTERRUPTED:
                break
        require_end(visit, self.site)
        return replace(visit, interruptions=tuple(interruptions))

    def _cell(self, trial: Trial) -> Cell:
        app, settings = self.request.app, self.space.settings(trial.point)
        measures = (Measure(phase_name(one), "bytes_per_s", {"operation": one.operation}) for one in app.phases)
        plan, key = plan_of(app, settings, self.scale), f"tune/{self.space.numbers[trial.point]}"
        shown = {"ranks": self.scale.ranks, **settings}
        return Cell("tune", key, shown, plan, tuple(measures), layout=layout_of(settings))

    def _keep(self, visit: Visit, trial: Trial) -> None:
        cell = self._cell(trial)
        if cell.key not in self.cells:
            self.cells[cell.key] = cell
            self.writer.write_cells(self.cells.values())
        self.writer.append_visit(visit)
        self.visits.append(visit)
        note_unread(self.site, self.writer, self.progress.note)
        self.history.told.append(observed(self.request.app, self.space, self.visits)[-1])

    def _remember_confirmation(self) -> None:
        confirmation = self.history.confirmation
        if confirmation is not None and not self.confirmation_kept:
            self.writer.append_event(ConfirmationBegun(self.space.settings(confirmation.best), confirmation.runs))
            self.confirmation_kept = True

    def _spent(self) -> float:
        return (self.spent_before_s + time.monotonic() - self.began) / self.budget_s

    def _cost(self, trial: Trial) -> float:
        point = self.space.settings(trial.point)
        alike = [visit for visit in self.visits if visit.settings == point] or self.visits
        return (median(visit.elapsed_s for visit in alike) if alike else self.scale.limit_s) / self.budget_s

    def _say(self, trial: Trial) -> None:
        stages = {"screen": "looking around", "explore": "exploring", "race": "racing", "confirm": "confirming"}
        settings = self.space.settings
        measured = any(result.value is not None for result in self.history.told)
        best = f"best so far: {typed(settings(self.history.best))}" if measured else ""
        self.progress.update(f"{stages[trial.stage]}: {typed(settings(trial.point))}", self._spent(), best)


_LIMIT_S, _LIMIT_FACTOR = 60.0, 20.0  # A hanging trial is killed after 60 s plus 20 times the time limit of a phase.
# Assumptions: number of trials in a search, and duration of a trial divided by the duration of its phases.
_TRIALS, _OVERHEAD = 100, 1.6
_PROCESSOR_RANKS = 4  # Maximum number of ranks per processor in a trial.
_SHORTEST_PHASE_S, _LONGEST_PHASE_S = 0.4, 20.0
_PILOT_S, _TRIAL_LIMIT_S = 0.3, 30.0
_LEAST_BYTES = 256 * KIB
# Minimum number of calls per rank in a trial, so that a single call takes at most 25 % of the trial.
_LEAST_CALLS = 4
_TRIED_BYTES = 64 * KIB
_PATIENCE_TIMES = 3.0  # Time limit of a phase, as a multiple of its planned duration.


def look(
    app: App, site: Site, hello: Hello, launch: Launch, budget_s: float, known: TrialSize | None = None
) -> tuple[Abilities, TrialSize, Mapping[str, Any], tuple[str, ...]]:
    """Test the directory. Return the system's abilities, the trial size, facts, and reasons for unusable interfaces.

    ``known``: trial size of a resumed search. It is reduced if a new search could not choose such a size.
    """
    target, engine, workspace = site.target, site.engine, site.workspace.path
    ranks, per_node = launch.ranks or min(app.ranks_per_node, _PROCESSOR_RANKS * len(os.sched_getaffinity(0))), None
    if launch.launcher != "local":
        ranks = processes(launch)
        per_node = launch.ranks_per_node or -(-ranks // max(1, len(launch.hosts)))
    striping = target.striping()
    facts = {
        **asdict(target.facts(workspace)),
        "path": str(target.path),
        "cpus": len(os.sched_getaffinity(0)),
        "striping": None if striping is None else asdict(striping),
    }
    room = limits(facts, memory_available_bytes(), full=False)
    result = engine.run(pilot_plan(ranks, *room, _PILOT_S, 0), workspace, "pilot", _TRIAL_LIMIT_S)
    if result.ended != "ok":
        raise failure(result.ended, result.errors, f"{workspace} (the pilot)", target)
    rate = pilot_from_samples(result.samples).write_bytes_per_s
    phases = len(app.phases) + any(phase.operation == "read" for phase in app.phases)
    phase_s = max(_SHORTEST_PHASE_S, min(budget_s / (_TRIALS * phases * _OVERHEAD), _LONGEST_PHASE_S))
    most = min(max(phase.data_bytes for phase in app.phases), room[0] // (2 * ranks))
    data = power_of_two_at_most(max(_LEAST_BYTES, min(rate * phase_s / ranks, most)))
    limit_s = _PATIENCE_TIMES * phase_s
    if known is not None:  # The free space may have become smaller since the search was stored.
        data = min(known.data_bytes, max(_LEAST_BYTES, 2 * most))
        limit_s = min(known.limit_s, _PATIENCE_TIMES * _LONGEST_PHASE_S)
    working, why_not = _interfaces(engine, workspace, hello, target)
    layout = target.layout(workspace)
    pools = target.describe().pools if layout is not None and layout.pool else ()
    scale = TrialSize(ranks, data, limit_s, ranks_per_node=per_node)
    able = Abilities(scale.ranks_of_a_node, data // _LEAST_CALLS, tuple(working), striping, layout, pools)
    return able, scale, {**facts, "ranks": ranks, "data_bytes": data, "phase_s": phase_s}, tuple(why_not)


def _interfaces(engine: Engine, workspace: Path, hello: Hello, target: Target) -> tuple[list[str], list[str]]:
    working, why_not = [], []
    for name, (backend, direct, depth) in INTERFACES.items():
        if backend not in hello.backends:
            why_not.append(f"{name}: {hello.absent.get(backend, {}).get('why', 'the engine does not have it')}")
            continue
        small = TransferPhase("try", "write", "file-per-process", "segmented", _TRIED_BYTES, _TRIED_BYTES)
        trial = replace(small, backend=backend, direct=direct, queue_depth=depth)
        tried = engine.run(Plan(1, (trial,)), workspace, "try", _TRIAL_LIMIT_S)
        if tried.ended == "ok":
            working.append(name)
        elif name == POSIX:
            raise failure(tried.ended, tried.errors, f"{workspace} ({name})", target)
        else:
            why_not.append(f"{name}: {tried.errors[0].why if tried.errors else tried.ended}")
    return working, why_not


def without_refused_layouts(space: SearchSpace, places: LayoutDirectories) -> tuple[SearchSpace, tuple[str, ...]]:
    """Return the search space without layouts that the file system refuses, and a text for each refused layout.

    Each layout is set once and read back. A layout that the file system changed counts as refused.
    """
    names = [factor.name for factor in space.factors if factor.name in LAYOUT_FACTORS]
    if not names:
        return space, ()
    wanted = dict.fromkeys(tuple(space.settings(point)[name] for name in names) for point in space.points)
    refused: dict[tuple[Setting, ...], str] = {}
    for levels in wanted:
        layout = layout_of(dict(zip(names, levels, strict=True)))
        for given in places.make([Cell("", "", {}, Plan(1, ()), (), layout=layout)]):
            if given.differences:
                refused[levels] = "; ".join(given.differences)
    if not refused:
        return space, ()
    as_asked = Constraint("files do not get this layout", lambda own: tuple(own[name] for name in names) not in refused)
    texts = tuple(f"{', '.join(map(str, levels))}: {why}" for levels, why in refused.items())
    left = replace(space, constraints=(*space.constraints, as_asked))
    only = {factor.name: [point[which] for point in left.points] for which, factor in enumerate(space.factors)}
    return narrowed(left, only), texts
