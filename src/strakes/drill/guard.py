"""The promise that a fault is undone: on disk, and kept by a process of its own where the drill cannot.

That process waits for the drill's end, however it comes. It is in a session of its own and takes no signals of the
terminal: what kills the drill does not kill it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from strakes.drill.journal import announce, put_right
from strakes.drill.undo import Undo
from strakes.errors import StrakesError
from strakes.processes import python_module

_TRIES = 3


class Promise:
    """The promise to undo one fault, made before the fault is done."""

    def __init__(self, root: Path, fault: str, undo: Undo) -> None:
        """Write the promise down. Raises StrakesError when that fails: then the fault must not be done."""
        self._path = announce(root, fault, undo)
        self._guard = subprocess.Popen(
            python_module(__name__, str(self._path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def keep(self) -> str:
        """Undo the fault unless that is done, and return what was done.

        Raises StrakesError when the fault could not be undone: the next strakes command tries again.
        """
        return put_right(self._path)

    def close(self) -> None:
        """Leave the promise to the guard, where it is not kept yet, and wait for its end."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()


def main() -> int:
    """Wait until the drill has ended, then undo its fault; return 0 when it is undone, 1 when every try failed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The end of the file: the drill has closed it, or is dead.
    sys.stdin.buffer.read()
    for _ in range(_TRIES):
        with suppress(StrakesError):  # what fails now, the next strakes command tries again and tells
            put_right(Path(sys.argv[1]))
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
