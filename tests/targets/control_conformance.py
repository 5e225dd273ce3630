"""Conformance tests of a target's control: description, layouts, placements and counters, or why they are missing."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from strakes.base.errors import StrakesError
from strakes.targets.description import (
    Layout,
    Placement,
    StorageTarget,
    difference,
    disturbed,
    layout_differences,
    placement_differences,
)
from strakes.targets.knowledge import unlike_targets
from strakes.targets.target import Target, UnsupportedError


class ControlConformance:
    """Tests of any target, with the fixtures ``target`` and ``place``, a directory of ours on it.

    ``layout`` and ``placements`` (by directory name): values the target must be able to set. A target that cannot set
    layouts or placements leaves them out, and must refuse them.
    """

    layout: Layout | None = None
    placements: tuple[tuple[str, Placement], ...] = ()

    @pytest.fixture
    def parent(self, place: Path) -> Path:
        return place

    def test_it_describes_itself(self, target: Target) -> None:
        description = target.describe()
        assert description.file_system_name
        everything: tuple[StorageTarget, ...] = (*description.data_targets, *description.metadata_targets)
        names = [one.name for one in everything]
        assert len(set(names)) == len(names)
        for one in everything:
            assert 0 <= one.free_bytes <= one.total_bytes and 0 <= one.free_inodes <= one.total_inodes
            assert one.server in {"", *(server.name for server in description.servers)}
        assert set(description.pools) >= {pool for one in description.data_targets for pool in one.pools}
        assert all(note.strip() for note in description.notes)

    def test_its_description_can_be_kept(self, target: Target) -> None:
        assert json.loads(json.dumps(dataclasses.asdict(target.describe())))["file_system_name"]

    def test_targets_to_look_at_are_sentences(self, target: Target) -> None:
        assert all(line.endswith(".") for line in unlike_targets(target.describe()))

    def test_limits_have_a_reason(self, target: Target) -> None:
        assert all(
            limit.what.strip() and limit.why.strip() and "\n" not in limit.what + limit.why for limit in target.limits()
        )

    def test_it_observes_without_disturbing(self, target: Target) -> None:
        before, after = target.observe(), target.observe()
        assert all(math.isfinite(value) for counters in before.values() for value in counters.values())
        assert disturbed(before, after) == ()
        assert all(value >= 0 for counters in difference(before, after).values() for value in counters.values())

    def test_a_layout_is_given_as_wished_or_refused(self, target: Target, place: Path) -> None:
        if self.layout is None:
            with pytest.raises(UnsupportedError):
                target.set_layout(place, Layout(stripe_count=2))
            return
        assert layout_differences(self.layout, target.set_layout(place, self.layout)) == ()
        assert list(place.iterdir()) == []

    def test_the_layout_of_a_directory_can_be_read_or_is_none(self, target: Target, place: Path) -> None:
        assert target.layout(place) is None or self.layout is not None

    def test_placements_are_given_as_wished_or_refused(self, target: Target, parent: Path) -> None:
        if not self.placements:
            with pytest.raises(UnsupportedError):
                target.make_directory(parent, "placed", Placement("manual", (0,)))
            assert list(parent.iterdir()) == []
        for name, wanted in self.placements:
            given = target.make_directory(parent, name, wanted)
            assert (given.kind, placement_differences(wanted, given)) == (wanted.kind, ())

    def test_a_name_that_is_taken_is_refused(self, target: Target, place: Path) -> None:
        (place / "taken").mkdir()
        with pytest.raises((StrakesError, FileExistsError)):
            target.make_directory(place, "taken", Placement("inherit"))
