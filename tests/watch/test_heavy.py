"""Counting in bounded memory: whoever has more than his share is never lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from strakes.watch.heavy import COUNTERS, HeavyJobs, SpaceSaving


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), min_size=1, max_size=300))
def test_whoever_has_more_than_a_share_is_counted_and_never_too_low(stream: list[tuple[int, int]]) -> None:
    counted, truth = SpaceSaving(8), Counter[str]()
    for key, weight in stream:
        counted.add(str(key), weight)
        truth[str(key)] += weight
    total = sum(truth.values())
    top = {key: (high - error, high) for key, high, error in counted.top(8)}
    assert len(counted) <= 8
    for name, count in truth.items():
        if count > total / 8:
            assert name in top
        if name in top:
            assert top[name][0] <= count <= top[name][1]


def test_ten_thousand_jobs_need_no_more_memory_than_few() -> None:
    heavy = HeavyJobs("operations")
    for window in range(10):
        heavy.add(
            20.0 * window, {f"job{number}": float(window * (1 + (number == 77) * 1e6)) for number in range(10_000)}
        )
    assert len(heavy.top) == 20 and heavy.top[0][0] == "job77"
    assert len(heavy._counted) <= COUNTERS


def test_an_everyday_job_is_not_named_and_a_new_one_is() -> None:
    heavy = HeavyJobs("operations")
    events = []
    for window in range(30):
        counts = {"daily": 1000.0 * window}
        if window >= 15:
            counts["new"] = 3000.0 * (min(window, 22) - 14)
        events += heavy.add(20.0 * window, counts)
    assert [event.subject for event in events] == ["new", "new"]
    assert events[0].ended_s is None and events[1].ended_s is not None
