"""Estimates begin, end and duration of the outage of a target from readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Time from the last answer of a target to the end of its unmount: 0.5 to 2 s (two Lustre targets).
_UNMOUNTING_S = 0.5
# Time from the counter reset of a target to the end of its mount: 1.1 and 1.3 s (two Lustre targets).
_MOUNTING_S = 1.2
# A server is silent after this multiple of its longest interval between readings.
_SILENT = 3.0


@dataclass
class Absence:
    """An outage, updated by readings.

    ``seen_s`` and ``missed_s``: the last reading with the target and the first without it (or its counter reset).
    ``usual_s``: the longest interval between readings of this source before the outage; infinite if unknown.
    ``counted_s`` and ``clients_before_s``: the previous counter reset and the previous ``clients_back_s``.
    """

    source: str
    seen_s: float
    missed_s: float
    usual_s: float
    counted_s: float = 0.0
    clients_before_s: float | None = None
    began_anew_s: float | None = None
    back_s: float | None = None
    still_away_s: float = 0.0
    recovered_s: float | None = None
    # End of the recovery as reported by the server.
    clients_back_s: float | None = None
    was_recovering: bool = False
    # Other servers serve its clients meanwhile.
    spared: bool = False
    # Begin -> end of the waits of clients.
    waits: dict[float, float] = field(default_factory=dict)

    def leave_again(self) -> None:
        """Continue the outage: the target disappeared again before its clients had reconnected."""
        self.back_s = self.began_anew_s = self.clients_back_s = None

    @property
    def missed_by_clients(self) -> bool:
        """Return whether a client waited or the server went through recovery."""
        anew = self.clients_back_s is not None and self.clients_back_s != self.clients_before_s
        return bool(self.waits) or self.was_recovering or anew

    @property
    def went_on(self) -> bool:
        """Return whether the counters or the recovery status show that the target was not mounted anew."""
        counts_on = self.counted_s > 0 and self.began_anew_s is not None and self.began_anew_s <= self.counted_s + 1
        return counts_on or self.clients_back_s is not None

    @property
    def began_s(self) -> float:
        """Return the estimated onset: the middle of the possible range."""
        latest_s = max(self.seen_s, self._gone_s)
        # The server was silent, although it is usually read more often.
        if latest_s - self.seen_s > _SILENT * self.usual_s:
            latest_s = self.seen_s + self.usual_s
        return min((self.seen_s + latest_s) / 2 + _UNMOUNTING_S, latest_s)

    @property
    def _gone_s(self) -> float:
        """Return the latest possible onset, from readings and clients."""
        return min([self.missed_s, *(begun_s + 1 for begun_s in self.waits if begun_s >= self.seen_s - 1)])

    def _there_s(self, anew_s: float) -> float:
        """Return the latest possible end of the mount."""
        assert self.back_s is not None
        clients_back_s = self.clients_back_s or self.back_s
        return min(self.back_s, clients_back_s) if clients_back_s >= anew_s else self.back_s

    def ended(self, stalls: Sequence[tuple[float, float]]) -> Ended:
        """Return the completed outage. ``stalls``: begin and end of slow operations of a probe."""
        assert self.back_s is not None and self.recovered_s is not None
        still = self.still_away_s or self.missed_s
        gone = self._gone_s
        anew = self.began_anew_s or self.back_s
        began = self.began_s
        if still <= anew < self.back_s:
            ended = anew + _MOUNTING_S
            low = anew - gone - _UNMOUNTING_S
            high = max(self._there_s(anew), ended + _MOUNTING_S) - self.seen_s
        else:
            # The counter reset is unknown, or timed by another clock.
            ended = (still + self.back_s) / 2
            # Without a reading during the outage, it may have been arbitrarily short.
            low, high = still - gone if self.still_away_s else 0.0, self.back_s - self.seen_s
        # Times of clients are whole seconds.
        connected = max([*(until_s + 1 for until_s in self.waits.values()), self.clients_back_s or 0.0])
        connected = connected or self.recovered_s
        # Upper bound of the waiting time, unless the probe measured it.
        waited = 0.0 if self.spared and not self.waits else max(connected - self.seen_s, 0.0)
        stalled = [(begun, end) for begun, end in stalls if begun <= connected and end >= self.seen_s - 1]
        if stalled:
            longest = max(stalled, key=lambda stall: stall[1] - stall[0])
            waited = longest[1] - longest[0]
            if not self.spared:
                began, ended = max(self.seen_s, longest[0]), min(self.back_s, longest[1])
        evidence: dict[str, float | str] = {"waited_s": waited, "recovered_unix_s": self.recovered_s}
        if stalled:
            evidence["operations_that_waited"] = len(stalled)
        if self.waits:
            evidence["client_connected_unix_s"] = max(self.waits.values())
        low = max(0.0, low)
        return Ended(began, ended, max(ended - began, low), low, high, waited, evidence)


@dataclass(frozen=True)
class Ended:
    """A completed outage: ``size_s`` in ``low_s`` to ``high_s``; clients waited up to ``waited_s``."""

    began_s: float
    ended_s: float
    size_s: float
    low_s: float
    high_s: float
    waited_s: float
    evidence: Mapping[str, float | str]
