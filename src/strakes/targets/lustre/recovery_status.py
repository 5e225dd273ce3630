"""``*.*.recovery_status`` of servers: how far a target that started anew has its clients back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.targets.lustre.output import NotUnderstoodError, not_understood, number

PARAMETERS = ("mdt.*.recovery_status", "obdfilter.*.recovery_status")

_TOOL = "lctl get_param (recovery_status)"
# The client's requests wait until one of the others is reached.
_SERVING = ("COMPLETE", "INACTIVE")


@dataclass(frozen=True)
class Recovery:
    """``status``: COMPLETE, RECOVERING, WAITING_FOR_CLIENTS, WAITING (for targets), INACTIVE (never needed)."""

    status: str
    started_unix_s: int | None = None
    duration_s: int | None = None
    remaining_s: int | None = None
    connected_clients: int | None = None
    completed_clients: int | None = None
    evicted_clients: int | None = None
    all_clients: int | None = None
    replayed_requests: int | None = None

    @property
    def serving(self) -> bool:
        """Tell whether requests are answered."""
        return self.status in _SERVING


def parse_recovery(text: str) -> Recovery:
    """Read it, without a last line that is cut off. Raises NotUnderstoodError.

    >>> parse_recovery("status: WAITING_FOR_CLIENTS").serving
    False
    """
    lines = text.splitlines()
    try:
        return _parse_lines(lines)
    except NotUnderstoodError:
        if len(lines) < 2:
            raise
        return _parse_lines(lines[:-1])


def _parse_lines(lines: Sequence[str]) -> Recovery:
    values = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if not colon:
            raise not_understood(_TOOL, line)
        values[key] = value.strip()
    if not values.get("status"):
        raise not_understood(_TOOL, "no status")
    connected, known = _of(values.get("connected_clients"))
    completed, known_then = _of(values.get("completed_clients"))
    return Recovery(
        status=values["status"],
        started_unix_s=_of(values.get("recovery_start"))[0],
        duration_s=_of(values.get("recovery_duration"))[0],
        remaining_s=_of(values.get("time_remaining"))[0],
        connected_clients=connected,
        completed_clients=completed,
        evicted_clients=_evicted(values, completed, known_then),
        all_clients=known if known is not None else known_then,
        replayed_requests=_of(values.get("replayed_requests"))[0],
    )


def _evicted(values: dict[str, str], completed: int | None, known: int | None) -> int | None:
    """Return who was not waited for any longer: once it is over, all that did not complete it."""
    if values["status"] == "COMPLETE" and completed is not None and known is not None:
        return known - completed
    return _of(values.get("evicted_clients"))[0]


def _of(text: str | None) -> tuple[int | None, int | None]:
    """Split a share: "3/4" is three of four; a lone number is of an unknown many."""
    if not text:
        return None, None
    part, slash, whole = text.partition("/")
    return number(part, _TOOL), number(whole, _TOOL) if slash else None
