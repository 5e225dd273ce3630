"""Progress of long commands on standard error: a live display on a terminal, else a line now and then."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, TextIO

from strakes.base.foreign_text import for_terminal
from strakes.cli import signals

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

PLAIN_LINE_EVERY_S = 10.0
_BAR_COLUMNS = 32  # Width of the bar. The clock beside the bar needs 33 more columns.


class LiveProgress:
    """Display of the current measurement and the remaining time. ``total_s``: planned duration in seconds."""

    def __init__(self, total_s: float, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._quiet = quiet
        self._stream = sys.stderr if stream is None else stream
        self._live: Live | None = None
        self._started = self._last_line = time.monotonic()
        self._total_s = total_s
        self._texts: list[str] = []
        self._fraction = 0.0

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._stream.writelines(f"{line}\n" for line in signals.below or ())
            signals.below = None

    def __enter__(self) -> LiveProgress:
        if not self._quiet and self._stream.isatty() and os.environ.get("TERM") not in (None, "dumb"):
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._stream)
            self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)
            self._live.start()
            signals.below = []
        return self

    def resumed(self, spent_s: float) -> None:
        """Count the seconds before the interruption of a resumed run as elapsed time."""
        self._started -= spent_s

    def update(self, text: str, fraction: float, detail: str = "") -> None:
        """Show the current measurement, the completed fraction (0 to 1) and a detail. Cheap to call often."""
        self._texts = [for_terminal(line) for line in (text, detail) if line]
        self._fraction = min(max(fraction, 0.0), 1.0)
        now = time.monotonic()
        if not self._quiet and self._live is None and now - self._last_line >= PLAIN_LINE_EVERY_S:
            self._last_line = now
            self.note("  ".join([f"{self._fraction * 100:3.0f} %", self._clock(), *self._texts]))

    def note(self, text: str) -> None:
        """Print a permanent line, such as a warning or a finished study."""
        text = for_terminal(text)
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        elif not self._quiet:
            print(text, file=self._stream, flush=True)

    def _render(self) -> RenderableType:
        from rich.text import Text

        bar = "=" * round(_BAR_COLUMNS * self._fraction)
        lines = [*self._texts, f"{bar:<{_BAR_COLUMNS}} {self._clock()}", *(signals.below or ())]
        return Text("\n".join(lines), overflow="ellipsis", no_wrap=True)

    def _clock(self) -> str:
        elapsed_s = time.monotonic() - self._started
        left_s = max(self._total_s - elapsed_s, 0.0) if self._fraction < 1 else 0.0
        elapsed, total, left = (timedelta(seconds=int(part_s)) for part_s in (elapsed_s, self._total_s, left_s))
        return f"{elapsed} of {total}, {left} left"
