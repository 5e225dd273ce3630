"""The survey itself: prepares, measures in blocks, confirms, and leaves nothing behind."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, replace

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.launch.choice import engine_for
from strakes.launch.messages import Hello
from strakes.neighbour.neighbour import neighbour_in
from strakes.store import RunWriter, Store
from strakes.store.ending import ended_in_order
from strakes.survey.blocks import measure_in_blocks
from strakes.survey.choosing import chosen_cells, target_facts
from strakes.survey.confirming import confirm
from strakes.survey.places import Places
from strakes.survey.placing import laid_out, placed
from strakes.survey.request import Progress, Request
from strakes.survey.sequence import measure_in_sequence
from strakes.survey.session import Session, Side
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.calls import UnansweredError
from strakes.targets.ceph.inside import inside
from strakes.targets.registry import detect
from strakes.targets.workspace import Workspace


def perform(request: Request, store: Store, progress: Progress) -> RunWriter:
    """Runs the request to its end and returns the closed run.

    Raises BadInputError before the target is touched, EnvironmentLacksError without an engine, MeasurementError when the target fails;
    KeyboardInterrupt ends it in order. In every case the run keeps what was measured and the target is left as it was.
    """
    for study in request.studies:
        if study.interrupts_service and request.visit is None:
            remedy = f"By itself: strakes study {study.name} DIR --yes-this-interrupts-service"
            raise BadInputError(f"{study.name} interrupts the service, and nobody asked for that", remedy=remedy)
    if request.neighbour_s is not None and request.visit is not None:
        raise BadInputError("--neighbour has no meaning for a study that interrupts the service", remedy="Leave it out.")
    target = detect(request.directory)
    try:
        return _perform(request, target, store, progress)
    except UnansweredError as error:
        raise error.naming(target.trouble()) from error


def _perform(request: Request, target: Target, store: Store, progress: Progress) -> RunWriter:
    with engine_for(request.launch) as engine:
        engine.impact = request.impact
        hello = engine.start()
        if request.libcephfs:
            _require_libcephfs(request, hello)
        if request.resume is None:
            environment = {**target.environment(), "engine": asdict(hello)}
            writer = store.create(request.kind, request.name, request.directory, request.options(), environment)
        else:
            writer = store.resume(request.resume or None, request.fingerprint())
            if dict(hello.nodes) != writer.run.environment["engine"].get("nodes", {}):
                writer.append_event({"event": "other-nodes", "nodes": list(hello.nodes)})
            request = replace(request, seed=writer.run.manifest["options"]["seed"])
        # What a population has grown to is gone on with, where it was kept; its budget is for each time by itself.
        grows = any(study.visits_in_sequence for study in request.studies)
        with ended_in_order(store, writer, resumable=request.keep or not grows), ExitStack() as stack:
            visits = list(writer.run.visits)
            adopt = bool(visits) and grows
            spent_s = 0.0 if grows else sum(visit["elapsed_s"] for visit in visits)
            sides = {"": _side(stack, target, writer.id, keep=request.keep, adopt=adopt)}
            if request.against is not None:
                sides["against"] = _side(stack, detect(request.against), f"{writer.id}.against", keep=request.keep, adopt=adopt)
            neighbour = None
            if request.neighbour_s is not None:
                progress.update("how long other people's operations take before anything is measured", 0.0, "")
                beside = stack.enter_context(Workspace.create(target.path, f"{writer.id}.neighbour"))
                neighbour = stack.enter_context(neighbour_in(request.neighbour_s, beside, writer))
            session = Session(request, writer, engine, sides, progress, time.monotonic(), spent_s, visits, neighbour)
            facts = target_facts(session)
            # Comparing nodes takes its seconds, and is not what the budget is for.
            session.started = time.monotonic()
            cells, phase_s = chosen_cells(session, facts)
            cells = placed(session, laid_out(session, cells))
            whole = True
            if grows:
                whole = measure_in_sequence(session, cells, phase_s)
            else:
                measure_in_blocks(session, cells, phase_s, facts)
                confirm(session, cells, facts)
            progress.update("cleaning up", 1.0, "")
    writer.finish("complete" if whole else "partial")
    return writer


def _require_libcephfs(request: Request, hello: Hello) -> None:
    """Raises EnvironmentLacksError for an engine without it, BadInputError for a directory that is not on CephFS."""
    if why := hello.absent.get("cephfs"):
        raise EnvironmentLacksError("the engine cannot use libcephfs", why=why["why"], remedy=why["remedy"])
    for directory in filter(None, (request.directory, request.against)):
        inside(directory)


def _side(stack: ExitStack, target: Target, run_id: str, *, keep: bool, adopt: bool) -> Side:
    workspace = stack.enter_context(Workspace.create(target.path, run_id, keep=keep, adopt=adopt))
    return Side(workspace, target, Places(workspace.path, target), Watch(target))
