"""``mdc.*.state`` and ``osc.*.state``.

The last sixteen states of a client's connection to a target, with their times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from strakes.targets.description import Interruption
from strakes.targets.lustre.output import not_understood
from strakes.units import format_seconds

_TOOL = "lctl get_param (state)"
_ENTRY = re.compile(r"^ - \[ (\d+), ([A-Z_]+) \]$")
# FULL is connected; IDLE connects by itself when there is something to do.
WORKING_STATES = ("FULL", "IDLE")
# Where an interruption begins, or is seen to have begun: CONNECTING alone also follows IDLE.
_LOST = ("DISCONN", "EVICTED")


@dataclass(frozen=True)
class Change:
    """A state that a connection went into, in whole seconds of Unix time."""

    unix_s: int
    state: str


@dataclass(frozen=True)
class States:
    """The state now, and the changes before it, the oldest first."""

    current: str
    changes: tuple[Change, ...]

    @property
    def working(self) -> bool:
        """Tell whether requests are answered."""
        return self.current in WORKING_STATES

    def in_words(self, now_unix_s: float) -> str:
        """Return the state, and since when the target has not served.

        >>> States("CONNECTING", (Change(10, "DISCONN"), Change(15, "CONNECTING"))).in_words(22)
        'CONNECTING, for 12.0 s'
        """
        lost = [time for time in interruptions("", self.changes) if time.ended_unix_s is None]
        since = f", for {format_seconds(now_unix_s - lost[0].began_unix_s)}" if lost else ""
        return f"{self.current}{since}"


def parse_states(text: str) -> States:
    r"""Read it. Raises NotUnderstoodError.

    >>> parse_states("current_state: FULL\nstate_history:\n - [ 1795323376, FULL ]").changes
    (Change(unix_s=1795323376, state='FULL'),)
    """
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].startswith("current_state: ") or lines[1] != "state_history:":
        raise not_understood(_TOOL, lines[0] if lines else "")
    matches = [(line, _ENTRY.match(line)) for line in lines[2:]]
    for line, match in matches:
        if match is None:
            raise not_understood(_TOOL, line)
    changes = tuple(Change(int(match[1]), match[2]) for _, match in matches if match is not None)
    return States(lines[0].partition(": ")[2], changes)


def lost_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes that belong to a lost connection, to the one that ends it: not those of idle ones.

    >>> idle = (Change(1, "CONNECTING"), Change(1, "IDLE"), Change(5, "CONNECTING"), Change(5, "FULL"))
    >>> [change.state for change in lost_changes((*idle, Change(9, "DISCONN"), Change(12, "FULL")))]
    ['DISCONN', 'FULL']
    """
    chosen: list[Change] = []
    lost = False
    for change in changes:
        lost = lost or change.state in _LOST
        if lost:
            chosen.append(change)
        lost = lost and change.state not in WORKING_STATES
    return tuple(chosen)


def interruptions(target: str, changes: Iterable[Change]) -> tuple[Interruption, ...]:
    """Return the times in which the target did not serve this client; the last one may not be over.

    >>> lost = (Change(10, "DISCONN"), Change(15, "CONNECTING"), Change(15, "EVICTED"), Change(16, "FULL"))
    >>> interruptions("labfs-MDT0001", lost)
    (Interruption(target='labfs-MDT0001', began_unix_s=10, ended_unix_s=16, evicted=True, evicted_clients=None),)
    """
    ended: list[Interruption] = []
    began, evicted = None, False
    for change in changes:
        if change.state in _LOST:
            began = change.unix_s if began is None else began
            evicted = evicted or change.state == "EVICTED"
        elif change.state in WORKING_STATES and began is not None:
            ended.append(Interruption(target, began, change.unix_s, evicted))
            began, evicted = None, False
    return (*ended, *((Interruption(target, began, None, evicted),) if began is not None else ()))
