"""Measure, pad and wrap texts in terminal columns. A Chinese character takes two columns."""

from __future__ import annotations

import re
import textwrap
from unicodedata import combining, east_asian_width

_CLOSING = "，。；：、？！）》」”"
_OPENING = "（《「“"
# A piece of text that stays on one line: blanks, or one word or wide character with its punctuation.
_UNBROKEN = rf"[ ]+|[{_OPENING}]*(?:[\u1100-\uffff]|[^ \u1100-\uffff]+)[{_CLOSING}]*"


def columns(text: str) -> int:
    """Return the number of terminal columns that a text takes.

    >>> columns("abc"), columns("条带数 4")
    (3, 8)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text padded with blanks to ``width`` columns. ``right``: align it to the right."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns, at blanks and between wide characters.

    >>> wrapped("条带数为 4，元数据服务器", 10), wrapped("one two three", 8)
    (['条带数为', '4，元数据', '服务器'], ['one two', 'three'])
    >>> wrapped("内核例如（linux）。", 10)
    ['内核例如', '（linux）。']
    """
    if columns(text) == len(text):
        # textwrap takes quadratic time for words longer than a line, so split them first.
        return textwrap.wrap(re.sub(rf"\S{{{width}}}(?=\S)", r"\g<0> ", text), width)
    lines, line = [], ""
    for part in re.findall(_UNBROKEN, text):
        if line and columns(line) + columns(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += part if line or part.strip() else ""
        if columns(line) > width:
            *full, line = (line[begin : begin + width] for begin in range(0, len(line), width))
            lines += full
    return [*lines, line.rstrip()] if line.strip() else lines
