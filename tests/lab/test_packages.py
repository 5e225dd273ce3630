from __future__ import annotations

from pathlib import Path

import pytest

from mounts import other_user
from strakes.base.errors import EnvironmentLacksError
from strakes.lab.packages import Package, missing, require_packages

THERE = Package("coreutils", "ls")
NOT_THERE = Package("strakes-no-such-package", "strakes-no-such-program")


def remedy() -> str:
    with pytest.raises(EnvironmentLacksError) as caught:
        require_packages("ceph", (THERE, NOT_THERE), install=True, say=lambda _text: None)
    return caught.value.remedy


def test_only_missing_packages_are_reported(tmp_path: Path) -> None:
    directory = Package("some-data", str(tmp_path))
    assert missing((THERE, NOT_THERE, directory)) == (NOT_THERE,)
    require_packages("ceph", (THERE, directory), install=False, say=lambda _text: None)


def test_only_root_can_install() -> None:
    with other_user():
        assert "sudo apt-get install" in remedy()


def test_missing_apt_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.lab.packages.PATH", "/nowhere")
    monkeypatch.setattr("strakes.lab.packages.os.geteuid", lambda: 0)
    assert "no apt-get" in remedy()
