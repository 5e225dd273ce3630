"""Applies the load controller to a measurement: reads the probe around and during every visit, slows down or stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from strakes.base.errors import EnvironmentLacksError, StoppedForOthersError
from strakes.base.units import format_seconds
from strakes.runs.engine import Engine
from strakes.runs.messages import LoggedOperation, Progress
from strakes.runs.records import NeighbourFelt
from strakes.runs.writer import RunWriter
from strakes.studies.neighbour_control import TOO_MANY, WINDOW, Control, Felt
from strakes.studies.neighbour_latency import is_slow, latencies, record, worst
from strakes.studies.neighbour_probe import KINDS, Probe
from strakes.targets.workspace import Workspace

# The probe runs alone for _ALONE_S before the measurement; its first _WARM_UP_S meet cold caches and do not count.
_WARM_UP_S = 0.5
_ALONE_S = 3.0
# Pause after a cancelled visit: until no operation was slow for _QUIET_S, at most _REST_S.
_QUIET_S = 1.0
_REST_S = 5.0
_LOOK_S = 0.1
# A probe without results for this time above the limit is itself blocked, which counts as slow.
_SILENT_S = 2.0


class Listener(Protocol):
    """Source of the probe's operations."""

    def take(self) -> list[LoggedOperation]:
        """Return the operations since the previous call."""
        ...


class Neighbour:
    """Keeps the 99th percentile of other users' latencies below ``limit_s`` seconds.

    Call ``begin`` once, then ``before_visit`` and ``after_visit`` around each visit.
    """

    def __init__(self, limit_s: float, probe: Listener) -> None:
        self.limit_s = limit_s
        self.yielded = False
        """Whether the current or last visit was cancelled to protect other users."""
        self._probe = probe
        self._control = Control()
        self._all: list[LoggedOperation] = []
        self._alone = 0  # number of operations before the measurement
        self._of_visit = 0  # index of the visit's first operation
        self._heard_s = time.time()
        # Operations that were due earlier ran under another load and do not count.
        self._counts_from_s = self._heard_s + _WARM_UP_S

    @property
    def share(self) -> float:
        """Return the allowed share of the load, 0 to 1."""
        return self._control.share

    def begin(self) -> None:
        """Run the probe alone. Raises EnvironmentLacksError if latencies exceed the limit without any load of ours."""
        until = time.monotonic() + _WARM_UP_S + _ALONE_S
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            self._listen()
        self._alone = len(self._all)
        if self._control.step:
            raise EnvironmentLacksError(
                "operations of other users already take longer than --neighbour allows",
                why=self._why(self._all),
                remedy="Measure at a quieter time, or give a limit above the p99 without strakes.",
            )

    def before_visit(self) -> float:
        """Return the allowed share of the load for the next visit.

        Raises StoppedForOthersError if latencies exceed the limit even at the lowest load.
        """
        if self.yielded:
            self._rest()
        self._listen()
        if self._control.stopped:
            raise StoppedForOthersError(
                "stopped, because the operations of other users would take too long; finished measurements are kept",
                why=f"at the lowest possible load, {self._why(self._all[-WINDOW * len(KINDS) :])}",
                remedy="Resume at a quieter time with the same command and --resume. To see the results: "
                "strakes report latest",
            )
        if math.isinf(self._counts_from_s):
            self._counts_from_s = time.time()
        self.yielded = False
        self._of_visit = len(self._all)
        return self.share

    def while_it_runs(self, engine: Engine, *, may_yield: bool) -> Callable[[Progress], None]:
        """Return a progress callback that cancels the visit when the load must be reduced, if ``may_yield``."""

        def look(_progress: Progress) -> None:
            if self._listen() and may_yield:
                self.yielded = True
                engine.cancel()

        return look

    def after_visit(self) -> dict[str, float]:
        """Return the latencies during the visit, for its record."""
        self._listen()
        return worst(latencies(self._all[self._of_visit :], self.limit_s))

    def summary(self) -> NeighbourFelt:
        """Return the latencies before and during the measurement."""
        alone, since = (
            record(latencies(some, self.limit_s)) for some in (self._all[: self._alone], self._all[self._alone :])
        )
        return NeighbourFelt(self.limit_s, alone, since, self.share, self._control.stopped)

    def _listen(self) -> bool:
        """Process new operations; return whether the load must be reduced."""
        now_s = time.time()
        new = self._probe.take()
        self._all += new
        felt = [
            Felt(operation.phase, is_slow(operation, self.limit_s))
            for operation in new
            if operation.due_s >= self._counts_from_s
        ]
        if new:
            self._heard_s = now_s
        elif now_s - max(self._heard_s, self._counts_from_s) > self.limit_s + _SILENT_S:
            felt = [Felt("silence", True)] * TOO_MANY
        before = self._control
        for event in felt:
            self._control = self._control.after(event)
            if self._control.step != before.step or self._control.stopped != before.stopped:
                # The load changes with the next visit; operations until then do not count.
                self._counts_from_s = math.inf
                return self._control.step > before.step or self._control.stopped
        return False

    def _rest(self) -> None:
        """Wait until the effects of the cancelled visit have ended, so that they do not count against the next one."""
        began = quiet_since = time.monotonic()
        while time.monotonic() - began < _REST_S and time.monotonic() - quiet_since < _QUIET_S:
            time.sleep(_LOOK_S)
            new = self._probe.take()
            self._all += new
            if any(is_slow(operation, self.limit_s) for operation in new):
                quiet_since = time.monotonic()
        self._heard_s = time.time()

    def _why(self, operations: list[LoggedOperation]) -> str:
        felt = latencies(operations, self.limit_s)
        said = (
            ", ".join(f"{kind} {format_seconds(of_kind.p99_s)}" for kind, of_kind in felt.items())
            or "no finished operation"
        )
        return f"p99 of the probe: {said}; the limit is {format_seconds(self.limit_s)}"


@contextmanager
def neighbour_in(limit_s: float, workspace: Workspace, writer: RunWriter) -> Iterator[Neighbour]:
    """Provide a Neighbour with its probe in ``workspace``; store its latencies in the run at the end."""
    with Probe(workspace.path) as probe:
        neighbour = Neighbour(limit_s, probe)
        try:
            neighbour.begin()
            yield neighbour
        finally:
            writer.append_event(neighbour.summary())
