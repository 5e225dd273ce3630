"""How clients saw a fail-over, and whether the copies of a journal show split brain or lost writes."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise, takewhile
from typing import NamedTuple

from strakes.base.units import counted
from strakes.targets.description import TargetRecovery

# An outlier is 3 times as long as the next shorter wait, or 10 times as long as any of 20 waits before the fault.
# In recorded fail-overs, the two ratios are at most 2.2 and 7 for unaffected clients, at least 12 and 64 for affected.
_APART, _FAR_BEYOND, _ENOUGH = 3.0, 10.0, 20
_LEAST_S = 0.5  # Minimum duration of an outage in seconds.
_CHANCE = 0.01  # Significance level: 1 % false positives among unaffected clients.
_REACHES = (3, 5, 10, 20)  # The tail of the distribution is estimated from the 3, 5, 10 and 20 longest waits.
# Three other waits are too few to estimate a tail. Then a wait is an outage at 20 times the longest other wait.
_FEW, _FAR_OF_FEW = 3, 20.0
_LEAST = 3  # Minimum number of other waits for a verdict. The longest of 4 is at the fault by chance in 25 % of cases.
# A wait that begins within 3 s of the fault is an outage at 5 times the longest other wait.
_SOON_S, _FAR_SOON = 3.0, 5.0
_LIKELY = 0.2  # A wait with a p-value above 20 % is no outage. Between 1 % and 20 %, the wait is undecided.
# Errors that a working file system may return.
_ANSWERS = frozenset(
    {"EACCES", "EDQUOT", "EEXIST", "EFBIG", "EISDIR", "EMLINK", "ENAMETOOLONG", "ENOENT", "ENOSPC", "ENOTDIR"}
    | {"ENOTEMPTY", "EPERM", "EXDEV"}
)
PENDING = "pending"  # Error of an operation that had not ended when the recording ended.


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client. Times are seconds since 1970. ``error``: errno name, empty for success."""

    begun_s: float
    ended_s: float
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        """Return whether the operation succeeded, so that its data must survive."""
        return not self.error

    @property
    def answered(self) -> bool:
        """Return whether the operation succeeded or failed with an error of a working file system, such as ENOENT."""
        return self.acknowledged or self.error in _ANSWERS


@dataclass(frozen=True)
class Moment:
    """An event that ``source`` observed, at ``at_s`` seconds since 1970."""

    at_s: float
    source: str
    text: str


@dataclass(frozen=True)
class Outage:
    """The effect of a fail-over on one client. ``hit``: the client was affected. ``known``: ``hit`` is certain."""

    client: str
    operations: int
    errors: int
    usual_s: float  # median duration of an operation in seconds
    stall_s: float
    stall_began_s: float
    back_after_s: float | None  # seconds from the fault to the end of the longest wait
    hit: bool = True
    known: bool = True


@dataclass(frozen=True)
class Timeline:
    """A fail-over as clients saw it. Times are seconds since 1970."""

    name: str
    fault_s: float
    moments: tuple[Moment, ...]
    outages: tuple[Outage, ...]
    targets: tuple[TargetRecovery, ...] = ()

    @property
    def back_after_s(self) -> tuple[float, float, float] | None:
        """Return the seconds until the first, median and last affected client resumed, or None if any did not."""
        hit = [outage for outage in self.outages if outage.hit]
        times = [outage.back_after_s for outage in hit if outage.back_after_s is not None]
        if not times or len(times) < len(hit):
            return None
        return min(times), statistics.median(times), max(times)

    @property
    def gone(self) -> tuple[str, ...]:
        """Return the affected clients that never got an answer again."""
        return tuple(outage.client for outage in self.outages if outage.hit and outage.back_after_s is None)


class _Wait(NamedTuple):
    began_s: float
    ended_s: float
    asking_s: float  # seconds during which a request was pending
    failures: int
    answered: bool  # False if the recording ended during the wait


def outage_of(client: str, operations: Sequence[ClientOperation], fault_s: float) -> Outage:
    """Return the effect of a fault on one client, which may be uncertain if the recording ends during a wait."""
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
    """Return each client's outage. The outage has no end if the client's records stop at the fault."""
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
    by_end = sorted(operations, key=lambda operation: operation.ended_s)
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
    # If no operation failed before the fault, every later failure counts as an outage.
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
    near_s = longest.ended_s + longest.asking_s, longest.ended_s - 2 * longest.asking_s
    episode = [wait for wait in far if wait.ended_s - wait.asking_s <= near_s[0] and wait.ended_s >= near_s[1]]
    habits = [wait for wait in far if wait not in episode and wait.asking_s * _APART >= longest.asking_s]
    if habits:
        # Similar waits recur. The longest wait is no outage if the log before the fault is shorter than two intervals.
        moments = sorted(wait.ended_s for wait in (longest, *habits))
        if fault_s - waits[0].began_s < 2 * max(later - earlier for earlier, later in pairwise(moments)):
            return failed, bool(failed)
    left_out = {*episode, *habits}
    others = [wait.asking_s for wait in waits if wait not in left_out]
    late_s = longest.ended_s - longest.asking_s - fault_s
    if len(others) < _LEAST:
        return failed, bool(failed)
    if len(others) <= _FEW:
        times, chance = _FAR_OF_FEW, 1.0
    else:
        times = _FAR_SOON if late_s <= _SOON_S else math.inf
        share = (longest.asking_s + max(0.0, late_s)) / (waits[-1].ended_s - waits[0].began_s)
        length = _chance(longest.asking_s, others)
        # For a late wait, combine the p-values of its length and of its distance from the fault (Fisher's method).
        chance = min(1.0, share) * length
        chance *= 1.0 if late_s <= _SOON_S else 1 - math.log(chance or 1.0)
    if longest.asking_s >= times * max(others, default=math.inf) or chance <= _CHANCE:
        return [*failed, *episode], True
    return failed, bool(failed) or (len(others) >= _ENOUGH and chance >= _LIKELY)


