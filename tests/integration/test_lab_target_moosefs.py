"""The MooseFS target on a real file system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import need, own_labs
from strakes.targets.description import difference
from strakes.targets.moosefs import MooseFsTarget
from strakes.targets.target import Target
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


@pytest.fixture(scope="module")
def moosefs() -> Iterator[Path]:
    need("moosefs")
    with own_labs() as labs:
        yield labs.up("moosefs", "--chunkservers", "2", "--size", "512MiB")


class TestMooseFs(TargetConformance):
    kind = MooseFsTarget
    file_system = "fuse"
    remote = True

    @pytest.fixture
    def place(self, moosefs: Path) -> Path:
        return moosefs


class TestMooseFsControl(OnMount):
    @pytest.fixture
    def mounted(self, moosefs: Path) -> Path:
        return moosefs

    def test_its_chunkservers_are_listed_and_its_client_counts_operations(self, target: Target, place: Path) -> None:
        told = target.describe()
        assert [one.state for one in told.data_targets] == ["online", "online"]
        assert told.client["goal here"] == "2" and told.version
        before = target.observe()
        (place / "file").touch()
        (place / "file").unlink()
        assert difference(before, target.observe())["client"]["client.md.create"] == 1
        assert target.trouble() == ()
