"""Print lines that may contain foreign text, such as file names, without control characters."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TextIO

import click

from strakes.base.foreign_text import for_terminal


def local_time(moment: datetime) -> datetime:
    """Return the moment in local time, or in UTC if Python does not support TZ, such as AAA24:59:59."""
    try:
        return moment.astimezone()
    except (ValueError, OverflowError):
        return moment.astimezone(UTC)


def say(text: object = "", *, err: bool = False) -> None:
    """Print one line."""
    click.echo(for_terminal(text), err=err)


def say_sentence(text: str, *, indent: int = 4) -> None:
    """Print one line, wrapped between words on a narrower terminal, with further lines indented."""
    click.echo(broken(for_terminal(text), sys.stdout, indent=indent))


def say_sentences(text: str) -> None:
    """Print each line of a text as a sentence."""
    for line in text.split("\n"):
        say_sentence(line)


def broken(line: str, stream: TextIO, *, indent: int = 4) -> str:
    """Return a line wrapped to the width of the stream; unchanged if the stream is no terminal."""
    import shutil
    import textwrap

    from strakes.base.text_width import columns, wrapped

    width = shutil.get_terminal_size().columns
    if not stream.isatty() or columns(line) <= width:
        return line
    if not line.isascii():
        begin = line[: len(line) - len(line.lstrip())]
        first, *rest = wrapped(line, width - indent)
        return "\n".join([begin + first, *(f"{' ' * indent}{part}" for part in rest)])
    # Users copy paths and options, so never break them.
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(line)


def say_lines(text: str, *, err: bool = False) -> None:
    """Print a text of several lines, such as the output of a job, without a newline at its end."""
    click.echo("\n".join(map(for_terminal, text.replace("\t", "    ").split("\n"))), nl=False, err=err)


def print_json(document: object) -> None:
    """Print the document as JSON."""
    from strakes.base.finite import to_json

    click.echo(to_json(document, indent=1))
