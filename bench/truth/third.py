"""A third set of truths and noises; they, and their judge, were committed before a survey of any of them was made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.truth.noise import Factors, Noise, log_normal
from bench.truth.planted import Rate, State, Truth, equal
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, KIB, MIB

if TYPE_CHECKING:
    import numpy as np

EQUAL = "all cells equal"
CALL_S, OF_A_RANK, LINK = 0.0003, 200.0 * MIB, 600.0 * MIB
STRIPE = 4 * MIB
REMEMBERED = 8 * MIB
SPREAD_NAMES = 1_500
QUOTA = ((3.0, 0.75), (5.0, 0.55), (7.0, 0.4))
TIERED = 3.0 * GIB
WINDOW_S, OF_A_WINDOW = 10.0, 0.8 * GIB
CHECKPOINT_EVERY, CHECKPOINT_FROM = 12_000.0, 10_000.0


@dataclass(frozen=True)
class Planted:
    """A truth, its noise, and what may be said of its changes: (from, to, 1 for faster and -1 for slower), in seconds.

    ``regular``: no kind of warning of dependence, drift or two groups would be true.
    """

    truth: Truth
    noise: Noise
    moments: tuple[tuple[float, float, int], ...] = ()
    regular: bool = True


def third() -> tuple[Planted, ...]:
    """Return interactions, several optima, edges of the rules' own margins, quotas, tiers, windows, checkpoints, repairs; and noises."""

    def still(name: str, rate: Rate, deviation: float, **more: Any) -> Planted:
        return Planted(Truth(name, rate, **more), log_normal(deviation))

    def changing(
        name: str,
        rate: Rate,
        deviation: float,
        *others: State,
        moments: tuple[tuple[float, float, int], ...] = (),
        **more: Any,
    ) -> Planted:
        truth = Truth(name, rate, (State(), *others), **more)
        return Planted(truth, log_normal(deviation), moments, regular=False)

    return (
        still("each call waits 0.3 ms, a rank and the link have limits", _calls, 0.05),
        still("writes of less than a stripe read first", _partial_stripes, 0.07),
        still("two best settings with a worse one between", _two_best, 0.05),
        still("2 ranks reach 88 %, 8 are 7 % worse than 4", _edge, 0.03),
        still("each doubling of ranks adds 4 %", _creeping, 0.1),
        still("readers of a shared file wait, writers gain", _shared_readers, 0.07),
        still("a server remembers 8 MiB of each rank", _remembered, 0.05, from_cache=_from_memory, remote=True),
        still("directories of 1,500 names are spread", _spread, 0.05),
        still("reads saturate at 2 ranks, writes grow up to 8", _unlike_scaling, 0.07),
        still("strided writers fight for locks", _strided, 0.1),
        still("one lock for the names of a directory", _directory_lock, 0.07),
        still("O_DIRECT 8 % faster", _direct_gains, 0.03),
        changing(
            "quota closes at 3, 5 and 7 GiB",
            _quota,
            0.05,
            *(State(written_bytes=size * GIB) for size, _ in QUOTA),
            moments=((0, 200, -1),),
        ),
        changing(
            "repair slows reads from 30 to 75 s", _repair, 0.05, State(now_s=30.0), moments=((30, 30, -1), (75, 75, 1))
        ),
        changing("scrub for 3 s of each 17", _scrub, 0.07, State(now_s=14.5), passing=True),
        changing(
            "tier takes up what is read, 3 GiB",
            _tiered,
            0.05,
            State(memory=TIERED),
            moments=((0, 70, 1),),
            remember=_read_so_far,
        ),
        changing(
            "0.8 GiB in each window of 10 s",
            _window,
            0.05,
            State(memory=OF_A_WINDOW),
            passing=True,
            remember=_in_window,
        ),
        changing(
            "creates wait for a checkpoint, 2,000 of 12,000", _checkpoint, 0.05, State(made=11_000.0), passing=True
        ),
        changing(
            "calls of 1 MiB at 60 % from 55 s on", _large_calls_down, 0.05, State(now_s=55.0), moments=((55, 55, -1),)
        ),
        changing("a second link from 60 s on", _second_link, 0.07, State(now_s=60.0), moments=((60, 60, 1),)),
        changing(
            "lookups forgotten at 50 s, learnt until 95 s",
            _forgotten,
            0.05,
            State(now_s=50.0),
            moments=((50, 50, -1), (55, 95, 1)),
        ),
        changing(
            "half of the directories at half from 45 s on",
            _half_fails,
            0.05,
            State(now_s=45.0, lot=0.5),
            moments=((45, 45, -1),),
        ),
        Planted(Truth(EQUAL), waves(23, 0.08), regular=False),
        Planted(Truth(EQUAL), shared_by(3, 0.1), regular=False),
        Planted(Truth(EQUAL), tails_of_cells(0.02, 0.12)),
        Planted(Truth(EQUAL), retries(0.15, 0.3), regular=False),
    )


