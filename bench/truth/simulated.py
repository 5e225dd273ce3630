"""An engine, a clock and a target that exist only as a planted truth with noise; the survey that drives them is the real one."""

from __future__ import annotations

import math
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from bench.truth.noise import Noise
from bench.truth.planted import State, Truth, Visited, moved
from strakes.analysis.build import study_portrait
from strakes.findings.portrait import Portrait
from strakes.launch.engine import Engine
from strakes.launch.impact import UNLIMITED
from strakes.launch.messages import Hello, PlanResult, sample_from_message
from strakes.plan import MetadataPhase, Phase, Plan, TransferPhase
from strakes.store import Run, Store
from strakes.studies.study import Study
from strakes.survey.request import Request
from strakes.survey.runner import perform
from strakes.targets.block_device import BlockDevice
from strakes.targets.description import Observation
from strakes.targets.local import LocalTarget
from strakes.targets.mountinfo import Mount
from strakes.targets.target import TargetFacts
from strakes.units import GIB

# What a visit costs beside its phases: making and removing a directory, barriers, the messages.
OVERHEAD_S = 0.01
# The rate of a phase is that of each moment in it, looked at so often.
STEP_S = 0.01
START_UNIX_S = 1_700_000_000.0
CPUS = 4
MEMORY_BYTES = 64 * GIB
AVAILABLE_BYTES = 16 * GIB