def _chance(longest_s: float, others_s: Sequence[float]) -> float:
    # Rank-weighted log ratios of order statistics are exponential in a power-law tail (Renyi 1953; Hill 1975).
    falling = sorted((max(wait_s, 1e-6) for wait_s in others_s), reverse=True)
    own = math.log(max(longest_s, 1e-6) / falling[0])
    if own <= 0:
        return 1.0
    spacings = [rank * math.log(longer / shorter) for rank, (longer, shorter) in enumerate(pairwise(falling), 1)]
    sums = list(accumulate(spacings))
    return min((1 + own / max(sums[reach - 1], 1e-9)) ** -reach for reach in _REACHES if reach <= len(sums))


def _standing_apart(before: Sequence[_Wait], after: Sequence[_Wait]) -> list[_Wait]:
    usual_s = statistics.median(wait.asking_s for wait in before or after)
    most_s = max((wait.asking_s - usual_s for wait in before), default=0.0)
    limit_s = _FAR_BEYOND * most_s if len(before) >= _ENOUGH else math.inf
    for shorter, longer in pairwise([None, *sorted(after, key=lambda wait: wait.asking_s)]):
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
    """Return the timeline of a fail-over."""
    waits, moments = tuple(outages), list(moments)
    for outage in (one for one in waits if one.hit):
        source = f"client {outage.client}"
        moments.append(Moment(outage.stall_began_s, source, f"last answer before {outage.stall_s:.1f} s of waiting"))
        if outage.back_after_s is not None:
            moments.append(Moment(fault_s + outage.back_after_s, source, "is answered again"))
    return Timeline(name, fault_s, tuple(sorted(moments, key=lambda moment: moment.at_s)), waits, tuple(targets))


_START = "start"  # client name in the record that a service writes when it starts


@dataclass(frozen=True, order=True)
class JournalRecord:
    """One line of a journal. A service increments ``term`` at each start."""

    term: int
    node: str
    client: str
    number: int


@dataclass(frozen=True)
class Acknowledgement:
    """The acknowledgement of a record. Times of request and answer are seconds since 1970."""

    record: JournalRecord
    sent_s: float
    told_s: float


@dataclass(frozen=True)
class SplitBrainJudgement:
    """The result of comparing the copies of a journal."""

    acknowledged: int
    split_brain: tuple[str, ...] = ()
    lost: tuple[JournalRecord, ...] = ()  # acknowledged, but not in the current copy
    twice: tuple[JournalRecord, ...] = ()
    unanswered: int = 0

    @property
    def good(self) -> bool:
        """Return whether there is no evidence of split brain, and no record is lost or repeated."""
        return not (self.split_brain or self.lost or self.twice)


def judge(
    copies: Mapping[str, Sequence[JournalRecord]], acknowledged: Sequence[Acknowledgement], in_use: str
) -> SplitBrainJudgement:
    """Compare the copies of a journal. ``copies``: records of each node, in order. ``in_use``: serving node.

    A copy that lacks the last records is outdated, which is no split brain. Unacknowledged last records are harmless.
    """
    told = {one.record for one in acknowledged}
    served: dict[int, set[str]] = {}
    for one in chain(told, *copies.values()):
        served.setdefault(one.term, set()).add(one.node)
    rivals = [
        f"in term {term} both {' and '.join(sorted(nodes))} served"
        for term, nodes in sorted(served.items())
        if len(nodes) > 1
    ]
    current = copies[in_use]
    counted = Counter((one.client, one.number) for one in current if one.client != _START)
    return SplitBrainJudgement(
        acknowledged=len(acknowledged),
        split_brain=(*rivals, *_stale_writers(copies), *_stale_answers(acknowledged), *_forked(copies, told)),
        lost=tuple(sorted(told - set(current))),
        twice=tuple(dict.fromkeys(one for one in current if counted[one.client, one.number] > 1)),
        unanswered=sum(one.client != _START and one not in told for one in current),
    )


def _stale_writers(copies: Mapping[str, Sequence[JournalRecord]]) -> list[str]:
    return [
        f"in the copy of {name}, {later.node} wrote in term {later.term} after {earlier.node} in term {earlier.term}"
        for name, records in copies.items()
        for earlier, later in pairwise(records)
        if later.term < earlier.term
    ]


def _stale_answers(acknowledged: Sequence[Acknowledgement]) -> list[str]:
    first_told: dict[int, float] = {}
    for one in acknowledged:
        first_told[one.record.term] = min(one.told_s, first_told.get(one.record.term, one.told_s))
    found = {}
    for one in acknowledged:
        newer = [term for term, at in first_told.items() if term > one.record.term and at < one.sent_s]
        if newer:
            found[one.record.term] = (
                f"{one.record.node} answered in term {one.record.term} after term {min(newer)} had begun to answer"
            )
    return list(found.values())


def _forked(copies: Mapping[str, Sequence[JournalRecord]], told: set[JournalRecord]) -> list[str]:
    common = sum(1 for _ in takewhile(lambda line: len(set(line)) == 1, zip(*copies.values(), strict=False)))
    ends = {name: [one for one in records[common:] if one in told] for name, records in copies.items()}
    holding = sorted(name for name, records in ends.items() if records)
    if len(holding) < 2:
        return []
    names = " and ".join(holding)
    after = counted(common, "record")
    return [f"the copies of {names} diverged after {after}, and clients got acknowledgements of records in both"]