def _data(phase: Phase | None, operation: str = "") -> bool:
    return isinstance(phase, TransferPhase) and operation in ("", phase.operation)


def _by_ranks(factors: Mapping[int, float]) -> Callable[[int], float]:
    return lambda ranks: factors.get(ranks, 1.0)


def _calls(phase: Phase, ranks: int, state: State) -> float:
    if not isinstance(phase, TransferPhase):
        return equal(phase, ranks, state)
    size = phase.transfer_bytes
    return min(LINK, ranks * size / (CALL_S + size / OF_A_RANK))


def _partial_stripes(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or phase.operation != "write" or phase.transfer_bytes >= STRIPE:
        return rate
    return rate * (0.45 if phase.direct else 0.6 if phase.access == "strided" else 1.0)


def _two_best(phase: Phase, ranks: int, state: State) -> float:
    if not isinstance(phase, TransferPhase):
        return equal(phase, ranks, state)
    sizes = {4 * KIB: 0.5, 64 * KIB: 1.0, MIB: 0.75}
    by_size = sizes.get(phase.transfer_bytes, 1.0)
    return equal(phase, ranks, state) * by_size * _by_ranks({1: 0.65, 2: 1.0, 4: 0.75, 8: 1.0})(ranks)


def _edge(phase: Phase, ranks: int, state: State) -> float:
    by_ranks = _by_ranks({1: 0.45, 2: 0.88, 4: 1.0, 8: 0.93})
    return equal(phase, ranks, state) * (by_ranks(ranks) if _data(phase) else 1.0)


def _creeping(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.04 ** math.log2(ranks / 8) if _data(phase) else 1.0)


def _shared_readers(phase: Phase, ranks: int, state: State) -> float:
    shared = isinstance(phase, TransferPhase) and phase.layout == "shared-file"
    return equal(phase, ranks, state) * ((0.6 if _data(phase, "read") else 1.12) if shared else 1.0)


def _from_memory(phase: Phase) -> float:
    small = isinstance(phase, TransferPhase) and phase.segments * phase.block_bytes <= REMEMBERED
    return float(small and _data(phase, "read"))


def _remembered(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (2.5 if _from_memory(phase) else 1.0)


def _spread(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, MetadataPhase):
        return rate
    return rate * (1.7 if phase.items * (ranks if phase.directory == "shared" else 1) > SPREAD_NAMES else 1.0)


def _unlike_scaling(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    return rate * (min(ranks, 2) / 2 if _data(phase, "read") else ranks / 8 if _data(phase) else 1.0)


def _strided(phase: Phase, ranks: int, state: State) -> float:
    rate = equal(phase, ranks, state)
    if not isinstance(phase, TransferPhase) or phase.operation != "write" or phase.layout != "shared-file":
        return rate
    return rate * (0.25 if phase.access == "strided" else 0.9)


def _directory_lock(phase: Phase, ranks: int, state: State) -> float:
    changes = isinstance(phase, MetadataPhase) and phase.operation.endswith(("create", "remove", "rename"))
    shared = isinstance(phase, MetadataPhase) and phase.directory == "shared"
    return equal(phase, ranks, state) * (1 / 3 if changes and shared else 1.0)


def _direct_gains(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1.08 if isinstance(phase, TransferPhase) and phase.direct else 1.0)


def _quota(phase: Phase, ranks: int, state: State) -> float:
    left = [factor for size, factor in QUOTA if state.written_bytes >= size * GIB]
    return equal(phase, ranks, state) * (left[-1] if left and _data(phase, "write") else 1.0)


def _repair(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.6 if _data(phase, "read") and 30 <= state.now_s < 75 else 1.0)


def _scrub(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.6 if _data(phase) and math.fmod(state.now_s, 17) >= 14 else 1.0)


def _tiered(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (1 + 0.8 * min(1.0, state.memory / TIERED) if _data(phase, "read") else 1.0)


def _read_so_far(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    del seconds
    return state.memory + (amount if _data(phase, "read") else 0.0)


def _window(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.3 if _data(phase) and state.memory >= OF_A_WINDOW else 1.0)


def _in_window(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    if int(state.now_s // WINDOW_S) != int((state.now_s + seconds) // WINDOW_S):
        return 0.0
    return state.memory + (amount if _data(phase) else 0.0)


def _checkpoint(phase: Phase, ranks: int, state: State) -> float:
    creates = isinstance(phase, MetadataPhase) and phase.operation == "file-create"
    waits = creates and math.fmod(state.made, CHECKPOINT_EVERY) >= CHECKPOINT_FROM
    return equal(phase, ranks, state) * (0.25 if waits else 1.0)


def _large_calls_down(phase: Phase, ranks: int, state: State) -> float:
    large = isinstance(phase, TransferPhase) and phase.transfer_bytes >= MIB
    return equal(phase, ranks, state) * (0.6 if large and state.now_s >= 55 else 1.0)


def _second_link(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (min(ranks, 2 if state.now_s < 60 else 4) / 2 if _data(phase) else 1.0)


def _forgotten(phase: Phase, ranks: int, state: State) -> float:
    looks = isinstance(phase, MetadataPhase) and not phase.operation.endswith(("create", "remove", "rename"))
    knows = 1.0 if state.now_s < 50 else min(1.0, 0.35 + 0.65 * (state.now_s - 50) / 45)
    return equal(phase, ranks, state) * (knows if looks else 1.0)


def _half_fails(phase: Phase, ranks: int, state: State) -> float:
    return equal(phase, ranks, state) * (0.5 if _data(phase) and state.lot >= 0.5 and state.now_s >= 45 else 1.0)


def waves(visits: int, depth: float) -> Noise:
    """A sine over so many visits, near the length of a round, with 3 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        angle = float(generator.uniform(0, 2 * math.pi))

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal angle
            angle += 2 * math.pi / visits
            return [math.exp(depth * math.sin(angle) + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"a sine of {visits} visits, {100 * depth:.0f} %", start, changes=True)


def shared_by(visits: int, deviation: float) -> Noise:
    """So many visits in a row have one factor, the next ones another."""

    def start(generator: np.random.Generator) -> Factors:
        count, level = 0, 0.0

        def factors(phases: int, *_: object) -> list[float]:
            nonlocal count, level
            if count % visits == 0:
                level = deviation * float(generator.standard_normal())
            count += 1
            return [math.exp(level + 0.03 * value) for value in generator.standard_normal(phases)]

        return factors

    return Noise(f"{visits} visits in a row share {100 * deviation:.0f} %", start)


def tails_of_cells(least: float, most: float) -> Noise:
    """Student variables of 3 degrees of freedom, of a scale that each phase of each cell has by itself."""

    def start(generator: np.random.Generator) -> Factors:
        scales: dict[tuple[str, int], float] = {}

        def factors(phases: int, _: float, cell: str) -> list[float]:
            of = [scales.setdefault((cell, number), float(generator.uniform(least, most))) for number in range(phases)]
            return [math.exp(scale * value) for scale, value in zip(of, generator.standard_t(3, phases), strict=True)]

        return factors

    return Noise(f"log of Student t3, {100 * least:.0f} to {100 * most:.0f} % by cell and phase", start)


def retries(longer: float, mean: float) -> Noise:
    """Times have a whole number of retries, a Poisson variable; 3 % of noise."""

    def start(generator: np.random.Generator) -> Factors:
        return lambda phases, *_: [
            math.exp(0.03 * value) / (1 + longer * float(count))
            for value, count in zip(generator.standard_normal(phases), generator.poisson(mean, phases), strict=True)
        ]

    # 0.741 of the phases have none; the median lies at the 0.325 quantile of those.
    return Noise(f"retries of {100 * longer:.0f} %", start, median=math.exp(-0.03 * 0.454))
