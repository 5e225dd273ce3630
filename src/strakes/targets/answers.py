"""Parsers for the JSON and XML output of file system tools. Any unexpected output raises a MeasurementError."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from strakes.base.errors import MeasurementError, StrakesError
from strakes.base.finite import parse_json

_MOST_BITS = 64  # Maximum size of a number in bits. File systems report no larger numbers.
# Maximum numbers of JSON values and XML tags: three times the largest known (10,000 CephFS clients, 5,000 servers).
MOST_VALUES, _MOST_TAGS = 2_000_000, 500_000
# Maximum length of a string in characters: 64 times PATH_MAX (4,096 bytes). The longest recorded string has 363.
_LONGEST = 1 << 18
# A surrogate, such as \ud800. JSON allows an unpaired surrogate, which UTF-8 cannot encode.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NotUnderstoodError(MeasurementError):
    """The output of a tool cannot be parsed: it is truncated, or comes from an unknown version of the tool."""


def not_understood(tool: str, text: str, why: str = "") -> NotUnderstoodError:
    """Return the exception for output of ``tool`` that cannot be parsed."""
    shown = text[:200] if text[:200].isprintable() else text[:20]
    what, where = f"the output of {tool} is not understood", repr(shown) if text else ""
    remedy = "Please report this output with the version of the file system."
    return NotUnderstoodError(what, where=where, why=why, remedy=remedy)


@contextmanager
def understood(tool: str, text: str = "") -> Iterator[None]:
    """Convert a parser's exceptions to NotUnderstoodError, which quotes ``text``."""
    try:
        yield
    except StrakesError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        why = f"it has no {error}" if isinstance(error, LookupError) else str(error)
        raise not_understood(tool, text, why[:200]) from error


def from_json(text: str | bytes, tool: str) -> Any:
    """Parse JSON. Raises MeasurementError for invalid or too long text, for NaN, and for numbers over 64 bits."""
    told = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    with understood(tool, told):
        limit_values(told, ",[{", MOST_VALUES, ends='"')
        document = parse_json(told)
        if _HALF.search(told):
            json.dumps(document, ensure_ascii=False).encode(errors="surrogateescape")
        return document


def from_xml(text: str, tool: str) -> ElementTree.Element:
    """Parse XML and return its root. Raises MeasurementError if it is invalid, or has too many tags or any entity."""
    with understood(tool, text):
        limit_values(text, "<=", _MOST_TAGS, ends="<>")
        # Reject XML entities, because an entity may expand to a thousand times its length.
        if "<!ENTITY" in text:
            raise ValueError("it defines entities")
        return ElementTree.fromstring(text)


def limit_values(text: str, marks: str, most: int, ends: str) -> None:
    """Raise ValueError if ``text`` has more than ``most`` values or a value of more than 262,144 characters.

    ``marks``, ``ends``: characters that begin and end a value.
    """
    if sum(map(text.count, marks)) > most or re.search(f"(?<![^{ends}])[^{ends}]{{{_LONGEST}}}", text):
        raise ValueError(f"the output has more than {most:,} values, or a value of more than {_LONGEST:,} characters")
