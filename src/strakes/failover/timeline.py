"""A fail-over as clients saw it: events, the longest wait of each client, and the times of their return."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from strakes.targets.description import TargetRecovery

# A wait is an outlier if it exceeds every shorter wait by the factor _APART. With at least _ENOUGH waits before the
# fault, it is also an outlier if it exceeds the longest of these by the factor _FAR_BEYOND. In recordings, the longest
# wait exceeds the second longest by a factor of 2.2 for clients that were not hit and of at least 12 for clients that
# were hit; it exceeds the longest wait before the fault by factors of 7 and at least 64.
_APART, _FAR_BEYOND, _ENOUGH = 3.0, 10.0, 20
# Shorter waits, in seconds, are no outages.
_LEAST_S = 0.5
# _CHANCE: significance level of an outage. _REACHES: numbers of longest other waits from which the tail is estimated.
# With at most _FEW other waits, an outage must exceed the longest of these by the factor _FAR_OF_FEW.
_CHANCE = 0.01  # 1% of clients that were not hit wait longer by chance
_REACHES = (3, 5, 10, 20)
_FEW, _FAR_OF_FEW = 3, 20.0
# Minimum number of other waits of a client. With 3, the wait at the fault is the longest by chance in 25%.
_LEAST = 3
# A wait that begins within _SOON_S seconds of the fault needs only the factor _FAR_SOON over the longest other wait,
# because the coincidence is evidence.
_SOON_S, _FAR_SOON = 3.0, 5.0
# Above this probability (20%) a wait is no outage; between _CHANCE and _LIKELY it is undecided.
_LIKELY = 0.2
# Errors that a working file system returns.
_ANSWERS = frozenset(
    {"EACCES", "EDQUOT", "EEXIST", "EFBIG", "EISDIR", "EMLINK", "ENAMETOOLONG", "ENOENT", "ENOSPC", "ENOTDIR"}
    | {"ENOTEMPTY", "EPERM", "EXDEV"}
)
# Error of an operation that was due but had not ended when the record ended.
PENDING = "pending"


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client. Times are seconds since 1970; ``error`` is empty if the operation succeeded."""

    begun_s: float
    ended_s: float
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        """Return whether the operation succeeded."""
        return not self.error

    @property
    def answered(self) -> bool:
        """Return whether the file system answered, with success or with a normal error."""
        return self.acknowledged or self.error in _ANSWERS


@dataclass(frozen=True)
class Moment:
    """An event that ``source`` observed."""

    at_s: float
    source: str
    text: str


@dataclass(frozen=True)
class Outage:
    """The effect of a fail-over on one client.

    ``stall_s``: longest wait for an answer after the fault. ``back_after_s``: time from the fault to the end of this
    wait; None if the client was not hit or never got an answer again. ``hit``: the wait is longer than usual for this
    client, or operations failed that had never failed before. ``known``: there were enough operations to decide this.
    ``usual_s``: median duration of an operation.
    """

    client: str
    operations: int
    errors: int
    usual_s: float
    stall_s: float
    stall_began_s: float
    back_after_s: float | None
    hit: bool = True
    known: bool = True


@dataclass(frozen=True)
class Timeline:
    """One fail-over as clients saw it; all times are seconds since 1970."""

    name: str
    fault_s: float
    moments: tuple[Moment, ...]
    outages: tuple[Outage, ...]
    targets: tuple[TargetRecovery, ...] = ()

    @property
    def back_after_s(self) -> tuple[float, float, float] | None:
        """Return the seconds until the first, median and last client returned; None unless all hit ones did."""
        hit = [outage for outage in self.outages if outage.hit]
        times = [outage.back_after_s for outage in hit if outage.back_after_s is not None]
        if not times or len(times) < len(hit):
            return None
        return min(times), statistics.median(times), max(times)

    @property
    def gone(self) -> tuple[str, ...]:
        """Return the clients that were hit and never got an answer again."""
        return tuple(outage.client for outage in self.outages if outage.hit and outage.back_after_s is None)


class _Wait(NamedTuple):
    """The time from one answer to the next.

    ``asking_s`` is the part with a request pending. ``failures`` counts the operations that ended without an answer;
    ``answered`` says whether an answer ends the wait.
    """

    began_s: float
    ended_s: float
    asking_s: float
    failures: int
    answered: bool


def outage_of(client: str, operations: Sequence[ClientOperation], fault_s: float) -> Outage:
    """Return the effect of a fault on one client, from the longest wait for an answer that ended after the fault.

    An operation without an answer counts as waiting until the end of the client's record. If the longest wait is that
    of a pending operation, the client is hit or undecided.
    """
    return _outage(client, operations, _waits_of(operations), fault_s)


