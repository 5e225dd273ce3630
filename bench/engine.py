"""strakes-engine as a compared program, driven as the front end drives it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from bench.contenders import Rates, one_after_the_other
from bench.work import POOL, POOL_DIRECTORIES, POOL_LEAST_BYTES, POOL_MOST_BYTES, POOL_UNIT_BYTES, SMALL, Work
from strakes.base.errors import MeasurementError
from strakes.model.phases import AMOUNT, MetadataPhase, SmallFilesPhase, Stop, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.model.sample import Sample
from strakes.runs.engine import LocalEngine
from strakes.targets.workspace import Workspace

_LIMIT_S = 120.0
# Backend with inline system calls, as in the minimal C program.
_IN_PLACE = "raw"


def phases_of(work: Work, *, stamped: bool) -> tuple[Phase, ...]:
    """Return the workload as phases of a plan. Only the calls are timed, as in the minimal C program."""
    if work.kind == "data":
        return tuple(
            TransferPhase(
                name=operation,
                operation=operation,
                layout="file-per-process",
                access="segmented",
                transfer_bytes=work.transfer_bytes,
                block_bytes=work.data_bytes,
                direct=work.direct,
                backend=_IN_PLACE if work.depth == 1 else "uring",
                queue_depth=work.depth,
                sync="none",
                time_open=False,
                pattern="stamped" if stamped else "once",
                verify=stamped and operation == "read",
                stop=AMOUNT if operation == "write" else Stop("seconds", work.repeat_ms * 1e-3),
            )
            for operation in ("write", "rewrite", "read")
        )
    if work.kind == "small":
        return tuple(
            MetadataPhase(operation, operation, "unique", work.items, file_bytes=work.file_bytes, backend=_IN_PLACE)
            for operation in ("file-create", "file-remove")
        )
    if work.kind == "pool":
        pool = SmallFilesPhase(
            "create",
            "accumulate",
            POOL_LEAST_BYTES,
            POOL_MOST_BYTES,
            subdirectories=POOL_DIRECTORIES,
            read_unit_bytes=POOL_UNIT_BYTES,
            write_unit_bytes=POOL_UNIT_BYTES,
        )
        return (
            replace(pool, files_per_rank=work.items),
            replace(pool, name="transactions", mode="transactions", transactions=work.items),
            replace(pool, name="remove", mode="remove"),
        )
    if work.kind == "files":
        return tuple(
            MetadataPhase(operation, operation, "unique", work.items, backend=_IN_PLACE)
            for operation in ("file-create", "file-stat", "file-open-close", "file-rename", "file-remove")
        )
    return tuple(
        MetadataPhase(operation, operation, "unique", work.items, backend=_IN_PLACE)
        for operation in ("dir-create", "dir-stat", "dir-rename", "dir-remove")
    )


def run_plan(engine: LocalEngine, plan: Plan, directory: Path) -> tuple[Sample, ...]:
    """Run a plan in a new workspace and return its samples. Raises MeasurementError if the plan fails."""
    with Workspace.create(directory, "bench") as workspace:
        result = engine.run(plan, workspace.path, "bench", _LIMIT_S)
    if result.ended != "ok":
        if result.errors:
            raise result.errors[0].to_exception()
        raise MeasurementError(f"the engine's plan ended as {result.ended}")
    return result.samples


class Engine:
    """The engine, one process for the whole bench.

    ``stamped``: every word written contains its file and offset, and is verified when read.
    """

    def __init__(self, engine: LocalEngine, *, stamped: bool) -> None:
        self.name = "strakes, stamped and verified" if stamped else "strakes"
        self.version = f"{engine.start().engine}, calls in place (backend {_IN_PLACE}) but for pools"
        self._engine = engine
        self._stamped = stamped

    def takes(self, work: Work) -> bool:
        return (work.kind == "data" and work.depth == 1) or not self._stamped

    def run(self, work: Work, directory: Path) -> Rates:
        plan = Plan(work.ranks, phases_of(work, stamped=self._stamped))
        allowed = os.sched_getaffinity(0)
        # The engine started before the bench was restricted to one processor, so restrict it in the plan.
        samples = run_plan(
            self._engine, plan if len(allowed) > 1 else replace(plan, processors=str(*allowed)), directory
        )
        if work.kind == "small":
            return {SMALL: one_after_the_other(*(sample.operations_per_s for sample in samples))}
        if work.kind == "pool":
            return {POOL: work.ranks * work.items / sum(sample.elapsed_s for sample in samples)}
        return {sample.operation: sample.operations_per_s for sample in samples}
