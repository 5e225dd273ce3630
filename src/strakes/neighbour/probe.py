"""The probe: an engine of its own in a directory of its own.

Its few operations a second are due whatever became of those before.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from strakes.errors import MeasurementError, ServersDeadError, StrakesError
from strakes.launch.engine import Engine
from strakes.launch.local import LocalEngine
from strakes.launch.messages import LoggedOperation, PlanResult
from strakes.plan import MixedPhase, Part, Plan, ProbePhase
from strakes.units import KIB

# Of each kind: few enough to be no load themselves, enough to know within seconds.
RATE_PER_S = 10.0
KINDS: tuple[Literal["file-cycle", "file-read", "write-fsync"], ...] = ("file-cycle", "file-read", "write-fsync")
# One plan; the next one follows at once.
_PLAN_S = 60.0
_LIMIT_S = 600.0
# What it did is told so often, but not for fewer operations of each kind: to be told takes longer than to do it.
_TOLD_S, _OPERATIONS = 0.5, 2
_JOIN_S = 45.0
# Others have processors of their own: theirs are not busy with our measurement.
_NICE = -10


def probe_plan(seconds: float, rate_per_s: float = RATE_PER_S) -> Plan:
    """Return a plan with a rank for each kind of operation.

    A 4 KiB file made, looked at and removed; 4 KiB read past the page cache; 4 KiB written and synchronised.
    """
    parts = tuple(
        Part(1, ProbePhase(kind, kind, rate_per_s, seconds, files=kind.replace("-", ""), file_bytes=4 * KIB, log=True))
        for kind in KINDS
    )
    return Plan(len(parts), (MixedPhase("neighbour", parts),), 1)


class Probe:
    """Runs in a thread from ``start`` to ``stop``; ``take`` hands over what has been felt since the last time."""

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
        # Started here: that no engine is there is the caller's to hear.
        hello = self._engine.start()
        with suppress(OSError):  # not ours to ask for: then it feels our own processors, too
            os.setpriority(os.PRIO_PROCESS, hello.pid, _NICE)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._engine.cancel()
        if isinstance(error, ServersDeadError):
            self._engine.cancel()  # for the second time: at once
            return
        self._thread.join(_JOIN_S)
        self._engine.close()

    def take(self) -> list[LoggedOperation]:
        """In the order of arrival. Raises MeasurementError when the probe cannot go on."""
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
                    progress_s=max(_TOLD_S, _OPERATIONS / self._rate_per_s),
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
