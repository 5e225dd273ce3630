"""How closely phases begin together on all nodes: measured, on phases that do next to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from strakes.findings.begun import begun
from strakes.launch.choice import Launch, engine_for
from strakes.plan import MetadataPhase, Plan

_PHASES = 31
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Alignment:
    """How close together the ranks began.

    ``spreads_s``: of each phase, from the first rank's start to the last one's. ``clock_uncertainty_s``: its error.
    ``crowded``: some of the nodes share a machine that has fewer processors than there are nodes on it.
    """

    spreads_s: tuple[float, ...]
    clock_uncertainty_s: float
    crowded: bool = False

    @property
    def usual_s(self) -> float:
        """Median of the spreads, in seconds."""
        return median(self.spreads_s)


def measure_alignment(launch: Launch, nodes: int, workspace: Path) -> Alignment:
    """With one rank on each node, in a workspace that all of them see. Raises MeasurementError when the plan fails."""
    phases = tuple(
        MetadataPhase(f"create{number}", "file-create", "unique", items=1, files=f"set{number}")
        for number in range(_PHASES)
    )
    with engine_for(replace(launch, ranks=nodes, ranks_per_node=1)) as engine:
        result = engine.run(Plan(nodes, phases), workspace, "alignment", _LIMIT_S)
    if result.ended != "ok" and result.errors:
        raise result.errors[0].to_exception()
    starts = [start for sample in result.samples if (start := begun(sample)) is not None]
    uncertainty_s = max((start.clock_uncertainty_s for start in starts), default=0.0)
    return Alignment(tuple(start.apart_s for start in starts), uncertainty_s, any(start.crowded for start in starts))
