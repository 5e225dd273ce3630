"""What came of a drill: how long each client waited, and whether every acknowledged file is there, once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from strakes.failover.timeline import ClientOperation, Moment, Timeline, outages_of, timeline
from strakes.launch.messages import LoggedOperation
from strakes.targets.description import Interruption, TargetRecovery

# A name that one client alone creates, once: who finds it there already was not told that it had made it.
_MADE_BEFORE = "EEXIST"
_FILE = re.compile(r"f(\d+)\.(\d+)")


@dataclass(frozen=True)
class DrillOutcome:
    """What came of a drill.

    ``lost`` files were acknowledged and are not there; ``unanswered`` ones are there although they ended with an error;
    ``repeated`` ones were done a second time by the server after the first answer was lost. ``errors`` counts each
    error, ``lacking`` says what the fault has left. ``interruptions`` says when targets did not serve the clients'
    mount, as the file system remembers it.
    """

    line: Timeline
    clients: str
    acknowledged: int
    failed: int
    lost: int
    unanswered: int
    repeated: int
    errors: Mapping[str, int] = field(default_factory=dict)
    lacking: str = ""
    interruptions: tuple[Interruption, ...] = ()


def outcome_of(
    clients: str,
    log: Sequence[LoggedOperation],
    present: frozenset[tuple[int, int]],
    fault_s: float,
    moments: Sequence[Moment],
    targets: Sequence[TargetRecovery],
    lacking: str,
) -> DrillOutcome:
    """Return what came of a drill; ``present`` gives rank and number of every file that exists."""
    by_rank: dict[int, list[LoggedOperation]] = {}
    for one in log:
        by_rank.setdefault(one.rank, []).append(one)
    # Open loop: an operation counts from the moment at which it was due.
    clients_operations = {
        str(rank): [ClientOperation(one.due_s, one.ended_s, one.errno) for one in done]
        for rank, done in sorted(by_rank.items())
    }
    outages = outages_of(clients_operations, fault_s)
    acknowledged = {(one.rank, one.number) for one in log if one.acknowledged}
    failed = {(one.rank, one.number) for one in log if not one.acknowledged}
    errors = Counter(one.errno for one in log if not one.acknowledged)
    return DrillOutcome(
        line=timeline("drill", fault_s, moments, outages, targets),
        clients=clients,
        acknowledged=len(acknowledged),
        failed=len(failed),
        lost=len(acknowledged - present),
        unanswered=len(failed & present),
        repeated=errors[_MADE_BEFORE],
        errors=dict(errors),
        lacking=lacking,
    )


def file_of(name: str) -> tuple[int, int] | None:
    """Return rank and number of a probe's file, which the engine calls ``fRANK.NUMBER``; None for any other.

    >>> file_of("f12.0034"), file_of("data")
    ((12, 34), None)
    """
    match = _FILE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def document(outcome: DrillOutcome) -> str:
    """Return the outcome as JSON."""
    return json.dumps({"schema": 1, **asdict(outcome), "back_after_s": outcome.line.back_after_s}, indent=1)
