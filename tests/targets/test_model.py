"""Differences of counters, layouts and placements, and the defaults of a plain target."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.targets.description import (
    Layout,
    LayoutComponent,
    Placement,
    difference,
    disturbed,
    layout_differences,
    placement_differences,
)
from strakes.targets.registry import detect

Counters = dict[str, dict[str, float]]


@pytest.mark.parametrize(
    ("before", "after", "counted", "told"),
    [
        ({"a": {}, "b": {"x": 1.0}}, {"a": {"x": 3.0}, "b": {"x": 1.0}}, {"a": {"x": 3.0}, "b": {"x": 0.0}}, None),
        ({"b": {"x": 1.0}}, {"b": {"x": 1.0, "y": 2.0}}, {"b": {"x": 0.0, "y": 2.0}}, []),
        (
            {"a": {"x": 5.0}, "b": {"x": 1.0}},
            {"a": {"x": 2.0}, "b": {"x": 4.0}},
            {"b": {"x": 3.0}},
            ["a: its counters were cleared"],
        ),
        # A new start time reveals that counters were cleared, even if they exceed their old values again.
        (
            {"a": {"x": 5.0, "since_unix_s": 1.0}},
            {"a": {"x": 9.0, "since_unix_s": 2.0}},
            {},
            ["a: its counters were cleared"],
        ),
        ({"a": {"x": 1.0}}, {"b": {"x": 1.0}}, {}, ["a: no counters from after", "b: no counters from before"]),
    ],
)
def test_new_cleared_and_missing_counters_are_told_apart(
    before: Counters, after: Counters, counted: Counters, told: list[str] | None
) -> None:
    assert difference(before, after) == counted
    if told is not None:
        lines = zip(disturbed(before, after), told, strict=True)
        assert all(line.startswith(begin) for line, begin in lines)


def test_counters_of_the_client_survive_a_restart_of_the_server() -> None:
    before = {"a": {"x": 5.0, "since_unix_s": 100.0, "client.x": 1.0, "client.since_unix_s": 7.0}}
    after = {"a": {"x": 1.0, "since_unix_s": 200.0, "client.x": 3.0, "client.since_unix_s": 7.0}}
    assert difference(before, after) == {"a": {"client.x": 2.0}}
    assert disturbed(before, after) == (
        "a: its counters were cleared or the server was restarted during the measurement",
    )
    assert "the client's" in disturbed({"a": {"client.x": 2.0}}, {"a": {"client.x": 1.0}})[0]


@pytest.mark.parametrize("start", [{}, {"since_unix_s": 7.0}])
def test_counters_that_were_not_read_were_not_cleared_and_count_for_nothing(start: dict[str, float]) -> None:
    seen = {"a": {"x": 5.0, "client.x": 1.0, **start}}
    unseen: Counters = {"a": {"client.x": 1.0}, "host": {}}
    for before, after, when in ((seen, unseen, "after"), (unseen, seen, "before")):
        assert difference(before, after) == {"a": {"client.x": 0.0}}
        assert disturbed(before, after) == (f"a: no counters from {when} the measurement",)
    assert disturbed(unseen, unseen) == ()


def test_values_that_were_not_requested_do_not_differ() -> None:
    given = Layout(1 << 20, 4, 2, "fast", "raid0", targets=(2, 3, 0, 1))
    assert layout_differences(Layout(), given) == () and layout_differences(Layout(stripe_count=-1), given) == ()
    assert layout_differences(given, given) == ()


def test_every_value_that_differs_is_named() -> None:
    wanted = Layout(4 << 20, 8, 0, "slow", "overstriped", targets=(0, 1))
    assert layout_differences(wanted, Layout(1 << 20, 4, None, "", "raid0", targets=(2,))) == (
        "stripe count 4 instead of 8",
        "stripe size 1048576 instead of 4194304",
        "first target not reported instead of 0",
        "pool none instead of slow",
        "pattern raid0 instead of overstriped",
        "targets 2 instead of 0,1",
    )


def test_components_are_compared_one_by_one() -> None:
    def parts(*counts: int) -> Layout:
        each = [LayoutComponent(i, i + 1, Layout(stripe_count=count)) for i, count in enumerate(counts)]
        return Layout(components=tuple(each))

    assert layout_differences(parts(1, 4), parts(1, 4)) == ()
    assert layout_differences(parts(1, 9), parts(1, 4)) == ("component 2: stripe count 4 instead of 9",)
    assert layout_differences(parts(1), parts(1, 4)) == ("components 0-1, 1-2 instead of 0-1",)
    assert layout_differences(parts(1), Layout(stripe_count=1)) == ("components none instead of 0-1",)


def test_placements_are_compared_in_the_requested_values() -> None:
    given = Placement("automatic", (1, 2), 2, "crush")
    assert placement_differences(Placement("automatic", count=-1), given) == ()
    expected = ("metadata targets 1,2 instead of 0", "count 2 instead of 4", "subdirectories do not inherit it")
    assert placement_differences(Placement("automatic", (0,), 4, inherited=True), given) == expected


def test_a_plain_directory_can_be_made_anywhere(tmp_path: Path) -> None:
    assert detect(tmp_path).make_directory(tmp_path, "d", Placement("inherit")) == Placement("inherit")
    assert (tmp_path / "d").is_dir()
