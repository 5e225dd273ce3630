"""The load of clients during a fail-over drill, as a phase of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.base.units import counted
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan

# Name of the phase during which the fault is injected.
WATCH = "watch"
# If clients hang, the fault is undone this number of seconds after the planned end of the clients.
_GRACE_S = 60.0


@dataclass(frozen=True)
class Timing:
    """Planned times of a drill in seconds: the fault is injected ``before_s`` after the first file.

    It is undone ``restore_after_s`` later, or when all clients have ended (``undone_within_s`` if clients hang).
    """

    before_s: float
    after_s: float
    restore_after_s: float | None = None

    @property
    def seconds(self) -> float:
        """Return the planned time during which clients create files, in seconds."""
        return self.before_s + self.after_s

    @property
    def undone_within_s(self) -> float:
        """Return the maximum duration of the fault in seconds."""
        return self.after_s + _GRACE_S if self.restore_after_s is None else self.restore_after_s


def watch_phase(rate_per_s: float, timing: Timing, *, sessions: bool, file_bytes: int = 0) -> ProbePhase:
    """Return a phase where clients create empty files, or write and fsync files of ``file_bytes``."""
    return ProbePhase(
        WATCH,
        "file-fsync" if file_bytes else "file-create",
        rate_per_s=rate_per_s,
        seconds=timing.seconds,
        backend="cephfs" if sessions else "posix",
        file_bytes=file_bytes,
        log=True,
    )


def kind_of_clients(plan: Plan) -> str:
    """Return a text with the number of clients, and whether they are sessions or threads."""
    kind = "each a session of libcephfs" if plan.inside_ceph() else "threads on this machine's mount"
    return f"{counted(plan.ranks, 'client')} ({kind})"
