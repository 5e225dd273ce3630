"""Conformance tests of targets. A test class for a file system inherits them and provides the fixture ``place``."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import ClassVar

import pytest

from strakes.base.errors import BadInputError
from strakes.base.version import __version__
from strakes.targets.clean import clean
from strakes.targets.registry import detect
from strakes.targets.target import Target, capture
from strakes.targets.workspace import Workspace

RUN = "20260101-000000-conformance-0000"


class TargetConformance:
    """Tests of any target. ``kind``: the expected class; ``file_system``: its name in mountinfo.

    ``remote``: whether it is a network file system. ``counts_inodes``: whether statvfs reports inodes.
    """

    kind: ClassVar[type[Target]]
    file_system: ClassVar[str]
    remote: ClassVar[bool] = False
    counts_inodes: ClassVar[bool] = True

    def test_it_is_detected(self, place: Path) -> None:
        assert type(detect(place)) is self.kind

    def test_facts_describe_the_mount(self, place: Path) -> None:
        facts = detect(place).facts()
        assert (facts.path, facts.mount_point) == (place, str(place))
        assert (facts.file_system, facts.remote) == (self.file_system, self.remote) and facts.device
        assert "rw" in facts.mount_options and 0 < facts.free_bytes <= facts.total_bytes
        if self.counts_inodes:
            assert 0 < facts.free_inodes <= facts.total_inodes
        else:
            assert facts.total_inodes == 0

    def test_a_directory_below_is_on_the_same_target(self, place: Path) -> None:
        below = place / "a directory with\nodd name"
        below.mkdir()
        try:
            assert detect(below).facts().mount_point == str(place)
        finally:
            below.rmdir()

    def test_facts_can_be_kept_as_json(self, place: Path) -> None:
        facts = {**dataclasses.asdict(detect(place).facts()), "path": str(place)}
        assert json.loads(json.dumps(facts))["free_bytes"] == facts["free_bytes"]

    def test_facts_alone_write_nothing(self, place: Path) -> None:
        before = (sorted(os.listdir(place)), place.stat().st_mtime_ns)
        assert detect(place).facts().direct_io is None
        assert (sorted(os.listdir(place)), place.stat().st_mtime_ns) == before

    def test_direct_io_is_tried_inside_a_workspace_and_leaves_nothing(self, place: Path) -> None:
        target = detect(place)
        with Workspace.create(place, RUN) as workspace:
            facts = target.facts(workspace.path)
            assert facts.direct_io is target.probe_direct(workspace.path)
            assert os.listdir(workspace.path) == [".strakes-marker"]
        assert isinstance(facts.direct_io, bool)

    def test_direct_io_is_never_tried_outside_a_workspace(self, place: Path) -> None:
        with pytest.raises(BadInputError, match="not made by strakes"):
            detect(place).probe_direct(place)

    def test_the_environment_names_the_same_mount_and_this_machine(self, place: Path) -> None:
        captured = capture(detect(place).mount)
        mount = captured["mount"]
        assert (mount["mount_point"], mount["file_system"]) == (str(place), self.file_system)
        assert (captured["kernel"], captured["host"]) == (os.uname().release, os.uname().nodename)
        assert captured["distribution"] and captured["cpu_model"]
        assert 1 <= captured["cpus"] <= captured["cpus_of_machine"]
        assert 0 < captured["memory_available_bytes"] <= captured["memory_bytes"]
        assert captured["strakes"] == __version__ and captured["python"].startswith("3.")
        assert len(captured["load_average"]) == 3 and json.loads(json.dumps(captured)) == captured

    def test_a_workspace_comes_and_goes(self, place: Path) -> None:
        before = sorted(os.listdir(place))
        with Workspace.create(place, RUN) as workspace:
            deep = workspace.path / "/".join("abcdefgh")
            deep.mkdir(parents=True)
            for number in range(500):
                (deep / f"file {number}").write_bytes(b"data")
        assert sorted(os.listdir(place)) == before

    def test_a_kept_workspace_is_removed_by_clean_alone(self, place: Path) -> None:
        with Workspace.create(place, RUN, keep=True) as workspace:
            (workspace.path / "file").write_bytes(b"data")
        # The run has ended, but its process, which is this one, is alive.
        assert clean(place).skipped_live[0].path == str(workspace.path)
        assert clean(place, force=True).removed == (str(workspace.path),) and not workspace.path.exists()
