from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from strakes.cli import progress as progress_module
from strakes.cli.progress import LiveProgress
from strakes.cli.signals import orderly_signals


def work(progress: LiveProgress) -> None:
    with progress:
        progress.resumed(30.0)
        progress.update("open-close: 2 ranks\x1b[2J", 0.25, "1.1 M op/s so far")
        progress.note("the page cache could not be dropped\x1b[2J")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_log_file_gets_plain_lines_unless_quiet(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "PLAIN_LINE_EVERY_S", 0.0)
    stream = io.StringIO()
    work(LiveProgress(120.0, quiet=quiet, stream=stream))
    line = " 25 %  0:00:30 of 0:02:00, 0:01:29 left  open-close: 2 ranks\\x1b[2J  1.1 M op/s so far\n"
    assert stream.getvalue() == ("" if quiet else f"{line}the page cache could not be dropped\\x1b[2J\n")


def test_a_log_file_is_not_flooded() -> None:
    stream = io.StringIO()
    with LiveProgress(120.0, stream=stream) as progress:
        for step in range(1000):
            progress.update("transfer-size", step / 1000, "")
    assert stream.getvalue() == ""


def on_terminal(task: Callable[[LiveProgress], None] = work) -> str:
    leader, follower = os.openpty()
    with open(follower, "w") as stream:
        task(LiveProgress(120.0, stream=stream))
    shown = b""
    # Reading a pseudo-terminal whose other end is closed fails with EIO.
    with open(leader, "rb", buffering=0) as screen, suppress(OSError):
        while chunk := screen.read(65536):
            shown += chunk
    return shown.decode()


def test_a_terminal_shows_the_current_cell_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = on_terminal()
    for text in (r"2 ranks\x1b[2J", "1.1 M op/s so far", "of 0:02:00", r"the page cache could not be dropped\x1b[2J"):
        assert text in shown


def interrupted(progress: LiveProgress) -> None:
    with orderly_signals(), suppress(KeyboardInterrupt), progress:
        signal.raise_signal(signal.SIGINT)


def test_the_answer_to_an_interruption_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown, line = on_terminal(interrupted), "\r\nstrakes: stopping and cleaning up; interrupt again to stop sooner\r\n"
    assert f" left{line}" in shown and shown.endswith(line.lstrip())


def test_a_dumb_terminal_is_treated_as_a_log_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert on_terminal() == "the page cache could not be dropped\\x1b[2J\r\n"
