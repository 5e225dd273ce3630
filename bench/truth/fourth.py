"""Planted truths of a stranger: what storage administrators have met, made without a look at the rules.

Each says what is true of it at every moment (``rate``), and which sentences would tell it (``tells``, regular expressions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist

from bench.truth.planted import Rate, State, Truth, Visited
from strakes.plan import MetadataPhase, Phase, TransferPhase
from strakes.units import GIB, MIB

_LATER = (State(), State(now_s=1.0))
# Flags that a memory carries beside its amount, far above any amount.
_HOT = 1_000.0
_FULL = 1_000_000.0

_CHANGES = r"level of|speed of .* what it was|take turns|depends on (?:what was done|when it was)|From the first third|\bthen\b|by turns"
_GROUPS = r"two groups|take turns|by turns"


@dataclass(frozen=True)
class Planted(Truth):
    """A truth that remembers what the survey did to it.

    ``what`` is planted, in words; one of ``tells`` has to be found in a true sentence; nothing can be told where there are none.
    ``by_luck``: rates depend on the lot of a visit, and what is true of a cell is the median over all lots. ``confounded``:
    another thing than the factor of a comparison makes its cells differ. ``uncounted``: what devices did not count came from no
    cache. ``seen``: every phase that was run.
    """

    what: str = ""
    tells: tuple[str, ...] = ()
    by_luck: bool = False
    confounded: bool = False
    uncounted: bool = False
    seen: list[Visited] = field(default_factory=list, compare=False)

    def met(self, visited: Sequence[Visited]) -> tuple[State, ...]:
        """Keep all of them for the judge."""
        self.seen.clear()
        self.seen.extend(visited)
        return self.states

    @property
    def wears(self) -> bool:
        """Whether what is done makes it slow for a while."""
        return self.remember is not Truth.remember

    def typical(self, phase: Phase, ranks: int, state: State) -> float:
        """Return the median over all lots."""
        if not self.by_luck:
            return self.rate(phase, ranks, state)
        values = sorted(self.rate(phase, ranks, _with_lot(state, (lot + 0.5) / 201)) for lot in range(201))
        return values[100]


def _with_lot(state: State, lot: float) -> State:
    return State(
        state.now_s,
        state.written_bytes,
        state.made,
        state.removed,
        state.dirty_bytes,
        state.spent_bytes,
        lot,
        state.memory,
    )


def base(data: float, names: float, phase: Phase) -> float:
    """Bytes or operations a second."""
    return data if isinstance(phase, TransferPhase) else names


def _flat(data: float, names: float, phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    return base(data, names, phase)


def _moves(phase: Phase, operation: str = "") -> bool:
    return isinstance(phase, TransferPhase) and operation in ("", phase.operation)


def _calls(phase: Phase, *operations: str) -> bool:
    return isinstance(phase, MetadataPhase) and (not operations or phase.operation in operations)


# --- Structure: nothing changes. --------------------------------------------------------------------------------------


def _by_ranks(table: dict[int, float], data: float, phase: Phase, ranks: int, state: State) -> float:
    del state
    share = table.get(ranks, table[max(table)]) if _moves(phase) else 1.0
    return base(data, 12_000.0, phase) * share


def _small_at(share: float, phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    small = isinstance(phase, TransferPhase) and phase.transfer_bytes < MIB
    return base(700 * MIB, 9_000.0, phase) * (share if small else 1.0)


def _two_service_times(phase: Phase, ranks: int, state: State) -> float:
    """Beyond 4 ranks locks bounce in three of ten visits."""
    return base(500 * MIB, 15_000.0, phase) * (0.4 if ranks > 4 and state.lot < 0.3 else 1.0)


def _small_calls_scatter(phase: Phase, ranks: int, state: State) -> float:
    del ranks
    small = not isinstance(phase, TransferPhase) or phase.transfer_bytes < MIB
    # Of its own for each operation, from the one lot of the visit.
    luck = (state.lot * 7919 * (1 + len(phase.name) + ord(phase.name[0]))) % 1.0
    deviation = 0.25 if small else 0.01
    return base(500 * MIB, 15_000.0, phase) * math.exp(deviation * NormalDist().inv_cdf(min(max(luck, 1e-4), 1 - 1e-4)))


def _call_quota(phase: Phase, ranks: int, state: State) -> float:
    """1,500 calls a second for a client, of whatever kind."""
    del ranks, state
    if isinstance(phase, TransferPhase):
        return min(450.0 * MIB, 1_500.0 * phase.transfer_bytes)
    return 1_500.0


def _small_files_on_flash(phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    small = isinstance(phase, TransferPhase) and phase.segments * phase.block_bytes <= 4 * MIB
    return base(400 * MIB, 8_000.0, phase) * (3.0 if small else 1.0)


def _own_directories_slow(phase: Phase, ranks: int, state: State) -> float:
    """A new directory is placed on a remote metadata server."""
    del ranks, state
    own = isinstance(phase, MetadataPhase) and phase.directory == "unique"
    return base(900 * MIB, 20_000.0, phase) * (0.55 if own else 1.0)


def _inodes_reused(phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    return base(900 * MIB, 10_000.0, phase) * (1.6 if phase.name == "churned-create" else 1.0)


def _direct_differs(phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    if not isinstance(phase, TransferPhase) or not phase.direct:
        return base(600 * MIB, 20_000.0, phase)
    return 600 * MIB * (1.8 if phase.operation == "read" else 0.5)


def _in_array_cache(phase: Phase) -> float:
    """The controllers' cache holds what is small."""
    small = isinstance(phase, TransferPhase) and phase.segments * phase.block_bytes <= 16 * MIB
    return float(small and _moves(phase, "read"))


