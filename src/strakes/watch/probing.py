"""Probe one directory with a few operations per second, and report operations that hang or fail."""

from __future__ import annotations

import errno
import math
import os
import secrets
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.foreign_text import without_secrets
from strakes.base.interrupts import interrupts_deferred
from strakes.base.units import counted, format_duration
from strakes.runs.messages import LoggedOperation
from strakes.studies.neighbour import Control, Probe
from strakes.targets import calls
from strakes.targets.description import Interruption
from strakes.targets.marker import MARKER_NAME, WORKSPACE_PREFIX
from strakes.targets.mountinfo import find_mount, read_mounts
from strakes.targets.workspace import Workspace
from strakes.watch.values import WatchEvent

RATE_PER_S = 1.0
# Operation of the probe -> its name in metrics and service levels.
OPERATIONS = {"file-cycle": "create", "file-read": "read", "write-fsync": "write"}
# A failed probe restarts after a minute. An error that does not occur again for a minute is over.
_AGAIN_S = 60.0
_MOUNTED_EACH_S = 10.0
_HANGS_S = 15.0
_SLOW_S = 5.0  # If operations take over 5 s, the probe pauses, so that it adds no load to a slow system.
_DRAINED_S = 2.0
_GONE = ("ENOENT", "ENOTDIR", "ESTALE")
# Errors of the file system, not of the probe: any user who creates a file would get them.
_REFUSALS = (errno.EROFS, errno.EIO, errno.ENOSPC, errno.EDQUOT)
_ANY = ""


def describe_failure(error: Exception) -> str:
    """Return the text of an error, without the names of calls and paths that may differ each time."""
    if isinstance(error, StrakesError):
        return error.what if isinstance(error, calls.UnansweredError) or not error.why else f"{error.what}: {error.why}"
    if isinstance(error, OSError | MemoryError) or "start new thread" in str(error):
        why = getattr(error, "strerror", None) or str(error) or "no memory"
        return f"this machine refuses a process, a thread, a file or memory ({why})"
    last = extract_tb(error.__traceback__)[-1]
    return f"internal error in strakes: {without_secrets(repr(error)[:200])} ({Path(last.filename).name}:{last.lineno})"


class MountCheck:
    """Detector of an unmounted file system. After an unmount, the path belongs to another file system."""

    def __init__(self, directory: Path) -> None:
        self._directory = os.path.abspath(directory)
        self._mount_point = find_mount(read_mounts(), self._directory).mount_point

    def why_not(self) -> str:
        """Return an error text if the file system is unmounted, else "". A mount point of autofs counts as mounted."""
        mount = find_mount(read_mounts(), self._directory)
        if len(mount.mount_point) >= len(self._mount_point):
            self._mount_point = mount.mount_point
        elif mount.file_system != "autofs":
            return f"nothing is mounted on {self._mount_point} any more"
        return ""


