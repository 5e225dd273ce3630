"""Read and write JSON without NaN and infinity, which most JSON parsers reject."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

# Maximum number of values in a JSON text. A value takes at most 150 bytes of memory (measured).
MOST_VALUES = 5_000_000
_MOST_BITS = 64  # Maximum size of an integer: no counter of a system has more bits.
_LARGEST = 1e150  # Maximum size of other numbers, and of their inverses: squares beyond would be infinite or 0.


def to_json(document: object, **style: Any) -> str:
    """Return the document as JSON text, with null for NaN and infinity. ``style``: arguments of json.dumps.

    >>> to_json({"low": 1.5, "high": float("inf")})
    '{"low": 1.5, "high": null}'
    """
    try:
        return json.dumps(document, allow_nan=False, **style)
    except ValueError:
        return json.dumps(finite(document), allow_nan=False, **style)


def finite(value: object) -> Any:
    """Return the value with None in place of NaN and infinity, also in nested mappings and sequences."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_json(text: str | bytes, most_values: int = MOST_VALUES) -> Any:
    """Parse JSON in UTF-8. Raises ValueError, also for NaN, for over 64 bits, and for too many or too deep values.

    Numbers nearer to 0 than 1e-150 are 0. Surrogates stand for bytes of file names that are not UTF-8 (PEP 383).
    """
    told = text if isinstance(text, str) else text.decode()
    if sum(map(told.count, ",[{")) > most_values:
        raise ValueError(f"it has more than {most_values:,} values")
    try:
        return json.loads(told, parse_constant=_finite, parse_float=_finite, parse_int=whole)
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error


def whole(text: str, most_bits: int = _MOST_BITS) -> int:
    """Parse a whole number of at most ``most_bits`` bits. Raises ValueError for any other text."""
    if (number := int(text)).bit_length() > most_bits:
        raise ValueError(f"a number has more than {most_bits} bits")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not abs(number) < _LARGEST:
        raise ValueError(f"{text[:20]} is not a number below {_LARGEST:g}")
    return number if abs(number) > 1 / _LARGEST else 0.0
