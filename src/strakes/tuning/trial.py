"""One trial on the target, and what the store keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from strakes.advise.app import App
from strakes.findings.cell import Cell, Measure
from strakes.measure.visit import INTERRUPTED, MOST_INTERRUPTED, Site, make_visit, require_end
from strakes.store.records import Visit
from strakes.targets.description import Interruption
from strakes.tune.plans import TrialSize, goodness, layout_of, phase_name, plan_of
from strakes.tune.search import Rules, Stage, Trial, TrialResult
from strakes.tune.space import SearchSpace
from strakes.tuning.system import as_set

# The engine ends a phase by its own limit; this is for one that cannot.
_LIMIT_S, _LIMIT_FACTOR = 60.0, 20.0


@dataclass(frozen=True)
class Bench:
    """Where trials are made."""

    app: App
    space: SearchSpace
    scale: TrialSize
    rules: Rules
    site: Site

    def run(self, trial: Trial, number: int, block: int) -> Visit:
        """Make a visit. Raises MeasurementError when the target failed, KeyboardInterrupt when it was cancelled."""
        settings, default = self.space.settings(trial.point), self.space.settings(self.space.default)
        purpose = "confirm" if trial.stage == "confirm" else "measure"
        planned = Visit(number, block, purpose, stage=trial.stage, low=trial.low, settings=settings)
        limit_s = _LIMIT_S + _LIMIT_FACTOR * self.scale.limit_s
        interruptions: list[Interruption] = []
        for _ in range(MOST_INTERRUPTED):
            conditions = as_set(self.site.target, settings, default)
            visit = make_visit(self.site, self.cell(trial), planned, limit_s, conditions=conditions)
            interruptions += visit.interruptions
            if visit.ended != INTERRUPTED:
                break
        require_end(visit, self.site)
        return replace(visit, interruptions=tuple(interruptions))

    def cell(self, trial: Trial) -> Cell:
        """Return the trial's setting as a cell of the store."""
        settings = self.space.settings(trial.point)
        share = self.rules.low_share if trial.low else 1.0
        measures = tuple(
            Measure(phase_name(phase), "bytes_per_s", {"operation": phase.operation}) for phase in self.app.phases
        )
        plan = plan_of(self.app, settings, self.scale, share)
        shown = {"ranks": self.scale.ranks, **settings, **({"share_of_data": share} if trial.low else {})}
        return Cell("tune", key_of(self.space, trial), shown, plan, measures, layout=layout_of(settings))


def key_of(space: SearchSpace, trial: Trial) -> str:
    """Return the id of a setting, and of it with a share of the data."""
    return f"tune/{space.numbers[trial.point]}{'-low' if trial.low else ''}"


def observed(app: App, space: SearchSpace, visits: Sequence[Visit], usual_s: Mapping[str, float]) -> list[TrialResult]:
    """Return the history of a search from what the store kept."""
    return [TrialResult(_trial_of(visit, space), visit.block, goodness(app, visit, usual_s)) for visit in visits]


def _trial_of(visit: Visit, space: SearchSpace) -> Trial:
    return Trial(space.point(visit.settings), cast("Stage", visit.stage), visit.low)
