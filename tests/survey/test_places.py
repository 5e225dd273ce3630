"""Directories with layouts, which are used only if the layout is exact; counters read around visits at little cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.model.cell import Cell
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.studies.measure_directories import LayoutDirectories
from strakes.studies.measure_watch import TargetWatch
from strakes.targets.calls import mount_of
from strakes.targets.description import Layout, Observation
from strakes.targets.local import LocalTarget

PLAN = Plan(1, (MetadataPhase("create", "file-create", "unique", 1),))


def cell(layout: Layout | None) -> Cell:
    return Cell("striping", str(layout), {}, PLAN, (), layout=layout)


class Clamping(LocalTarget):
    """A file system that gives at most four stripes, as Lustre with four targets does, but refuses exactly five."""

    def set_layout(self, directory: Path, wanted: Layout) -> Layout:
        if wanted.stripe_count == 5:
            raise self._unsupported("five")
        return Layout(wanted.stripe_size_bytes, min(4, wanted.stripe_count or 1))

    def observe(self) -> Observation:
        return {}


class Counting(LocalTarget):
    """A file system whose server counts one more request at each reading."""

    looks = 0

    def observe(self) -> Observation:
        self.looks += 1
        return {"mds": {"md.requests": float(self.looks), "other": 1.0}}


@pytest.fixture
def clamping(tmp_path: Path) -> Clamping:
    return Clamping(tmp_path, mount_of(tmp_path))


def test_plans_run_only_in_directories_with_exactly_their_layout(clamping: Clamping, tmp_path: Path) -> None:
    good, clamped, refused = Layout(65536, 4), Layout(65536, 99), Layout(65536, 5)
    places = LayoutDirectories(tmp_path, clamping)
    found = places.make([cell(None), cell(good), cell(clamped), cell(good), cell(refused)])
    assert [(one.wanted, one.differences) for one in found[:2]] == [
        (good, ()),
        (clamped, ("stripe count 4 instead of 99",)),
    ]
    assert found[2].given is None and found[2].differences
    assert places.of(None) == tmp_path
    assert places.of(clamped) is None and places.of(refused) is None
    place = places.of(good)
    assert place is not None and list(tmp_path.iterdir()) == [place]
    assert [one.name for one in place.iterdir()] == [".strakes-marker"]
    assert places.make([cell(good)]) == []


def test_the_difference_between_two_readings_is_stored_with_the_visit(tmp_path: Path) -> None:
    counting = Counting(tmp_path, mount_of(tmp_path))
    watch = TargetWatch(counting)
    for looks in (2, 3):
        watch.begin()
        assert watch.end() == ({"mds": {"md.requests": 1.0}}, ())
        # The reading after one visit is also the one before the next.
        assert counting.looks == looks


def test_a_target_without_counters_gives_empty_readings(clamping: Clamping) -> None:
    watch = TargetWatch(clamping)
    for _ in range(2):
        watch.begin()
        assert watch.end() == ({}, ())
