"""One trial of the study of recovery: a drill with one combination of settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from strakes.base.errors import MeasurementError
from strakes.base.units import counted
from strakes.control.drill_outcome import DrillOutcome
from strakes.control.drill_run import perform
from strakes.control.fault import Fault
from strakes.model.plan import Plan
from strakes.model.recovery_clients import WATCH, Timing
from strakes.model.sample import Sample
from strakes.runs.engine import Engine
from strakes.runs.messages import PlanResult
from strakes.targets.command import Servers
from strakes.targets.workspace import sweep


def drill_visit(
    make_fault: Callable[[Path], Fault], timing: Timing, root: Path, servers: Servers | None = None
) -> Callable[[Engine, Plan, Path, str, float], PlanResult]:
    """Return a function that runs a drill for one combination of settings in a study.

    The function raises MeasurementError if a client or a server did not recover. ``make_fault``: returns a new fault
    for a directory. ``root``: directory of the store.
    """

    def visit(engine: Engine, plan: Plan, workspace: Path, name: str, limit_s: float) -> PlanResult:
        fault = make_fault(workspace)
        fault.level()
        result, outcome = perform(
            engine, plan, workspace, name, limit_s, timing, fault, root, lambda _text: None, servers
        )
        left = sweep(workspace, name)
        if outcome.lacking:
            what = "the servers differ from their state before the drill"
            raise MeasurementError(what, where=str(workspace.parent), why=outcome.lacking)
        samples = tuple(_with_figures(sample, outcome) if sample.name == WATCH else sample for sample in result.samples)
        return replace(result, samples=samples, cleaned=not left, left=left)

    return visit


def _with_figures(sample: Sample, outcome: DrillOutcome) -> Sample:
    outages = outcome.line.outages
    if gone := outcome.line.gone:
        why = ", ".join(f"{count} {errno}" for errno, count in outcome.errors.items()) or "the drill ended too soon"
        raise MeasurementError(
            "some clients received no answers after the fail-over",
            where=f"{len(gone)} of {counted(len(outages), 'client')}: {', '.join(gone[:5])}",
            why=why,
            remedy="Check the servers' logs; strakes failover drill shows the time line.",
        )
    first_s, median_s, last_s = outcome.line.back_after_s or (0.0, 0.0, 0.0)
    drill = {
        "unanswered": outcome.unanswered,
        "outages": [[outage.client, outage.stall_s, outage.back_after_s, outage.hit] for outage in outages],
        "recoveries": [asdict(target) for target in outcome.line.targets],
    }
    judged = replace(
        sample, acknowledged=outcome.acknowledged, lost=outcome.lost, failed=outcome.failed, repeated=outcome.repeated
    )
    return replace(judged, recovery_first_s=first_s, recovery_median_s=median_s, recovery_last_s=last_s, drill=drill)
