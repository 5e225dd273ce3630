"""Detect split brain and lost writes in the copies of a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile

from strakes.base.units import counted

_START = "start"  # client name in the record that a starting service writes


@dataclass(frozen=True, order=True)
class JournalRecord:
    """One line of a journal. A service increments ``term`` at each start."""

    term: int
    node: str
    client: str
    number: int


@dataclass(frozen=True)
class Acknowledgement:
    """The acknowledgement of a record, with the times of request and answer in seconds since 1970."""

    record: JournalRecord
    sent_s: float
    told_s: float


@dataclass(frozen=True)
class SplitBrainJudgement:
    """The result of comparing the copies of a journal."""

    acknowledged: int
    split_brain: tuple[str, ...] = ()
    lost: tuple[JournalRecord, ...] = ()  # acknowledged, but missing in the copy in use
    twice: tuple[JournalRecord, ...] = ()
    unanswered: int = 0

    @property
    def good(self) -> bool:
        """Return whether there is no evidence of split brain, and no record is lost or repeated."""
        return not (self.split_brain or self.lost or self.twice)


def judge(
    copies: Mapping[str, Sequence[JournalRecord]], acknowledged: Sequence[Acknowledgement], in_use: str
) -> SplitBrainJudgement:
    """Compare the copies of a journal. ``copies``: node -> its records in order. ``in_use``: node that serves now.

    A copy that ends early is only outdated, and records at the end without acknowledgements are harmless.
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
