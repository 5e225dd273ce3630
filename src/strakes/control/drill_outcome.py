"""The outcome of a drill: waiting time of each client, and whether every acknowledged file exists once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from strakes.control.drill_contents import FileKey, FilesRead
from strakes.failover.timeline import ClientOperation, Moment, Timeline, outages_of, timeline
from strakes.runs.messages import LoggedOperation
from strakes.targets.description import Interruption, TargetRecovery

# A name that one client alone creates, once: who finds it there already was not told that it had made it.
_MADE_BEFORE = "EEXIST"


@dataclass(frozen=True)
class DrillOutcome:
    """The outcome of a drill.

    ``lost``: acknowledged files that are missing or have wrong contents; the latter are also ``damaged``. ``read_by``:
    the client that read them back, empty if none could. ``unanswered``: files that exist although their creation
    returned an error. ``repeated``: operations that the server repeated after the first reply was lost. ``errors``:
    counts by error. ``lacking``: differences that remain after the undoing. ``interruptions``: when targets were
    unavailable to the clients' mount, from the file system's records.
    """

    line: Timeline
    clients: str
    acknowledged: int
    failed: int
    lost: int
    damaged: int
    unanswered: int
    repeated: int
    read_by: str
    errors: Mapping[str, int] = field(default_factory=dict)
    lacking: str = ""
    interruptions: tuple[Interruption, ...] = ()


def outcome_of(
    clients: str,
    log: Sequence[LoggedOperation],
    expected: Mapping[FileKey, str],
    read: FilesRead | None,
    fault_s: float,
    moments: Sequence[Moment],
    targets: Sequence[TargetRecovery],
    lacking: str,
) -> DrillOutcome:
    """Return the outcome of a drill; ``expected`` has the SHA-256 of every planned file.

    Without ``read`` the files could not be read back, and none counts as lost.
    """
    by_rank: dict[int, list[LoggedOperation]] = {}
    for operation in log:
        by_rank.setdefault(operation.rank, []).append(operation)
    # Open loop: an operation counts from the moment at which it was due.
    clients_operations = {
        str(rank): [ClientOperation(operation.due_s, operation.ended_s, operation.errno) for operation in done]
        for rank, done in sorted(by_rank.items())
    }
    outages = outages_of(clients_operations, fault_s)
    acknowledged = {(operation.rank, operation.number) for operation in log if operation.acknowledged}
    failed = {(operation.rank, operation.number) for operation in log if not operation.acknowledged}
    found = {key: expected.get(key, "") for key in acknowledged} if read is None else read.sums
    # A file that was written in part and then acknowledged is as lost as one that is gone.
    damaged = {key for key in acknowledged & found.keys() if found[key] != expected.get(key, "")}
    errors = Counter(operation.errno for operation in log if not operation.acknowledged)
    return DrillOutcome(
        line=timeline("drill", fault_s, moments, outages, targets),
        clients=clients,
        acknowledged=len(acknowledged),
        failed=len(failed),
        lost=len(acknowledged - found.keys()) + len(damaged),
        damaged=len(damaged),
        unanswered=len(failed & found.keys()),
        repeated=errors[_MADE_BEFORE],
        read_by="" if read is None else read.by,
        errors=dict(errors),
        lacking=lacking,
    )


def document(outcome: DrillOutcome) -> str:
    """Return the outcome as JSON."""
    return json.dumps({"schema": 1, **asdict(outcome), "back_after_s": outcome.line.back_after_s}, indent=1)
