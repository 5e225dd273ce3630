"""A visit of a study that is a drill: its plan with a fault in the middle, and what came of it."""

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
from strakes.runs.engine import Engine, sweep
from strakes.runs.messages import PlanResult
from strakes.targets.command import Servers


class DrillVisit:
    """A drill as a visit; ``make_fault`` gives the fault for the file system of a directory, ``root`` is the store."""

    def __init__(
        self, make_fault: Callable[[Path], Fault], timing: Timing, root: Path, servers: Servers | None = None
    ) -> None:
        self._make_fault, self._timing, self._root, self._servers = make_fault, timing, root, servers

    def __call__(self, engine: Engine, plan: Plan, workspace: Path, name: str, limit_s: float) -> PlanResult:
        """Do one drill. Raises MeasurementError where a client, or a server, did not come back."""
        fault = self._make_fault(workspace)
        fault.level()
        result, outcome = perform(
            engine,
            plan,
            workspace,
            name,
            limit_s,
            self._timing,
            fault,
            self._root,
            lambda _text: None,
            servers=self._servers,
        )
        left = sweep(workspace, name)
        if outcome.lacking:
            raise MeasurementError(
                "the servers differ from their state before the drill", where=str(workspace.parent), why=outcome.lacking
            )
        samples = tuple(_with_figures(sample, outcome) if sample.name == WATCH else sample for sample in result.samples)
        return replace(result, samples=samples, cleaned=not left, left=left)


def _with_figures(sample: Sample, outcome: DrillOutcome) -> Sample:
    if gone := outcome.line.gone:
        raise MeasurementError(
            "not every client got answers again after the fail-over",
            where=f"{len(gone)} of {counted(len(outcome.line.outages), 'client')}: {', '.join(gone[:5])}",
            why=", ".join(f"{count} {errno}" for errno, count in outcome.errors.items()) or "the drill ended too soon",
            remedy="Check the servers' logs; strakes failover drill shows the time line.",
        )
    # Nobody noticed it: then nobody had to wait until it was over.
    back = outcome.line.back_after_s or (0.0, 0.0, 0.0)
    return replace(
        sample,
        recovery_first_s=back[0],
        recovery_median_s=back[1],
        recovery_last_s=back[2],
        acknowledged=outcome.acknowledged,
        lost=outcome.lost,
        failed=outcome.failed,
        repeated=outcome.repeated,
        drill={
            "unanswered": outcome.unanswered,
            "outages": [
                [outage.client, outage.stall_s, outage.back_after_s, outage.hit] for outage in outcome.line.outages
            ],
            "recoveries": [asdict(target) for target in outcome.line.targets],
        },
    )
