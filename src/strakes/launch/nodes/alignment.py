"""How closely phases begin together on all nodes: measured, on phases that do next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from strakes.launch.choice import Launch, engine_for
from strakes.plan import MetadataPhase, Plan

_PHASES = 9
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Alignment:
    """``spreads_s``: of each phase, from the first rank's start to the last one's. ``clock_uncertainty_s``: how exactly that is known."""

    spreads_s: tuple[float, ...]
    clock_uncertainty_s: float

    @property
    def usual_s(self) -> float:
        return median(self.spreads_s)


def measure_alignment(launch: Launch, nodes: int, workspace: Path) -> Alignment:
    """With one rank on each node, in a workspace that all of them see. Raises MeasurementError when the plan fails."""
    phases = tuple(MetadataPhase(f"create{number}", "file-create", "unique", items=1, files=f"set{number}") for number in range(_PHASES))
    with engine_for(replace(launch, ranks=nodes, ranks_per_node=1)) as engine:
        hello = engine.start()
        result = engine.run(Plan(nodes, phases), workspace, "alignment", _LIMIT_S)
    if result.ended != "ok" and result.errors:
        raise result.errors[0].to_exception()
    return Alignment(tuple(spread_s(sample.raw) for sample in result.samples), hello.clock_uncertainty_s)


def spread_s(sample: Mapping[str, Any]) -> float:
    """From the first rank's start to the last one's.

    >>> spread_s({"columns": ["rank", "start_s"], "ranks": [[0, 0.25], [1, 0.0]]})
    0.25
    """
    starts: Sequence[float] = [row[sample["columns"].index("start_s")] for row in sample["ranks"]]
    return max(starts) - min(starts)
