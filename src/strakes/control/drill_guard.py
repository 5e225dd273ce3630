"""Undo a fault by a separate guard process, even if the drill that caused it is killed or stopped (SIGSTOP).

The guard process has its own session, so Ctrl-C does not end it.
"""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.files import open_own, remove_kept
from strakes.base.processes import python_module
from strakes.base.units import format_seconds
from strakes.control.drill_journal import CAUSE, NOT_BEGUN, SHELL, announce, put_right_open, set_begun
from strakes.control.drill_undo import COMMAND_S, Undo
from strakes.targets.command import run_unmarked

UNDO_LIMIT_S = 300.0
_START_S, _END_S, _AGAIN_S, _LATE_S = 30.0, 5.0, 5.0, 5.0
_MOST_POLL_S = 2e6  # Maximum time-out of poll(2), which is a 32-bit number of milliseconds.
_READY, _CAUSED, _TRIED = b"ready", b".", b"tried"


class Promise:
    """A guard process and a record on disk. Each of them suffices to undo a fault if the drill is killed.

    A pipe contains one byte. The command that causes the fault starts only after it has read this byte. If the guard
    process reads it first, the fault never begins, and is not undone.
    """

    def __init__(self, root: Path, fault: str, undo: Undo, within_s: float = UNDO_LIMIT_S) -> None:
        """Record how to undo the fault, and start the guard process. Raises StrakesError: do not cause the fault.

        ``within_s``: maximum duration of the fault in seconds.
        """
        self.left = f"Left to do: {undo.text}. Try again: strakes failover undo"
        self._path = announce(root, fault, undo, begun=False)
        self._tried = self._over = False
        try:
            self._pipe, full = os.pipe()
            os.write(full, b"\n")
            os.close(full)
            with open_own(self._path, "a drill's journal", "Set STRAKES_STORE to a directory of your own.") as file:
                copy = os.memfd_create("record")
                os.write(copy, file.read().removesuffix(NOT_BEGUN))
                # The child gets an O_PATH descriptor, because closing such a descriptor sends no request to a server.
                self._files = copy, os.open(f"/proc/self/fd/{file.fileno()}", os.O_PATH | os.O_CLOEXEC)
            self._guard = subprocess.Popen(
                python_module(__name__, str(self._path), *map(str, (*self._files, self._pipe, within_s))),
                pass_fds=[*self._files, self._pipe],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._guard.stdout is not None
            poll = select.poll()
            poll.register(self._guard.stdout, select.POLLIN)
            if not (poll.poll(1e3 * _START_S) and os.read(self._guard.stdout.fileno(), 1)):
                self._guard.kill()
                self._guard.communicate(timeout=_END_S)
                raise ChildProcessError(errno.ECHILD, "it ended at once or did not answer")
        except (OSError, StrakesError, subprocess.SubprocessError) as error:
            with suppress(OSError):
                remove_kept(self._path)
            what, why = "the process that undoes the fault cannot be started", getattr(error, "strerror", str(error))
            raise EnvironmentLacksError(what, where=getattr(error, "filename", "") or "", why=why or "") from error

    def gate(self) -> tuple[str, ...]:
        """Record that the fault begins. Return the prefix of its command. Raises StrakesError."""
        set_begun(self._path, self._files[1])
        return SHELL, "-c", CAUSE, f"/proc/{os.getpid()}/fd/{self._pipe}", self._path.name

    def begin(self) -> None:
        """Begin a fault without a command. Raises MeasurementError if the guard process has taken the byte."""
        set_begun(self._path, self._files[1])
        if not _take(self._pipe):
            raise MeasurementError("the fault is not caused", why="another process has ended the drill")

    def caused(self) -> None:
        """Tell the guard process that the fault has begun."""
        self._tell(_CAUSED)

    def keep(self, say: Callable[[str], None] = lambda _text: None) -> str:
        """Undo the fault. Return how it was undone, or "" if it is already undone or an earlier call failed.

        Repeats failed attempts, and calls ``say`` after the first failure. Raises StrakesError at the time limit.
        """
        self._guard.send_signal(signal.SIGCONT)  # If the guard was stopped during its own attempt, it has the lock.
        try:
            needed = not _take(self._pipe)
            done = "" if self._tried else _keep_trying(self._path, *self._files, say, needed=needed)
        except StrakesError:
            self._tried = self._over = True
            raise
        self._over = True
        return done

    def leave(self) -> str:
        """Return the message that the fault is not undone yet, and that the guard process keeps trying."""
        limit = format_seconds(UNDO_LIMIT_S)
        return f"the fault is not undone yet; process {self._guard.pid} keeps trying for at most {limit}. {self.left}"

    def close(self, say: Callable[[str], None] = lambda _text: None) -> None:
        """Wait for the guard process, which undoes the fault if it has begun and :meth:`keep` was never called."""
        assert self._guard.stdin is not None and self._guard.stdout is not None
        if _take(self._pipe):
            self._tried = self._over = True
            with suppress(StrakesError):
                put_right_open(self._path, *self._files, needed=False)
        self._tell(_TRIED if self._tried else b"")
        self._guard.stdin.close()
        self._guard.send_signal(signal.SIGCONT)
        try:
            self._guard.wait(_END_S if self._over else UNDO_LIMIT_S + 2 * COMMAND_S)
        except subprocess.TimeoutExpired:
            if self._over:
                self._guard.kill()
                may = "a command that undoes the fault may still run"
                say(f"process {self._guard.pid} did not end and was killed; {may}")
            else:
                say(self.leave())
        self._guard.stdout.close()
        for descriptor in (*self._files, self._pipe):
            os.close(descriptor)

    def _tell(self, message: bytes) -> None:
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            os.write(self._guard.stdin.fileno(), message)


def _take(pipe: int) -> bool:
    return bool(os.read(pipe, 1))


def _keep_trying(path: Path, copy: int, journal: int, say: Callable[[str], None], *, needed: bool) -> str:
    deadline, reported = time.monotonic() + UNDO_LIMIT_S, False
    while True:
        try:
            return put_right_open(path, copy, journal, needed=needed)
        except (EnvironmentLacksError, MeasurementError) as error:
            if time.monotonic() > deadline:
                raise
            if not reported:
                why = "; ".join(filter(None, (error.where or error.what, error.why)))
                say(f"the fault is not undone yet: {why}; trying again for at most {format_seconds(UNDO_LIMIT_S)}")
            reported = True
            time.sleep(_AGAIN_S)
            with suppress(StrakesError):  # Another command has undone the fault if the file in the store is empty.
                if run_unmarked(("/usr/bin/stat", "-Lc", "%s", f"/proc/{os.getpid()}/fd/{journal}")).stdout == "0\n":
                    return ""


def main() -> int:
    """Run the guard process. Return its exit status: 0 if the fault is undone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    path, (copy, journal, pipe), within_s = Path(sys.argv[1]), map(int, sys.argv[2:5]), float(sys.argv[5])
    with suppress(BrokenPipeError):  # The drill was killed.
        os.write(sys.stdout.fileno(), _READY)
    told, is_ours, drill = b"", False, select.poll()
    drill.register(sys.stdin, select.POLLIN)
    deadline = time.monotonic() + within_s + UNDO_LIMIT_S
    while True:
        if drill.poll(1e3 * max(0.0, min(deadline - time.monotonic(), _MOST_POLL_S))):
            if not (message := os.read(sys.stdin.fileno(), len(_TRIED))):
                break
            told += message
            if _CAUSED in message:
                deadline = time.monotonic() + within_s + _LATE_S
        elif time.monotonic() >= deadline:
            deadline, is_ours = math.inf, is_ours or _take(pipe)
            try:
                put_right_open(path, copy, journal, needed=not is_ours)
            except StrakesError:
                deadline = time.monotonic() + _AGAIN_S
    is_ours = is_ours or _take(pipe)
    try:
        if not told.endswith(_TRIED):
            _keep_trying(path, copy, journal, lambda _text: None, needed=not is_ours)
    except StrakesError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
