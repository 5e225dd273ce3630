"""Convert a portrait to a document for programs (``schemas/findings.json``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from strakes.base.finite import finite
from strakes.model.portrait import Portrait


def to_document(portrait: Portrait) -> dict[str, Any]:
    """Return the portrait as JSON values; NaN and infinity become null."""
    document: dict[str, Any] = finite(asdict(portrait))
    return document
