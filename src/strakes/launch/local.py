"""The engine on this machine, whose ranks are threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from strakes.errors import EnvironmentLacksError
from strakes.launch.engine import REINSTALL, Engine
from strakes.processes import engine_path

_HELLO_S = 10.0


def find_engine() -> Path:
    """Return $STRAKES_ENGINE, or the engine in the package. Raises EnvironmentLacksError if neither exists."""
    path = engine_path()
    if not path.is_file():
        remedy = REINSTALL
        if os.environ.get("STRAKES_ENGINE"):
            remedy = "Unset STRAKES_ENGINE, or set it to the path of the engine."
        raise EnvironmentLacksError("the engine is missing", where=str(path), why="no such file", remedy=remedy)
    return path


class LocalEngine(Engine):
    """One process; ``log`` as Engine's."""

    def __init__(self, executable: Path | None = None, log: Callable[[str], None] | None = None) -> None:
        super().__init__(log)
        self._executable = executable

    def command(self) -> Sequence[str]:
        """Return the command that starts the engine on this node. Raises EnvironmentLacksError where it is absent."""
        return [str(self._executable or find_engine())]

    def patience_s(self) -> float:
        """Longest time in seconds until it says hello."""
        return _HELLO_S
