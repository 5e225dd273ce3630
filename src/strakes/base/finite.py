"""Write JSON without NaN and infinity, which most JSON parsers reject."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


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
