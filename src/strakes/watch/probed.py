"""State of the probe of one directory, and reports of failing operations."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from strakes.errors import MeasurementError, StrakesError
from strakes.launch.messages import LoggedOperation
from strakes.neighbour.control import Control
from strakes.neighbour.probe import Probe
from strakes.targets import calls
from strakes.targets.workspace import Workspace
from strakes.units import counted, format_duration
from strakes.watch.answer import Answer
from strakes.watch.mounted import Mounted
from strakes.watch.outage import Outage
from strakes.watch.unanswered import Unanswered
from strakes.watch.values import Kind, WatchEvent

# Operations per second of each kind.
RATE_PER_S = 1.0
# Kind of the probe -> name in figures and service levels.
OPERATIONS = {"file-cycle": "create", "file-read": "read", "write-fsync": "write"}
# Time until a failed probe is restarted, and time without failures until a failure has ended.
AGAIN_S = 60.0
# Error of creating a file -> kinds that must fail for other users as well.
_REFUSED = {
    errno.EROFS: ("file-cycle", "write-fsync"),
    errno.EIO: ("file-cycle", "write-fsync"),
    errno.ENOSPC: ("file-cycle",),
    errno.EDQUOT: ("file-cycle",),
}


@dataclass
class Probed:
    """The probe of one directory."""

    directory: Path
    mounted: Mounted = field(init=False)
    answer: Answer = field(init=False)
    stack: ExitStack | None = None
    probe: Probe | None = None
    # Error number of creating a file at the start of the probe; 0: success or unknown.
    refused: int = 0
    # The current workspace, or the last one if its files may remain.
    workspace: Workspace | None = None
    again_s: float = 0.0
    # Time of the last answer, and the outage since then with its event.
    worked_s: float = -math.inf
    outage: Outage | None = None
    gap: WatchEvent | None = None
    control: Control = field(default_factory=Control)
    # Kinds whose last operation was slow.
    slow: set[str] = field(default_factory=set)
    # Kind -> due time of the last operation.
    due_s: dict[str, float] = field(default_factory=dict)
    started_s: float = -math.inf
    mounted_s: float = 0.0
    # Operations that were due earlier waited for the stopped watch and not for the file system.
    stopped_s: float = -math.inf
    unanswered: Unanswered = field(init=False)
    # While operations fail: the event, their number, and the time of the last one.
    failing: tuple[WatchEvent, int, float] | None = None

    def __post_init__(self) -> None:
        """Find the mount point."""
        self.mounted = Mounted(self.directory)
        self.answer = Answer(self.directory)
        # A local file system cannot fail over.
        alarm: Kind = "fail-over" if self.mounted.remote else "no-answer"
        self.unanswered = Unanswered(str(self.directory), 1 / RATE_PER_S, OPERATIONS, alarm)

    def failed(self, now_s: float) -> Outage:
        """Extend or begin the outage of the probe, and return it."""
        outage = self.outage or Outage(self.worked_s if self.worked_s > 0 else now_s, now_s, now_s)
        self.outage = replace(outage, still_s=now_s)
        return self.outage


def waits_s(probed: Probed, now_s: float) -> dict[str, float]:
    """Return kind -> current waiting time, infinity if the file system refuses the operation."""
    refused = dict.fromkeys(_REFUSED.get(probed.refused, ()), math.inf)
    return probed.unanswered.waits_s(now_s) | refused


def gap_of(probed: Probed, now_s: float, text: str, ended_s: float | None = None) -> WatchEvent:
    """Return an event about the probe itself."""
    return WatchEvent("gap", f"probe of {probed.directory}", now_s, now_s, text, ended_s)


def make_workspace(probed: Probed, run: str) -> Workspace:
    """Create the workspace, after removing the remains of the last one or of a killed watch."""
    if probed.workspace is not None and (left := probed.workspace.remove()):
        raise MeasurementError(f"the workspace of the probe cannot be removed: {left[0].why}", where=left[0].path)
    probed.workspace = Workspace.create(probed.directory, run)
    return probed.workspace


def remove_remains(probed: Probed, run: str, now_s: float) -> list[WatchEvent]:
    """Remove the remains of the workspace; return an event if that fails."""
    if probed.workspace is None:
        return []
    try:
        if calls.is_there(str(probed.workspace.path)):
            probed.answer.require()
            make_workspace(probed, run).remove()
        return []
    except (StrakesError, calls.RefusedError) as error:
        why = error.strerror if isinstance(error, calls.RefusedError) else error.why or error.what
        text = f"{probed.workspace.path} could not be removed ({why}): run strakes clean {probed.directory}"
        return [gap_of(probed, now_s, text, now_s)]


def fails(probed: Probed, operations: Sequence[LoggedOperation], now_s: float) -> list[WatchEvent]:
    """Return the events that begin and end because operations fail."""
    failed = [operation for operation in operations if not operation.acknowledged]
    if failed:
        event, count, _ = probed.failing or (None, 0, 0.0)
        probed.failing = (event or _failing(probed, failed[0], now_s), count + len(failed), now_s)
        return [] if event else [probed.failing[0]]
    if probed.failing is None or not operations or 0 <= now_s - probed.failing[2] < AGAIN_S:
        return []
    (event, count, last_s), probed.failing = probed.failing, None
    text = f"{event.text}; it was {counted(count, 'operation')}, and none in the last {format_duration(AGAIN_S)}"
    return [replace(event, told_s=now_s, ended_s=max(last_s, event.began_s), text=text)]


def _failing(probed: Probed, operation: LoggedOperation, now_s: float) -> WatchEvent:
    number = getattr(errno, operation.errno, 0)
    why = os.strerror(number) if number else operation.errno
    kind, subject = OPERATIONS.get(operation.phase), f"operations of the probe of {probed.directory}"
    return WatchEvent(
        "gap",
        subject,
        operation.due_s,
        now_s,
        f"operations of the probe of {probed.directory} fail ({kind}: {why})",
        evidence={"why": f"its operations fail ({kind}: {why})"},
    )
