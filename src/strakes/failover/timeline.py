"""A fail-over as clients lived it.

What happened when, how long each waited, and when the first, the median and the last were back.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise

from strakes.targets.description import TargetRecovery

# How much longer than every shorter wait one must be to stand apart; and than the longest before the fault, where there
# were enough of them, to count without standing apart. In recordings of clients that were not hit the two longest waits
# are 2.2 times apart and 7 times beyond those before; of clients that were hit, 12 and 64 times at least.
_APART, _FAR_BEYOND, _ENOUGH = 3.0, 10.0, 20
# Below this nobody speaks of an outage.
_LEAST_S = 0.5


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client, in seconds since 1970. ``error`` is empty where it was acknowledged."""

    begun_s: float
    ended_s: float
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        """Tell whether it was done."""
        return not self.error


@dataclass(frozen=True)
class Moment:
    """Something that happened; ``source`` says who saw it."""

    at_s: float
    source: str
    text: str


@dataclass(frozen=True)
class Outage:
    """What a fail-over was for one client.

    ``stall_s`` is the longest time without an acknowledgement after the fault, ``back_after_s`` from the fault to the
    end of it. ``hit``: that time is beyond what this client waits anyway, or operations failed in it that never failed
    before. ``back_after_s`` is None for a client that was not hit, and for one that was never back. ``usual_s`` is the
    median operation.
    """

    client: str
    operations: int
    errors: int
    usual_s: float
    stall_s: float
    stall_began_s: float
    back_after_s: float | None
    hit: bool = True


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
        """Return when the first, the median and the last client that was hit was back.

        None while one is not back, and where none was hit.
        """
        hit = [outage for outage in self.outages if outage.hit]
        times = [outage.back_after_s for outage in hit if outage.back_after_s is not None]
        if not times or len(times) < len(hit):
            return None
        return min(times), statistics.median(times), max(times)

    @property
    def gone(self) -> tuple[str, ...]:
        """Return the clients that were never back."""
        return tuple(outage.client for outage in self.outages if outage.hit and outage.back_after_s is None)


@dataclass(frozen=True)
class _Wait:
    """From one acknowledgement to the next.

    ``asking_s`` is the part in which the client wanted one: pauses of its own are not the servers' doing. ``failures``
    are the operations that ended in it with an error, ``answered`` whether an acknowledgement ends it.
    """

    began_s: float
    ended_s: float
    asking_s: float
    failures: int
    answered: bool


def outage_of(client: str, operations: Sequence[ClientOperation], fault_s: float) -> Outage:
    """Return the longest wait for an acknowledgement that was not over when the fault was done.

    An operation that was begun and never acknowledged waits to the end of the record.

    >>> done = [ClientOperation(t, t + 0.1) for t in (0.0, 1.0, 2.0)]
    >>> done += [ClientOperation(3.0, 40.0), ClientOperation(41.0, 41.1)]
    >>> outage = outage_of("a", done, fault_s=2.5)
    >>> round(outage.stall_s, 1), outage.back_after_s, outage.hit
    (37.9, 37.5, True)
    >>> outage_of("b", done[:3], fault_s=1.5).hit
    False
    """
    waits = _waits_of(operations)
    before = [wait for wait in waits if wait.ended_s < fault_s]
    after = [wait for wait in waits if wait.ended_s >= fault_s]
    felt = _beyond_usual(before, after)
    longest = max(felt or after, key=lambda wait: wait.ended_s - wait.began_s, default=None)
    durations = [operation.ended_s - operation.begun_s for operation in operations if operation.acknowledged]
    return Outage(
        client=client,
        operations=len(operations),
        errors=sum(not operation.acknowledged for operation in operations),
        usual_s=statistics.median(durations) if durations else 0.0,
        stall_s=longest.ended_s - longest.began_s if longest else 0.0,
        stall_began_s=longest.began_s if longest else fault_s,
        back_after_s=longest.ended_s - fault_s if felt and longest and longest.answered else None,
        hit=bool(felt),
    )


def _waits_of(operations: Sequence[ClientOperation]) -> list[_Wait]:
    """Cut a client's record at its acknowledgements.

    What follows the last one is a wait if something was asked in it.
    """
    by_end = sorted(operations, key=lambda operation: operation.ended_s)
    # Of this operation and all that end later: when the first was begun.
    first_begun = list(accumulate((operation.begun_s for operation in reversed(by_end)), min))[::-1]
    waits: list[_Wait] = []
    last_s = first_begun[0] if first_begun else 0.0
    asked_s, failures = None, 0
    for operation, begun_s in zip(by_end, first_begun, strict=True):
        asked_s = max(last_s, begun_s) if asked_s is None else asked_s
        failures += not operation.acknowledged
        if operation.acknowledged:
            waits.append(_Wait(last_s, operation.ended_s, operation.ended_s - asked_s, failures, answered=True))
            last_s, asked_s, failures = operation.ended_s, None, 0
    if asked_s is not None:
        end_s = by_end[-1].ended_s
        waits.append(_Wait(last_s, end_s, end_s - asked_s, failures, answered=False))
    return waits


def _beyond_usual(before: Sequence[_Wait], after: Sequence[_Wait]) -> list[_Wait]:
    """Return the waits after the fault that this client's own before it, and its other ones, do not explain.

    What counts is how much longer a wait is than the median one. Long waits happen without a fault too, and in a longer
    time longer ones: so a wait must stand apart from all that are shorter, or be far beyond everything from before.
    """
    if not after:
        return []
    usual_s = statistics.median(wait.asking_s for wait in before or after)
    most_s = max((wait.asking_s - usual_s for wait in before), default=0.0)
    limit_s = _FAR_BEYOND * most_s if len(before) >= _ENOUGH else math.inf
    by_length = sorted(after, key=lambda wait: wait.asking_s)
    for shorter, longer in pairwise([None, *by_length]):
        assert longer is not None
        shorter_s = max(most_s, shorter.asking_s - usual_s if shorter else 0.0)
        if longer.asking_s - usual_s > max(_APART * shorter_s, _LEAST_S):
            limit_s = min(limit_s, longer.asking_s - usual_s)
    never_failed = not any(wait.failures for wait in before)
    return [
        wait
        for wait in after
        if wait.asking_s - usual_s >= max(limit_s, _LEAST_S) or (never_failed and wait.failures > 0)
    ]


def timeline(
    name: str,
    fault_s: float,
    moments: Iterable[Moment],
    outages: Iterable[Outage],
    targets: Iterable[TargetRecovery] = (),
) -> Timeline:
    """Put together what happened in its order, with the wait and return of each client that was hit."""
    waits = tuple(outages)
    moments = list(moments)
    for outage in waits:
        if not outage.hit:
            continue
        source = f"client {outage.client}"
        moments.append(Moment(outage.stall_began_s, source, f"last answer before {outage.stall_s:.1f} s of waiting"))
        if outage.back_after_s is not None:
            moments.append(Moment(fault_s + outage.back_after_s, source, "is answered again"))
    return Timeline(name, fault_s, tuple(sorted(moments, key=lambda moment: moment.at_s)), waits, tuple(targets))


def document(lines: Iterable[Timeline]) -> str:
    """Return time lines as JSON."""
    return json.dumps(
        {"schema": 1, "timelines": [{**asdict(line), "back_after_s": line.back_after_s} for line in lines]}, indent=1
    )
