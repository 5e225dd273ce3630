"""Split brain is found wherever two sides served, and nowhere else: on pairs made up at random."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from strakes.failover.split_brain import Acknowledgement, JournalRecord, judge

A, B = "mds-a", "mds-b"


@dataclass
class Pretended:
    """A replicated pair: what is done is on both copies while they are connected, and told to the client when it is."""

    serving: str = A
    term: int = 0
    clock_s: float = 0.0
    number: int = 0
    copies: dict[str, list[JournalRecord]] = field(default_factory=lambda: {A: [], B: []})
    told: list[Acknowledgement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin(self.serving, (A, B))

    def begin(self, node: str, on: tuple[str, ...]) -> None:
        """A service starts: its term follows from its own copy."""
        term = max((one.term for one in self.copies[node]), default=0) + 1
        self.keep(JournalRecord(term, node, "start", 0), on)
        self.serving, self.term = node, term

    def keep(self, record: JournalRecord, on: tuple[str, ...]) -> None:
        for node in on:
            self.copies[node].append(record)

    def ask(self, on: tuple[str, ...], *, tell: bool = True, node: str = "", term: int = 0) -> None:
        """A client sends a record, which is kept, and is told so."""
        self.number += 1
        record = JournalRecord(term or self.term, node or self.serving, "c", self.number)
        self.keep(record, on)
        self.clock_s += 1.0
        if tell:
            self.told.append(Acknowledgement(record, self.clock_s, self.clock_s + 0.1))

    def fail_over(self, unheard: int) -> None:
        """The one that serves dies, at its end with records on its own disk that nobody was told of; the other one goes on alone."""
        dead, other = (A, B) if self.serving == A else (B, A)
        for _ in range(unheard):
            self.ask((dead,), tell=False)
        self.begin(other, (other,))

    def resynchronise(self) -> None:
        """The copy of the one that serves is the good one."""
        other = B if self.serving == A else A
        self.copies[other] = list(self.copies[self.serving])


steps = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=6)


def played(story: list[tuple[int, int, int, bool]]) -> Pretended:
    pair = Pretended()
    for before, unheard, alone, back in story:
        for _ in range(before):
            pair.ask((A, B))
        pair.fail_over(unheard)
        for _ in range(alone):
            pair.ask((pair.serving,))
        if not back:
            break
        pair.resynchronise()
    return pair


@given(steps)
def test_a_pair_that_fences_loses_nothing_and_is_never_accused(story: list[tuple[int, int, int, bool]]) -> None:
    pair = played(story)
    found = judge(pair.copies, pair.told, pair.serving)
    assert found.good and found.acknowledged == len(pair.told)


@given(steps, st.integers(1, 5), st.integers(1, 5))
def test_two_sides_that_both_serve_are_found(story: list[tuple[int, int, int, bool]], first: int, second: int) -> None:
    pair = played([*story[:-1], *((*one[:3], True) for one in story[-1:])])
    old, old_term = pair.serving, pair.term
    # No fencing: the other one begins while the old one goes on, each on its own copy.
    other = B if old == A else A
    pair.begin(other, (other,))
    for _ in range(first):
        pair.ask((other,))
    for _ in range(second):
        pair.ask((old,), node=old, term=old_term)
    assert judge(pair.copies, pair.told, other).split_brain
    assert judge(pair.copies, pair.told, old).split_brain


@given(steps, st.integers(1, 5))
def test_two_writers_of_one_shared_device_are_found(story: list[tuple[int, int, int, bool]], late: int) -> None:
    pair = played(story)
    shared = list(pair.copies[pair.serving])
    newer = JournalRecord(pair.term + 1, B if pair.serving == A else A, "start", 0)
    for number in range(late):
        shared += [newer, JournalRecord(pair.term, pair.serving, "c", 1000 + number)]
    assert judge({A: shared, B: shared}, pair.told, pair.serving).split_brain


@given(steps, st.data())
def test_a_record_that_was_told_of_and_is_not_there_is_named(
    story: list[tuple[int, int, int, bool]], data: st.DataObject
) -> None:
    pair = played([(1, 0, 1, True), *story])
    kept = pair.copies[pair.serving]
    gone = data.draw(st.sampled_from([one.record for one in pair.told]))
    kept.remove(gone)
    assert judge(pair.copies, pair.told, pair.serving).lost == (gone,)
    kept += [pair.told[-1].record] * 3
    assert pair.told[-1].record in judge(pair.copies, pair.told, pair.serving).twice


def test_an_answer_that_was_on_its_way_when_the_other_began_accuses_nobody() -> None:
    late, new = JournalRecord(1, A, "c", 1), JournalRecord(2, B, "c", 2)
    told = [Acknowledgement(late, 1.0, 9.0), Acknowledgement(new, 5.0, 5.1)]
    copies = {A: [late], B: [late, new]}
    assert judge(copies, told, B).good
    stale = [Acknowledgement(late, 6.0, 9.0), told[1]]
    assert judge(copies, stale, B).split_brain == (f"{A} answered in term 1 although term 2 had begun to answer",)


def test_records_that_nobody_was_told_of_are_counted_and_are_no_fault() -> None:
    records = [JournalRecord(1, A, "start", 0), JournalRecord(1, A, "c", 1)]
    found = judge({A: records, B: records[:1]}, [], A)
    assert found.good and found.unanswered == 1