class Clock(ModuleType):
    """Stands in for the module ``time`` where surveys look at it; it moves only when the engine works or somebody sleeps."""

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
    """Answers plans as the planted truth has it, and lets the clock move by what that takes."""

    def __init__(self, truth: Truth, noise: Noise, clock: Clock, budget_s: float, seed: int) -> None:
        import numpy as np

        super().__init__()
        self._truth, self._clock, self._budget_s = truth, clock, budget_s
        self._tick_s = noise.tick_s
        # Surveys of one seed and several cases would else have the same luck.
        case = zlib.crc32(f"{truth.name}, {noise.name}".encode())
        self._factors = noise.start(np.random.default_rng([seed, case]))
        # Of its own, so that the noise is the same whether anything depends on it.
        self._lots = np.random.default_rng([seed, case, 1])
        self.state = State()
        self._plans: dict[int, tuple[str, Plan]] = {}
        self.visited: list[Visited] = []
        self.served: dict[str, dict[str, float]] = {
            server: {"data.read_bytes": 0.0, "data.write_bytes": 0.0, "data.busy_s": 0.0}
            for server in (truth.servers(State()) if truth.remote else ())
        }
        self.impact = UNLIMITED

    def command(self) -> list[str]:
        raise AssertionError("a simulated engine is no process")

    def patience_s(self) -> float:
        return 0.0

    def start(self) -> Hello:
        return Hello("simulated", "simulated", 1, ("posix",), ("transfer", "metadata"), "simulated")

    def close(self) -> None:
        """Nothing runs."""

    def run(self, plan: Plan, directory: Path, cell_id: str, limit_s: float, *_: Any, **__: Any) -> PlanResult:
        idle_s = max(0.0, self._clock.now_s - self.state.now_s)
        memory = self._truth.remember(self.state, None, 0.0, idle_s)
        self.state = replace(self.state, now_s=self.state.now_s + idle_s, lot=float(self._lots.random()), memory=memory)
        factors = self._factors(len(plan.phases), self._clock.now_s / self._budget_s, self._name_of(plan))
        samples = []
        for number, (phase, factor) in enumerate(zip(plan.phases, factors, strict=True)):
            samples.append(sample_from_message(self._perform(number, phase, plan.ranks, factor, cell_id)))
        self._clock.now_s += OVERHEAD_S
        return PlanResult("ok", tuple(samples), (), True, ())

    def _name_of(self, plan: Plan) -> str:
        """Return the same name for the same plan. Plans are kept: what lies at the address of one that is gone is another."""
        return self._plans.setdefault(id(plan), (f"plan {len(self._plans)}", plan))[0]

    def _perform(self, number: int, phase: Phase, ranks: int, factor: float, plan_id: str) -> dict[str, Any]:
        assert isinstance(phase, TransferPhase | MetadataPhase)
        size = phase.transfer_bytes if isinstance(phase, TransferPhase) else 1
        asked = phase.operations(ranks)
        amount = float(asked * size)
        seconds = phase.stop.seconds if phase.stop.rule != "amount" else None
        limit_s = math.inf if seconds is None else seconds
        elapsed_s, done, memory = self._work(phase, ranks, factor, amount, limit_s)
        stopped_by, operations = "amount", asked
        if done < amount:
            # What was begun is finished.
            operations, stopped_by = min(asked, max(ranks, math.ceil(done / size))), "seconds"
            elapsed_s *= operations * size / done
        self.visited.append(Visited(self.state, phase, ranks, operations * size / elapsed_s / factor))
        if self._tick_s:
            elapsed_s = max(1, round(elapsed_s / self._tick_s)) * self._tick_s
        amount = float(operations * size)
        self._clock.now_s += elapsed_s
        self.state = replace(moved(self.state, phase, amount, elapsed_s), now_s=self._clock.now_s, memory=memory)
        moves = isinstance(phase, TransferPhase)
        reads = moves and phase.operation == "read"
        by_device = amount * (1 - self._truth.from_cache(phase)) if moves else 0.0
        self._serve(by_device, reads, elapsed_s)
        resident = self._truth.from_cache(phase) if self._truth.resident and not self._truth.remote else 0.0
        counted = {
            "busy_s": 0.5 * elapsed_s,
            "read_bytes": int(by_device if reads else 0),
            "write_bytes": int(0 if reads else by_device),
        }
        return {
            "type": "sample",
            "version": 1,
            "id": plan_id,
            "phase": number,
            "name": phase.name,
            "operation": phase.operation,
            "host": "simulated",
            "stopped_by": stopped_by,
            "bytes": int(amount) if moves else 0,
            "operations": operations,
            "errors": 0,
            "elapsed_s": elapsed_s,
            "bytes_per_s": amount / elapsed_s if moves else 0.0,
            "operations_per_s": operations / elapsed_s,
            "columns": ["rank", "start_s", "end_s", "bytes", "operations"],
            "ranks": [
                [rank, 0.0, elapsed_s, int(amount / ranks) if moves else 0, operations // ranks]
                for rank in range(ranks)
            ],
            "effective": {"backend": "posix"},
            "cache": {"method": "cachestat", "file_bytes": int(amount), "resident_before_bytes": int(amount * resident)}
            if reads
            else {},
            "counters": {
                "memory_available_bytes": AVAILABLE_BYTES,
                **{f"cpu_{what}_s": elapsed_s for what in ("user", "system", "iowait", "idle")},
                "devices": {} if self._truth.remote else {"sim": counted},
            },
        }

    def _work(
        self, phase: Phase, ranks: int, factor: float, amount: float, limit_s: float
    ) -> tuple[float, float, float]:
        """Return how long an amount takes, how much of it is done when the time is up, and what the truth remembers then."""
        step_s = STEP_S if len(self._truth.states) > 1 else math.inf
        state, elapsed_s, left = self.state, 0.0, amount
        while True:
            rate = self._truth.rate(phase, ranks, state) * factor
            part_s = min(step_s, left / rate, limit_s - elapsed_s)
            elapsed_s, left = elapsed_s + part_s, left - part_s * rate
            memory = self._truth.remember(state, phase, part_s * rate, part_s)
            if left <= 1e-9 * amount or elapsed_s >= limit_s:
                return elapsed_s, amount if left <= 1e-9 * amount else amount - left, memory
            state = replace(moved(state, phase, part_s * rate, part_s), memory=memory)

    def _serve(self, amount: float, reads: bool, elapsed_s: float) -> None:
        shares = self._truth.servers(self.state)
        for server, counters in self.served.items():
            counters["data.read_bytes" if reads else "data.write_bytes"] += amount / len(self.served)
            counters["data.busy_s"] += elapsed_s * shares[server]


class SimulatedTarget(LocalTarget):
    """A directory of this machine whose facts are those of the simulated file system."""

    def __init__(self, path: Path, engine: SimulatedEngine, *, remote: bool) -> None:
        mount = Mount(1, 0, 0, 0, "/", str(path), ("rw",), "simulated", "simulated", ())
        super().__init__(path, mount)
        self._engine, self._remote = engine, remote

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        return TargetFacts(
            self.path,
            "simulated",
            "sim",
            str(self.path),
            (),
            1000 * GIB,
            900 * GIB,
            10**8,
            10**8,
            4096,
            True,
            self._remote,
            block_device=None if self._remote else BlockDevice("sim", 1000 * GIB, False, "none", 512, 0, "", ""),
        )

    def observe(self) -> Observation:
        return {server: dict(counters) for server, counters in self._engine.served.items()}

    def environment(self) -> dict[str, Any]:
        return {"host": "simulated", "cpus": CPUS, "memory_bytes": MEMORY_BYTES, "load_average": [0.0, 0.0, 0.0]}


def _remove(_kind: str, parent: int, name: str, *_: object) -> tuple[()]:
    """Remove a workspace here, where no file system can hang."""
    shutil.rmtree(Path(f"/proc/self/fd/{parent}").resolve() / name)
    return ()


class _Quiet:
    def update(self, text: str, fraction: float, detail: str) -> None:
        """Nobody looks."""

    def cells(self, done: int, total: int, widths: Mapping[str, float | None]) -> None:
        del done, total, widths

    def note(self, text: str) -> None:
        """Nobody looks."""


def survey(
    truth: Truth, noise: Noise, seed: int, studies: tuple[Study, ...], place: Path, budget_s: float = 120.0
) -> tuple[Run, Truth]:
    """One whole survey, as ``strakes survey`` makes it; its run lies below ``place``.

    Returns the run, and the truth as far as the survey met it.
    """
    clock = Clock()
    engine = SimulatedEngine(truth, noise, clock, budget_s, seed)
    directory = place / f"target{seed}"
    directory.mkdir(parents=True, exist_ok=True)
    target = SimulatedTarget(directory, engine, remote=truth.remote)
    request = Request("survey", "survey", directory, studies, budget_s, 0.9, 0.1, seed, "strakes survey DIR")
    store = Store(place / "store")
    with _instead_of(engine, target, clock):
        writer = perform(request, store, _Quiet())
    found: dict[tuple[Phase, int], tuple[float, ...]] = {}
    for one in engine.visited:
        found[one.phase, one.ranks] = (*found.get((one.phase, one.ranks), ()), one.rate)
    return store.open(writer.id), replace(truth, states=truth.met(engine.visited), found=found)


def portrait_of(run: Run) -> Portrait:
    return study_portrait(run)


@contextmanager
def _instead_of(engine: Engine, target: LocalTarget, clock: Clock) -> Iterator[None]:
    """The runner gets the simulated engine and target; whatever in the survey asks for the time asks the simulated clock."""
    with ExitStack() as stack:
        stack.enter_context(patch("strakes.survey.runner.engine_for", lambda *_: engine))
        stack.enter_context(patch("strakes.survey.runner.detect", lambda *_: target))
        # Nothing is at stake here that has to outlive a power cut, and the client's own speed is nobody's question.
        stack.enter_context(patch("os.fsync", lambda _: None))
        stack.enter_context(patch("strakes.measure.visit.time_client", lambda: 0.01))
        # How much a plan may move follows from the memory that is left: what else runs on this machine has its share of that.
        stack.enter_context(patch("strakes.survey.preparation.memory_available_bytes", lambda: AVAILABLE_BYTES))
        stack.enter_context(patch("strakes.targets.workspace.remove_with_limit", _remove))
        for name, module in list(sys.modules.items()):
            if name.startswith(("strakes.survey.", "strakes.measure.")) and hasattr(module, "time"):
                stack.enter_context(patch.object(module, "time", clock))
        yield
