"""Readers of what the tools of a file system print, as JSON or XML. Servers and other versions can print anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from strakes.base.errors import MeasurementError, StrakesError

# Number of values of a counter of 8 bytes. A larger value is no size and no count, and has no float.
_MOST = 1 << 64
# Half of a surrogate pair, which JSON can hold but no text that is written.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NotUnderstoodError(MeasurementError):
    """The output of a tool has an unknown form: it is truncated, or from another version of the file system."""


def not_understood(tool: str, text: str, why: str = "") -> NotUnderstoodError:
    """Return the error for ``text`` in the output of the command ``tool``."""
    what, where = f"the output of {tool} is not understood", repr(text[:200]) if text else ""
    remedy = "Please report this output with the version of the file system."
    return NotUnderstoodError(what, where=where, why=why, remedy=remedy)


@contextmanager
def understood(tool: str, text: str = "") -> Iterator[None]:
    """Raise NotUnderstoodError if the body, which reads the output of ``tool``, meets another form than it expects.

    It also decorates functions. ``text``: the output, for the message.
    """
    try:
        yield
    except StrakesError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        why = f"it has no {error}" if isinstance(error, LookupError) else str(error)
        raise not_understood(tool, text, why[:200]) from error


def from_json(text: str | bytes, tool: str) -> Any:
    """Return a JSON document without NaN, infinity, numbers beyond 64 bits and half characters.

    Raises MeasurementError for anything else.
    """
    told = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    with understood(tool, told):
        document = json.loads(told, parse_constant=_finite, parse_float=_finite, parse_int=whole)
        if _HALF.search(told):
            json.dumps(document, ensure_ascii=False).encode(errors="surrogateescape")
        return document


def from_xml(text: str, tool: str) -> ElementTree.Element:
    """Return the root of an XML document. Raises MeasurementError for anything else."""
    with understood(tool, text):
        return ElementTree.fromstring(text)


def whole(text: str) -> int:
    """Return a whole number of at most 64 bits. Raises ValueError for other text."""
    number = int(text)
    if abs(number) >= _MOST:
        raise ValueError("a number has more than 64 bits")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number")
    return number
