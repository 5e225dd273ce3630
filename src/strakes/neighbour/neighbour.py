"""A good neighbour: listens to the probe around and during every visit, and gives way or stops."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from strakes.errors import EnvironmentLacksError, StoppedForOthersError
from strakes.launch.engine import Engine
from strakes.launch.messages import LoggedOperation, Progress
from strakes.neighbour.control import TOO_MANY, WINDOW, Control, Felt
from strakes.neighbour.felt import is_slow, latencies, record, worst
from strakes.neighbour.probe import KINDS, Probe
from strakes.store import RunWriter
from strakes.store.records import NeighbourFelt
from strakes.targets.workspace import Workspace
from strakes.units import format_seconds

# The probe alone, before anything is measured; its first operations meet what has never been looked at.
_WARM_UP_S = 0.5
_ALONE_S = 3.0
# After a visit that gave way: until nobody was slow for so long, but not longer than that.
_QUIET_S = 1.0
_REST_S = 5.0
_LOOK_S = 0.1
# A probe that says nothing for so much longer than the limit waits itself.
_SILENT_S = 2.0


class Listener(Protocol):
    """Where what the probe felt comes from."""

    def take(self) -> list[LoggedOperation]:
        """Return the operations since the last time."""
        ...


class Neighbour:
    """``limit_s``: what 99 of 100 operations of others may take.

    Call ``begin`` first, then ``before_visit`` and ``after_visit`` in turn.
    """

    def __init__(self, limit_s: float, probe: Listener) -> None:
        self.limit_s = limit_s
        self.yielded = False
        """Whether the visit that runs or ran last was ended for others."""
        self._probe = probe
        self._control = Control()
        self._all: list[LoggedOperation] = []
        self._alone = 0  # of them, before anything was measured
        self._of_visit = 0  # the first of them
        self._heard_s = time.time()
        # What was due earlier is not held against the load there is now.
        self._counts_from_s = self._heard_s + _WARM_UP_S

    @property
    def share(self) -> float:
        """Of its load that the measurement may be now."""
        return self._control.share

    def begin(self) -> None:
        """Listen to the probe alone. Raises EnvironmentLacksError where others wait too long already."""
        until = time.monotonic() + _WARM_UP_S + _ALONE_S
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            self._listen()
        self._alone = len(self._all)
        if self._control.step:
            raise EnvironmentLacksError(
                "operations of other users already take longer than --neighbour allows",
                why=self._why(self._all),
                remedy="Measure at a quieter time, or give a limit above what others see without strakes.",
            )

    def before_visit(self) -> float:
        """Return the share of its load that the next visit may be.

        Raises StoppedForOthersError when not even the smallest can be borne.
        """
        if self.yielded:
            self._rest()
        self._listen()
        if self._control.stopped:
            raise StoppedForOthersError(
                "stopped, because the operations of other users would take too long; what was measured is kept",
                why=f"at the lowest possible load, {self._why(self._all[-WINDOW * len(KINDS) :])}",
                remedy="Resume at a quieter time with the same command and --resume. See what was measured: strakes "
                "report latest",
            )
        if math.isinf(self._counts_from_s):
            self._counts_from_s = time.time()
        self.yielded = False
        self._of_visit = len(self._all)
        return self.share

    def while_it_runs(self, engine: Engine, *, may_yield: bool) -> Callable[[Progress], None]:
        """For the engine's progress: ends the visit as soon as others suffer, where it may be ended."""

        def look(_progress: Progress) -> None:
            if self._listen() and may_yield:
                self.yielded = True
                engine.cancel()

        return look

    def after_visit(self) -> dict[str, float]:
        """Return what the probe felt meanwhile, for the visit's record."""
        self._listen()
        return worst(latencies(self._all[self._of_visit :], self.limit_s))

    def summary(self) -> NeighbourFelt:
        """Return what it felt in all: alone, and since."""
        alone, since = (
            record(latencies(some, self.limit_s)) for some in (self._all[: self._alone], self._all[self._alone :])
        )
        return NeighbourFelt(self.limit_s, alone, since, self.share, self._control.stopped)

    def _listen(self) -> bool:
        """Take in what has come; tell whether the measurement has to be less from now on."""
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
                # The load is another one from the next visit on; until then nothing counts.
                self._counts_from_s = math.inf
                return self._control.step > before.step or self._control.stopped
        return False

    def _rest(self) -> None:
        """Wait until what the visit has left under way is over: it is not held against the next one."""
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
    """Provide a Neighbour with its probe in ``workspace``; what it felt is in the run at the end."""
    with Probe(workspace.path) as probe:
        neighbour = Neighbour(limit_s, probe)
        try:
            neighbour.begin()
            yield neighbour
        finally:
            writer.append_event(neighbour.summary())
