"""Detection of targets that differ from the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strakes.base.units import GIB
from strakes.targets.description import Description, StorageTarget
from strakes.targets.knowledge import unlike_targets

ALIKE = tuple(
    StorageTarget(f"ost{index}", index, "oss", "active", 100 * GIB, 60 * GIB, 1000, 900) for index in range(4)
)


ODD = replace(ALIKE[0], name="odd")


def unlike(odd: StorageTarget) -> tuple[str, ...]:
    return unlike_targets(Description("fs", "1", data_targets=(*ALIKE, odd)))


def test_similar_targets_are_not_mentioned() -> None:
    assert unlike_targets(Description("fs", "1", data_targets=ALIKE)) == ()
    assert unlike(replace(ODD, free_bytes=50 * GIB, total_bytes=105 * GIB)) == ()
    assert unlike(replace(ODD, state="")) == () == unlike_targets(Description("tmpfs", ""))


@pytest.mark.parametrize(
    ("odd", "line"),
    [
        ({"free_bytes": 2 * GIB}, "odd is full: 2 GiB of 100 GiB are free."),
        ({"free_inodes": 10}, "odd is out of inodes: 10 of 1,000 are free."),
        ({"state": "inactive", "total_bytes": 0}, "odd is not fully usable: inactive."),
        ({"total_bytes": 50 * GIB, "free_bytes": 30 * GIB}, "odd has 50 GiB, but other targets have 100 GiB."),
        ({"free_bytes": 30 * GIB}, "odd is 70% full, but other targets are 40% full: new files are not spread evenly."),
        ({"free_bytes": 90 * GIB}, "odd is 10% full, but other targets are 40% full: new files are not spread evenly."),
    ],
)
def test_a_target_that_differs_is_named_with_the_difference(odd: dict[str, Any], line: str) -> None:
    assert unlike(replace(ODD, **odd)) == (line,)


def test_a_target_without_sizes_is_named_only_if_others_have_sizes() -> None:
    assert unlike(replace(ODD, total_bytes=0, free_bytes=0)) == ("odd did not report its free space.",)
    silent = tuple(replace(target, total_bytes=0, free_bytes=0) for target in ALIKE)
    assert unlike_targets(Description("fs", "1", data_targets=silent)) == ()


def test_metadata_targets_are_compared_among_themselves() -> None:
    metadata = (
        StorageTarget("mdt0", 0, "mds", "active", GIB, GIB // 2, 10, 9),
        StorageTarget("mdt1", 1, "mds", "active", GIB, 0, 10, 9),
    )
    assert unlike_targets(Description("fs", "1", data_targets=ALIKE, metadata_targets=metadata)) == (
        "mdt1 is full: 0 B of 1 GiB are free.",
    )


def test_two_targets_are_compared_with_each_other() -> None:
    emptier, fuller = replace(ODD, name="a", free_bytes=60 * GIB), replace(ODD, name="b", free_bytes=20 * GIB)
    lines = unlike_targets(Description("fs", "1", data_targets=(emptier, fuller)))
    expected = ["a is 40% full, but other targets are 80% full", "b is 80% full, but other targets are 40% full"]
    assert [line.partition(":")[0] for line in lines] == expected
