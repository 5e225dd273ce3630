"""A target is slow if it takes longer for the same kind of requests. A few long requests do not make it slow."""

from __future__ import annotations

import pytest

from strakes.watch.reading import OfKind, Work
from strakes.watch.slow import SlowTargets
from strakes.watch.values import WatchEvent


def of_kinds(**kinds: OfKind) -> Work:
    return Work(sum(kind.requests for kind in kinds.values()), sum(kind.busy_s for kind in kinds.values()), kinds=kinds)


def events_of(group: SlowTargets, *windows: dict[str, Work]) -> list[WatchEvent]:
    return [event for number, work in enumerate(windows) for event in group.add(20.0 * number, work)]


def in_each_window(kinds: dict[str, OfKind], windows: int) -> list[Work]:
    return [
        of_kinds(
            **{
                name: OfKind(
                    number * kind.requests, number * kind.busy_s, number * kind.squares_s2, number * kind.moved
                )
                for name, kind in kinds.items()
            }
        )
        for number in range(windows)
    ]


def slow_among(one: dict[str, OfKind], other: dict[str, OfKind]) -> list[str]:
    windows = [
        {"MDT0000": ours, "MDT0001": theirs}
        for ours, theirs in zip(in_each_window(one, 12), in_each_window(other, 12), strict=True)
    ]
    return [event.subject for event in events_of(SlowTargets("metadata target"), *windows)]


def test_a_target_with_another_mix_of_requests_is_not_slow() -> None:
    opens = OfKind(100, 0.1, 0.0002)
    assert slow_among({"open": opens, "sync": OfKind(9, 0.9, 0.1)}, {"open": opens, "sync": OfKind(1, 0.1, 0.01)}) == []
    assert slow_among({"sync": OfKind(9, 0.9, 0.1)}, {"open": opens}) == []
    reset = of_kinds(open=OfKind(9, 0.01), close=OfKind(0, 0.0))  # no request of a kind since the reset
    assert set(reset.since(of_kinds(open=opens)).kinds) == {"open"}


@pytest.mark.parametrize(("usual_s", "slow"), [(0.0007, ["metadata target MDT0000"]), (0.0001, [])])
def test_only_targets_that_take_at_least_1_ms_for_a_request_are_slow(usual_s: float, slow: list[str]) -> None:
    usual, six = (OfKind(100, 100 * took_s, 101 * took_s**2) for took_s in (usual_s, 6 * usual_s))
    assert slow_among({"open": six}, {"open": usual}) == slow


def judged(*took_s: float) -> list[bool]:
    """Return True for an event that begins a slow time of OST0000, and False for its end; ``took_s``: s per request."""
    totals, windows = [0.0], []
    for each in took_s:
        totals.append(totals[-1] + 100 * each)
    for number, total_s in enumerate(totals):
        peers = {f"OST000{peer}": Work(100.0 * number, 0.4 * number) for peer in (1, 2, 3)}
        windows.append({"OST0000": Work(100.0 * number, total_s), **peers})
    events = events_of(SlowTargets("data target"), *windows)
    assert {event.subject for event in events} <= {"data target OST0000"}
    return [event.ended_s is None for event in events]


@pytest.mark.parametrize("first", [(), (0.004,)])
def test_a_target_that_is_slow_from_the_beginning_or_soon_after_it_is_reported(first: tuple[float, ...]) -> None:
    assert judged(*first, *[0.03] * 9) == [True]


@pytest.mark.parametrize(("times_the_bytes", "slow"), [(8, []), (1, ["metadata target MDT0000"])])
def test_requests_that_take_longer_in_proportion_make_no_slow_target(times_the_bytes: float, slow: list[str]) -> None:
    usual, large = OfKind(100, 0.6, 0.01, 6e7), OfKind(100, 3.6, 0.4, 6e7 * times_the_bytes)
    assert slow_among({"write": large}, {"write": usual}) == slow


def test_one_long_request_among_few_makes_no_slow_target() -> None:
    few = {"open": OfKind(9, 0.009, 0.00001), "mkdir": OfKind(2, 0.2, 0.039)}
    assert slow_among(few, {"open": OfKind(50, 0.05, 0.0001), "mkdir": OfKind(9, 0.05, 0.001)}) == []
