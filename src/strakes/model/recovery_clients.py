"""The engine plan for the clients of a drill."""

from __future__ import annotations

from dataclasses import dataclass

from strakes.base.units import counted, format_seconds
from strakes.model.phases import ProbePhase
from strakes.model.plan import Plan

# Name of the phase during which the fault is caused.
WATCH = "watch"
# How much longer than they are to work clients may take until the fault is undone.
_GRACE_S = 60.0


@dataclass(frozen=True)
class Timing:
    """The times of a drill, in seconds.

    The fault is caused ``before_s`` after the first file and undone ``restore_after_s`` later. If that is None, it is
    undone when the clients have ended, or after a limit, since clients may be blocked until the undoing.
    """

    before_s: float
    after_s: float
    restore_after_s: float | None = None

    @property
    def seconds(self) -> float:
        """Return how long the clients work, in seconds."""
        return self.before_s + self.after_s

    @property
    def undone_within_s(self) -> float:
        """Return how long after the fault it is undone at the latest."""
        return self.after_s + _GRACE_S if self.restore_after_s is None else self.restore_after_s

    @property
    def undone_when(self) -> str:
        """Return when the fault is undone, in words."""
        if self.restore_after_s is not None:
            return f"{format_seconds(self.restore_after_s)} after that"
        return f"when the clients have ended, or {format_seconds(self.undone_within_s)} after that if they hang"


def watch_phase(rate_per_s: float, timing: Timing, *, sessions: bool, file_bytes: int = 0) -> ProbePhase:
    """Return the phase in which the clients create files, empty or of ``file_bytes`` written with fsync.

    With ``sessions`` every client is a libcephfs session, a separate client to the servers; otherwise a thread on the
    mount.
    """
    return ProbePhase(
        WATCH,
        "file-fsync" if file_bytes else "file-create",
        rate_per_s=rate_per_s,
        seconds=timing.seconds,
        backend="cephfs" if sessions else "posix",
        file_bytes=file_bytes,
        log=True,
    )


def writers(plan: Plan) -> str:
    """Return what wrote the files, in words."""
    return "sessions of libcephfs" if plan.inside_ceph() else "the same mount"


def kind_of_clients(plan: Plan) -> str:
    """Return how many clients there are and what a client is, in words."""
    kind = "each a session of libcephfs" if plan.inside_ceph() else "threads on this machine's mount"
    return f"{counted(plan.ranks, 'client')} ({kind})"
