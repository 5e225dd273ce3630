"""Start of a run: create it in the store or resume it, and make its workspace on the target."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from strakes.base.interrupts import interrupts_deferred
from strakes.runs.engine import Engine
from strakes.runs.messages import Hello
from strakes.runs.records import NodesChanged
from strakes.runs.store import Store
from strakes.runs.writer import RunWriter
from strakes.studies.layout_directories import Places
from strakes.studies.measure_visit import Site
from strakes.studies.measure_watch import TargetWatch
from strakes.targets.target import Target
from strakes.targets.workspace import Workspace


def begin_run(
    store: Store,
    kind: str,
    name: str,
    directory: Path,
    options: Mapping[str, object],
    target: Target,
    hello: Hello,
    resume: str | None,
) -> RunWriter:
    """Begin a new run if ``resume`` is None, otherwise resume it ("": the newest run with the same fingerprint)."""
    if resume is None:
        return store.create(kind, name, directory, options, {**target.environment(), "engine": asdict(hello)})
    writer = store.resume(resume or None, str(options["fingerprint"]))
    if dict(hello.nodes) != writer.run.environment["engine"].get("nodes", {}):
        writer.append_event(NodesChanged(tuple(hello.nodes)))
    return writer


def open_site(
    stack: ExitStack, engine: Engine, target: Target, run_id: str, *, keep: bool, adopt: bool = False
) -> Site:
    """Make a workspace on the target; leaving ``stack`` removes it unless ``keep`` is set."""
    with interrupts_deferred():
        workspace = stack.enter_context(Workspace.create(target.path, run_id, keep=keep, adopt=adopt))
    return Site(engine, target, workspace, Places(workspace.path, target), TargetWatch(target))