def _outage(client: str, operations: Sequence[ClientOperation], waits: Sequence[_Wait], fault_s: float) -> Outage:
    felt, known = _felt(waits, fault_s)
    after = [wait for wait in waits if wait.ended_s >= fault_s]
    longest = max(felt or after, key=lambda wait: wait.asking_s, default=None)
    done = _done(operations)
    durations = [operation.ended_s - operation.begun_s for operation in done if operation.acknowledged]
    waiting = len(done) < len(operations) and longest is waits[-1]
    return Outage(
        client=client,
        operations=len(done),
        errors=sum(not operation.acknowledged for operation in done),
        usual_s=statistics.median(durations) if durations else 0.0,
        stall_s=longest.asking_s if longest else 0.0,
        stall_began_s=longest.ended_s - longest.asking_s if longest else fault_s,
        back_after_s=longest.ended_s - fault_s if felt and longest and longest.answered else None,
        hit=bool(felt),
        known=known and (bool(felt) or not waiting),
    )


def _done(operations: Sequence[ClientOperation]) -> list[ClientOperation]:
    return [operation for operation in operations if operation.error != PENDING]


def outages_of(
    clients: Mapping[str, Sequence[ClientOperation]], fault_s: float, moments: Iterable[Moment] = ()
) -> tuple[Outage, ...]:
    """Return the outage of each client; ``moments`` are other observed events.

    A client that hangs writes no more records. If the records of one client end at the fault while others continue, it
    has an outage without an end. If they end later, its outage is undecided.
    """
    waits = {client: _waits_of(operations) for client, operations in clients.items()}
    outages = [_outage(client, operations, waits[client], fault_s) for client, operations in clients.items()]
    ends = {client: max((one.ended_s for one in _done(own)), default=fault_s) for client, own in clients.items()}
    back = [fault_s + (outage.back_after_s or 0.0) for outage in outages]
    over_s = max([*(moment.at_s for moment in moments), *back], default=fault_s)
    found = []
    for outage in outages:
        own, end_s, others_end_s = waits[outage.client], ends[outage.client], max(ends.values())
        usual_s = max((wait.ended_s - wait.began_s for wait in own), default=math.inf)
        silence_s = max(over_s, others_end_s) - end_s
        if outage.hit or len(own) < _ENOUGH or silence_s < max(_FAR_BEYOND * usual_s, _LEAST_S):
            found.append(outage)
        elif -usual_s <= end_s - fault_s <= _SOON_S:
            silenced = replace(outage, stall_s=silence_s, stall_began_s=end_s, back_after_s=None)
            found.append(replace(silenced, hit=True, known=True))
        else:
            found.append(replace(outage, known=outage.known and end_s >= min(over_s, others_end_s)))
    return tuple(found)


def _waits_of(operations: Sequence[ClientOperation]) -> list[_Wait]:
    """Return the waits between the answers to a client, and the wait after the last answer if a request was pending."""
    by_end = sorted(operations, key=lambda operation: operation.ended_s)
    # The earliest begin among this operation and all that end later.
    first_begun = list(accumulate((operation.begun_s for operation in reversed(by_end)), min))[::-1]
    waits: list[_Wait] = []
    last_s = first_begun[0] if first_begun else 0.0
    asked_s, failures = None, 0
    for operation, begun_s in zip(by_end, first_begun, strict=True):
        asked_s = max(last_s, begun_s) if asked_s is None else asked_s
        failures += not operation.answered and operation.error != PENDING
        if operation.answered:
            waits.append(_Wait(last_s, operation.ended_s, operation.ended_s - asked_s, failures, answered=True))
            last_s, asked_s, failures = operation.ended_s, None, 0
    if asked_s is not None:
        end_s = by_end[-1].ended_s
        waits.append(_Wait(last_s, end_s, end_s - asked_s, failures, answered=False))
    return waits


