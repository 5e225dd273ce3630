"""The guard of a fault: a record on disk, and a process that undoes the fault if the drill dies.

The guard process waits for the end of the drill. It runs in a new session, where signals of the terminal do not arrive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.files import open_kept
from strakes.base.processes import python_module
from strakes.base.units import format_seconds
from strakes.control.drill_journal import announce, put_right_open
from strakes.control.drill_undo import Undo
from strakes.runs.store_files import store_error

# Time limit in seconds for undoing a fault: a server that is being repaired may answer late.
UNDO_LIMIT_S = 300.0
# Seconds between two attempts.
_AGAIN_S = 5.0
# Message to the guard: the drill has used up the time limit, so the guard must not try again.
_TRIED = b"tried"


class Promise:
    """The obligation to undo one fault. It is recorded, and its guard started, before the fault is caused."""

    def __init__(self, root: Path, fault: str, undo: Undo) -> None:
        """Record how to undo the fault and start the guard. If this raises StrakesError, do not cause the fault."""
        self.left = f"Left to do: {undo.text}. Try again: strakes failover undo"
        self._path = announce(root, fault, undo)
        try:
            # The open file remains the record of the fault even if the owner of the store moves it.
            self._journal = open_kept(self._path, os.O_RDWR)
        except OSError as error:
            raise store_error(error, self._path) from error
        self._tried = False
        self._guard = subprocess.Popen(
            python_module(__name__, str(self._path), str(self._journal)),
            pass_fds=[self._journal],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def keep(self, say: Callable[[str], None] = lambda _text: None) -> str:
        """Undo the fault and return a description of the action, or "" if the fault has been undone before.

        ``say`` gets the first failure at once. Raises StrakesError if the fault cannot be undone; the next strakes
        command then tries again.
        """
        try:
            return "" if self._tried else _keep_trying(self._path, self._journal, say)
        except StrakesError:
            self._tried = True
            raise

    def leave(self) -> str:
        """Leave the fault to the guard, which begins when this process has ended; return a sentence about it."""
        limit = format_seconds(UNDO_LIMIT_S)
        return f"the fault is not undone yet; process {self._guard.pid} tries it for at most {limit}. {self.left}"

    def close(self) -> None:
        """Let the guard undo the fault if that has not been done or tried, and wait for the end of the guard."""
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.write(_TRIED if self._tried else b"")
            self._guard.stdin.close()
        self._guard.wait()
        os.close(self._journal)


def _keep_trying(path: Path, journal: int, say: Callable[[str], None]) -> str:
    """Undo the fault in an open journal; repeat a failing command for UNDO_LIMIT_S. Raises StrakesError."""
    deadline, reported = time.monotonic() + UNDO_LIMIT_S, False
    while True:
        try:
            return put_right_open(path, journal)
        except MeasurementError as error:
            if time.monotonic() > deadline:
                raise
            if not reported:
                why, limit = error.why or error.what, format_seconds(UNDO_LIMIT_S)
                say(f"the fault is not undone yet: {why}; trying again for at most {limit}")
            reported = True
            time.sleep(_AGAIN_S)


def main() -> int:
    """Wait for the end of the drill, then undo the fault. Return 0 if the fault is undone, 1 if that failed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The read ends when the drill closes the pipe or dies.
    tried = sys.stdin.buffer.read() == _TRIED
    try:
        if not tried:
            _keep_trying(Path(sys.argv[1]), int(sys.argv[2]), lambda _text: None)
    except StrakesError:
        return 1  # the next strakes command tries again and reports the error
    return 0


if __name__ == "__main__":
    sys.exit(main())
