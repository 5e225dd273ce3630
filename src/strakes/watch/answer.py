"""Whether something can be made in a directory whose file system may hang: tried by one child, not by one each time."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

from strakes.errors import MeasurementError
from strakes.targets import calls
from strakes.targets.marker import MARKER_NAME, WORKSPACE_PREFIX


class Answer:
    """Of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def awaited(self) -> bool:
        """Tell whether the child still waits for the file system."""
        return self._child is not None and self._child.poll() is None

    def forget(self) -> None:
        """Another file system is asked next time. What the child made is not for others to remove."""
        if self._child is not None:
            self._child.kill()
        self._child = None

    def require(self) -> int:
        """Return why nothing can be made there, an error number; 0 where it can.

        Raises MeasurementError when that cannot be told in time: whoever tries it himself would hang. The child is
        then left to wait, and to remove what it makes when it no longer does; what it says is returned next.
        """
        self._child = self._child or calls.begin_writing(
            str(self._directory / f"{WORKSPACE_PREFIX}answer-{secrets.token_hex(4)}"), MARKER_NAME
        )
        try:
            _, said = self._child.communicate(timeout=calls.LIMIT_S)
        except subprocess.TimeoutExpired:
            raise MeasurementError(
                f"the file system does not answer within {calls.LIMIT_S:g} s", where=str(self._directory)
            ) from None
        self._child = None
        return int(said) if said.strip().isdigit() else 0
