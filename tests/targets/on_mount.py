"""The conformance tests of control on a mounted file system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strakes.targets.registry import detect
from strakes.targets.target import Target
from targets.control_conformance import ControlConformance


class OnMount(ControlConformance):
    """Tests on the file system of the fixture ``mounted``, each with a new directory."""

    @pytest.fixture
    def place(self, mounted: Path) -> Iterator[Path]:
        directory = mounted / "place"
        directory.mkdir()
        yield directory
        for inner in directory.iterdir():
            inner.rmdir()
        directory.rmdir()

    @pytest.fixture
    def target(self, mounted: Path) -> Target:
        return detect(mounted)
