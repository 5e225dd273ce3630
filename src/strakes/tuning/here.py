"""Probes a target before the search: working interfaces and layouts, and the amount of data of a trial."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from strakes.base.units import KIB
from strakes.model.cell import Cell
from strakes.model.phases import TransferPhase
from strakes.model.plan import Plan
from strakes.model.portrait import Setting
from strakes.runs.choice import processes
from strakes.runs.engine import Engine
from strakes.runs.launch import Launch
from strakes.runs.messages import Hello
from strakes.studies.measure_directories import LayoutDirectories
from strakes.studies.measure_visit import Site, failure
from strakes.studies.study import power_of_two_at_most
from strakes.survey.pilot import pilot_from_samples, pilot_plan
from strakes.survey.preparation import limits, memory_available_bytes
from strakes.targets.target import Target
from strakes.tuning.advise_app import App
from strakes.tuning.tune_offers import INTERFACES, LAYOUT_FACTORS, POSIX, Abilities
from strakes.tuning.tune_plans import TrialSize, layout_of
from strakes.tuning.tune_space import Constraint, SearchSpace

# Default ranks of a trial: the ranks of a node of the application, but at most this many per processor.
_PROCESSOR_RANKS = 4
# Planned number of full trials, and the cost of a trial relative to its timed phases.
_TRIALS, _OVERHEAD = 100, 1.6
_SHORTEST_PHASE_S, _LONGEST_PHASE_S = 0.4, 20.0
_PILOT_S, _TRIAL_LIMIT_S = 0.3, 30.0
_LEAST_BYTES = 256 * KIB
# The largest transfer is this part of a rank's data; halved, one call would be half of a trial.
_LEAST_CALLS = 4
_TRIED_BYTES = 64 * KIB
# A phase ends after this multiple of its planned time.
_PATIENCE_TIMES = 3.0


@dataclass(frozen=True)
class Here:
    """The abilities of a target; ``why_not`` names interfaces that do not work, with the reason."""

    able: Abilities
    scale: TrialSize
    facts: Mapping[str, Any]
    why_not: tuple[str, ...]


def team(app: App, launch: Launch) -> tuple[int, int | None]:
    """Ranks of a trial, and of each node of it (None: all are on this one)."""
    if launch.launcher != "local":
        ranks = processes(launch)
        return ranks, launch.ranks_per_node or -(-ranks // max(1, len(launch.hosts)))
    return launch.ranks or min(app.ranks_per_node, _PROCESSOR_RANKS * len(os.sched_getaffinity(0))), None


def look(app: App, site: Site, hello: Hello, launch: Launch, budget_s: float) -> Here:
    """Try every interface once, and choose amounts so that a search fits the budget."""
    target, engine, workspace = site.target, site.engine, site.workspace.path
    ranks, per_node = team(app, launch)
    striping = target.striping()
    facts = {
        **asdict(target.facts(workspace)),
        "path": str(target.path),
        "cpus": len(os.sched_getaffinity(0)),
        "striping": None if striping is None else asdict(striping),
        "link_bytes_per_s": _link_bytes_per_s(),
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
    working, why_not = _interfaces(engine, workspace, hello, target)
    layout = target.layout(workspace)
    pools = target.describe().pools if layout is not None and layout.pool else ()
    able = Abilities(ranks, data // _LEAST_CALLS, working, striping, layout, pools)
    scale = TrialSize(ranks, data, _PATIENCE_TIMES * phase_s, ranks_per_node=per_node)
    return Here(able, scale, {**facts, "ranks": ranks, "data_bytes": data, "phase_s": phase_s}, why_not)


def _interfaces(
    engine: Engine, workspace: Path, hello: Hello, target: Target
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the interfaces that work, and why others do not."""
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
    return tuple(working), tuple(why_not)


def _link_bytes_per_s(network: Path = Path("/sys/class/net")) -> float:
    """Return the rate of the fastest link that is up, 0 if unknown."""
    speeds = []
    for speed in network.glob("*/speed"):
        try:
            if (speed.parent / "operstate").read_text().strip() == "up":
                speeds.append(int(speed.read_text()))
        except (OSError, ValueError):
            continue
    return max([0, *speeds]) * 1e6 / 8


def without_refused_layouts(space: SearchSpace, places: LayoutDirectories) -> tuple[SearchSpace, tuple[str, ...]]:
    """Return the space without layouts that files do not get as they were asked for, each made once and read back.

    And which those are.
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
    given_as_asked = Constraint(
        "files do not get this layout", lambda settings: tuple(settings[name] for name in names) not in refused
    )
    texts = tuple(f"{', '.join(map(str, levels))}: {why}" for levels, why in refused.items())
    constraints = (*space.constraints, given_as_asked)
    possible = SearchSpace(space.factors, constraints).points
    # Levels without an allowed combination are dropped.
    levels_left = [{point[which] for point in possible} for which in range(len(space.factors))]
    factors = [
        replace(factor, levels=tuple(level for level in factor.levels if level in kept))
        for factor, kept in zip(space.factors, levels_left, strict=True)
    ]
    return SearchSpace(tuple(factors), constraints), texts
