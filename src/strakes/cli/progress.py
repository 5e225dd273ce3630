"""Progress of long commands on standard error: a live display on a terminal, else lines."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, TextIO

from strakes.base.units import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

PLAIN_LINE_EVERY_S = 10.0


class LiveProgress:
    """Display of the current measurement and the remaining time.

    >>> with LiveProgress(quiet=True) as progress:
    ...     progress.start(total_s=120.0)
    ...     progress.update("metadata-ops: create, 2 ranks", fraction=0.25, detail="612,000 op/s")
    ...     progress.note("the page cache could not be dropped")
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._stream = sys.stderr if stream is None else stream
        self._rich = not quiet and self._stream.isatty() and os.environ.get("TERM") not in (None, "dumb")
        self._console: Console | None = None
        self._live: Live | None = None
        self._started = time.monotonic()
        self._total_s = 0.0
        self._last_line = self._started
        self._text = ""
        self._detail = ""
        self._fraction = 0.0
        self._cells = ""
        # Counts of cells are shown for one update: later measurements, such as fresh runs, are outside the cells.
        self._cells_are_new = False
        self._runs = 0

    def __enter__(self) -> LiveProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def start(self, total_s: float) -> None:
        """Start the display of work that is planned to take ``total_s`` seconds."""
        self._started = time.monotonic()
        self._last_line = self._started
        self._total_s = total_s
        if self._rich and self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._console = Console(file=self._stream)
            self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=4, transient=True)
            self._live.start()

    def update(self, text: str, fraction: float, detail: str = "") -> None:
        """Show the current measurement, the completed fraction (0 to 1) and a detail. Frequent calls are cheap."""
        self._text, self._detail = text, detail
        self._fraction = min(max(fraction, 0.0), 1.0)
        if not self._cells_are_new:
            self._cells = ""
        self._cells_are_new = False
        now = time.monotonic()
        if not self._quiet and self._live is None and now - self._last_line >= PLAIN_LINE_EVERY_S:
            self._last_line = now
            told = "  ".join(filter(None, (self._cells, self._detail)))
            self._print(plain_line(self._text, self._fraction, told, now - self._started, self._total_s))

    def cells(self, done: int, total: int) -> None:
        """Show the numbers of completed runs and of decided cells. To be called before each run."""
        need_none = f"{done} of {counted(total, 'cell')} decided"
        self._cells = f"{counted(self._runs, 'run')} made, {need_none}"
        self._runs += 1
        self._cells_are_new = True

    def note(self, text: str) -> None:
        """Print a permanent line, such as a warning or a finished study."""
        if self._quiet:
            return
        if self._console is not None:
            self._console.print(text, markup=False, highlight=False)
        else:
            self._print(text)

    def finish(self) -> None:
        """Remove the display; calling it again does nothing."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            self._console = None

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        elapsed = time.monotonic() - self._started
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=1.0, completed=self._fraction, width=40),
            Text(_clock(elapsed, self._fraction, self._total_s)),
        )
        lines: list[RenderableType] = [Text(self._text, style="bold", overflow="ellipsis", no_wrap=True)]
        if self._detail:
            lines.append(Text(self._detail, overflow="ellipsis", no_wrap=True))
        if self._cells:
            lines.append(Text(self._cells, overflow="ellipsis", no_wrap=True))
        return Group(*lines, bar)


def plain_line(text: str, fraction: float, detail: str, elapsed_s: float, total_s: float) -> str:
    """Return a line of progress for a log file.

    >>> plain_line("open-close: 2 ranks", 0.5, "so far 1.1 M op/s", 61.0, 120.0)
    ' 50 %  1:01 of 2:00, 0:59 left  open-close: 2 ranks  so far 1.1 M op/s'
    """
    return "  ".join(
        part for part in (f"{fraction * 100:3.0f} %", _clock(elapsed_s, fraction, total_s), text, detail) if part
    )


def _clock(elapsed_s: float, fraction: float, total_s: float) -> str:
    if total_s <= 0:
        return _minutes(elapsed_s)
    left = max(total_s - elapsed_s, 0.0) if fraction < 1 else 0.0
    return f"{_minutes(elapsed_s)} of {_minutes(total_s)}, {_minutes(left)} left"


def _minutes(seconds: float) -> str:
    """Return minutes and seconds, with hours from one hour on.

    >>> _minutes(59.9), _minutes(3725)
    ('0:59', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
