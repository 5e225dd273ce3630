"""A terminal of a given size: a test types commands into tmux and reads its screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

_HISTORY_LINES = 5000
_TICK_S = 0.2


class Screen:
    """A tmux window; ``socket`` is the socket of a separate tmux server."""

    def __init__(self, socket: Path, columns: int) -> None:
        self.columns = columns
        self._socket = socket
        self._typed = 0

    def type(self, words: str, *, limit_s: float) -> int:
        self._typed += 1
        done = f"done-{self._typed}"
        self._tmux("send-keys", "-t", "person", "-R")
        self._tmux("clear-history", "-t", "person")
        # The status goes into a tmux option, which does not appear on the screen.
        line = f"clear; {words}; tmux -S {self._socket} set-option -g @{done} $?"
        self._tmux("send-keys", "-t", "person", line, "Enter")
        deadline = time.monotonic() + limit_s
        while not (status := self._tmux("show-options", "-gqv", f"@{done}").strip()):
            assert time.monotonic() < deadline, f"{words} has not ended:\n{self.text()}"
            time.sleep(_TICK_S)
        return int(status)

    def lines(self) -> list[str]:
        return self.text().splitlines()

    def written(self) -> list[str]:
        """Return the lines of the screen and its history as the program wrote them, with wrapped lines joined."""
        return self._capture("-J").splitlines()

    def text(self) -> str:
        return self._capture()

    def _capture(self, *options: str) -> str:
        return self._tmux("capture-pane", "-t", "person", "-p", "-S", f"-{_HISTORY_LINES}", *options)

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


@contextmanager
def screen_of(directory: Path, columns: int, environment: Mapping[str, str]) -> Iterator[Screen]:
    """Open a terminal with ``columns`` columns and 40 lines. Skip the test if tmux is not installed."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    socket = directory / f"{columns}"
    variables = {**os.environ, **environment, "PS1": "$ ", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    variables.pop("TMUX", None)
    shell = ["env", "-u", "COLUMNS", "-u", "NO_COLOR", "/bin/sh"]
    subprocess.run(
        [
            *("tmux", "-S", str(socket), "-f", "/dev/null"),
            *("set-option", "-g", "history-limit", str(_HISTORY_LINES), ";", "new-session", "-d", "-s", "person"),
            *("-x", str(columns), "-y", "40", shlex.join(shell)),
        ],
        env=variables,
        timeout=30,
        check=True,
    )
    try:
        yield Screen(socket, columns)
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], timeout=30, check=False)
