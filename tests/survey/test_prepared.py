"""Directories prepared for cells: those kept for several visits are never empty."""

from __future__ import annotations

from pathlib import Path

from strakes.model.place import Place
from strakes.studies.measure_directories import prepare
from strakes.targets.calls import mount_of
from strakes.targets.description import Placement
from strakes.targets.local import LocalTarget

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
