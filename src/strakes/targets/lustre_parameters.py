"""Parsers for parameters of Lustre: counters, states of connections, and recoveries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from strakes.base.finite import whole
from strakes.base.units import format_seconds
from strakes.targets.answers import not_understood, understood
from strakes.targets.description import Interruption, TargetRecovery

MD_STATS, OST_STATS = "mdt.*.md_stats", "obdfilter.*.stats"
RECOVERY_STATUS = ("mdt.*.recovery_status", "obdfilter.*.recovery_status")

_COUNTER = re.compile(r"^(\S++(?: \S++)*?)\s++(\d+) samples \[(\w+)\](?: \d+ \d+ (-?\d+)(?: (-?\d+))?)?\s*$")
# A line with a time. Older versions of Lustre print "usecs" instead of "nsecs", and do not print start_time.
_TIME = re.compile(r"^(snapshot_time|start_time|elapsed_time):?\s+(\d{1,11}\.\d+) secs\.[nu]secs$")
# A Lustre address (NID), in quotes since Lustre 2.14.
_ADDRESS = re.compile(r"(?<![^\s\[\],\"@])[^\s\[\],\"@]++@[^\s\[\],\"]+")
# Flag in the parameter ``import`` of a target that an administrator has deactivated.
DEACTIVATED = re.compile(r"\bIMPF_DEACTIVE\b")
_SERVICE_ADDRESSES = re.compile(r"\bfailover_nids:\s*\[([^\]\n]*)")
_WORKING_ADDRESS = re.compile(
    r"(?>.*?\bstate: (?:FULL|IDLE)\b).*\bcurrent_connection:\s*\"?([^\s\"@]{1,64}@[^\s\"]+)", re.DOTALL
)
_ENTRY = re.compile(r"^ - \[ (\d{1,11}), ([A-Z_]+) \]$")
_SHORT_BITS = 36  # datetime can format times of so many bits in seconds (year 4147). No number of clients is larger.

# Lustre's counter -> common name, for metadata targets. Lustre counts the creation of a file as open and as mknod.
MD_COUNTERS = {
    "mknod": "md.create",
    "open": "md.open",
    "close": "md.close",
    "getattr": "md.getattr",
    "setattr": "md.setattr",
    "unlink": "md.unlink",
    "link": "md.link",
    "mkdir": "md.mkdir",
    "rmdir": "md.rmdir",
    "rename": "md.rename",
    "readpage": "md.readdir",
}
LLITE_COUNTERS = {"readdir" if own == "readpage" else own: name for own, name in MD_COUNTERS.items()}
# Lustre's counter -> common name, for clients. The counter "create" does not count regular files, so omit it.
MDC_COUNTERS = {
    own: MD_COUNTERS[own.replace("_", "")]
    for own in ("close", "getattr", "setattr", "unlink", "link", "rename", "read_page")
}


class Counter(NamedTuple):
    """A counter of events. ``total``, ``squares``: sum of the values in ``unit``, and of their squares, if known."""

    samples: int
    unit: str
    total: int | None = None
    squares: int | None = None


@dataclass(frozen=True)
class Stats:
    """Counters since ``start_s`` (Unix time, None if unknown). A missing counter is 0."""

    start_s: float | None
    counters: Mapping[str, Counter]

    def samples(self, name: str) -> int:
        return self.counters[name].samples if name in self.counters else 0

    def total(self, name: str) -> int:
        return (self.counters[name].total or 0) if name in self.counters else 0

    def data(self, side: str = "") -> dict[str, float]:
        counters = {}
        for way in ("read", "write"):
            counters[f"{side}data.{way}_requests"] = float(self.samples(f"{way}_bytes"))
            counters[f"{side}data.{way}_bytes"] = float(self.total(f"{way}_bytes"))
        return counters

    def named(self, names: Mapping[str, str], side: str = "") -> dict[str, float]:
        return {side + name: float(self.samples(own)) for own, name in names.items()}


def parse_stats(text: str) -> Stats:
    """Parse the text of a parameter with counters. Raises NotUnderstoodError for an unknown form."""
    times: dict[str, float] = {}
    counters = {}
    for line in text.splitlines():
        if time := _TIME.match(line):
            times[time[1]] = float(time[2])
        elif match := _COUNTER.match(line):
            sums = [None if group is None else int(group) for group in match.group(4, 5)]
            counters[match[1]] = Counter(int(match[2]), match[3], *sums)
        else:
            raise not_understood("lctl get_param (counters)", line)
    if "snapshot_time" not in times:
        raise not_understood("lctl get_param (counters)", text)
    return Stats(times.get("start_time"), counters)


def service_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses of all servers that are configured for a target, from a client's parameter ``import``."""
    match = _SERVICE_ADDRESSES.search(text)
    return tuple(_ADDRESS.findall(match[1])) if match else ()


