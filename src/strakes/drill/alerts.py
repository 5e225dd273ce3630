"""Alerts that arrive during a drill: lines that are appended to a file, such as a mailbox."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from strakes.drill.faults.fault import Seen
from strakes.errors import BadInputError
from strakes.failover.timeline import Moment
from strakes.files import open_regular

SOURCE = "alert"
_LOOK_EVERY_S = 0.2
_MOST_BYTES = 1 << 20  # read at a time; a longer line is cut


class AlertListener:
    """The lines that are appended to a file from now on. Raises BadInputError for a file that cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with open_regular(path) as file:
                self._read = file.seek(0, 2)
        except OSError as error:
            raise BadInputError(
                "the alert file cannot be read", where=str(path), why=error.strerror or str(error)
            ) from error

    def watch(self, seen: Seen, stop: threading.Event) -> None:
        """Report every line that is appended to the file to ``seen``, until ``stop`` is set."""
        over = False
        while not over:
            over = stop.wait(_LOOK_EVERY_S)
            for line in self._new_lines():
                seen(Moment(time.time(), SOURCE, line))

    def _new_lines(self) -> list[str]:
        try:
            with open_regular(self._path) as file:
                file.seek(self._read)
                data = file.read(_MOST_BYTES)
        except (OSError, BadInputError):
            return []  # being replaced; looked for again
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _MOST_BYTES else b"")
        self._read += len(whole)
        return [line for line in whole.decode(errors="replace").splitlines() if line.strip()]
