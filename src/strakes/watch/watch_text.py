"""Events as lines for people, and as values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from strakes.base.foreign_text import for_terminal
from strakes.base.units import format_duration
from strakes.watch.values import WatchEvent


def line(event: WatchEvent) -> str:
    """Return one event as a line."""
    parts = [_when(event.began_s), f"{event.kind:<11}", for_terminal(event.text)]
    if event.ended_s is not None and event.kind not in ("fail-over", "no-answer", "gap"):
        parts.append(f"; lasted about {format_duration(max(0.0, event.ended_s - event.began_s))}")
    if event.cause:
        parts.append(f"; cause: {for_terminal(event.cause)}")
    if event.sure is not None:
        parts.append(f"; {_sure(event.sure)} sure")
    return " ".join(parts).replace(" ;", ";")


def to_document(events: Sequence[WatchEvent]) -> list[dict[str, Any]]:
    """Return the events as JSON values."""
    return [{**asdict(event), "alarm": event.alarm} for event in events]


def _when(time_s: float) -> str:
    # Pad years before 1000 to four digits.
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC").zfill(23)


def _sure(sure: float) -> str:
    """Return a probability in percent, at most 99.9 %.

    >>> _sure(0.99964), _sure(1.0), _sure(0.9)
    ('99.9 %', '99.9 %', '90 %')
    """
    cut = min(int(sure * 1000), 999) / 10
    return f"{cut:g} %"
