"""The JuiceFS target on a real file system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.running import need, own_labs
from mounts import other_user
from strakes.targets.description import difference
from strakes.targets.juicefs import JuiceFsTarget
from strakes.targets.target import Target
from targets.conformance import TargetConformance
from targets.on_mount import OnMount

pytestmark = [pytest.mark.lab, pytest.mark.more]


@pytest.fixture(scope="module")
def juicefs() -> Iterator[Path]:
    need("juicefs")
    with own_labs() as labs:
        yield labs.up("juicefs", "--size", "1GiB", "--cache-size", "64MiB", "--block-size", "1MiB", "--writeback")


class TestJuiceFs(TargetConformance):
    kind = JuiceFsTarget
    file_system = "fuse.juicefs"
    remote = True

    @pytest.fixture
    def place(self, juicefs: Path) -> Path:
        return juicefs


class TestJuiceFsControl(OnMount):
    @pytest.fixture
    def mounted(self, juicefs: Path) -> Path:
        return juicefs

    def test_its_settings_match_the_mount_options(self, target: Target) -> None:
        told = target.describe()
        wanted = {"storage": "file", "block-size": "1 MiB", "cache-size": "64 MiB", "writeback": "yes"}
        assert {name: told.client[name] for name in wanted} == wanted
        assert told.version and not told.notes

    def test_without_root_the_reason_for_unknown_settings_is_given(self, target: Target) -> None:
        with other_user():
            told = target.describe()
        assert "Permission denied" in told.notes[0] and "only root may read it" in told.notes[0]

    def test_its_client_counts_operations(self, target: Target, place: Path) -> None:
        before = target.observe()
        with (place / "file").open("wb") as file:
            file.write(bytes(1 << 20))
        (place / "file").unlink()
        counted = difference(before, target.observe())["client"]
        assert (counted["client.md.create"], counted["client.md.unlink"]) == (1, 1)
        assert counted["client.data.write_bytes"] == 1 << 20
