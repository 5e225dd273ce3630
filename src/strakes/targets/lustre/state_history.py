"""``mdc.*.state`` and ``osc.*.state``.

The last sixteen states of a client's connection to a target, with their times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from strakes.targets.description import Interruption
from strakes.targets.lustre.output import not_understood
from strakes.units import format_seconds

_TOOL = "lctl get_param (state)"
_ENTRY = re.compile(r"^ - \[ (\d+), ([A-Z_]+) \]$")
# The beginning of an entry, and no more.
_CUT_ENTRY = re.compile(r" ?|(?: -(?: (?:\[(?: (?:\d+(?:,(?: (?:[A-Z_]+ ?)?)?)?)?)?)?)?)")
# FULL is connected; IDLE connects by itself when there is something to do.
WORKING_STATES = ("FULL", "IDLE")
IDLE = "IDLE"
# No server answers in these; in all others that do not work one takes the client back.
UNREACHED_STATES = ("NEW", "CONNECTING", "DISCONN")
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

    ``deactivated``: an administrator took the target out. ``cut_off``: the last of the changes could not be read.
    """

    current: str
    changes: tuple[StateChange, ...]
    deactivated: bool = False
    cut_off: bool = False

    @property
    def working(self) -> bool:
        """Tell whether requests are answered."""
        return self.current in WORKING_STATES

    def in_words(self, now_unix_s: float) -> str:
        """Return the state, and since when the target has not served.

        >>> States("CONNECTING", (StateChange(10, "DISCONN"), StateChange(15, "CONNECTING"))).in_words(22)
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

        >>> idle = States("CONNECTING", (StateChange(10, "IDLE"), StateChange(50, "CONNECTING")))
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
        if self.cut_off and self.working:
            # The change that ended it is the one that is missing.
            lost = tuple(replace(each, ended_unix_s=each.ended_unix_s or self.changes[-1].unix_s) for each in lost)
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
    r"""Read it, also where its last line is cut off. Raises NotUnderstoodError.

    >>> parse_states("current_state: FULL\nstate_history:\n - [ 1795323376, FULL ]").changes
    (StateChange(unix_s=1795323376, state='FULL'),)
    """
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].startswith("current_state: ") or lines[1] != "state_history:":
        raise not_understood(_TOOL, lines[0] if lines else "")
    entries = lines[2:]
    cut_off = bool(entries) and _CUT_ENTRY.fullmatch(entries[-1]) is not None
    changes = []
    for line in entries[:-1] if cut_off else entries:
        match = _ENTRY.match(line)
        if match is None:
            raise not_understood(_TOOL, line)
        changes.append(StateChange(int(match[1]), match[2]))
    return States(lines[0].partition(": ")[2], tuple(changes), cut_off=cut_off)


def lost_changes(changes: Iterable[StateChange]) -> tuple[StateChange, ...]:
    """Return the changes that belong to a lost connection, to the one that ends it: not those of idle ones.

    >>> idle = (StateChange(1, "CONNECTING"), StateChange(1, "IDLE"), StateChange(5, "FULL"))
    >>> [change.state for change in lost_changes((*idle, StateChange(9, "DISCONN"), StateChange(12, "FULL")))]
    ['DISCONN', 'FULL']
    """
    return tuple(chain.from_iterable(episode for episode in _episodes(changes) if _is_lost(episode)))


def interruptions(target: str, changes: Iterable[StateChange]) -> tuple[Interruption, ...]:
    """Return the times in which the target did not serve this client; the last one may not be over.

    Of the first, the beginning may be forgotten.

    >>> lost = (StateChange(10, "DISCONN"), StateChange(15, "EVICTED"), StateChange(16, "FULL"))
    >>> interruptions("labfs-MDT0001", lost) == (Interruption("labfs-MDT0001", 10, 16, evicted=True),)
    True
    """
    changes = tuple(changes)
    lost = []
    for number, episode in enumerate(_episodes(changes)):
        or_earlier = number == 0 and len(changes) >= _REMEMBERED and not _connects(episode)
        if or_earlier or _is_lost(episode):
            ended_unix_s = episode[-1].unix_s if episode[-1].state in WORKING_STATES else None
            evicted = any(change.state == "EVICTED" for change in episode)
            lost.append(Interruption(target, episode[0].unix_s, ended_unix_s, evicted, or_earlier=or_earlier))
    return tuple(lost)


def _episodes(changes: Iterable[StateChange]) -> list[list[StateChange]]:
    """Cut the changes behind each that works again.

    So a connection that finds its server dead when it wakes up was lost from the moment at which it woke up.
    """
    episodes: list[list[StateChange]] = []
    works = True
    for change in changes:
        if works:
            episodes.append([])
        episodes[-1].append(change)
        works = change.state in WORKING_STATES
    return episodes


def _is_lost(episode: Iterable[StateChange]) -> bool:
    return any(change.state in _LOST for change in episode)


def _connects(episode: list[StateChange]) -> bool:
    """Tell whether the rest of an episode is all that an idle connection goes through: one CONNECTING."""
    before = [change for change in episode if change.state not in WORKING_STATES]
    return len(before) <= 1 and all(change.state in _CONNECTING for change in before)


def continued(before: tuple[StateChange, ...], now: tuple[StateChange, ...]) -> tuple[StateChange, ...]:
    """Return what is remembered now, and what was before it.

    >>> first, second, third = StateChange(1, "FULL"), StateChange(5, "DISCONN"), StateChange(9, "FULL")
    >>> continued((first, second), (second, third)) == (first, second, third)
    True
    """
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return (*before, *now[length:])[-_MOST_CHANGES:]
    # Nothing in common: what was between is not known.
    return now
