"""Messages of the engine. ``docs/reference/engine.md`` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from strakes.base.errors import MeasurementError
from strakes.model.record import from_record
from strakes.model.sample import Sample

# How a plan ended. failed: file system error. refused: invalid plan. limit: time limit. died: the engine died.
PlanEnd = Literal["ok", "failed", "cancelled", "refused", "limit", "died"]

_NEEDED = {"phase", "operation", "bytes", "operations", "elapsed_s", "bytes_per_s", "operations_per_s", "stopped_by"}


@dataclass(frozen=True)
class Hello:
    """The engine's first message: its version (``engine``), its machine and its capabilities."""

    engine: str
    host: str
    pid: int
    backends: tuple[str, ...]
    kinds: tuple[str, ...]
    clock: str
    absent: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Unavailable backends, with ``why`` and ``remedy`` for each."""
    mpi: str = ""
    """The version string of the MPI library; empty if the ranks are threads."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Number of processes on each host, under MPI."""
    ranks: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Rank of each process, by its "HOST PID", under MPI."""
    clock_uncertainty_s: float = 0.0
    """Largest possible offset between the clocks of two processes, in seconds."""


@dataclass(frozen=True)
class Progress:
    """Progress of the running phase."""

    phase: int
    name: str
    elapsed_s: float
    bytes: int
    operations: int
    ranks_done: int


@dataclass(frozen=True)
class EngineError:
    """An error of the file system or of the plan. It has the same four fields as a StrakesError."""

    what: str
    where: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    errno: str = ""
    remedy: str = ""

    def to_exception(self) -> MeasurementError:
        """Return the error as an exception, with ``where`` as one line of text."""
        where = ", ".join(f"{key} {value}" for key, value in self.where.items())
        return MeasurementError(self.what, where=where, why=self.why, remedy=self.remedy)


@dataclass(frozen=True)
class LoggedOperation:
    """One logged operation of a probe. Times are Unix times. ``errno``: empty if the operation was acknowledged."""

    phase: str
    rank: int
    number: int
    due_s: float
    begun_s: float
    ended_s: float
    errno: str

    @property
    def acknowledged(self) -> bool:
        """Return whether the file system reported success."""
        return not self.errno


@dataclass(frozen=True)
class PlanResult:
    """The result of one plan, collected from all messages about the plan."""

    ended: PlanEnd
    samples: tuple[Sample, ...]
    errors: tuple[EngineError, ...]
    cleaned: bool
    left: tuple[str, ...]
    log: tuple[LoggedOperation, ...] = ()
    """Operations of probes with a log, in order for each rank; present even if the plan did not end."""


def sample_from_message(message: Mapping[str, Any]) -> Sample:
    """Return the sample in a ``sample`` message. Raises KeyError if a field is missing."""
    if missing := _NEEDED - message.keys():
        raise KeyError(*sorted(missing))
    return from_record(Sample, message)


def log_from_message(message: Mapping[str, Any]) -> tuple[LoggedOperation, ...]:
    """Return the operations in a ``log`` message. Raises KeyError if a field is missing.

    >>> rows = [[7, 1.0, 1.1, 1.5, ""], [8, 2.0, 2.0, 9.0, "EIO"]]
    >>> first, second = log_from_message({"phase": "watch", "rank": 3, "origin_unix_s": 1000.0, "rows": rows})
    >>> first.number, first.ended_s, first.acknowledged, second.errno
    (7, 1001.5, True, 'EIO')
    """
    origin, phase, rank = float(message["origin_unix_s"]), str(message["phase"]), int(message["rank"])
    rows = ((number, *(origin + at for at in times), errno) for number, *times, errno in message["rows"])
    return tuple(LoggedOperation(phase, rank, *row) for row in rows)


def hello_from_message(message: Mapping[str, Any]) -> Hello:
    """Return the contents of a ``hello`` message. Raises KeyError if a field is missing."""
    nodes = message.get("nodes", ())
    rows = ((node["host"], *row) for node in nodes for row in zip(node["ranks"], node["pids"], strict=True))
    ranks = {f"{host} {pid:d}": rank for host, rank, pid in rows}
    absent = {name: {"why": "", "remedy": ""} | why for name, why in dict(message.get("absent", ())).items()}
    nodes = {one["host"]: len(one["ranks"]) for one in nodes}
    return from_record(Hello, {**message, "nodes": nodes, "ranks": ranks, "absent": absent})
