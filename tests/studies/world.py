"""A simulated file system with known rates, against which the results of studies are checked."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from strakes.base.units import GIB, KIB, MIB
from strakes.model.answers import Answer
from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase, SmallFilesPhase, StreamPhase, TransferPhase
from strakes.model.plan import Phase
from strakes.model.portrait import SkippedCell
from strakes.model.record import from_record
from strakes.model.results import Results
from strakes.runs.records import FactsFound, RunEvent, Visit
from strakes.runs.run import Run
from strakes.runs.store import Store
from strakes.studies.study import Context, Pilot, Study
from strakes.survey.analysis_answers import answers_of, questions_of
from strakes.survey.analysis_collect import collect
from strakes.targets.description import Description, StorageTarget, Striping
from strakes.targets.lustre_target import layout_kinds

# Returns the rate of a phase by its number of ranks: B/s for transfers, op/s for metadata.
Rates = Callable[[Phase, int], float]

# Three metadata targets and three data targets. Each data target is in its own pool and in the pool "all".
PARTS = Description(
    "lab",
    "1",
    data_targets=tuple(StorageTarget(f"osd.{n}", n, "n1", "up", GIB, GIB, 0, 0, (f"pool{n}", "all")) for n in range(3)),
    metadata_targets=tuple(StorageTarget(f"mds.{n}", n, "n1", "active", 0, 0, 0, 0) for n in range(3)),
)

# Changes of the context that a study needs in order to measure anything.
NEEDS: dict[str, dict[str, Any]] = {
    "nodes": {"nodes": {"n1": 2, "n2": 2, "n3": 2}, "most_ranks": 6},
    "layouts": {"striping": Striping(4, 64 * KIB, layout_kinds(4))},
}


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
        "description": PARTS,
    }
    return Context(**{**facts, **changes})


def cells_of(study: Study, **changes: Any) -> list[Cell]:
    return [one for one in study.cells(context(**NEEDS.get(study.name, {}) | changes)) if isinstance(one, Cell)]


def skipped_of(study: Study, **changes: Any) -> list[SkippedCell]:
    return [one for one in study.cells(context(**changes)) if isinstance(one, SkippedCell)]


def sample(phase: Phase, ranks: int, rate: float) -> dict[str, Any]:
    moves = isinstance(phase, TransferPhase | StreamPhase)
    if isinstance(phase, TransferPhase):
        amount = phase.block_bytes * phase.segments * ranks
        operations = amount // phase.transfer_bytes
    elif isinstance(phase, StreamPhase):
        amount, operations = phase.block_bytes * phase.count * ranks, phase.count * ranks
    else:
        # A small-files phase has no fixed number of operations, so 100 for each rank are assumed.
        amount = operations = phase.operations(ranks) or 100 * ranks
    elapsed_s = amount / rate
    return {
        "name": phase.name,
        "kind": phase.kind,
        "operation": phase.operation,
        "bytes": amount if moves else 0,
        "operations": operations,
        "elapsed_s": elapsed_s,
        "bytes_per_s": amount / elapsed_s if moves else 0.0,
        "operations_per_s": operations / elapsed_s,
        "stopped_by": "amount",
        "ranks": [[rank] for rank in range(ranks)],
        "counters": {
            "memory_available_bytes": GIB,
            **{f"cpu_{what}_s": 1.0 for what in ("user", "system", "iowait", "idle")},
            "devices": {"vda": {"busy_s": 0.2 * elapsed_s}},
        },
        "effective": {},
        # For drills: each client waits for the duration of the phase.
        **{f"recovery_{who}_s": elapsed_s for who in ("first", "median", "last")},
    }


def measured(
    study: Study,
    rates: Rates,
    blocks: int = 12,
    noise: float = 0.01,
    facts: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Results:
    cells = cells_of(study, **changes)
    return results_of(cells, visits_of(cells, rates, blocks, noise), facts)


def visits_of(
    cells: Sequence[Cell], rates: Rates, blocks: int, noise: float, purpose: str = "measure", seed: int = 7
) -> list[dict[str, Any]]:
    chance = random.Random(seed)
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


def answered(study: Study, results: Results) -> dict[str, Answer]:
    return {
        answer.id.removeprefix(f"{study.name}-"): answer
        for answer in answers_of(questions_of([study], results), results)
    }


def stored(records: Sequence[Mapping[str, Any]]) -> list[Visit]:
    return [from_record(Visit, record) for record in records]


def results_of(
    cells: Sequence[Cell], visits: Sequence[Mapping[str, Any]], facts: Mapping[str, Any] | None = None
) -> Results:
    return collect(cells, stored(visits), 0.9, facts or {"remote": False, "memory_bytes": 24 * GIB})


def flat(phase: Phase, ranks: int) -> float:
    return 20_000.0 if isinstance(phase, MetadataPhase | SmallFilesPhase) else 1000.0 * MIB


def store_run(
    target: Path,
    cells: Sequence[Cell],
    visits: Sequence[Visit],
    facts: Mapping[str, Any],
    *,
    kind: str = "survey",
    environment: Mapping[str, Any] | None = None,
    measured_at: datetime | None = None,
    events: Sequence[RunEvent] = (),
    **options: Any,
) -> Run:
    usual = {"confidence": 0.9, "relative_half_width": 0.1, "budget_s": 60.0, "command": f"strakes {kind} {target}"}
    with Store().create(
        kind, kind, target, usual | options, environment or {"host": "n1"}, measured_at=measured_at
    ) as writer:
        writer.write_cells(cells)
        for event in (FactsFound(dict(facts)), *events):
            writer.append_event(event)
        for visit in visits:
            writer.append_visit(visit)
        writer.finish("complete")
        return Store().open(writer.id)
