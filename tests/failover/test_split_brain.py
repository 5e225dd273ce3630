"""Split brain is detected exactly if both sides served, on randomly simulated pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from strakes.failover.timeline import Acknowledgement, JournalRecord, judge

A, B = "mds-a", "mds-b"


@dataclass
class Pretended:
    """A simulated replicated pair; ``told`` has the records acknowledged to the client."""

    serving: str = A
    term: int = 0
    clock_s: float = 0.0
    number: int = 0
    copies: dict[str, list[JournalRecord]] = field(default_factory=lambda: {A: [], B: []})
    told: list[Acknowledgement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin(self.serving, (A, B))

    def begin(self, node: str, on: tuple[str, ...]) -> None:
        """Start the service on a node with the next term of its copy, and record that on the copies ``on``."""
        term = max((one.term for one in self.copies[node]), default=0) + 1
        self.keep(JournalRecord(term, node, "start", 0), on)
        self.serving, self.term = node, term

    def keep(self, record: JournalRecord, on: tuple[str, ...]) -> None:
        for node in on:
            self.copies[node].append(record)

    def ask(self, on: tuple[str, ...], *, tell: bool = True, node: str = "", term: int = 0) -> None:
        self.number += 1
        record = JournalRecord(term or self.term, node or self.serving, "c", self.number)
        self.keep(record, on)
        self.clock_s += 1.0
        if tell:
            self.told.append(Acknowledgement(record, self.clock_s, self.clock_s + 0.1))

    def fail_over(self, unheard: int) -> None:
        """Let the serving node die after ``unheard`` unacknowledged records on its own copy; its peer serves alone."""
        dead, other = (A, B) if self.serving == A else (B, A)
        for _ in range(unheard):
            self.ask((dead,), tell=False)
        self.begin(other, (other,))

    def resynchronise(self) -> None:
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
def test_a_pair_with_fencing_loses_no_record_and_has_no_split_brain(story: list[tuple[int, int, int, bool]]) -> None:
    pair = played(story)
    found = judge(pair.copies, pair.told, pair.serving)
    assert found.good and found.acknowledged == len(pair.told)


@given(steps, st.integers(1, 5), st.integers(1, 5))
def test_split_brain_is_found_if_both_serve(story: list[tuple[int, int, int, bool]], first: int, second: int) -> None:
    pair = played([*story[:-1], *((*one[:3], True) for one in story[-1:])])
    old, old_term = pair.serving, pair.term
    # Without fencing the peer starts while the old node continues, each on its own copy.
    other = B if old == A else A
    pair.begin(other, (other,))
    for _ in range(first):
        pair.ask((other,))
    for _ in range(second):
        pair.ask((old,), node=old, term=old_term)
    assert judge(pair.copies, pair.told, other).split_brain and judge(pair.copies, pair.told, old).split_brain


@given(steps, st.integers(1, 5))
def test_split_brain_is_found_if_two_nodes_write_to_a_shared_device(
    story: list[tuple[int, int, int, bool]], late: int
) -> None:
    pair = played(story)
    shared = list(pair.copies[pair.serving])
    newer = JournalRecord(pair.term + 1, B if pair.serving == A else A, "start", 0)
    for number in range(late):
        shared += [newer, JournalRecord(pair.term, pair.serving, "c", 1000 + number)]
    assert judge({A: shared, B: shared}, pair.told, pair.serving).split_brain


@given(steps, st.data())
def test_missing_and_repeated_acknowledged_records_are_named(
    story: list[tuple[int, int, int, bool]], data: st.DataObject
) -> None:
    pair = played([(1, 0, 1, True), *story])
    kept = pair.copies[pair.serving]
    gone = data.draw(st.sampled_from([one.record for one in pair.told]))
    kept.remove(gone)
    assert judge(pair.copies, pair.told, pair.serving).lost == (gone,)
    kept += [pair.told[-1].record] * 3
    assert pair.told[-1].record in judge(pair.copies, pair.told, pair.serving).twice


def test_a_delayed_answer_from_before_the_take_over_is_no_split_brain() -> None:
    late, new = JournalRecord(1, A, "c", 1), JournalRecord(2, B, "c", 2)
    told = [Acknowledgement(late, 1.0, 9.0), Acknowledgement(new, 5.0, 5.1)]
    copies = {A: [late], B: [late, new]}
    assert judge(copies, told, B).good
    stale = [Acknowledgement(late, 6.0, 9.0), told[1]]
    assert judge(copies, stale, B).split_brain == (f"{A} answered in term 1 after term 2 had begun to answer",)


def test_unacknowledged_records_are_counted_and_are_no_fault() -> None:
    records = [JournalRecord(1, A, "start", 0), JournalRecord(1, A, "c", 1)]
    found = judge({A: records, B: records[:1]}, [], A)
    assert found.good and found.unanswered == 1