def working_address(text: str) -> str:
    """Return the address of the connected server from the parameter ``import``, or "" without a connection."""
    match = _WORKING_ADDRESS.match(text)
    return match[1] if match else ""


@understood("lctl get_param (recovery_status)")
def parse_recovery(text: str, target: str = "") -> TargetRecovery:
    """Parse the parameter ``recovery_status`` of a target. Raises NotUnderstoodError for an unknown form.

    The status is COMPLETE, RECOVERING, WAITING_FOR_CLIENTS, WAITING (for other targets) or INACTIVE (no recovery yet).
    """
    told = {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}

    def numbers(key: str) -> tuple[int | None, int | None]:
        # Lustre prints some numbers of clients as "3/4" (three of four).
        part, _, total = told.get(key, "").partition("/")
        return whole(part, _SHORT_BITS) if part else None, whole(total, _SHORT_BITS) if total else None

    status = told["status"].split()[0]
    completed, known = numbers("completed_clients")
    _, connected_of = numbers("connected_clients")
    evicted, _ = numbers("evicted_clients")
    if status == "COMPLETE" and completed is not None and known is not None:
        # Count clients that have not reconnected as evicted, because Lustre evicts them at the end of a recovery.
        evicted = known - completed
    return TargetRecovery(
        target,
        status,
        numbers("recovery_duration")[0],
        known if connected_of is None else connected_of,
        evicted,
        numbers("replayed_requests")[0],
        numbers("recovery_start")[0],
        serving=status in ("COMPLETE", "INACTIVE"),
    )


# A working connection is FULL, or IDLE until the next request.
FULL, IDLE = "FULL", "IDLE"
WORKING_STATES = (FULL, IDLE)
# States of a connection while no server answers. In all other states, a server answers this client.
NEW, NEVER_CONNECTED = "NEW", "never connected"
UNREACHED_STATES = (NEW, "CONNECTING", "DISCONN")
# An interruption begins with one of these states.
_LOST = ("DISCONN", "EVICTED")
# Number of state changes that the kernel keeps (IMP_STATE_HIST_LEN in lustre_import.h, measured on 2.17.57).
_REMEMBERED = 16
# If the server answers, an idle or new connection becomes FULL within this number of seconds.
_CONNECTING_S = 6.0
_CONNECTING = (NEW, "CONNECTING")
# A running machine refuses a connection within this number of seconds. A dead machine causes a time-out of 5 s or more.
_REFUSED_WITHIN_S = 2
# Maximum number of remembered state changes per connection, of about 100 bytes each.
_MOST_CHANGES = 1000


@dataclass(frozen=True)
class StateChange:
    """A state change of a connection. ``unix_s``: Unix time in whole seconds."""

    unix_s: int
    state: str


