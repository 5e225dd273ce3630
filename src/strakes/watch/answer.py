"""Tests in one child process whether a file can be created in a directory whose file system may hang."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

from strakes.errors import MeasurementError
from strakes.targets import calls
from strakes.targets.marker import MARKER_NAME, WORKSPACE_PREFIX


class Answer:
    """The test of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def awaited(self) -> bool:
        """Return whether the child still waits for the file system."""
        return self._child is not None and self._child.poll() is None

    def forget(self) -> None:
        """Kill the child, because the file system has changed. Its file stays where it is."""
        if self._child is not None:
            self._child.kill()
        self._child = None

    def require(self) -> int:
        """Return the error number of creating a file, 0 for success.

        Raises MeasurementError after the time limit. The child then goes on waiting, and removes its file when the
        file system answers. The next call returns its result.
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
