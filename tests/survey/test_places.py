"""Directories of plans: their layout and placement, those kept for several visits, and counters read around visits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from strakes.model.cell import Cell, Place
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.records import CellSkipped, DirectoryPlaced, RunEvent
from strakes.studies.measure_directories import LayoutDirectories, prepare
from strakes.studies.measure_watch import TargetWatch
from strakes.survey.placing import place_cells
from strakes.targets.calls import call, mount_of
from strakes.targets.description import Layout, Observation, Placement
from strakes.targets.local import LocalTarget

PLAN = Plan(1, (MetadataPhase("create", "file-create", "unique", 1),))


def cell(layout: Layout | None) -> Cell:
    return Cell("striping", str(layout), {}, PLAN, (), layout=layout)


class Clamping(LocalTarget):
    """A file system that sets at most four stripes, but refuses a request for five."""

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
    expected = [(good, ()), (clamped, ("stripe count 4 instead of 99",))]
    assert [(one.wanted, one.differences) for one in found[:2]] == expected
    assert found[2].given is None and found[2].differences
    assert places.of(None) == tmp_path
    assert places.of(clamped) is None and places.of(refused) is None
    place = places.of(good)
    assert place is not None and list(tmp_path.iterdir()) == [place]
    assert [one.name for one in place.iterdir()] == [".strakes-marker"] and places.make([cell(good)]) == []


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


class Placing(LocalTarget):
    """A file system on which the placement of a directory takes 20 s, a third of the budget."""

    spent_s = 0.0

    def make_directory(self, parent: Path, name: str, wanted: Placement) -> Placement:
        call("mkdir", str(parent / name))
        self.spent_s += 20.0
        return wanted


def session_on(target: LocalTarget, events: list[RunEvent]) -> Any:
    return SimpleNamespace(
        sides={"": SimpleNamespace(target=target, workspace=SimpleNamespace(path=target.path))},
        request=SimpleNamespace(budget_s=60.0, directory=target.path),
        writer=SimpleNamespace(append_event=events.append),
        progress=SimpleNamespace(update=lambda *_: None),
        elapsed_s=lambda: target.spent_s if isinstance(target, Placing) else 0.0,
    )


CELLS = [
    Cell("s", f"s/{name}", {}, priority=priority, place=Place(placement=Placement("manual", (0,)), kept=name))
    for name, priority in (("spare", 2), ("a", 1), ("b", 1))
]


def test_cells_of_a_lower_priority_are_left_out_where_placing_takes_long(tmp_path: Path) -> None:
    events: list[RunEvent] = []
    kept = place_cells(session_on(Placing(tmp_path, mount_of(tmp_path)), events), CELLS)
    assert [cell.key for cell in kept] == ["s/a", "s/b"]
    assert [event.cell for event in events if isinstance(event, DirectoryPlaced)] == ["s/a", "s/b"]
    (skipped,) = [event for event in events if isinstance(event, CellSkipped)]
    assert "a larger --budget" in skipped.reason and sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(("moves", "waits"), [(True, 1), (False, 0)])
def test_a_survey_waits_only_for_directories_that_the_file_system_moves(
    moves: bool, waits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("strakes.survey.placing.time.sleep", slept.append)
    target = Placing(tmp_path, mount_of(tmp_path))
    target.moves_directories = moves
    place_cells(session_on(target, []), [replace(CELLS[1], key="s/c")])
    assert len(slept) == waits


BELOW = {"items.0.tree": Placement("inherit"), "items.1.tree": Placement("inherit")}


def test_a_kept_directory_is_never_empty(tmp_path: Path) -> None:
    target = LocalTarget(tmp_path, mount_of(tmp_path))
    prepare(target, tmp_path, "pinned", Place(entries=BELOW, kept="pinned"))
    assert all(list((tmp_path / "pinned" / name).iterdir()) for name in BELOW)
    # A second call changes nothing.
    assert prepare(target, tmp_path, "pinned", Place(entries=BELOW, kept="pinned")) == {}


def test_a_directory_for_one_visit_is_empty(tmp_path: Path) -> None:
    prepare(LocalTarget(tmp_path, mount_of(tmp_path)), tmp_path, "v1", Place(entries=BELOW))
    assert not any(list((tmp_path / "v1" / name).iterdir()) for name in BELOW)
