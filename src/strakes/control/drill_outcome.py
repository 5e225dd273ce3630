"""The outcome of a drill: how long clients waited, and which acknowledged files are missing or have wrong contents.

The expected checksums of files are computed independently of the engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath

import numpy as np

from strakes.base.units import counted
from strakes.failover.timeline import PENDING, ClientOperation, Moment, Timeline, outages_of, timeline
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan
from strakes.runs.messages import LoggedOperation
from strakes.targets.calls import RefusedError, call
from strakes.targets.child import SUM_DIGITS
from strakes.targets.description import Interruption, TargetRecovery

_WORD = 1 << 64  # Modulus for unsigned integers of 8 bytes.
_FILE, _DIRECTORY = re.compile(r"f(\d+)\.(\d+)"), re.compile(r"probe\.(\d+)\.probe")
READ_S = 300.0

FileKey = tuple[int, int]


def expected_sums(plan: Plan, phase: ProbePhase, directory: PurePath, identifier: str) -> dict[FileKey, str]:
    """Return the expected SHA-256, cut to SUM_DIGITS, of every file that a phase writes.

    The files of a rank are consecutive parts of a stream of 8-byte words. Word i is base + i x step
    (docs/reference/engine.md). Base and step depend on ``directory``, the path passed to the engine.
    """
    salt = 14695981039346656037  # hash FNV-1a (Fowler, Noll, Vo 1991)
    for byte in os.fsencode(directory) + b"/" + identifier.encode():
        salt = (salt ^ byte) * 1099511628211 % _WORD
    sums = {}
    for rank in range(plan.ranks):
        state, word = _splitmix(salt)
        state, word = _splitmix(word ^ plan.seed)
        state, base = _splitmix(word ^ rank)
        _, step = _splitmix(state)
        words = phase.file_bytes // 8
        for number in range(phase.operations(1)):
            part = np.arange(number * words, (number + 1) * words, dtype=np.uint64) * np.uint64(step | 1)
            sums[rank, number] = hashlib.sha256((part + np.uint64(base)).tobytes()).hexdigest()[:SUM_DIGITS]
    return sums


def read_back(directory: str, file_bytes: int, limit_s: float) -> tuple[dict[FileKey, str], set[int], str]:
    """Return the same of the readable files, the ranks whose directories cannot be opened, and why ("": none).

    Raises MeasurementError if ``directory`` cannot be opened.
    """
    try:
        sums = call("sums", directory, "*.probe", str(file_bytes + 1), limit_s=limit_s).split("/")
    except RefusedError as error:
        raise error.as_strakes_error("the files of the clients cannot be read back") from error
    found, unread, why = dict[FileKey, str](), set[int](), ""
    for name, said in zip(sums[::2], sums[1::2], strict=False):
        if match := _FILE.fullmatch(name):
            found[int(match[1]), int(match[2])] = said
        elif match := _DIRECTORY.fullmatch(name):
            unread.add(int(match[1]))
            why = f"the files of {counted(len(unread), 'client')} were not read back: {os.strerror(int(said))}"
    return found, unread, why


def _splitmix(state: int) -> tuple[int, int]:
    """Return the next state and output of the random generator splitmix64 (Vigna 2014)."""
    state = (state + 0x9E3779B97F4A7C15) % _WORD
    mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _WORD
    return state, mixed ^ mixed >> 31


def pending(plan: Plan, phase: ProbePhase, log: Sequence[LoggedOperation], until_s: float) -> dict[int, float]:
    """Return rank -> due time of its first operation that was not complete at ``until_s``.

    The starts of the ranks are spread evenly over the interval between two operations (docs/reference/engine.md).
    """
    last = {operation.rank: operation for operation in sorted(log, key=lambda operation: operation.number)}
    due: dict[int, float] = {}
    for rank in range(plan.ranks):
        known = last.get(rank, log[0])
        ahead = (last[rank].number if rank in last else -1) + 1 - known.number + (rank - known.rank) / plan.ranks
        due_s = known.due_s + ahead / phase.rate_per_s
        left = rank not in last or last[rank].number + 1 < phase.operations(1)
        if left and due_s < until_s and (rank not in last or last[rank].ended_s < until_s):
            due[rank] = due_s
    return due


@dataclass(frozen=True)
class DrillOutcome:
    """The outcome of a drill. ``lost``: number of acknowledged files that are missing or damaged (wrong contents).

    ``unanswered``: number of existing files whose creation was not acknowledged. ``repeated``: number of creations that
    were sent again after a lost reply. ``lacking``: how the servers differ from their state before the fault.
    """

    line: Timeline
    clients: str
    acknowledged: int
    failed: int
    lost: int
    damaged: int
    unanswered: int
    repeated: int
    read: bool
    errors: Mapping[str, int] = field(default_factory=dict)
    lacking: str = ""
    interruptions: tuple[Interruption, ...] = ()


def outcome_of(
    clients: str,
    log: Sequence[LoggedOperation],
    expected: Mapping[FileKey, str],
    read: Mapping[FileKey, str] | None,
    fault_s: float,
    moments: Sequence[Moment],
    targets: Sequence[TargetRecovery],
    lacking: str,
    waiting: Mapping[int, float],
    until_s: float,
    unread: Collection[int] = (),
) -> DrillOutcome:
    """Return the outcome of a drill. ``expected``: SHA-256 of the planned files.

    ``read``: of the files found, or None if they were not read. ``unread``: ranks whose files were not read.
    ``waiting``: see :func:`pending`.
    """
    done: dict[str, list[ClientOperation]] = {}
    acknowledged, failed = set[FileKey](), set[FileKey]()
    for operation in sorted(log, key=lambda operation: operation.rank):
        # Clients write on a fixed schedule (open loop), so the latency of an operation begins at its due time.
        seen = ClientOperation(operation.due_s, operation.ended_s, operation.errno)
        done.setdefault(str(operation.rank), []).append(seen)
        (acknowledged if operation.acknowledged else failed).add((operation.rank, operation.number))
    for rank, due_s in waiting.items():
        done.setdefault(str(rank), []).append(ClientOperation(due_s, until_s, PENDING))
    found, checked = read or {}, acknowledged
    if read is None or unread:
        checked = {key for key in acknowledged if read is not None and key[0] not in unread}
    damaged = {key for key in checked & found.keys() if found[key] != expected.get(key, "")}
    errors = Counter(operation.errno for operation in log if not operation.acknowledged)
    return DrillOutcome(
        line=timeline("drill", fault_s, moments, outages_of(done, fault_s), targets),
        clients=clients,
        acknowledged=len(acknowledged),
        failed=len(failed),
        lost=len(checked - found.keys()) + len(damaged),
        damaged=len(damaged),
        unanswered=len(failed & found.keys()),
        # All names are unique, so EEXIST means that an earlier attempt succeeded but its reply was lost.
        repeated=errors["EEXIST"],
        read=read is not None,
        errors=dict(errors),
        lacking=lacking,
    )


def document(outcome: DrillOutcome) -> str:
    """Return the outcome as JSON."""
    return json.dumps({"schema": 1, **asdict(outcome), "back_after_s": outcome.line.back_after_s}, indent=1)