@dataclass(frozen=True)
class States:
    """The present state of a connection, and its past state changes, oldest first.

    ``deactivated``: an administrator has deactivated the target.
    """

    current: str
    changes: tuple[StateChange, ...]
    deactivated: bool = False

    @property
    def working(self) -> bool:
        return self.current in WORKING_STATES

    def in_words(self, now_unix_s: float) -> str:
        """Return the state as text, with the duration since the target stopped serving.

        >>> States("CONNECTING", (StateChange(10, "DISCONN"), StateChange(15, "CONNECTING"))).in_words(22)
        'CONNECTING, for 12.0 s'
        """
        if self.current == NEW:
            return NEVER_CONNECTED
        lasting = [lost for lost in interruptions("", self.changes) if lost.ended_unix_s is None]
        began_unix_s = lasting[0].began_unix_s if lasting else self.not_working_since()
        if began_unix_s is None:
            return self.current
        if began_unix_s > now_unix_s:
            return f"{self.current}, for an unknown time (the clock was set back)"
        at_least = "at least " if lasting and lasting[0].or_earlier else ""
        return f"{self.current}, for {at_least}{format_seconds(now_unix_s - began_unix_s)}"

    def lost(self, now_unix_s: float) -> bool:
        """Return whether the client has lost the target. A deactivated target or a new connection attempt is no loss.

        >>> idle = States("CONNECTING", (StateChange(10, "IDLE"), StateChange(50, "CONNECTING")))
        >>> idle.lost(51), idle.lost(60), States("NEW", ()).refused(60)
        (False, True, False)
        """
        if self.working or self.deactivated:
            return False
        began_unix_s = self.not_working_since()
        just_begun = began_unix_s is not None and 0 <= now_unix_s - began_unix_s <= _CONNECTING_S
        lasting = any(lost.ended_unix_s is None for lost in interruptions("", self.changes))
        return lasting or self.current not in _CONNECTING or not just_begun

    def refused(self, now_unix_s: float) -> bool:
        """Return whether the server machine runs but refuses the connection, because it does not serve the target."""
        since = self._since()
        ends_unix_s = (*(change.unix_s for change in since[1:]), now_unix_s)
        attempts = [
            ended - change.unix_s
            for change, ended in zip(since, ends_unix_s, strict=False)
            if change.state == "CONNECTING"
        ]
        return bool(attempts) and max(attempts) <= _REFUSED_WITHIN_S

    def interruptions(self, target: str) -> tuple[Interruption, ...]:
        """Return the interruptions of a target. If the target is deactivated, omit unfinished interruptions."""
        lost = interruptions(target, self.changes)
        return tuple(each for each in lost if each.ended_unix_s is not None) if self.deactivated else lost

    def _since(self) -> tuple[StateChange, ...]:
        working = (place for place, change in enumerate(self.changes, 1) if change.state in WORKING_STATES)
        return self.changes[max(working, default=0) :]

    def not_working_since(self) -> int | None:
        """Return the Unix time at which the target stopped serving, or None if the history does not show it."""
        since = self._since()
        return since[0].unix_s if since else None


def parse_states(text: str) -> States:
    """Parse the state history of a connection. Raises NotUnderstoodError for an unknown form."""
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].startswith("current_state: ") or lines[1] != "state_history:":
        raise not_understood("lctl get_param (state)", lines[0] if lines else "")
    changes = []
    for line in lines[2:]:
        match = _ENTRY.match(line)
        if match is None:
            raise not_understood("lctl get_param (state)", line)
        changes.append(StateChange(int(match[1]), match[2]))
    return States(lines[0].partition(": ")[2], tuple(changes))


def lost_changes(changes: Iterable[StateChange]) -> tuple[StateChange, ...]:
    """Return the state changes from each loss of a connection to its reconnection."""
    return tuple(chain.from_iterable(episode for episode in _episodes(changes) if _is_lost(episode)))


def interruptions(target: str, changes: Iterable[StateChange]) -> tuple[Interruption, ...]:
    """Return the interruptions of a target for this client.

    ``or_earlier``: the interruption may have begun before the kernel's history of state changes.
    """
    changes = tuple(changes)
    lost = []
    for number, episode in enumerate(_episodes(changes)):
        # A new or idle connection goes through NEW or CONNECTING before FULL. This is no interruption.
        before = [change.state for change in episode if change.state not in WORKING_STATES]
        idle = not before or (len(before) == 1 and before[0] in _CONNECTING)
        or_earlier = number == 0 and len(changes) >= _REMEMBERED and not idle
        if or_earlier or _is_lost(episode):
            ended_unix_s = episode[-1].unix_s if episode[-1].state in WORKING_STATES else None
            passed = {change.state for change in episode}
            evicted, replayed = "EVICTED" in passed, "REPLAY" in passed
            ends, again = (episode[0].unix_s, ended_unix_s), not (evicted or replayed or or_earlier)
            lost.append(Interruption(target, *ends, evicted, or_earlier=or_earlier, reconnected=again))
    return tuple(lost)


def _episodes(changes: Iterable[StateChange]) -> list[list[StateChange]]:
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


def continued(before: tuple[StateChange, ...], now: tuple[StateChange, ...]) -> tuple[StateChange, ...]:
    """Merge the kernel's present history of state changes into the earlier state changes.

    >>> first, second, third = StateChange(1, "FULL"), StateChange(5, "DISCONN"), StateChange(9, "FULL")
    >>> continued((first, second), (second, third)) == (first, second, third)
    True
    """
    for length in range(min(len(before), len(now)), 0, -1):
        if before[-length:] == now[:length]:
            return (*before, *now[length:])[-_MOST_CHANGES:]
    return now
