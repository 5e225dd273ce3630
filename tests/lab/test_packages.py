from __future__ import annotations

from pathlib import Path

import pytest

from mounts import other_user
from strakes.base.errors import EnvironmentLacksError
from strakes.lab.packages import Package, missing, require_packages

THERE = Package("coreutils", "ls")
NOT_THERE = Package("strakes-no-such-package", "strakes-no-such-program")


def refusal(*, install: bool) -> EnvironmentLacksError:
    with pytest.raises(EnvironmentLacksError) as caught:
        require_packages("ceph", (THERE, NOT_THERE), install=install, say=lambda _text: None)
    return caught.value


def test_only_missing_packages_are_reported(tmp_path: Path) -> None:
    directory = Package("some-data", str(tmp_path))
    assert missing((THERE, NOT_THERE, directory)) == (NOT_THERE,)
    require_packages("ceph", (THERE, directory), install=False, say=lambda _text: None)


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    error = refusal(install=False)
    assert error.exit_status == 3
    assert NOT_THERE.name in error.what and NOT_THERE.needed in error.why and "coreutils" not in error.what
    assert (
        "the command as root with --install" in error.remedy
        and f"apt-get install --no-install-recommends {NOT_THERE.name}" in error.remedy
    )


def test_only_root_can_install() -> None:
    with other_user():
        error = refusal(install=True)
    assert "sudo apt-get install" in error.remedy


def test_missing_apt_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.lab.packages.PATH", "/nowhere")
    monkeypatch.setattr("strakes.lab.packages.os.geteuid", lambda: 0)
    assert "no apt-get" in refusal(install=True).remedy
