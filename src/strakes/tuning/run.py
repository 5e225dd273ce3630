"""Runs a search on a file system: probes it, measures block by block, confirms, and cleans up."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from statistics import median

from strakes.base.errors import BadInputError
from strakes.runs.choice import engine_for
from strakes.runs.messages import Hello
from strakes.runs.records import ConfirmationBegun, FactsFound, Visit
from strakes.runs.store import Store, ended_in_order
from strakes.runs.watchdog import servers_watched
from strakes.runs.writer import RunWriter
from strakes.studies.measure_visit import Site, begin_run, open_site
from strakes.survey.request import ProgressDisplay
from strakes.targets.calls import UnansweredError
from strakes.targets.registry import detect
from strakes.targets.target import Target
from strakes.tuning.here import look, without_refused_layouts
from strakes.tuning.request import KIND, TuningRequest
from strakes.tuning.trial import (
    Bench,
    confirmation_of,
    knob_factors,
    observed,
    preparation_of,
    space_event,
    usual_of,
)
from strakes.tuning.tune_offers import narrowed, offers
from strakes.tuning.tune_plans import TrialSize, has_shares
from strakes.tuning.tune_search import Rules, Search, Trial
from strakes.tuning.tune_space import SearchSpace
from strakes.tuning.tune_words import levels_from, typed


def perform(request: TuningRequest, store: Store, progress: ProgressDisplay) -> RunWriter:
    """Search to the end of the budget and return the closed run.

    Raises BadInputError before the target is touched, EnvironmentLacksError without an engine, MeasurementError when
    the target fails; KeyboardInterrupt ends it in order. In every case the run keeps its measurements, and target and
    system are restored.
    """
    target = detect(request.directory, request.servers)
    try:
        with servers_watched([target], progress.note):
            if unread := target.unread_server():
                raise unread
            return _perform(request, target, store, progress)
    except UnansweredError as error:
        raise error.naming(target.trouble()) from error


def _perform(request: TuningRequest, target: Target, store: Store, progress: ProgressDisplay) -> RunWriter:
    with engine_for(request.launch) as engine:
        hello = engine.start()
        options = request.options()
        writer = begin_run(store, KIND, request.app.title, request.directory, options, target, hello, request.resume)
        if request.resume is not None:
            request = replace(request, seed=writer.run.manifest["options"]["seed"])
        with ended_in_order(store, writer), ExitStack() as stack:
            site = open_site(stack, engine, target, writer.id, keep=request.keep)
            _Session(request, writer, site, hello, progress).search()
            progress.update("cleaning up", 1.0, "")
    writer.finish("complete")
    return writer


class _Session:
    """The state of a running search."""

    def __init__(
        self, request: TuningRequest, writer: RunWriter, site: Site, hello: Hello, progress: ProgressDisplay
    ) -> None:
        self.request, self.writer, self.site, self.hello, self.progress = request, writer, site, hello, progress
        self.visits = list(writer.run.visits)
        self.cells = {cell.key: cell for cell in writer.run.cells}
        looked = time.monotonic()
        self.spent_before_s: float = sum(visit.elapsed_s for visit in self.visits)
        progress.update("probing the file system", 0.0, "")
        space, scale, rules = self._prepare()
        self.bench = Bench(request.app, space, scale, rules, site)
        # The shares of the stages are of what the look at the target left, half of the budget at least.
        self.began = time.monotonic()
        self.budget_s = max(request.budget_s - (self.began - looked), request.budget_s / 2)
        self.history = Search(space, request.seed, rules, confirmation=confirmation_of(writer.run))
        self.confirmation_kept = self.history.confirmation is not None
        for observation in observed(request.app, space, self.visits):
            self.history.tell(observation)

    def _prepare(self) -> tuple[SearchSpace, TrialSize, Rules]:
        """Return the space, the amounts and the rules; a resumed run has them in its records."""
        request = self.request
        rules = Rules(confidence=request.confidence)
        stored = preparation_of(self.writer.run)
        if stored is not None:
            space, scale = stored
            space, _ = without_refused_layouts(space, self.site.places)
            return space, scale, rules
        here = look(request.app, self.site, self.hello, request.launch, request.budget_s)
        factors, refused = knob_factors(self.site.target, request.knobs)
        offered = offers(request.app, here.able)
        space = SearchSpace((*offered.factors, *factors), offered.constraints)
        space = narrowed(space, levels_from(space, request.only))
        space, not_given = without_refused_layouts(space, self.site.places)
        if len(space.points) < 2:
            why = typed(space.settings(space.default))
            remedy = "Allow more levels with --only."
            raise BadInputError("there is nothing to search: only one setting is possible", why=why, remedy=remedy)
        scale = replace(here.scale, seed=request.seed)
        facts = {key: value for key, value in here.facts.items() if key != "path"}
        self.writer.append_event(FactsFound({**facts, "path": str(here.facts["path"])}))
        self.writer.append_event(space_event(space, scale, (*here.why_not, *refused, *not_given)))
        return space, scale, rules

    def search(self) -> None:
        """Search until the budget or the search ends."""
        while trials := self.history.next_block(self._spent(), self._cost):
            self._remember_confirmation()
            block = self.history.blocks
            app, space = self.request.app, self.bench.space
            if has_shares(app) and not usual_of(app, space, self.visits):
                # The default is measured first; its times weight the phases.
                trials = [Trial(space.default, "screen"), *trials]
            for trial in trials:
                self._say(trial)
                self._keep(self.bench.run(trial, len(self.visits), block), trial)
        self._remember_confirmation()

    def _keep(self, visit: Visit, trial: Trial) -> None:
        cell = self.bench.cell(trial)
        if cell.key not in self.cells:
            self.cells[cell.key] = cell
            self.writer.write_cells(self.cells.values())
        self.writer.append_visit(visit)
        self.visits.append(visit)
        self.history.tell(observed(self.request.app, self.bench.space, self.visits)[-1])

    def _remember_confirmation(self) -> None:
        confirmation = self.history.confirmation
        if confirmation is not None and not self.confirmation_kept:
            self.writer.append_event(ConfirmationBegun(self.bench.space.settings(confirmation.best), confirmation.runs))
            self.confirmation_kept = True

    def _spent(self) -> float:
        return (self.spent_before_s + time.monotonic() - self.began) / self.budget_s

    def _cost(self, trial: Trial) -> float:
        """Return the share of the budget it is expected to take: as its own runs did, or all runs."""
        point = self.bench.space.settings(trial.point)
        alike = [visit for visit in self.visits if visit.settings == point] or self.visits
        return (median(visit.elapsed_s for visit in alike) if alike else self.bench.scale.limit_s) / self.budget_s

    def _say(self, trial: Trial) -> None:
        stages = {"screen": "looking around", "explore": "exploring", "race": "racing", "confirm": "confirming"}
        settings = self.bench.space.settings
        measured = any(result.value is not None for result in self.history.told)
        best = f"best so far: {typed(settings(self.history.best))}" if measured else ""
        self.progress.update(f"{stages[trial.stage]}: {typed(settings(trial.point))}", self._spent(), best)
