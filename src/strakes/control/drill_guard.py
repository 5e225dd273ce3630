"""The guard of a fault: a record on disk, and a process that undoes the fault if the drill dies.

The process waits for the drill's end. It runs in a new session, so that signals of the terminal do not reach it.
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

from strakes.base.errors import StrakesError
from strakes.base.files import open_kept
from strakes.base.processes import python_module
from strakes.base.units import format_seconds
from strakes.control.drill_journal import announce, put_right_open
from strakes.control.drill_undo import NotReachedError, Undo
from strakes.runs.store_files import store_error
from strakes.targets.command import CommandTimeout

# A server that is being repaired may answer late. Doubled, a drill that cannot be undone ends ten minutes later.
UNDO_LIMIT_S = 300.0
_AGAIN_S = 5.0
# Sent to the guard when the drill has used up the time limit for the undoing.
_TRIED = b"tried"


class Promise:
    """The promise to undo one fault, made before the fault is done."""

    def __init__(self, root: Path, fault: str, undo: Undo) -> None:
        """Write the promise down. Raises StrakesError when that fails: then the fault must not be done."""
        self._path = announce(root, fault, undo)
        try:
            # The file stays the record of the fault, wherever the owner of the store moves it.
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
        """Undo the fault unless it is undone; return a description. Calls ``say`` if a server does not answer.

        Raises StrakesError if the fault cannot be undone; the next strakes command then tries again.
        """
        try:
            return "" if self._tried else _keep_trying(self._path, self._journal, say)
        except StrakesError:
            self._tried = True
            raise

    def close(self) -> None:
        """Leave the promise to the guard, where it is not kept yet, and wait for its end."""
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.write(_TRIED if self._tried else b"")
            self._guard.stdin.close()
        self._guard.wait()
        os.close(self._journal)


def _keep_trying(path: Path, journal: int, say: Callable[[str], None]) -> str:
    """Undo a fault by its open journal; try again while servers do not answer, until the limit. Raises StrakesError."""
    deadline, reported = time.monotonic() + UNDO_LIMIT_S, False
    while True:
        try:
            return put_right_open(path, journal)
        except (CommandTimeout, NotReachedError) as error:
            if time.monotonic() > deadline:
                raise
            if not reported:
                why, limit = error.why or error.what, format_seconds(UNDO_LIMIT_S)
                say(f"the fault is not undone yet: {why}; trying again for at most {limit}")
            reported = True
            time.sleep(_AGAIN_S)


def main() -> int:
    """Wait until the drill has ended, then undo its fault; return 0 when it is undone, 1 when that failed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The end of the file: the drill has closed it, or is dead.
    tried = sys.stdin.buffer.read() == _TRIED
    try:
        if not tried:
            _keep_trying(Path(sys.argv[1]), int(sys.argv[2]), lambda _text: None)
    except StrakesError:
        return 1  # the next strakes command tries again and reports the error
    return 0


if __name__ == "__main__":
    sys.exit(main())
