"""Undo a fault even if the drill that caused it is killed.

A separate guard process undoes the fault when the drill ends. It also does so when the fault lasts too long, for
instance because SIGSTOP stopped the drill. The guard process has its own session, so Ctrl-C does not end it.
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
from strakes.control.drill_journal import announce, put_right_open
from strakes.control.drill_undo import COMMAND_S, Undo
from strakes.targets.command import run_unmarked

UNDO_LIMIT_S = 300.0
_START_S = 30.0
_END_S = 5.0
_AGAIN_S = 5.0
_LATE_S = 5.0
_MOST_POLL_S = 2e6  # Maximum time-out of poll(2), which is a 32-bit number of milliseconds.
_READY, _ARMED, _CAUSED, _TRIED = b"ready", b"!", b".", b"tried"


class Promise:
    """A guard process and a record on disk. Each of them suffices to undo a fault if the drill is killed."""

    def __init__(self, root: Path, fault: str, undo: Undo, within_s: float = UNDO_LIMIT_S) -> None:
        """Record how to undo the fault, and start the guard process.

        Raises StrakesError on failure. In this case, the fault must not be caused. ``within_s``: maximum duration of
        the fault in seconds.
        """
        self.left = f"Left to do: {undo.text}. Try again: strakes failover undo"
        self._path = announce(root, fault, undo)
        self._armed = self._tried = self._over = False
        try:
            with open_own(self._path, "a drill's journal", "Set STRAKES_STORE to a directory of your own.") as file:
                self._copy = os.memfd_create("record")
                os.write(self._copy, file.read())
                # The child gets an O_PATH descriptor, because closing such a descriptor sends no request to a server.
                self._journal = os.open(f"/proc/self/fd/{file.fileno()}", os.O_PATH | os.O_CLOEXEC)
            self._guard = subprocess.Popen(
                python_module(__name__, str(self._path), str(self._copy), str(self._journal), str(within_s)),
                pass_fds=[self._copy, self._journal],
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

    def arm(self) -> None:
        """Tell the guard process that the fault begins now. Until then, it would only remove the record."""
        self._armed = True
        self._tell(_ARMED)

    def caused(self) -> None:
        """Tell the guard process that the fault has begun."""
        self._tell(_CAUSED)

    def keep(self, say: Callable[[str], None] = lambda _text: None) -> str:
        """Undo the fault, and return a description of how it was undone.

        Repeats failed attempts, and calls ``say`` with a message after the first failure. Returns "" if the fault is
        already undone, or if an earlier call failed. Raises StrakesError if the fault cannot be undone.
        """
        self._guard.send_signal(signal.SIGCONT)  # If the guard was stopped during its own attempt, it has the lock.
        try:
            done = "" if self._tried else _keep_trying(self._path, self._copy, self._journal, say)
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
        """Wait for the guard process, which undoes the fault if it is armed and :meth:`keep` was never called.

        A guard that was stopped is continued. If it does not end in time, ``say`` is called with a message about it.
        """
        assert self._guard.stdin is not None and self._guard.stdout is not None
        if not self._armed:
            self._over = True
            with suppress(StrakesError):
                put_right_open(self._path, self._copy, journal=self._journal, needed=False)
        self._tell(_TRIED if self._tried else b"")
        self._guard.stdin.close()
        self._guard.send_signal(signal.SIGCONT)
        try:
            self._guard.wait(_END_S if self._over else UNDO_LIMIT_S + 2 * COMMAND_S)
        except subprocess.TimeoutExpired:
            if self._over:
                self._guard.kill()
                say(f"process {self._guard.pid}, which had no more to undo, did not end and was killed")
            else:
                say(self.leave())
        self._guard.stdout.close()
        os.close(self._journal)
        os.close(self._copy)

    def _tell(self, message: bytes) -> None:
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            os.write(self._guard.stdin.fileno(), message)


def _keep_trying(path: Path, copy: int, journal: int, say: Callable[[str], None], *, is_caused: bool = True) -> str:
    deadline, reported = time.monotonic() + UNDO_LIMIT_S, False
    while True:
        try:
            return put_right_open(path, copy, journal=journal, is_caused=is_caused)
        except (EnvironmentLacksError, MeasurementError) as error:
            if time.monotonic() > deadline:
                raise
            if not reported:
                why, limit = (
                    "; ".join(filter(None, (error.where or error.what, error.why))),
                    format_seconds(UNDO_LIMIT_S),
                )
                say(f"the fault is not undone yet: {why}; trying again for at most {limit}")
            reported = True
            time.sleep(_AGAIN_S)
            with suppress(StrakesError):  # Another command has undone the fault if the file in the store is empty.
                if run_unmarked(("stat", "-Lc", "%s", f"/proc/{os.getpid()}/fd/{journal}")).stdout == "0\n":
                    return ""


def main() -> int:
    """Run the guard process. Return its exit status: 0 if the fault is undone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    path, copy, journal, within_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    os.write(sys.stdout.fileno(), _READY)
    try:
        told = _wait(path, copy, journal, within_s)
        if _ARMED not in told:
            put_right_open(path, copy, journal=journal, needed=False)
        elif not told.endswith(_TRIED):
            _keep_trying(path, copy, journal, lambda _text: None, is_caused=_CAUSED in told)
    except StrakesError:
        return 1
    return 0


def _wait(path: Path, copy: int, journal: int, within_s: float) -> bytes:
    told, drill = b"", select.poll()
    drill.register(sys.stdin, select.POLLIN)
    deadline = math.inf
    while True:
        if drill.poll(1e3 * max(0.0, min(deadline - time.monotonic(), _MOST_POLL_S))):
            message = os.read(sys.stdin.fileno(), len(_TRIED))
            if not message:
                return told
            told += message
            if _ARMED in message or _CAUSED in message:
                deadline = time.monotonic() + within_s + (_LATE_S if _CAUSED in told else UNDO_LIMIT_S)
        elif time.monotonic() >= deadline:
            deadline, is_caused = math.inf, _CAUSED in told
            try:  # A drill that has not caused its fault may still cause it, so keep the record.
                put_right_open(path, copy, journal=journal, settle=is_caused, is_caused=is_caused)
            except StrakesError:
                deadline = time.monotonic() + _AGAIN_S


if __name__ == "__main__":
    sys.exit(main())