def _felt(waits: Sequence[_Wait], fault_s: float) -> tuple[list[_Wait], bool]:
    """Return the waits that belong to an outage, and whether there were enough operations to decide.

    If operations fail that had never failed before, waits of any length count as an outage.
    """
    before = [wait for wait in waits if wait.ended_s < fault_s]
    after = [wait for wait in waits if wait.ended_s >= fault_s]
    if not after:
        return [], False
    never_failed = not any(wait.failures for wait in before)
    failed = [wait for wait in after if never_failed and wait.failures]
    far = _standing_apart(before, after)
    if not far:
        return failed, True
    longest = max(far, key=lambda wait: wait.asking_s)
    # A dict, because it keeps the order and finds a wait quickly: there may be one for each operation.
    episode = dict.fromkeys(wait for wait in far if _gap_s(wait, longest) <= longest.asking_s)
    habits = [wait for wait in far if wait not in episode and wait.asking_s * _APART >= longest.asking_s]
    if habits:
        # Long waits recur. They count as usual if the time before the fault was too short to contain one.
        moments = sorted(wait.ended_s for wait in (longest, *habits))
        every_s = max(later - earlier for earlier, later in pairwise(moments))
        if fault_s - waits[0].began_s < 2 * every_s:
            return failed, bool(failed)
    left_out = {*episode, *habits}
    others = [wait.asking_s for wait in waits if wait not in left_out]
    most_s = max(others, default=math.inf)
    late_s = longest.ended_s - longest.asking_s - fault_s
    if len(others) < _LEAST:
        return failed, bool(failed)
    if len(others) <= _FEW:
        times, chance = _FAR_OF_FEW, 1.0
    else:
        times = _FAR_SOON if late_s <= _SOON_S else math.inf
        share = (longest.asking_s + max(0.0, late_s)) / (waits[-1].ended_s - waits[0].began_s)
        length = _chance(longest.asking_s, others)
        # If the wait began with the fault, only its length is tested; otherwise also its distance from the fault.
        chance = min(1.0, share) * length if late_s <= _SOON_S else _both(min(1.0, share), length)
    if longest.asking_s >= times * most_s or chance <= _CHANCE:
        return [*failed, *episode], True
    return failed, bool(failed) or (len(others) >= _ENOUGH and chance >= _LIKELY)


def _gap_s(wait: _Wait, other: _Wait) -> float:
    return max(wait.ended_s - wait.asking_s - other.ended_s, other.ended_s - other.asking_s - wait.ended_s)


def _chance(longest_s: float, others_s: Sequence[float]) -> float:
    """Return the probability of a longest wait of this length under the distribution of the others.

    Long waits mostly have a power-law tail. The rank-weighted logarithms of the ratios of consecutive order statistics
    are then exponential (Renyi 1953; Hill 1975), so the first spacing is tested against the following ones. The start
    of the tail is unknown, so the minimum over several numbers of order statistics is used.
    """
    falling = sorted((max(wait_s, 1e-6) for wait_s in others_s), reverse=True)
    own = math.log(max(longest_s, 1e-6) / falling[0])
    if own <= 0:
        return 1.0
    spacings = [rank * math.log(longer / shorter) for rank, (longer, shorter) in enumerate(pairwise(falling), 1)]
    sums = list(accumulate(spacings))
    return min((1 + own / max(sums[reach - 1], 1e-9)) ** -reach for reach in _REACHES if reach <= len(sums))


def _both(first: float, second: float) -> float:
    """Return the combined p-value of two independent tests (Fisher 1932)."""
    product = first * second
    return product * (1 - math.log(product)) if product else 0.0


def _standing_apart(before: Sequence[_Wait], after: Sequence[_Wait]) -> list[_Wait]:
    """Return the waits after the fault that are outliers by their excess over the median wait."""
    usual_s = statistics.median(wait.asking_s for wait in before or after)
    most_s = max((wait.asking_s - usual_s for wait in before), default=0.0)
    limit_s = _FAR_BEYOND * most_s if len(before) >= _ENOUGH else math.inf
    by_length = sorted(after, key=lambda wait: wait.asking_s)
    for shorter, longer in pairwise([None, *by_length]):
        assert longer is not None
        shorter_s = max(most_s, shorter.asking_s - usual_s if shorter else 0.0)
        if longer.asking_s - usual_s > max(_APART * shorter_s, _LEAST_S):
            limit_s = min(limit_s, longer.asking_s - usual_s)
    return [wait for wait in after if wait.asking_s - usual_s >= max(limit_s, _LEAST_S)]


def timeline(
    name: str,
    fault_s: float,
    moments: Iterable[Moment],
    outages: Iterable[Outage],
    targets: Iterable[TargetRecovery] = (),
) -> Timeline:
    """Return the events in order of time, including the wait and the return of each client that was hit."""
    waits, moments = tuple(outages), list(moments)
    for outage in (one for one in waits if one.hit):
        source = f"client {outage.client}"
        moments.append(Moment(outage.stall_began_s, source, f"last answer before {outage.stall_s:.1f} s of waiting"))
        if outage.back_after_s is not None:
            moments.append(Moment(fault_s + outage.back_after_s, source, "is answered again"))
    return Timeline(name, fault_s, tuple(sorted(moments, key=lambda moment: moment.at_s)), waits, tuple(targets))