class CreateTest:
    """Create a test file in a child process, so that a hanging file system does not block the watch."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def hangs(self) -> bool:
        """Return whether the child process still waits for the file system."""
        return self._child is not None and self._child.poll() is None

    def forget(self) -> None:
        """Kill the child process after an unmount. A file that it has created is not removed."""
        if self._child is not None:
            self._child.kill()
        self._child = None

    def run(self) -> int:
        """Create a file. Return the error number, or 0 for success.

        Raises MeasurementError if the file system does not answer in time. The next call then waits for the same child
        process.
        """
        path = str(self._directory / time.strftime(f"{WORKSPACE_PREFIX}%Y%m%d-%H%M%S-answer-{secrets.token_hex(4)}"))
        self._child = self._child or calls.begin("try", path, MARKER_NAME, stderr=subprocess.PIPE)
        try:
            _, said = self._child.communicate(timeout=calls.LIMIT_S)
        except subprocess.TimeoutExpired:
            what = f"the file system does not answer within {calls.LIMIT_S:g} s"
            raise MeasurementError(what, where=str(self._directory)) from None
        self._child = None
        return int(said) if said.strip().isdigit() else 0


class DirectoryProbe:
    """Probe of a directory. ``run``: id of the probe's run. ``missed``: number of times that the probe failed."""

    def __init__(self, directory: Path, run: str) -> None:
        self.directory = directory
        self.missed = 0
        self._run = run
        self._mount, self._test = MountCheck(directory), CreateTest(directory)
        self._stack = ExitStack()
        self._probe: Probe | None = None
        self._workspace: Workspace | None = None
        self._again_s = self._mounted_s = 0.0
        self._stopped_s = -math.inf
        self._refused = False
        self._gap: WatchEvent | None = None
        self._failing: tuple[WatchEvent, int, float] | None = None
        self._control = Control()
        self._slow: set[str] = set()  # Kinds of operations, such as "stat", whose latest operation was slow.
        self._next_s: dict[str, float] = {}
        self._hanging_s: dict[str, float] = {}
        self._hang_s = math.inf
        self._answered_s = 0.0

    def step(self, now_s: float) -> tuple[Sequence[LoggedOperation], list[WatchEvent]]:
        """Return the operations and events since the last call. Start the probe if it does not run."""
        if self._probe is None:
            return [], self._start(now_s)
        try:
            if not 0 <= now_s - self._mounted_s < _MOUNTED_EACH_S:
                self._mounted_s = now_s
                if why_not := self._mount.why_not():
                    raise EnvironmentLacksError(why_not)
            if self._probe.is_stopped:
                raise EnvironmentLacksError("a signal has stopped its engine")
            taken = self._probe.take()
        except StrakesError as error:
            self.stop()
            # The error of a failed operation is more specific than the error of the probe.
            fails = str(self._failing[0].evidence["why"]) if self._failing else ""
            return [], self._failed(self._mount.why_not() or fails or error.why or error.what, now_s)
        operations = [operation for operation in taken if operation.due_s > self._stopped_s + _DRAINED_S]
        if any(operation.errno in _GONE for operation in operations):
            self.stop()
            self._again_s = now_s + _MOUNTED_EACH_S
            return [], []
        self._add(operations)
        return operations, [*self._failures(operations, now_s), *self._pause(operations, now_s)]

    def _pause(self, operations: Sequence[LoggedOperation], now_s: float) -> list[WatchEvent]:
        for operation in operations:
            # Measure from the start of an operation, not from its due time: it may have waited for a slow operation.
            slow = operation.acknowledged and operation.ended_s - operation.begun_s > _SLOW_S
            self._control = self._control.after((operation.phase, slow))
            (self._slow.add if slow else self._slow.discard)(operation.phase)
        if not self._control.stopped:
            return []
        self._control = Control()
        if operations and not self._slow:
            # If operations of all kinds are fast again, the file system has recovered, so do not pause.
            return []
        self.stop()
        self._again_s = now_s + _AGAIN_S
        why = f"its operations take more than {format_duration(_SLOW_S)}"
        text = f"the probe of {self.directory} pauses for {format_duration(_AGAIN_S)}: {why}"
        return [self._event(now_s, text, self._again_s)]

    def hang(self, now_s: float) -> Interruption | None:
        """Return an interruption while operations hang, and once more after they have finished, else None."""
        self._hanging_s |= {
            kind: self._hanging_s.get(kind, next_s)
            for kind, next_s in self._next_s.items()
            if now_s - next_s >= _HANGS_S
        }
        self._hang_s = began_s = min([self._hang_s, *self._hanging_s.values()])
        if began_s == math.inf:
            return None
        ended_s = None if self._hanging_s else max(began_s, self._answered_s)
        if ended_s is not None:
            self._hang_s, self._answered_s = math.inf, 0.0
        return Interruption(str(self.directory), began_s, ended_s, within_s=1 / RATE_PER_S)

    def waits_s(self, now_s: float) -> dict[str, float]:
        """Return kind of operation -> seconds for which an operation hangs, or infinity if a test file was refused."""
        waits = {kind: now_s - since_s for kind, since_s in self._hanging_s.items()}
        if (all_s := waits.pop(_ANY, None)) is not None:
            waits = dict.fromkeys(OPERATIONS, all_s)
        return waits | ({"file-cycle": math.inf} if self._refused else {})

    def skip(self, now_s: float, *, clock_set_back: bool) -> None:
        """Ignore overdue operations, because this process was suspended or the clock was set."""
        self._stopped_s = -math.inf if clock_set_back else now_s
        self._next_s.clear()

    def stop(self) -> None:
        """End the probe. The next start or ``close`` removes its files."""
        stack, self._stack, self._probe = self._stack, ExitStack(), None
        self._next_s.clear()
        with suppress(Exception):
            stack.close()

    def fail(self, error: Exception, now_s: float) -> list[WatchEvent]:
        """End the probe because of an unexpected error. Return an event. The probe starts again later."""
        self.stop()
        return self._failed(describe_failure(error), now_s)

    def close(self, now_s: float) -> list[WatchEvent]:
        """End the probe and remove its workspace. Return an event if the removal fails."""
        self.stop()
        if self._workspace is None:
            return []
        try:
            if calls.call("there", str(self._workspace.path)):
                self._test.run()
                self._make_workspace().remove()
            return []
        except Exception as error:  # noqa: BLE001 - other probes must end as well
            why = getattr(error, "strerror", "") or getattr(error, "why", "") or describe_failure(error)
            text = f"{self._workspace.path} could not be removed ({why}): run "
            return [self._event(now_s, f"{text}strakes clean {shlex.quote(str(self.directory))}", now_s)]

    def _add(self, operations: Sequence[LoggedOperation]) -> None:
        for operation in operations:
            self._next_s.pop(_ANY, None)
            since_s = self._hanging_s.pop(operation.phase, self._hanging_s.pop(_ANY, None))
            if since_s is not None:
                # If the engine's log lacks the operation that hung, assume an end before the next operation was due.
                lost = operation.due_s > since_s + 2 / RATE_PER_S
                self._answered_s = max(self._answered_s, operation.due_s if lost else operation.ended_s)
            self._next_s[operation.phase] = operation.due_s + 1 / RATE_PER_S

    def _failures(self, operations: Sequence[LoggedOperation], now_s: float) -> list[WatchEvent]:
        failed = [operation for operation in operations if not operation.acknowledged]
        if failed and self._failing is not None:
            self._failing = (self._failing[0], self._failing[1] + len(failed), now_s)
        elif failed:
            number = getattr(errno, failed[0].errno, 0)
            why = f"{OPERATIONS.get(failed[0].phase)}: {os.strerror(number) if number else failed[0].errno}"
            subject, evidence = f"operations of the probe of {self.directory}", {"why": f"its operations fail ({why})"}
            event = WatchEvent("gap", subject, failed[0].due_s, now_s, f"{subject} fail ({why})", evidence=evidence)
            self._failing = (event, len(failed), now_s)
            return [event]
        elif self._failing is not None and operations and not 0 <= now_s - self._failing[2] < _AGAIN_S:
            (event, count, last_s), self._failing = self._failing, None
            text = f"{event.text}: {counted(count, 'operation')} failed, and none since"
            return [replace(event, told_s=now_s, ended_s=max(last_s, event.began_s), text=text)]
        return []

    def _start(self, now_s: float) -> list[WatchEvent]:
        if self._test.hangs and not self._mount.why_not():
            self._next_s.setdefault(_ANY, now_s)
            return []
        if 0 < self._again_s - now_s <= 2 * _AGAIN_S:
            return []
        stack = ExitStack()
        self._stack, self._refused = stack, False
        try:
            if why_not := self._mount.why_not():
                self._test.forget()
                raise EnvironmentLacksError(why_not)
            self._refused = self._test.run() in _REFUSALS
            with interrupts_deferred():
                workspace = stack.enter_context(self._make_workspace())
            self._probe = stack.enter_context(Probe(workspace.path, rate_per_s=RATE_PER_S))
        except StrakesError as error:
            stack.close()
            if isinstance(error, MeasurementError):
                self._next_s.setdefault(_ANY, now_s)
            else:
                self._next_s.clear()
            plain = error.why in ("", os.strerror(errno.ENOENT))
            return self._failed(error.what if plain else f"{error.what}: {error.why}", now_s)
        self._stack, self._refused = stack, False
        self._next_s = {_ANY: now_s + 1 / RATE_PER_S}
        gap, self._gap = self._gap, None
        if gap is None:
            return []
        long = format_duration(now_s - gap.began_s)
        text = f"the probe of {self.directory} works again; for {long} it could not: {gap.evidence['why']}"
        return [replace(gap, told_s=now_s, ended_s=now_s, text=text)]

    def _failed(self, why: str, now_s: float) -> list[WatchEvent]:
        # The check for a new mount is cheap, so repeat it often.
        self._again_s = now_s + _AGAIN_S
        with suppress(Exception):
            self._again_s = now_s + (_MOUNTED_EACH_S if self._mount.why_not() else _AGAIN_S)
        if self._test.hangs:
            self._again_s = now_s
        self.missed += 1
        known, event = self._gap, self._event(now_s, f"the probe of {self.directory} cannot work: {why}")
        self._gap = replace(known or event, evidence={"why": why})
        return [] if known else [self._gap]

    def _event(self, now_s: float, text: str, ended_s: float | None = None) -> WatchEvent:
        return WatchEvent("gap", f"probe of {self.directory}", now_s, now_s, text, ended_s)

    def _make_workspace(self) -> Workspace:
        if self._workspace is not None and (left := self._workspace.remove()):
            raise MeasurementError(f"the probe's workspace cannot be removed: {left[0].why}", where=left[0].path)
        if (real := calls.find_directory(self.directory)[0]) != self.directory:
            what, why = "a link replaced the directory", f"the link leads to {real}"
            raise BadInputError(what, where=str(self.directory), why=why)
        self._workspace = Workspace.create(self.directory, self._run)
        return self._workspace
