"""``mdc.*.state`` and ``osc.*.state``.

The last sixteen states of a client's connection to a target, with their times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from strakes.targets.description import Interruption
from strakes.targets.lustre.output import not_understood
from strakes.units import format_seconds

_TOOL = "lctl get_param (state)"
_ENTRY = re.compile(r"^ - \[ (\d+), ([A-Z_]+) \]$")
# FULL is connected; IDLE connects by itself when there is something to do.
WORKING_STATES = ("FULL", "IDLE")
# Where an interruption begins, or is seen to have begun: CONNECTING alone also follows IDLE.
_LOST = ("DISCONN", "EVICTED")
# So many changes the kernel remembers: what was before the first of them is not known.
_REMEMBERED = 16
# An idle connection, or a new one, connects within that: longer than the time after which the kernel tries again.
_CONNECTING_S = 6.0
_CONNECTING = ("NEW", "CONNECTING")
# Of changes seen before, so many are kept.
_MOST_CHANGES = 1000


@dataclass(frozen=True)
class StateChange:
    """A state that a connection went into, in whole seconds of Unix time."""

    unix_s: int
    state: str


@dataclass(frozen=True)
class States:
    """The state now, and the changes before it, the oldest first.

    ``deactivated``: an administrator took the target out.
    """

    current: str
    changes: tuple[StateChange, ...]
    deactivated: bool = False

    @property
    def working(self) -> bool:
        """Tell whether requests are answered."""
        return self.current in WORKING_STATES

    def in_words(self, now_unix_s: float) -> str:
        """Return the state, and since when the target has not served.

        >>> States("CONNECTING", (Change(10, "DISCONN"), Change(15, "CONNECTING"))).in_words(22)
        'CONNECTING, for 12.0 s'
        """
        lasting = [lost for lost in interruptions("", self.changes) if lost.ended_unix_s is None]
        began_unix_s = lasting[0].began_unix_s if lasting else self._not_working_since()
        if began_unix_s is None:
            return self.current
        if began_unix_s > now_unix_s:
            return f"{self.current}, for an unknown time (the clock was set back)"
        at_least = "at least " if lasting and lasting[0].or_earlier else ""
        return f"{self.current}, for {at_least}{format_seconds(now_unix_s - began_unix_s)}"

    def lost(self, now_unix_s: float) -> bool:
        """Tell whether the target should serve and does not: not one taken out, or one just about to be connected to.

        >>> idle = States("CONNECTING", (Change(10, "IDLE"), Change(50, "CONNECTING")))
        >>> idle.lost(51), idle.lost(60)
        (False, True)
        """
        if self.working or self.deactivated:
            return False
        began_unix_s = self._not_working_since()
        just_begun = began_unix_s is not None and 0 <= now_unix_s - began_unix_s <= _CONNECTING_S
        lasting = any(lost.ended_unix_s is None for lost in interruptions("", self.changes))
        return lasting or self.current not in _CONNECTING or not just_begun

    def interruptions(self, target: str) -> tuple[Interruption, ...]:
        """Return the times in which the target did not serve; of one that is taken out, those before."""
        lost = interruptions(target, self.changes)
        return tuple(each for each in lost if each.ended_unix_s is not None) if self.deactivated else lost

    def _not_working_since(self) -> int | None:
        since = None
        for change in self.changes:
            if change.state in WORKING_STATES:
                since = None
            elif since is None:
                since = change.unix_s
        return since


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
    changes = tuple(StateChange(int(match[1]), match[2]) for _, match in matches if match is not None)
    return States(lines[0].partition(": ")[2], changes)


def lost_changes(changes: Iterable[StateChange]) -> tuple[StateChange, ...]:
    """Return the changes that belong to a lost connection, to the one that ends it: not those of idle ones.

    >>> idle = (Change(1, "CONNECTING"), Change(1, "IDLE"), Change(5, "CONNECTING"), Change(5, "FULL"))
    >>> [change.state for change in lost_changes((*idle, Change(9, "DISCONN"), Change(12, "FULL")))]
    ['DISCONN', 'FULL']
    """
    chosen: list[StateChange] = []
    lost = False
    for change in changes:
        lost = lost or change.state in _LOST
        if lost:
            chosen.append(change)
        lost = lost and change.state not in WORKING_STATES
    return tuple(chosen)


def interruptions(target: str, changes: Iterable[StateChange]) -> tuple[Interruption, ...]:
    """Return the times in which the target did not serve this client; the last one may not be over.

    Of the first, the beginning may be forgotten.

    >>> lost = (Change(10, "DISCONN"), Change(15, "CONNECTING"), Change(15, "EVICTED"), Change(16, "FULL"))
    >>> interruptions("labfs-MDT0001", lost) == (Interruption("labfs-MDT0001", 10, 16, evicted=True),)
    True
    """
    changes = tuple(changes)
    ended: list[Interruption] = []
    began, evicted = _began_before(changes), False
    or_earlier = began is not None
    for change in changes:
        if change.state in _LOST:
            began = change.unix_s if began is None else began
            evicted = evicted or change.state == "EVICTED"
        elif change.state in WORKING_STATES and began is not None:
            ended.append(Interruption(target, began, change.unix_s, evicted, or_earlier=or_earlier))
            began, evicted, or_earlier = None, False, False
    lasting = () if began is None else (Interruption(target, began, None, evicted, or_earlier=or_earlier),)
    return (*ended, *lasting)


def _began_before(changes: tuple[StateChange, ...]) -> int | None:
    """Return the first time that is known of an interruption whose beginning is forgotten.

    An idle connection, too, goes through one CONNECTING, but through nothing else.
    """
    first = list(takewhile(lambda change: change.state not in WORKING_STATES, changes))
    idle = len(first) <= 1 and all(change.state in _CONNECTING for change in first)
    return None if len(changes) < _REMEMBERED or idle else first[0].unix_s


def continued(before: tuple[StateChange, ...], now: tuple[StateChange, ...]) -> tuple[StateChange, ...]:
    """Return what is remembered now, and what was before it.

    >>> first, second, third = Change(1, "FULL"), Change(5, "DISCONN"), Change(9, "FULL")
    >>> continued((first, second), (second, third)) == (first, second, third)
    True
    """
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return (*before, *now[length:])[-_MOST_CHANGES:]
    # Nothing in common: what was between is not known.
    return now
