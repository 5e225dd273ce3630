"""A fail-over as clients lived it: what happened when, how long each waited, and when the first, the median and the last were back."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client, in seconds since 1970. ``error`` is empty where it was acknowledged."""

    begun_s: float
    ended_s: float
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        return not self.error


@dataclass(frozen=True)
class Moment:
    """Something that happened; ``source`` says who saw it."""

    at_s: float
    source: str
    text: str


@dataclass(frozen=True)
class Outage:
    """What a fail-over was for one client: ``stall_s`` is the longest time without an acknowledgement, ``back_after_s`` from the fault to
    the end of it (None: it was never back), ``usual_s`` the median operation."""

    client: str
    operations: int
    errors: int
    usual_s: float
    stall_s: float
    stall_began_s: float
    back_after_s: float | None


@dataclass(frozen=True)
class TargetRecovery:
    """How a server's target counted it. None where it does not tell."""

    target: str
    status: str
    duration_s: float | None = None
    clients: int | None = None
    evicted: int | None = None
    replayed: int | None = None


@dataclass(frozen=True)
class Timeline:
    """``fault_s`` is when it was done; all other times are seconds since 1970 too."""

    name: str
    fault_s: float
    moments: tuple[Moment, ...]
    outages: tuple[Outage, ...]
    targets: tuple[TargetRecovery, ...] = ()

    @property
    def back_after_s(self) -> tuple[float, float, float] | None:
        """First, median and last client; None while one is not back."""
        times = [one.back_after_s for one in self.outages if one.back_after_s is not None]
        if not times or len(times) < len(self.outages):
            return None
        return min(times), statistics.median(times), max(times)


def outage_of(client: str, operations: Sequence[ClientOperation], fault_s: float) -> Outage:
    """Return the longest wait for an acknowledgement that was not over when the fault was done.

    An operation that was begun and never acknowledged waits to the end of the record.

    >>> done = [ClientOperation(t, t + 0.1) for t in (0.0, 1.0, 2.0)] + [ClientOperation(3.0, 40.0), ClientOperation(41.0, 41.1)]
    >>> found = outage_of("a", done, fault_s=2.5)
    >>> round(found.stall_s, 1), found.back_after_s
    (37.9, 37.5)
    """
    acknowledged = sorted(one.ended_s for one in operations if one.acknowledged)
    end = max((one.ended_s for one in operations), default=fault_s)
    begin = min((one.begun_s for one in operations), default=fault_s)
    marks = [begin, *acknowledged, end]
    waits = [(later - earlier, earlier, later) for earlier, later in pairwise(marks) if later >= fault_s]
    stall, began, over = max(waits, default=(0.0, fault_s, fault_s))
    durations = [one.ended_s - one.begun_s for one in operations if one.acknowledged]
    return Outage(
        client=client,
        operations=len(operations),
        errors=sum(not one.acknowledged for one in operations),
        usual_s=statistics.median(durations) if durations else 0.0,
        stall_s=stall,
        stall_began_s=began,
        back_after_s=over - fault_s if over in acknowledged else None,
    )


def timeline(
    name: str,
    fault_s: float,
    moments: Iterable[Moment],
    outages: Iterable[Outage],
    targets: Iterable[TargetRecovery] = (),
) -> Timeline:
    """With what happened in its order, and each client's wait and return among it."""
    waits = tuple(outages)
    seen = list(moments)
    for one in waits:
        seen.append(
            Moment(one.stall_began_s, f"client {one.client}", f"last answer before {one.stall_s:.1f} s of waiting")
        )
        if one.back_after_s is not None:
            seen.append(Moment(fault_s + one.back_after_s, f"client {one.client}", "is answered again"))
    return Timeline(name, fault_s, tuple(sorted(seen, key=lambda moment: moment.at_s)), waits, tuple(targets))


def document(lines: Iterable[Timeline]) -> str:
    return json.dumps(
        {"schema": 1, "timelines": [{**asdict(one), "back_after_s": one.back_after_s} for one in lines]}, indent=1
    )
