from __future__ import annotations

import os
from pathlib import Path

import pytest

from mounts import other_user
from strakes.base.errors import BadInputError
from strakes.base.processes import lock_holder
from strakes.lab.state import all_directories, directory_of, labs_root, refuse_long_path, remove_root, working_in


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/strakes/lab"


@pytest.fixture
def ceph() -> Path:
    directory = directory_of("ceph")
    with working_in(directory, make=True):
        pass
    return directory


def test_labs_are_in_the_state_directory_of_the_user_or_in_var_lib_for_root(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert labs_root() == root
    monkeypatch.delenv("XDG_STATE_HOME")
    with other_user():
        assert labs_root() == Path.home() / ".local/state/strakes/lab"
    assert labs_root() == Path("/var/lib/strakes-lab")


@pytest.mark.parametrize("name", ["", "Ceph", "../x", "a/b", "-x", "x" * 32, "1"])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(BadInputError):
        directory_of(name)


def test_the_directory_of_labs_is_removed_with_the_last_lab_and_its_parent_stays(root: Path, ceph: Path) -> None:
    with working_in(directory_of("other"), make=True):
        pass
    assert all_directories() == (ceph, root / "other")
    ceph.rmdir()
    remove_root()
    assert os.listdir(root) == ["other"]
    (root / "other").rmdir()
    remove_root()
    assert os.listdir(root.parents[1]) == [] and all_directories() == ()


def test_only_one_command_works_in_a_lab(ceph: Path) -> None:
    with working_in(ceph, make=True):
        assert lock_holder(ceph) == str(os.getpid())
        with pytest.raises(BadInputError, match="another command") as caught, working_in(ceph, make=True):
            pass
        assert str(os.getpid()) in caught.value.why
    assert not lock_holder(ceph)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_or_a_link_in_place_of_the_lab_directory_is_refused(root: Path, tmp_path: Path, kind: str) -> None:
    root.mkdir(parents=True)
    (root / "ceph").touch() if kind == "file" else (root / "ceph").symlink_to(tmp_path)
    with pytest.raises(BadInputError, match="not the directory"), working_in(root / "ceph", make=True):
        pass


def test_a_directory_that_cannot_be_created_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(BadInputError) as caught, working_in(directory_of("ceph"), make=True):
        pass
    assert caught.value.why and "XDG_STATE_HOME" in caught.value.remedy


def test_a_path_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="too long"):
        refuse_long_path(tmp_path / ("x" * 80))
    refuse_long_path(Path("/var/lib/strakes-lab/ceph"))
