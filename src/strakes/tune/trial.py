"""One trial on the target, and what the store keeps of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strakes.advise.app import App
from strakes.errors import MeasurementError
from strakes.launch.engine import Engine
from strakes.launch.messages import PlanResult
from strakes.portrait.model import Setting
from strakes.studies.base import Cell, Measure
from strakes.survey.places import Places
from strakes.survey.watch import Watch
from strakes.targets.base import Target
from strakes.targets.workspace import Workspace
from strakes.tune.plans import Scale, goodness, layout_of, phase_name, plan_of
from strakes.tune.search import Observation, Rules, Trial
from strakes.tune.space import Space
from strakes.tune.system import as_set

# The engine ends a phase by its own limit; this is for one that cannot.
_LIMIT_S, _LIMIT_FACTOR = 60.0, 20.0


@dataclass(frozen=True)
class Bench:
    """Where trials are made."""

    app: App
    space: Space
    scale: Scale
    rules: Rules
    target: Target
    engine: Engine
    workspace: Workspace
    places: Places
    watch: Watch

    def run(self, trial: Trial, number: int, block: int) -> dict[str, Any]:
        """A visit as the store keeps it. Raises MeasurementError when the target failed, KeyboardInterrupt when it was cancelled."""
        settings = self.space.settings(trial.point)
        share = self.rules.low_share if trial.low else 1.0
        plan = plan_of(self.app, settings, self.scale, share)
        directory = self.places.of(layout_of(settings))
        assert directory is not None
        started_unix_s, started = time.time(), time.monotonic()
        with as_set(self.target, settings, self.space.settings(self.space.default)):
            self.watch.begin()
            result = self.engine.run(plan, directory, f"v{number}", _LIMIT_S + _LIMIT_FACTOR * self.scale.limit_s)
            counted = self.watch.end() if result.ended == "ok" else {}
        visit = {
            "visit": number,
            "block": block,
            "purpose": "confirm" if trial.stage == "confirm" else "measure",
            "cell": key_of(self.space, trial),
            "stage": trial.stage,
            "low": trial.low,
            "settings": settings,
            "started_unix_s": started_unix_s,
            "ended_unix_s": time.time(),
            "elapsed_s": time.monotonic() - started,
            "ended": result.ended,
            "samples": [dict(sample.raw) for sample in result.samples],
            "errors": [asdict(error) for error in result.errors],
            **counted,
        }
        if result.ended == "cancelled":
            raise KeyboardInterrupt
        if result.ended != "ok":
            if not result.cleaned and not self.workspace.answers():
                self.workspace.leave_alone()
            raise failure(result, directory, visit["cell"], self.target)
        return visit

    def cell(self, trial: Trial) -> Cell:
        """The trial's setting as a cell of the store."""
        settings = self.space.settings(trial.point)
        share = self.rules.low_share if trial.low else 1.0
        measures = tuple(Measure(phase_name(phase), "bytes_per_s", {"operation": phase.operation}) for phase in self.app.phases)
        plan = plan_of(self.app, settings, self.scale, share)
        shown: dict[str, Setting] = {"ranks": self.scale.ranks, **settings, **({"share_of_data": share} if trial.low else {})}
        return Cell("tune", key_of(self.space, trial), shown, plan, measures, layout=layout_of(settings))


def key_of(space: Space, trial: Trial) -> str:
    """The id of a setting, and of it with a share of the data."""
    return f"tune/{space.numbers[trial.point]}{'-low' if trial.low else ''}"


def observed(app: App, space: Space, visits: Sequence[Mapping[str, Any]], usual_s: Mapping[str, float]) -> list[Observation]:
    """The history of a search from what the store kept."""
    found = []
    for visit in visits:
        trial = Trial(space.point(visit["settings"]), visit["stage"], bool(visit["low"]))
        samples = {sample["name"]: sample for sample in visit["samples"]}
        found.append(Observation(trial, int(visit["block"]), goodness(app, samples, usual_s)))
    return found


def failure(result: PlanResult, directory: Path, key: str, target: Target) -> MeasurementError:
    """What the engine met, and which servers are not well."""
    trouble = " ".join(target.trouble())
    if result.errors:
        error = result.errors[0]
        where = ", ".join(f"{name} {value}" for name, value in error.where.items())
        why = f"{error.why.rstrip('.')}. {trouble}" if trouble else error.why
        return MeasurementError(error.what, where=f"{directory}, {where} ({key})", why=why, remedy=error.remedy)
    return MeasurementError(f"a trial ended as {result.ended!r}", where=f"{directory} ({key})", why=trouble)
