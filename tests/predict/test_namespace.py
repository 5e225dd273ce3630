"""Directories shared among metadata targets: nothing lost, nothing twice, loads even, links and mounts not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.errors import BadInputError
from strakes.predict.namespace import Tally, commands, place, targets_needed, walk


def tree(*sizes: int) -> Tally:
    parts = [Tally(Path(f"/d/{number}"), size, size) for number, size in enumerate(sizes)]
    return Tally(Path("/d"), sum(sizes) + len(sizes), sum(sizes), parts)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1, 8))
def test_every_directory_is_on_one_target_and_loads_add_up(sizes: list[int], targets: int) -> None:
    plan = place(tree(*sizes), targets)
    placed = [path for share in plan.shares for path in share.directories]
    assert sorted(placed) == sorted(Path(f"/d/{number}") for number in range(len(sizes)))
    assert sum(share.load for share in plan.shares) == pytest.approx(1)
    # No worse than a fair share and the largest directory together.
    assert plan.most <= 1 / targets + max([*sizes, 1]) / max(1, sum(sizes)) + 1e-9


def test_a_directory_larger_than_a_fair_share_is_taken_apart() -> None:
    large = Tally(Path("/d/large"), 300, 300, [Tally(Path(f"/d/large/{name}"), 100, 100) for name in "abc"])
    plan = place(Tally(Path("/d"), 400, 400, [large, Tally(Path("/d/small"), 100, 100)]), 2)
    assert plan.most == pytest.approx(0.5)
    assert Path("/d/large") not in [path for share in plan.shares for path in share.directories]


def test_what_changes_counts_and_not_what_lies_there() -> None:
    quiet, lively = Tally(Path("/d/quiet"), 1_000_000, 0), Tally(Path("/d/lively"), 100, 100)
    other = Tally(Path("/d/other"), 100, 90)
    plan = place(Tally(Path("/d"), 1_000_200, 190, [quiet, lively, other]), 2)
    assert plan.most == pytest.approx(100 / 190)


def test_as_many_targets_as_are_needed_and_none_where_one_directory_is_too_much() -> None:
    even = tree(*[100] * 16)
    plan = targets_needed(even, 40_000, 15_000)
    assert plan is not None and len(plan.shares) == 4
    assert targets_needed(tree(1000, 1), 40_000, 15_000) is None


def test_a_walk_follows_no_link_and_counts_what_changed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "deep" / "deeper").mkdir(parents=True)
        for number in range(5):
            (tmp_path / name / "deep" / "deeper" / str(number)).touch()
    old = tmp_path / "b" / "deep" / "deeper" / "0"
    os.utime(old, (0, 0))
    (tmp_path / "link").symlink_to("/")
    tally, whole = walk(tmp_path, since_s=86400.0, limit_s=60)
    assert whole and tally.entries == 3 + 2 * (1 + 1 + 5)
    assert {part.path.name: part.entries for part in tally.parts} == {"a": 7, "b": 7}
    late, whole = walk(tmp_path, since_s=86400.0, limit_s=-1)
    assert not whole and late.entries == 0
    with pytest.raises(BadInputError, match="not a directory"):
        walk(old, since_s=1, limit_s=1)
    with pytest.raises(BadInputError, match="cannot be read"):
        walk(tmp_path / "missing", since_s=1, limit_s=1)


def test_commands_place_every_directory_where_the_file_system_can() -> None:
    plan = place(tree(3, 2, 1), 2)
    assert ("setfattr", "-n", "ceph.dir.pin", "-v", "0", "/d/0") in commands(plan, "ceph")
    assert ("lfs", "migrate", "-m", "1", "/d/1") in commands(plan, "lustre")
    assert len(commands(plan, "lustre")) == 3 and commands(plan, "xfs") == []
