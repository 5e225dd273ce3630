"""A simulated engine, clock and target with known rates (a world), driven by the real survey."""

from __future__ import annotations

import math
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from bench.truth.noise import Noise
from bench.truth.world import World
from strakes.base.units import GIB
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.runs.engine import Engine
from strakes.runs.impact import UNLIMITED
from strakes.runs.messages import Hello, PlanResult, sample_from_message
from strakes.runs.run import Run
from strakes.runs.store import Store
from strakes.studies.registry import survey_studies
from strakes.studies.study import Study
from strakes.survey.request import Request
from strakes.survey.runner import perform
from strakes.targets.local import LocalTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.target import TargetFacts

# Seconds of a trial (visit) outside its phases, for directories, barriers and messages.
OVERHEAD_S = 0.01
START_UNIX_S = 1_700_000_000.0
CPUS = 4
MEMORY_BYTES = 64 * GIB
AVAILABLE_BYTES = 16 * GIB


class Clock(ModuleType):
    """Replacement for the module ``time`` in surveys. Its time advances when the engine works or the survey sleeps."""

    def __init__(self) -> None:
        super().__init__("time")
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def perf_counter(self) -> float:
        self.now_s += 1e-6
        return self.now_s

    def time(self) -> float:
        return START_UNIX_S + self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class SimulatedEngine(Engine):
    """Engine that computes samples from the rates of a world and advances the clock by their durations."""

    def __init__(self, world: World, noise: Noise, clock: Clock, budget_s: float, seed: int) -> None:
        import numpy as np

        super().__init__()
        self._world, self._clock, self._budget_s = world, clock, budget_s
        self._factors = noise.start(np.random.default_rng([seed, zlib.crc32(f"{world.name}, {noise.name}".encode())]))
        self.impact = UNLIMITED

    def command(self) -> list[str]:
        raise AssertionError("a simulated engine is no process")

    def patience_s(self) -> float:
        return 0.0

    def start(self) -> Hello:
        return Hello("simulated", "simulated", 1, ("posix",), ("transfer", "metadata"), "simulated")

    def close(self) -> None:
        """Do nothing: no process runs."""

    def run(self, plan: Plan, directory: Path, cell_id: str, limit_s: float, *_: Any, **__: Any) -> PlanResult:
        factors = self._factors(len(plan.phases), self._clock.now_s / self._budget_s)
        samples = tuple(
            sample_from_message(self._perform(number, phase, plan.ranks, factor, cell_id))
            for number, (phase, factor) in enumerate(zip(plan.phases, factors, strict=True))
        )
        self._clock.now_s += OVERHEAD_S
        return PlanResult("ok", samples, (), True, ())

    def _perform(self, number: int, phase: Phase, ranks: int, factor: float, plan_id: str) -> dict[str, Any]:
        assert isinstance(phase, TransferPhase | MetadataPhase)
        moves = isinstance(phase, TransferPhase)
        size = phase.transfer_bytes if isinstance(phase, TransferPhase) else 1
        operations, rate = phase.operations(ranks), self._world.rate(phase, ranks) * factor
        limit_s = math.inf if phase.stop.rule == "amount" else phase.stop.seconds or math.inf
        stopped_by = "amount"
        if operations * size / rate > limit_s:
            # Operations in progress at the time limit are completed.
            operations, stopped_by = max(ranks, math.ceil(limit_s * rate / size)), "seconds"
        elapsed_s = operations * size / rate
        amount = operations * size
        self._clock.now_s += elapsed_s
        return {
            "type": "sample",
            "version": 1,
            "id": plan_id,
            "phase": number,
            "name": phase.name,
            "kind": phase.kind,
            "operation": phase.operation,
            "host": "simulated",
            "stopped_by": stopped_by,
            "bytes": amount if moves else 0,
            "operations": operations,
            "errors": 0,
            "elapsed_s": elapsed_s,
            "bytes_per_s": amount / elapsed_s if moves else 0.0,
            "operations_per_s": operations / elapsed_s,
            "columns": ["rank", "start_s", "end_s", "bytes", "operations"],
            "ranks": [
                [rank, 0.0, elapsed_s, amount // ranks if moves else 0, operations // ranks] for rank in range(ranks)
            ],
            "effective": {"backend": "posix"},
            "counters": {"memory_available_bytes": AVAILABLE_BYTES},
        }


class SimulatedTarget(LocalTarget):
    """A real directory that reports the facts of the simulated file system."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Mount(1, 0, 0, "/", str(path), ("rw",), "simulated", "simulated", ()))

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        return TargetFacts(
            self.path, "simulated", "sim", str(self.path), (), 1000 * GIB, 900 * GIB, 10**8, 10**8, True, False
        )

    def environment(self) -> dict[str, Any]:
        return {"host": "simulated", "cpus": CPUS, "memory_bytes": MEMORY_BYTES, "load_average": [0.0, 0.0, 0.0]}


def _remove(parent: int, name: str, *_: object) -> tuple[()]:
    """Remove a workspace. No time limit is necessary, because no file system hangs here."""
    shutil.rmtree(Path(f"/proc/self/fd/{parent}").resolve() / name)
    return ()


class _Quiet:
    def update(self, text: str, fraction: float, detail: str) -> None:
        """Show nothing."""

    def resumed(self, spent_s: float) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""


def survey(
    world: World,
    noise: Noise,
    seed: int,
    place: Path,
    budget_s: float = 120.0,
    study: Study | None = None,
    phase_s: float | None = None,
) -> Run:
    """Run a survey or study as ``strakes`` does, store its run below ``place``, and return it."""
    clock = Clock()
    engine = SimulatedEngine(world, noise, clock, budget_s, seed)
    directory = place / f"target{seed}"
    directory.mkdir(parents=True, exist_ok=True)
    studies = survey_studies() if study is None else (study,)
    kind, full = ("survey", False) if study is None else ("study", True)
    request = Request(kind, kind, directory, studies, budget_s, 0.9, 0.1, seed, f"strakes {kind} DIR", full=full)
    request = replace(request, phase_s=phase_s)
    store = Store(place / "store")
    with _instead_of(engine, SimulatedTarget(directory), clock):
        return store.open(perform(request, store, _Quiet()).id)


@contextmanager
def _instead_of(engine: Engine, target: LocalTarget, clock: Clock) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch("strakes.survey.runner.engine_for", lambda *_: engine))
        stack.enter_context(patch("strakes.survey.runner.detect", lambda *_: target))
        # Skip fsync: these runs need not survive a power failure.
        stack.enter_context(patch("os.fsync", lambda _: None))
        stack.enter_context(patch("strakes.studies.measure_visit.time_client", lambda: 0.01))
        # Fix the available memory, on which the size of plans depends, so that results are reproducible.
        stack.enter_context(patch("strakes.survey.preparation.memory_available_bytes", lambda: AVAILABLE_BYTES))
        stack.enter_context(patch("strakes.targets.workspace.remove_with_limit", _remove))
        stack.enter_context(patch("strakes.survey.session.other_programs", lambda: None))
        for name, module in list(sys.modules.items()):
            if name.startswith(("strakes.survey.", "strakes.studies.")) and hasattr(module, "time"):
                stack.enter_context(patch.object(module, "time", clock))
        yield
