"""A visit of a study that is a drill: its plan with a fault in the midst, and what came of it beside the engine's own figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from strakes.errors import MeasurementError
from strakes.failover.drill.clients import WATCH, Timing
from strakes.failover.drill.faults.base import Fault
from strakes.failover.drill.outcome import Outcome
from strakes.failover.drill.run import perform
from strakes.launch.engine import Engine, sweep
from strakes.launch.messages import PlanResult
from strakes.plan import Plan


class DrillVisit:
    """``make_fault`` gives the fault for the file system of a directory; ``root`` is the store."""

    def __init__(self, make_fault: Callable[[Path], Fault], timing: Timing, root: Path) -> None:
        self._make_fault, self._timing, self._root = make_fault, timing, root

    def __call__(self, engine: Engine, plan: Plan, workspace: Path, name: str, limit_s: float) -> PlanResult:
        """Raises MeasurementError where a client, or a server, did not come back."""
        fault = self._make_fault(workspace)
        fault.level()
        result, outcome = perform(engine, plan, workspace, name, limit_s, self._timing, fault, self._root, lambda _text: None)
        left = sweep(workspace, name)
        if outcome.lacking:
            raise MeasurementError("the servers are not what they were before the drill", where=str(workspace.parent), why=outcome.lacking)
        samples = tuple(replace(one, raw={**one.raw, **_figures(outcome)}) if one.name == WATCH else one for one in result.samples)
        return replace(result, samples=samples, cleaned=not left, left=left)


def _figures(outcome: Outcome) -> dict[str, Any]:
    back = outcome.line.back_after_s
    if back is None:
        gone = [one.client for one in outcome.line.outages if one.back_after_s is None]
        raise MeasurementError(
            "not every client was answered again after the fail-over",
            where=f"{len(gone)} of {len(outcome.line.outages)} clients: {', '.join(gone[:5])}",
            why=", ".join(f"{count} {errno}" for errno, count in outcome.errors.items()) or "the drill ended too soon",
            remedy="See what the servers say; strakes failover drill shows the time line.",
        )
    return {
        "recovery_first_s": back[0],
        "recovery_median_s": back[1],
        "recovery_last_s": back[2],
        "acknowledged": outcome.acknowledged,
        "lost": outcome.lost,
        "failed": outcome.failed,
        "unanswered": outcome.unanswered,
        "repeated": outcome.repeated,
        "outages": [[one.client, one.stall_s, one.back_after_s] for one in outcome.line.outages],
        "recoveries": [asdict(one) for one in outcome.line.targets],
    }
