"""A made-up file system with known rates: what studies say of it can be checked against the truth."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.portrait.collect import cell_record, collect
from strakes.statistics.stopping import StoppingRule
from strakes.studies.base import Cell, Context, Pilot, Study
from strakes.studies.results import Results
from strakes.targets.model import Striping
from strakes.units import GIB, KIB, MIB

# Rate of one phase: B/s for transfers, op/s for metadata.
Rates = Callable[[Phase, int], float]


def context(**changes: Any) -> Context:
    facts: dict[str, Any] = {
        "file_system": "xfs",
        "remote": False,
        "direct_io": True,
        "cpus": 2,
        "memory_bytes": 24 * GIB,
        "max_bytes": 4 * GIB,
        "max_items": 1_000_000,
        "phase_s": 0.1,
        "pilot": Pilot(1000.0 * MIB, 2000.0 * MIB, 100_000.0),
        "seed": 1,
        "striping": Striping(4, 64 * KIB),
    }
    return Context(**{**facts, **changes})


def sample(phase: Phase, ranks: int, rate: float) -> dict[str, Any]:
    """A sample message as the engine would send it for that rate (the keys that results are made of)."""
    if isinstance(phase, TransferPhase):
        amount = phase.block_bytes * phase.segments * ranks
        operations = amount // phase.transfer_bytes
        elapsed_s = amount / rate
    else:
        amount = operations = phase.operations(ranks)
        elapsed_s = operations / rate
    return {
        "name": phase.name,
        "operation": phase.operation,
        "bytes": amount if isinstance(phase, TransferPhase) else 0,
        "operations": operations,
        "elapsed_s": elapsed_s,
        "bytes_per_s": amount / elapsed_s if isinstance(phase, TransferPhase) else 0.0,
        "operations_per_s": operations / elapsed_s,
        "stopped_by": "amount",
        "ranks": [[rank] for rank in range(ranks)],
        "counters": {},
        "effective": {},
    }


def measured(
    study: Study, rates: Rates, blocks: int = 12, noise: float = 0.01, facts: Mapping[str, Any] | None = None, **changes: Any
) -> Results:
    """The study measured on the made-up file system, every cell in every block."""
    cells = [one for one in study.cells(context(**changes)) if isinstance(one, Cell)]
    return results_of(cells, visits_of(cells, rates, blocks, noise), facts)


def visits_of(cells: Sequence[Cell], rates: Rates, blocks: int, noise: float, purpose: str = "measure") -> list[dict[str, Any]]:
    chance = random.Random(7)
    return [
        {
            "visit": block * len(cells) + number,
            "block": block,
            "purpose": purpose,
            "cell": cell.key,
            "ended": "ok",
            "elapsed_s": 0.1,
            "samples": [
                sample(phase, cell.plan.ranks, rates(phase, cell.plan.ranks) * chance.lognormvariate(0.0, noise))
                for phase in cell.plan.phases
            ],
            "errors": [],
        }
        for block in range(1, blocks + 1)
        for number, cell in enumerate(cells)
    ]


def results_of(cells: Sequence[Cell], visits: Sequence[Mapping[str, Any]], facts: Mapping[str, Any] | None = None) -> Results:
    return collect(
        [cell_record(cell) for cell in cells], visits, StoppingRule(0.9, 0.1), facts or {"remote": False, "memory_bytes": 24 * GIB}
    )


def flat(phase: Phase, ranks: int) -> float:
    """Every setting is as good as every other."""
    return 20_000.0 if isinstance(phase, MetadataPhase) else 1000.0 * MIB
