"""Carry out a survey or study: prepare, measure in rounds, and remove all files."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, replace

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.interrupts import interrupts_deferred
from strakes.base.units import typed_seconds
from strakes.runs.choice import engine_for, with_launcher
from strakes.runs.messages import Hello
from strakes.runs.run import told_as_damage
from strakes.runs.store import Store, ended_in_order
from strakes.runs.watchdog import servers_watched
from strakes.runs.writer import RunWriter
from strakes.studies.measure_visit import begin_run, open_site
from strakes.survey.blocks import measure_in_blocks, measure_in_sequence
from strakes.survey.choosing import gather_facts, settle_cells
from strakes.survey.placing import make_layouts, place_cells, settable_cells
from strakes.survey.preparation import refuse_amounts
from strakes.survey.request import ProgressDisplay, Request
from strakes.survey.session import BESIDE, Session, note_ends, note_others, note_trouble
from strakes.targets.calls import UnansweredError
from strakes.targets.registry import detect
from strakes.targets.target import Target
from strakes.targets.workspace import Workspace

# Minimum budget in seconds for a pilot, one measurement and the report.
_LEAST_S = 5.0


def perform(request: Request, store: Store, progress: ProgressDisplay) -> RunWriter:
    """Carry out a request and return the completed run.

    Raises BadInputError before anything is written, EnvironmentLacksError without an engine, and MeasurementError if
    the file system fails. After an error or Ctrl-C, the run keeps its samples, and changed settings are restored.
    """
    for study in request.studies:
        if study.interrupts_service and request.visit is None:
            remedy = f"Run it alone: strakes study {study.name} DIR --yes-this-interrupts-service"
            raise BadInputError(
                f"the study {study.name} interrupts the service, and you have not agreed to that", remedy=remedy
            )
    if request.neighbour_s is not None and request.visit is not None:
        raise BadInputError(
            "--neighbour cannot be used with a study that interrupts the service", remedy="Leave out --neighbour."
        )
    if request.budget_s < _LEAST_S:
        progress.note(
            f"a budget of {typed_seconds(request.budget_s)} is too short for a pilot, one measurement and the report: "
            f"expect about {typed_seconds(_LEAST_S)}, more on a slow file system"
        )
    target = detect(request.directory, request.servers)
    try:
        sides = [target, *([detect(request.against, request.servers)] if request.against else [])]
        with servers_watched(sides if request.visit is None else []):
            for side in sides:
                side.require_answers()
                if request.amounts():
                    refuse_amounts(request, asdict(side.facts()), len(os.sched_getaffinity(0)))
            return _perform(request, target, store, progress)
    except UnansweredError as error:
        raise target.named(error) from None


def _perform(request: Request, target: Target, store: Store, progress: ProgressDisplay) -> RunWriter:
    checked = nullcontext() if request.like is None else told_as_damage(request.like)
    with checked, engine_for(request.launch) as engine:
        engine.impact = request.impact
        hello = engine.start()
        if request.libcephfs:
            _require_libcephfs(request, hello)
        options = request.options(target.path)
        writer = begin_run(store, request.kind, request.name, request.directory, options, target, hello, request.resume)
        grows = any(study.visits_in_sequence for study in request.studies)
        with ended_in_order(store, writer, resumable=request.keep or not grows), ExitStack() as stack:
            if request.resume:
                request = replace(request, seed=writer.run.manifest["options"]["seed"])
            visits = list(writer.run.visits)
            adopt = bool(visits) and grows
            spent_s = 0.0 if grows else sum(visit.elapsed_s for visit in visits)
            sides = {"": open_site(stack, engine, target, writer.id, keep=request.keep, adopt=adopt)}
            if request.against is not None:
                other = detect(request.against, request.servers)
                sides["against"] = open_site(
                    stack, engine, other, f"{writer.id}.against", keep=request.keep, adopt=adopt
                )
            for number, directory in enumerate(request.beside, 2):
                other = detect(directory, request.servers)
                sides[f"{BESIDE}{number}"] = open_site(stack, engine, other, f"{writer.id}.{number}", keep=False)
            engine.beside = tuple(side.workspace.path for name, side in sides.items() if name.startswith(BESIDE))
            neighbour = None
            if request.neighbour_s is not None:
                from strakes.studies.neighbour import neighbour_in

                progress.update("measuring the latency of other users' operations without load", 0.0, "")
                with interrupts_deferred():
                    beside = stack.enter_context(Workspace.create(target.path, f"{writer.id}.neighbour"))
                neighbour = stack.enter_context(neighbour_in(request.neighbour_s, beside, writer))
            progress.resumed(spent_s)
            session = Session(request, writer, engine, sides, progress, time.monotonic(), spent_s, visits, neighbour)
            facts = gather_facts(session)
            note_trouble(session, "before")
            note_others(session, "before")
            session.started = time.monotonic()
            cells, phase_s = settle_cells(session, facts)
            cells = settable_cells(session, place_cells(session, make_layouts(session, cells)))
            whole = True
            if grows:
                whole = measure_in_sequence(session, cells, phase_s)
            else:
                measure_in_blocks(session, cells, phase_s, facts)
            note_others(session, "after")
            note_trouble(session, "after")
            note_ends(session)
            progress.update("cleaning up", 1.0, "")
    writer.finish("complete" if whole else "partial")
    return writer


def _require_libcephfs(request: Request, hello: Hello) -> None:
    from strakes.targets.ceph_tool import inside

    if why := hello.absent.get("cephfs"):
        remedy = with_launcher(why["remedy"])
        raise EnvironmentLacksError("the engine cannot use libcephfs", why=why["why"], remedy=remedy)
    for directory in filter(None, (request.directory, request.against)):
        inside(directory)
