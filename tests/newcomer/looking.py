"""Checks of a terminal screen: cut text, broken lines and grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

# Lines with a command or path to copy. They may be wrapped: a terminal copies a wrapped line as one line.
_TO_COPY = re.compile(r"(Report|Repeat|Next|  ) +(strakes|/)")


def grades_in(text: str) -> list[str]:
    """Return the grades at the ends of the rows of a screen.

    >>> grades_in("  request size  1 MiB  sure\\n  files  not decided  -\\n")
    ['sure', '-']
    """
    return re.findall(r"  (sure|likely|alike|-)$", text, flags=re.MULTILINE)


def broken_lines(lines: Iterable[str], written: Iterable[str], columns: int) -> list[str]:
    """Return the lines longer than ``columns``, on the screen or as written; lines to copy may be wrapped."""
    return [line for line in lines if len(line) > columns] + [
        line for line in written if len(line) > columns and not _TO_COPY.match(line)
    ]


def cut_words(written: Sequence[str], known: set[str]) -> set[str]:
    """Return the words of a screen that are unknown or end with an ellipsis."""
    text = "\n".join(written)
    # Skip numbers: their format depends on the width of the screen.
    shown = {word for word in words_of(text) if re.fullmatch(r"[A-Za-z-]{2,}[.,:;]?", word)}
    unknown = {word for word in shown if not {word, word.removesuffix(",")} & known}
    return unknown | {word for word in text.split() if "…" in word}


def words_of(text: str) -> set[str]:
    """Return the words without quotation marks and without the dots that mark an omission after a whole word."""
    return {word.removesuffix("...").strip("\"'") for word in text.split()}


def everything_in(value: object) -> str:
    """Return all values of a JSON document as text, one in a line."""
    if isinstance(value, Mapping):
        return "\n".join(map(everything_in, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything_in, value))
    return str(value)
