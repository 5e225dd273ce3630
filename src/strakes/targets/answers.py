"""Parsers for the JSON and XML output of file system tools. The output may have any form, so all errors are caught."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from strakes.base.errors import MeasurementError, StrakesError

# Smallest number that does not fit into 8 bytes. File systems report no larger size or count.
_MOST = 1 << 64
# Maximum numbers of values in JSON and of tags and attributes in XML. The largest known answers have a third of them
# (sessions of 10,000 CephFS clients, bricks of 5,000 servers). Twice the number doubles the memory, about 300 MB.
MOST_VALUES, _MOST_TAGS = 2_000_000, 500_000
# Maximum number of characters of a text in an answer, 64 times as many as a path has (4,096 bytes).
_LONGEST = 1 << 18
# Half of a surrogate pair, such as \ud800, which JSON allows but UTF-8 cannot encode.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NotUnderstoodError(MeasurementError):
    """The output of a tool has an unknown form: it is truncated, or comes from another version of the tool."""


def not_understood(tool: str, text: str, why: str = "") -> NotUnderstoodError:
    """Return the error for an output ``text`` of the command ``tool`` in an unknown form."""
    shown = text[:200] if text[:200].isprintable() else text[:20]
    what, where = f"the output of {tool} is not understood", repr(shown) if text else ""
    remedy = "Please report this output with the version of the file system."
    return NotUnderstoodError(what, where=where, why=why, remedy=remedy)


@contextmanager
def understood(tool: str, text: str = "") -> Iterator[None]:
    """Return a context manager that turns a parser's errors into NotUnderstoodError. ``text``: the parsed output."""
    try:
        yield
    except StrakesError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        why = f"it has no {error}" if isinstance(error, LookupError) else str(error)
        raise not_understood(tool, text, why[:200]) from error


def from_json(text: str | bytes, tool: str) -> Any:
    """Parse JSON. Raises MeasurementError if it is invalid or too long, or has NaN or a number over 64 bits."""
    told = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    with understood(tool, told):
        limit_values(told, ",[{", MOST_VALUES, ends='"')
        document = json.loads(told, parse_constant=_finite, parse_float=_finite, parse_int=whole)
        if _HALF.search(told):
            json.dumps(document, ensure_ascii=False).encode(errors="surrogateescape")
        return document


def from_xml(text: str, tool: str) -> ElementTree.Element:
    """Parse XML and return its root. Raises MeasurementError if it is invalid, too large or defines entities."""
    with understood(tool, text):
        limit_values(text, "<=", _MOST_TAGS, ends="<>")
        # An XML entity may expand to a thousand times its length.
        if "<!ENTITY" in text:
            raise ValueError("it defines entities")
        return ElementTree.fromstring(text)


def limit_values(text: str, marks: str, most: int, ends: str) -> None:
    """Raise ValueError if ``text`` has more than ``most`` values or a value of more than 256 Ki characters.

    ``marks``: each of these characters begins a value. ``ends``: characters that end a value.
    """
    if sum(map(text.count, marks)) > most or re.search(f"(?<![^{ends}])[^{ends}]{{{_LONGEST}}}", text):
        raise ValueError(f"the output has more than {most:,} values, or a value of more than {_LONGEST:,} characters")


def whole(text: str) -> int:
    """Parse a whole number of at most 64 bits. Raises ValueError for any other text."""
    number = int(text)
    if abs(number) >= _MOST:
        raise ValueError("a number has more than 64 bits")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
