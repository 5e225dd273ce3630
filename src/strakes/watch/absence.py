"""A target that was away: from when to when, as far as readings before, between and after tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Unmounting a target ends after it is gone: half a second or two (two Lustre targets); at once where its server dies.
_UNMOUNTING_S = 0.5
# It counts before its mounting has ended: by 1.1 and 1.3 s (two Lustre targets).
_MOUNTING_S = 1.2
# A server that is not read for so many times as long as it ever was is away, too.
_SILENT = 3.0


@dataclass
class Absence:
    """What readings tell of one absence, as they come.

    ``seen_s`` and ``missed_s``: the last reading with the target and the first without it (or when it began anew).
    ``usual_s``: the longest time between two readings of this source before that; infinite where it is not known.
    ``counted_s`` and ``clients_before_s``: since when it counted before that, and ``clients_back_s`` of before.
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
    # When its server says that its clients were back.
    clients_back_s: float | None = None
    was_recovering: bool = False
    # Others serve its clients meanwhile.
    spared: bool = False
    # Since when clients missed it -> until when.
    waits: dict[float, float] = field(default_factory=dict)

    def leave_again(self) -> None:
        """Note that the target left before its clients were back: it is the same outage."""
        self.back_s = self.began_anew_s = self.clients_back_s = None

    @property
    def missed_by_clients(self) -> bool:
        """Tell whether a client missed it, or its server waited for clients after that."""
        anew = self.clients_back_s is not None and self.clients_back_s != self.clients_before_s
        return bool(self.waits) or self.was_recovering or anew

    @property
    def went_on(self) -> bool:
        """Tell whether it went on counting, or its server still tells what it told of clients before.

        A target that is mounted counts from then on, and waits for its clients.
        """
        counts_on = self.counted_s > 0 and self.began_anew_s is not None and self.began_anew_s <= self.counted_s + 1
        return counts_on or self.clients_back_s is not None

    @property
    def began_s(self) -> float:
        """Return when it probably went away: in the middle of when it can have done so."""
        latest_s = max(self.seen_s, self._gone_s)
        # It is not its server that is seldom read, but its server was silent.
        if latest_s - self.seen_s > _SILENT * self.usual_s:
            latest_s = self.seen_s + self.usual_s
        return min((self.seen_s + latest_s) / 2 + _UNMOUNTING_S, latest_s)

    @property
    def _gone_s(self) -> float:
        """Return when it was gone at the latest: a client may have missed it before."""
        return min([self.missed_s, *(begun_s + 1 for begun_s in self.waits if begun_s >= self.seen_s - 1)])

    def _there_s(self, anew_s: float) -> float:
        """Return when it was mounted at the latest."""
        assert self.back_s is not None
        clients_back_s = self.clients_back_s or self.back_s
        return min(self.back_s, clients_back_s) if clients_back_s >= anew_s else self.back_s

    def ended(self, stalls: Sequence[tuple[float, float]]) -> Ended:
        """Return what it was. ``stalls``: what operations of a probe waited, which was measured."""
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
            # Its beginning is not known, or by a clock that is not the readings'.
            ended = (still + self.back_s) / 2
            # Never seen to be away, it may have been back at once.
            low, high = still - gone if self.still_away_s else 0.0, self.back_s - self.seen_s
        # Times of clients are whole seconds.
        connected = max([*(until_s + 1 for until_s in self.waits.values()), self.clients_back_s or 0.0])
        connected = connected or self.recovered_s
        # What operations of the probe waited was measured; without them it is from when the target was last seen until
        # clients were back, at most.
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
    """An absence that is over: ``size_s`` is between ``low_s`` and ``high_s``; clients waited up to ``waited_s``."""

    began_s: float
    ended_s: float
    size_s: float
    low_s: float
    high_s: float
    waited_s: float
    evidence: Mapping[str, float | str]