def _array_cache(phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    return 6.0 * GIB if _in_array_cache(phase) else base(350 * MIB, 7_000.0, phase)


def _stripe_locks(phase: Phase, ranks: int, state: State) -> float:
    del ranks, state
    strided = isinstance(phase, TransferPhase) and phase.access == "strided" and phase.operation == "write"
    return base(800 * MIB, 6_000.0, phase) * (0.15 if strided else 1.0)


def _parity(phase: Phase, ranks: int, state: State) -> float:
    """Writes of less than a stripe read the parity first."""
    del ranks, state
    part = isinstance(phase, TransferPhase) and phase.operation == "write" and phase.transfer_bytes < MIB
    return base(550 * MIB, 9_000.0, phase) * (0.25 if part else 1.0)


def _full_target(phase: Phase, ranks: int, state: State) -> float:
    """One of four data targets is nearly full, and a quarter of all visits with own files come to it."""
    del ranks
    own = isinstance(phase, TransferPhase) and phase.layout == "file-per-process"
    return base(650 * MIB, 9_000.0, phase) * (0.6 if own and state.lot < 0.25 else 1.0)


# --- Changes by the clock. --------------------------------------------------------------------------------------------


def _rebuild(phase: Phase, ranks: int, state: State) -> float:
    """Begins at 35 s, takes more and more for 15 s, and ends at 90 s."""
    del ranks
    share = 1.0
    if _moves(phase) and 35 <= state.now_s < 90:
        share = max(0.45, 1 - 0.55 * (state.now_s - 35) / 15)
    return base(500 * MIB, 10_000.0, phase) * share


def _between(
    start: float,
    end: float,
    share: float,
    which: Callable[[Phase], bool],
    data: float,
    phase: Phase,
    ranks: int,
    state: State,
) -> float:
    del ranks
    return base(data, 10_000.0, phase) * (share if which(phase) and start <= state.now_s < end else 1.0)


def _reads(phase: Phase) -> bool:
    return _moves(phase, "read")


def _writes(phase: Phase) -> bool:
    return _moves(phase, "write")


def _any_data(phase: Phase) -> bool:
    return _moves(phase)


def _any_names(phase: Phase) -> bool:
    return _calls(phase)


def _snapshot(phase: Phase, ranks: int, state: State) -> float:
    """From 60 s on every write is copied first, and nothing that is removed is given back."""
    del ranks
    share = 1.0
    if state.now_s >= 60:
        share = 0.55 if _writes(phase) else 0.4 if _calls(phase, "file-remove", "dir-remove") else 1.0
    return base(700 * MIB, 14_000.0, phase) * share


def _cron(phase: Phase, ranks: int, state: State) -> float:
    del ranks
    return base(500 * MIB, 10_000.0, phase) * (0.25 if 11 <= state.now_s % 30 < 15 else 1.0)


def _three_levels(phase: Phase, ranks: int, state: State) -> float:
    del ranks
    share = 1.0 if state.now_s < 40 else 0.6 if state.now_s < 80 else 0.8
    return base(500 * MIB, 10_000.0, phase) * (share if _writes(phase) else 1.0)


# --- Changes by what was done. ----------------------------------------------------------------------------------------


def _thin(phase: Phase, ranks: int, state: State) -> float:
    """The first 2.5 GiB that are written have to be given to the volume first; later files get extents that are free again."""
    del ranks
    slow = _writes(phase) and state.written_bytes < 2.5 * GIB
    return base(400 * MIB, 10_000.0, phase) * (0.4 if slow else 1.0)


def _garbage(phase: Phase, ranks: int, state: State) -> float:
    del ranks
    share = min(1.0, max(0.35, 1 - 0.65 * (state.written_bytes - 4 * GIB) / (6 * GIB)))
    return base(800 * MIB, 10_000.0, phase) * (share if _writes(phase) else 1.0)


def _heat(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """Warms while data are moved, by less when throttled; throttled above 4, until below 2.5."""
    del amount
    hot = state.memory >= _HOT
    warmth = state.memory - _HOT * hot
    gain = (0.1 if hot else 1.0) if phase is not None and _moves(phase) else 0.0
    decay = math.exp(-seconds / 25)
    warmth = warmth * decay + 25 * gain * (1 - decay)
    return warmth + _HOT * (warmth > (2.5 if hot else 4))


def _throttled(phase: Phase, ranks: int, state: State) -> float:
    del ranks
    return base(500 * MIB, 10_000.0, phase) * (0.5 if state.memory >= _HOT and _moves(phase) else 1.0)


def _tokens(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """Return how many calls were spent and not refilled; 250 a second are."""
    spent = amount / phase.transfer_bytes if isinstance(phase, TransferPhase) else 0.0
    return max(0.0, state.memory + spent - 250 * seconds)


def _call_bucket(phase: Phase, ranks: int, state: State) -> float:
    """Bursts of 6,000 calls, then 250 a second."""
    del ranks
    if not isinstance(phase, TransferPhase):
        return 10_000.0
    return min(400.0 * MIB, 250.0 * phase.transfer_bytes) if state.memory >= 6_000 else 400.0 * MIB


def _unlinked(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    removed = amount if phase is not None and _calls(phase, "file-remove", "dir-remove") else 0.0
    return max(0.0, state.memory + removed - 1_000 * seconds)


def _remove_backlog(phase: Phase, ranks: int, state: State) -> float:
    """8,000 removals wait at most for the thread that frees their blocks."""
    del ranks
    slow = _calls(phase, "file-remove", "dir-remove") and state.memory >= 8_000
    return base(600 * MIB, 14_000.0, phase) * (0.15 if slow else 1.0)


_JOURNALLED = (
    "file-create",
    "file-remove",
    "dir-create",
    "dir-remove",
    "file-rename",
    "file-link",
    "file-chmod",
    "file-setxattr",
    "file-truncate",
    "dir-rename",
)


def _journal(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    full = state.memory >= _FULL
    entries = state.memory - _FULL * full
    added = amount if phase is not None and _calls(phase, *_JOURNALLED) else 0.0
    entries = max(0.0, entries + added - 1_800 * seconds)
    return entries + _FULL * (entries > (9_000 if full else 15_000))


def _journal_fills(phase: Phase, ranks: int, state: State) -> float:
    """15,000 changes, then a checkpoint until only 9,000 are left."""
    del ranks
    slow = _calls(phase, *_JOURNALLED) and state.memory >= _FULL
    return base(600 * MIB, 12_000.0, phase) * (0.04 if slow else 1.0)


def _read_bytes(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    del seconds
    return state.memory + (amount if phase is not None and _reads(phase) else 0.0)


def _reads_warm_up(phase: Phase, ranks: int, state: State) -> float:
    """Maps of extents and prefetchers are cold until 1.5 GiB have been read."""
    del ranks
    return base(500 * MIB, 10_000.0, phase) * (0.4 if _reads(phase) and state.memory < 1.5 * GIB else 1.0)


def _locks(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    """Return for how many seconds of moving data locks are still called back."""
    del amount
    if phase is None:
        return state.memory
    return max(0.0, state.memory - seconds) if _moves(phase) else 0.25


def _carried_over(phase: Phase, ranks: int, state: State) -> float:
    """Who moves data after work on names first waits for locks to be called back."""
    del ranks
    return base(500 * MIB, 10_000.0, phase) * (0.5 if _moves(phase) and state.memory else 1.0)


def _pending(state: State, phase: Phase | None, amount: float, seconds: float) -> float:
    removed = amount if phase is not None and _calls(phase, "file-remove") else 0.0
    return max(0.0, state.memory + removed - 4_000 * seconds)


def _deferred_unlink(phase: Phase, ranks: int, state: State) -> float:
    """Removals return at once; who creates meanwhile pays for them."""
    del ranks
    slow = _calls(phase, "file-create", "dir-create") and state.memory > 200
    return base(500 * MIB, 10_000.0, phase) * (0.45 if slow else 1.0)


def _ranks_told(ranks: int) -> tuple[str, ...]:
    return (
        rf"saturate at {ranks} rank",
        rf"\b{ranks} ranks? suffice",
        rf"processes per node, \w+ = {ranks}\b",
    )


_ONE_MIB = (
    r"saturate at 1 MiB",
    r"need more than 64 KiB",
    r"grow at the largest setting measured, 1 MiB",
    r"transfer size, \w+ = 1 MiB",
    r"1 MiB transfers suffice",
)

NUMA_DIP = {1: 0.5, 2: 1.0, 4: 0.65, 8: 1.0}
CROWDED = {1: 0.4, 2: 0.75, 4: 1.0, 8: 0.7}
ALMOST = {1: 0.3, 2: 0.6, 4: 0.86, 8: 1.0}


def _changing(
    name: str, what: str, rate: Rate, states: tuple[State, ...] = _LATER, tells: tuple[str, ...] = (_CHANGES,)
) -> Planted:
    return Planted(name, rate, states, what=what, tells=tells)


def fourth_truths() -> tuple[Planted, ...]:
    """All of them."""
    end = math.inf
    steady = (
        Planted(
            "NUMA dip at 4 ranks",
            partial(_by_ranks, NUMA_DIP, 900 * MIB),
            what="4 ranks come to lie on the far socket",
            tells=_ranks_told(2),
        ),
        Planted(
            "8 ranks on 4 processors",
            partial(_by_ranks, CROWDED, 600 * MIB),
            what="more ranks than processors cost 30 %",
            tells=_ranks_told(4),
        ),
        Planted(
            "64 KiB at 85 %",
            partial(_small_at, 0.85),
            what="64 KiB just fail the 90 % that are promised",
            tells=_ONE_MIB,
        ),
        Planted(
            "4 ranks at 86 % of 8",
            partial(_by_ranks, ALMOST, 1200 * MIB),
            what="4 ranks just fail the 90 %",
            tells=(*_ranks_told(8), r"still grow at the largest setting measured, 8", r"need more than 4 ranks"),
        ),
        Planted(
            "two service times beyond 4 ranks",
            _two_service_times,
            what="locks bounce beyond 4 ranks",
            tells=(_GROUPS,),
            by_luck=True,
        ),
        Planted(
            "small calls scatter", _small_calls_scatter, what="25 % of scatter below 1 MiB, 1 % above", by_luck=True
        ),
        Planted("1,500 calls a second", _call_quota, what="a quota of calls for a client", tells=_ONE_MIB),
        Planted(
            "small files on flash",
            _small_files_on_flash,
            what="files up to 4 MiB come to the fast tier",
            confounded=True,
        ),
        Planted(
            "own directories are remote",
            _own_directories_slow,
            what="a directory for each rank costs 45 %",
            tells=(r"in a directory per rank is 0\.[4-7]",),
        ),
        Planted(
            "inodes are reused",
            _inodes_reused,
            what="creating after removing is 1.6 times as fast",
            tells=(r"just been removed is (1\.[4-8]|at least 1\.[2-6])",),
        ),
        Planted(
            "O_DIRECT reads well, writes badly",
            _direct_differs,
            what="reads 1.8 times, writes half",
            tells=(r"Buffered reads of .* are 0\.[4-7]", r"Buffered writes of .* are (1\.[7-9]|2\.)"),
        ),
        Planted(
            "array cache for small reads",
            _array_cache,
            told_by=("cache-suspect",),
            from_cache=_in_array_cache,
            remote=True,
            what="files up to 16 MiB are read from the controllers' cache",
            tells=(r"^cache-suspect",),
        ),
        Planted(
            "strided writes bounce locks",
            _stripe_locks,
            what="strided writes at 15 %",
            tells=(r"Strided writes of a shared file are 0\.(1|2)",),
        ),
        Planted(
            "parity is read first",
            _parity,
            what="writes below a stripe at 25 %, reads as ever",
            tells=(
                r"(saturate at 1 MiB|1 MiB transfers suffice for buffered writes)",
                r"transfer size, writes = 1 MiB",
                *_ONE_MIB,
            ),
        ),
        Planted(
            "one of four targets is full",
            _full_target,
            remote=True,
            servers=lambda _: {},
            what="a quarter of visits with own files at 60 %",
            tells=(_GROUPS,),
            by_luck=True,
        ),
        Planted(
            "two devices, one counted",
            partial(_flat, 500 * MIB, 10_000.0),
            from_cache=lambda phase: 0.5 * _moves(phase),
            resident=False,
            uncounted=True,
            what="half of the data is on a device that nobody counts; no cache answers",
        ),
        Planted(
            "one of three servers 1.6 x slower",
            partial(_flat, 560 * MIB, 11_000.0),
            remote=True,
            servers=lambda _: {"oss1": 1 / 1.6, "oss2": 1.0, "oss3": 1 / 1.6},
            what="oss2 needs 1.6 times as long",
            tells=(r"^server-unlike: Server oss2",),
        ),
    )
    changing = (
        _changing("rebuild from 35 s to 90 s", "data at 45 %, with a ramp of 15 s", _rebuild),
        _changing("scrub from 50 s to 75 s", "reads at 55 %", partial(_between, 50, 75, 0.55, _reads, 500 * MIB)),
        _changing("snapshot at 60 s", "writes at 55 %, removals at 40 % from there on", _snapshot),
        _changing("cron, 4 s of every 30 s", "everything at 25 %", _cron, tells=(_CHANGES, _GROUPS)),
        _changing("backup from 100 s on", "data at 45 %", partial(_between, 100, end, 0.45, _any_data, 500 * MIB)),
        _changing(
            "metadata fail-over at 55 s", "names at 4 % for 9 s", partial(_between, 55, 64, 0.04, _any_names, 500 * MIB)
        ),
        Planted(
            "one leg of the link lost at 45 s",
            partial(_between, 45, end, 0.5, _any_data, 1100 * MIB),
            _LATER,
            remote=True,
            what="data at half from 45 s on; the servers have less to do",
            tells=(_CHANGES,),
        ),
        _changing("three levels of writes", "1 to 40 s, 0.6 to 80 s, then 0.8", _three_levels),
        _changing(
            "battery learned at 70 s", "writes 1.7 times as fast", partial(_between, 70, end, 1.7, _writes, 300 * MIB)
        ),
        _changing("thin provisioning", "writes at 40 % until 2.5 GiB are allocated", _thin),
        _changing("garbage collection", "writes fall from 4 to 10 GiB to 35 %", _garbage),
        Planted(
            "thermal throttling",
            _throttled,
            _LATER,
            remember=_heat,
            what="data at half while hot",
            tells=(_CHANGES, _GROUPS),
        ),
        Planted(
            "bucket of calls",
            _call_bucket,
            _LATER,
            remember=_tokens,
            what="calls at 250 a second once 6,000 are spent",
            tells=(_CHANGES, _GROUPS, *_ONE_MIB),
        ),
        Planted(
            "removals wait for one thread",
            _remove_backlog,
            _LATER,
            remember=_unlinked,
            what="removals at 15 % when 8,000 wait",
            tells=(_CHANGES, _GROUPS),
        ),
        Planted(
            "journal fills",
            _journal_fills,
            _LATER,
            remember=_journal,
            what="changes of names at 4 % during checkpoints",
            tells=(_CHANGES, _GROUPS),
        ),
        Planted(
            "data after names",
            _carried_over,
            _LATER,
            remember=_locks,
            what="the first quarter of a second of data after work on names at half",
            tells=(_CHANGES, _GROUPS),
        ),
        Planted(
            "removals are deferred",
            _deferred_unlink,
            _LATER,
            remember=_pending,
            what="creates at 45 % while removals are under way",
            tells=(_CHANGES, _GROUPS, r"just been removed is (0\.[3-8]|at most)"),
        ),
        Planted(
            "reads warm up",
            _reads_warm_up,
            _LATER,
            remember=_read_bytes,
            what="reads at 40 % until 1.5 GiB are read",
            tells=(_CHANGES,),
        ),
    )
    return steady + changing


def equals() -> tuple[Planted, ...]:
    """Nothing to be found, on three machines."""
    return (
        Planted("equal, 400 MiB/s", partial(_flat, 400 * MIB, 20_000.0)),
        Planted("equal, slow disks", partial(_flat, 60 * MIB, 400.0)),
        Planted("equal, fast flash", partial(_flat, 5 * GIB, 150_000.0), remote=True),
    )
