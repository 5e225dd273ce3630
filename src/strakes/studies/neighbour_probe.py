"""The probe: a second engine that starts a few operations per second in a separate directory (open loop)."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from strakes.base.errors import MeasurementError, ServersDeadError, StrakesError
from strakes.base.units import KIB
from strakes.model.phases import MixedPhase, Part, ProbePhase
from strakes.model.plan import Plan
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.messages import LoggedOperation, PlanResult

# Operations of each kind per second: a negligible load that still shows a slowdown within seconds.
RATE_PER_S = 10.0
KINDS: tuple[Literal["file-cycle", "file-read", "write-fsync"], ...] = ("file-cycle", "file-read", "write-fsync")
# Duration of one plan; the next one follows immediately.
_PLAN_S = 60.0
_LIMIT_S = 600.0
# The engine reports at most this often, and not before this number of operations: a report costs more than one of them.
_REPORT_S, _OPERATIONS_PER_REPORT = 0.5, 2
_JOIN_S = 45.0
# Other users' processors do not run our measurement, so the probe takes priority over it.
_NICE = -10


def probe_plan(seconds: float, rate_per_s: float = RATE_PER_S) -> Plan:
    """Return a plan with one rank for each kind of operation.

    The kinds: create, stat and remove a 4 KiB file; read 4 KiB past the page cache; write 4 KiB and fsync.
    """
    parts = tuple(
        Part(1, ProbePhase(kind, kind, rate_per_s, seconds, files=kind.replace("-", ""), file_bytes=4 * KIB, log=True))
        for kind in KINDS
    )
    return Plan(len(parts), (MixedPhase("neighbour", parts),), 1)


class Probe:
    """Runs the probe in a thread while the context is open; ``take`` returns the new operations."""

    def __init__(
        self, workspace: Path, engine: Callable[[], Engine] = LocalEngine, rate_per_s: float = RATE_PER_S
    ) -> None:
        self._rate_per_s = rate_per_s
        self._workspace = workspace
        self._engine = engine()
        self._felt: deque[LoggedOperation] = deque()
        self._stopping = threading.Event()
        self._failed: StrakesError | None = None
        self._thread = threading.Thread(target=self._work, name="strakes-neighbour", daemon=True)

    def __enter__(self) -> Self:
        # Started in the caller's thread, so that a missing engine raises there.
        hello = self._engine.start()
        with suppress(OSError):  # without the privilege, the probe's latency includes our own processor load
            os.setpriority(os.PRIO_PROCESS, hello.pid, _NICE)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._engine.cancel()
        if isinstance(error, ServersDeadError):
            self._engine.cancel()  # a second cancel ends the engine immediately
            return
        self._thread.join(_JOIN_S)
        self._engine.close()

    def take(self) -> list[LoggedOperation]:
        """Return the new operations in order of arrival. Raises MeasurementError if the probe has failed."""
        if self._failed is not None:
            raise self._failed
        taken = []
        while self._felt:
            taken.append(self._felt.popleft())
        return taken

    def _work(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            try:
                result = self._engine.run(
                    probe_plan(_PLAN_S, self._rate_per_s),
                    self._workspace,
                    f"n{number}",
                    _LIMIT_S,
                    on_log=self._felt.extend,
                    progress_s=max(_REPORT_S, _OPERATIONS_PER_REPORT / self._rate_per_s),
                )
            except StrakesError as error:
                self._failed = error
                return
            if result.ended != "ok" and not self._stopping.is_set():
                self._failed = _failure(result, self._workspace)
                return


def _failure(result: PlanResult, workspace: Path) -> MeasurementError:
    first = result.errors[0] if result.errors else None
    return MeasurementError(
        "the probe that protects other users cannot continue",
        where=str(workspace),
        why=f"{first.what}: {first.why}" if first else f"its plan ended as {result.ended!r}",
        remedy="Without the probe, --neighbour cannot be kept. Check that the file system answers.",
    )
