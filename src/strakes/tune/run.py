"""The search on a real file system: looks what can be done, measures block by block, confirms, and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from statistics import median
from typing import Any

from strakes.errors import BadInputError
from strakes.launch.choice import engine_for
from strakes.launch.engine import Engine
from strakes.launch.messages import Hello
from strakes.portrait.collect import cell_record
from strakes.store import RunWriter, Store
from strakes.store.ending import ended_in_order
from strakes.survey.places import Places
from strakes.survey.request import Progress
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.calls import UnansweredError
from strakes.targets.registry import detect
from strakes.targets.workspace import Workspace
from strakes.tune import record
from strakes.tune.here import laid_out, look
from strakes.tune.offers import narrowed, offers
from strakes.tune.plans import Scale, has_shares, seconds_per_byte
from strakes.tune.request import KIND, Request
from strakes.tune.search import Rules, Search, Trial
from strakes.tune.space import Space
from strakes.tune.system import knob_factors
from strakes.tune.trial import Bench, observed
from strakes.tune.words import levels_from, typed


def perform(request: Request, store: Store, progress: Progress) -> RunWriter:
    """Searches to the end of the budget and returns the closed run.

    Raises BadInputError before the target is touched, EnvironmentLacksError without an engine, MeasurementError when the target fails;
    KeyboardInterrupt ends it in order. In every case the run keeps what was measured, and target and system are left as they were.
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
            writer = store.create(KIND, request.app.title, request.directory, request.options(), environment)
        else:
            writer = store.resume(request.resume or None, request.fingerprint())
            request = replace(request, seed=writer.run.manifest["options"]["seed"])
        with ended_in_order(store, writer), ExitStack() as stack:
            workspace = stack.enter_context(Workspace.create(target.path, writer.id, keep=request.keep))
            _Session(request, writer, target, workspace, engine, hello, progress).search()
            progress.update("cleaning up", 1.0, "")
    writer.finish("complete")
    return writer


class _Session:
    """Everything alive during a search."""

    def __init__(
        self,
        request: Request,
        writer: RunWriter,
        target: Target,
        workspace: Workspace,
        engine: Engine,
        hello: Hello,
        progress: Progress,
    ) -> None:
        self.request, self.writer, self.target, self.workspace = request, writer, target, workspace
        self.engine, self.hello, self.progress = engine, hello, progress
        self.visits: list[dict[str, Any]] = list(writer.run.visits)
        self.cells = {cell["key"]: cell for cell in writer.run.cells}
        looked = time.monotonic()
        self.spent_before_s: float = sum(visit["elapsed_s"] for visit in self.visits)
        progress.update("looking what can be tried here", 0.0, "")
        places = Places(workspace.path, target)
        space, scale, rules = self._prepared(places)
        self.bench = Bench(request.app, space, scale, rules, target, engine, workspace, places, Watch(target))
        # The shares of the stages are of what the look at the target left, half of the budget at least.
        self.began = time.monotonic()
        self.budget_s = max(request.budget_s - (self.began - looked), request.budget_s / 2)
        events = writer.run.events
        self.usual_s: Mapping[str, float] = record.usual_of(events)
        self.history = Search(space, request.seed, rules, confirmation=record.confirmation_of(events))
        self.confirmation_kept = self.history.confirmation is not None
        for observation in observed(request.app, space, self.visits, self.usual_s):
            self.history.tell(observation)

    def _prepared(self, places: Places) -> tuple[Space, Scale, Rules]:
        """What is searched, chosen after a look at the target; as stored when the run is resumed."""
        request = self.request
        rules = Rules(confidence=request.confidence)
        stored = record.preparation_of(self.writer.run.events)
        if stored is not None:
            space, scale = stored
            space, _ = laid_out(space, places)
            return space, scale, rules
        here = look(
            request.app, self.target, self.workspace.path, self.engine, self.hello, request.launch, request.budget_s, rules.low_share
        )
        factors, refused = knob_factors(self.target, request.knobs)
        offered = offers(request.app, here.able)
        space = Space((*offered.factors, *factors), offered.constraints)
        space = narrowed(space, levels_from(space, request.only))
        space, not_given = laid_out(space, places)
        if len(space.points) < 2:
            raise BadInputError(
                "there is nothing to choose between", why=typed(space.settings(space.default)), remedy="Vary more (--only)."
            )
        scale = replace(here.scale, seed=request.seed)
        for event in record.events_of(space, scale, here, (*here.why_not, *refused, *not_given)):
            self.writer.append_event(event)
        return space, scale, rules

    def search(self) -> None:
        """To the end of the budget, or of the search."""
        while trials := self.history.next_block(self._spent(), self._cost):
            self._remember_confirmation()
            block = self.history.blocks
            if not self.usual_s and has_shares(self.request.app):
                # What the phases are weighed by: the default as it is now, measured once and then fixed.
                trials = [Trial(self.bench.space.default, "screen", trials[0].low), *trials]
            for trial in trials:
                self._say(trial)
                self._keep(self.bench.run(trial, len(self.visits), block), trial)
        self._remember_confirmation()

    def _keep(self, visit: dict[str, Any], trial: Trial) -> None:
        cell = self.bench.cell(trial)
        if cell.key not in self.cells:
            self.cells[cell.key] = cell_record(cell)
            self.writer.write_cells(list(self.cells.values()))
        self.writer.append_visit(visit)
        self.visits.append(visit)
        if not self.usual_s and has_shares(self.request.app):
            samples = {sample["name"]: sample for sample in visit["samples"]}
            self.usual_s = seconds_per_byte(self.request.app, samples)
            self.writer.append_event({"event": "usual", "seconds_per_byte": dict(self.usual_s)})
        (observation,) = observed(self.request.app, self.bench.space, [visit], self.usual_s)
        self.history.tell(observation)

    def _remember_confirmation(self) -> None:
        found = self.history.confirmation
        if found is not None and not self.confirmation_kept:
            self.writer.append_event(record.confirmation_event(self.bench.space, found))
            self.confirmation_kept = True

    def _spent(self) -> float:
        return (self.spent_before_s + time.monotonic() - self.began) / self.budget_s

    def _cost(self, trial: Trial) -> float:
        """The share of the budget it is expected to take: as its own runs did, or all of its kind."""
        point = self.bench.space.settings(trial.point)
        own = [visit["elapsed_s"] for visit in self.visits if visit["settings"] == point and visit["low"] == trial.low]
        alike = own or [visit["elapsed_s"] for visit in self.visits if visit["low"] == trial.low]
        guess = self.bench.scale.limit_s * (self.bench.rules.low_share if trial.low else 1.0)
        return float(median(alike) if alike else guess) / self.budget_s

    def _say(self, trial: Trial) -> None:
        words = {"screen": "looking around", "explore": "exploring", "race": "racing", "confirm": "confirming"}[trial.stage]
        best = ""
        if any(one.value is not None and not one.trial.low for one in self.history.told):
            best = f"best so far: {typed(self.bench.space.settings(self.history.best))}"
        self.progress.update(f"{words}: {typed(self.bench.space.settings(trial.point))}", self._spent(), best)
