"""Reports operations of a probe that hang, which no latency includes until they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.launch.messages import LoggedOperation
from strakes.units import format_duration
from strakes.watch.values import Kind, WatchEvent

# Time until a gap and until an alarm; an outage of a server raises its own alarm sooner.
_TOLD_S, _ALARM_S = 15.0, 120.0
# The first operation, of any kind.
_ANY = ""


class Unanswered:
    """Hanging operations in one directory; an operation of each kind is due every ``each_s``."""

    def __init__(self, directory: str, each_s: float, names: dict[str, str], alarm: Kind) -> None:
        self._directory, self._each_s, self._names, self._alarm = directory, each_s, names, alarm
        # Kind -> due time of the next operation without an answer.
        self._next_s: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._told: list[WatchEvent] = []
        self._answered_s = 0.0

    def begin(self, now_s: float) -> None:
        """Start a probe: its first operation is due soon."""
        self._next_s = {_ANY: now_s + self._each_s}

    def begin_in_vain(self, now_s: float) -> None:
        """Note a probe that cannot start because the file system hangs. Operations are due from its first attempt."""
        self._next_s.setdefault(_ANY, now_s)

    def pause(self) -> None:
        """Forget due operations because the probe stops. Reported ones remain open until the next answer."""
        self._next_s.clear()

    def waits_s(self, now_s: float) -> dict[str, float]:
        """Return kind -> waiting time, for kinds that hang long enough for a report."""
        waits = {kind: now_s - next_s for kind, next_s in (self._next_s | self._since).items()}
        if (all_s := waits.pop(_ANY, None)) is not None:
            waits = dict.fromkeys(self._names, all_s)
        return {kind: wait_s for kind, wait_s in waits.items() if wait_s >= _TOLD_S}

    def add(self, operations: Sequence[LoggedOperation], now_s: float, *, explained: bool) -> list[WatchEvent]:
        """Add completed operations; return the events that begin and end. ``explained``: a server is unavailable."""
        for operation in operations:
            self._next_s.pop(_ANY, None)
            since_s = self._since.pop(operation.phase, self._since.pop(_ANY, None))
            if since_s is not None:
                # An operation that was lost with its engine waited until the next one was due.
                lost = operation.due_s > since_s + 2 * self._each_s
                self._answered_s = max(self._answered_s, operation.due_s if lost else operation.ended_s)
            self._next_s[operation.phase] = operation.due_s + self._each_s
        for kind, next_s in self._next_s.items():
            if now_s - next_s >= _TOLD_S:
                self._since.setdefault(kind, next_s)
        if not self._since:
            return self._over(now_s)
        began_s = min([*self._since.values(), *(event.began_s for event in self._told)])
        long = format_duration(now_s - began_s)
        if not self._told:
            waiting = self._names if _ANY in self._since else self._since
            kinds = sorted(self._names.get(kind, kind) for kind in waiting)
            which = " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
            return self._tell("gap", f"no answer to {which} on {self._directory} for {long}", began_s, now_s)
        if len(self._told) == 1 and now_s - began_s >= _ALARM_S and not explained:
            text = f"{self._directory} does not answer, for at least {long}"
            return self._tell(self._alarm, text, began_s, now_s)
        return []

    def _tell(self, kind: Kind, text: str, began_s: float, now_s: float) -> list[WatchEvent]:
        event = WatchEvent(kind, self._directory, began_s, now_s, text)
        self._told.append(event)
        return [event]

    def _over(self, now_s: float) -> list[WatchEvent]:
        told, self._told = self._told, []
        events = []
        for event in told:
            ended_s = max(event.began_s, self._answered_s)
            text = f"operations on {self._directory} waited up to {format_duration(ended_s - event.began_s)}"
            events.append(
                replace(event, told_s=now_s, ended_s=ended_s, text=text, size=ended_s - event.began_s, unit="s")
            )
        self._answered_s = 0.0
        return events
