"""Keys that came after plans were first stored.

Their usual value is left out of the canonical form, so that the fingerprints of older plans stay.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")


def usually(value: Value) -> Value:
    """Make a field of a phase with this default, left out of the canonical form where it has it."""
    default: Value = field(default=value, metadata={"left_out": True})
    return default


def usual_keys(phase: DataclassInstance) -> list[str]:
    """Return the keys of ``phase`` that its canonical form leaves out.

    >>> from strakes.plan import MetadataPhase
    >>> usual = usual_keys(MetadataPhase("make", "file-create", "unique", 10, fsync=True, order="random"))
    >>> "open_mode" in usual, "fsync" in usual, "order" in usual
    (True, False, False)
    """
    return [
        key.name for key in fields(phase) if key.metadata.get("left_out") and getattr(phase, key.name) == key.default
    ]
