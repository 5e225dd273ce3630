"""Print lines without control characters, because file names and output of other programs may contain some."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Full, Queue
from typing import TextIO

import click

from strakes.base.errors import StrakesError
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted

# Program name that the user typed. Only the start script of a checkout sets this variable.
_CALLED = os.environ.get("STRAKES_CALLED", "")
_MOST_WAITING = 1000  # Maximum number of lines in memory that the reader has not read. Memory grows in proportion.
# Names of all commands, from the modules in this directory.
_COMMANDS = "|".join(name.removesuffix(".py").removesuffix("_") for name in os.listdir(os.path.dirname(__file__)))


def as_called(text: str, called: str = _CALLED) -> str:
    """Return a text that shows commands with the program name that the user typed (``called``).

    >>> as_called("strakes cannot see it. Next: strakes survey DIR", "./strakes")
    'strakes cannot see it. Next: ./strakes survey DIR'
    """
    return re.sub(rf"(?<![\w./-])strakes(?= (?:{_COMMANDS}|--help)\b)", lambda _: called, text) if called else text


def say_text(text: str, *, err: bool = False) -> None:
    """Print a text whose control characters are already escaped."""
    click.echo(as_called(text), err=err)


def say(text: object = "", *, err: bool = False) -> None:
    """Print one line."""
    say_text(for_terminal(text), err=err)


def say_errors(errors: Sequence[StrakesError]) -> int:
    """Print each error as one line on standard error. Return the highest exit status, or 0 without errors."""
    for error in errors:
        say(f"strakes: error: {error}", err=True)
    return max((error.exit_status for error in errors), default=0)


def say_sentence(text: str, *, indent: int = 4) -> None:
    """Print one line. On a narrow terminal, wrap it between words and indent the following lines."""
    click.echo(broken(as_called(for_terminal(text)), sys.stdout, indent=indent))


def remark(text: str) -> None:
    """Print a line with the prefix "strakes: " on standard error."""
    say(f"strakes: {text}", err=True)


def say_sentences(text: str) -> None:
    """Print each line of a text with :func:`say_sentence`."""
    for line in text.split("\n"):
        say_sentence(line)


def broken(line: str, stream: TextIO, *, indent: int = 4) -> str:
    """Return a line wrapped to the width of the terminal, or unchanged if ``stream`` is not a terminal."""
    import shutil
    import textwrap

    from strakes.base.text_width import columns, wrapped

    width = shutil.get_terminal_size().columns
    if not stream.isatty() or columns(line) <= width:
        return line
    if line.isascii():
        # Never break a path or an option, because users copy them.
        blanks = " " * indent
        return textwrap.fill(line, width, subsequent_indent=blanks, break_long_words=False, break_on_hyphens=False)
    begin = line[: len(line) - len(line.lstrip())]
    first, *rest = wrapped(line, width - indent)
    return "\n".join([begin + first, *(f"{' ' * indent}{part}" for part in rest)])


def say_rows(rows: Sequence[tuple[str, object]], begin: str = "") -> None:
    """Print labels and texts in two columns. On a narrow terminal, wrap the texts."""
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        say_sentence(f"{begin}{label:<{width}}  {text}", indent=len(begin) + width + 2)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool = False) -> None:
    """Print a table. On a narrow terminal, wrap its cells or, with ``whole``, print each row as two lines."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads, box=box.SIMPLE_HEAD, show_edge=False)
    shown = [tuple(map(for_terminal, row)) for row in rows]
    for row in shown:
        table.add_row(*row)
    for column in table.columns if whole else table.columns[:1]:
        column.no_wrap = True
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000)
    if not whole or console.measure(table, options=console.options.update(width=100_000)).maximum <= console.width:
        console.print(table)
        return
    for first, *middle, last in shown:
        say(f"{first}  {last}")
        say(f"  {'  '.join(middle)}")


def say_lines(text: str) -> None:
    """Print a text of several lines, such as the output of a job. Adds no newline."""
    click.echo("\n".join(map(for_terminal, text.replace("\t", "    ").split("\n"))), nl=False)


class LineWriter(threading.Thread):
    """Print lines in a thread, because the reader of standard output may be stopped. Too many lines are dropped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._waiting, self._dropped, self._is_unread = Queue[str](_MOST_WAITING), 0, False
        self.start()

    def say(self, text: str) -> None:
        """Print a line later. Raises BrokenPipeError if the reader has closed standard output."""
        if self._is_unread:
            raise BrokenPipeError
        try:
            self._waiting.put_nowait(as_called(for_terminal(text)))
        except Full:
            self._dropped += 1

    def settle(self, limit_s: float = 1.0) -> None:
        """Wait up to ``limit_s`` seconds until all lines are printed."""
        until_s = time.monotonic() + limit_s
        while self._waiting.unfinished_tasks and time.monotonic() < until_s:
            time.sleep(0.01)

    def run(self) -> None:
        """Print the waiting lines, and the number of dropped ones."""
        while True:
            lines = [self._waiting.get()]
            if self._dropped and self._waiting.empty():
                lines.append(f"strakes: {counted(self._dropped, 'line')} could not be printed, as nothing was read")
                self._dropped = 0
            rest = "".join(f"{text}\n" for text in lines).encode(sys.stdout.encoding, "backslashreplace")
            with suppress(OSError):  # A full disk or a closed terminal must not end the watch.
                while rest:
                    try:
                        rest = rest[os.write(1, rest) :]
                    except BrokenPipeError:
                        self._is_unread, rest = True, b""
            self._waiting.task_done()
