from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from mounts import other_user
from strakes.base.errors import BadInputError
from strakes.lab.lab_directory import (
    ROOT_MARKER,
    all_places,
    default_root,
    forget,
    is_being_worked_in,
    place_of,
    refuse_long_path,
    refuse_other_lab,
    working_in,
)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/strakes/lab"


def test_labs_are_in_the_state_directory_of_the_user_or_in_var_lib_for_root(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_root() == root
    monkeypatch.delenv("XDG_STATE_HOME")
    with other_user():
        assert default_root() == Path.home() / ".local/state/strakes/lab"
    assert default_root() == Path("/var/lib/strakes-lab")


@pytest.mark.parametrize("name", ["", "Ceph", "../x", "a/b", "-x", "x" * 32, "1"])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(BadInputError):
        place_of(name)


def test_directories_made_for_a_lab_are_removed_and_existing_ones_stay(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    place = place_of("ceph")
    with working_in(place, make=True) as there:
        assert there and place.directory == root / "ceph"
        place.directory.rmdir()
        forget(place)
    assert (tmp_path / "state").is_dir()
    assert not list((tmp_path / "state").iterdir())


def test_the_directory_of_labs_stays_while_it_contains_another_lab(root: Path) -> None:
    one, other = place_of("one"), place_of("other")
    for place in (one, other):
        with working_in(place, make=True):
            pass
    one.directory.rmdir()
    forget(one)
    assert sorted(os.listdir(root)) == [ROOT_MARKER, "other"]
    other.directory.rmdir()
    forget(other)
    assert not root.exists()


def test_a_lab_in_another_directory_is_found_by_its_name_alone(root: Path, tmp_path: Path) -> None:
    place = place_of("ceph", tmp_path / "big/disk")
    with working_in(place, make=True):
        pass
    assert place_of("ceph").directory == tmp_path / "big/disk/ceph" == place.directory
    assert [one.name for one in all_places()] == ["ceph"] == [one.name for one in all_places(tmp_path / "big/disk")]
    place.directory.rmdir()
    forget(place_of("ceph"))
    assert not root.exists() and not (tmp_path / "big").exists()


def test_two_labs_cannot_have_the_same_name(tmp_path: Path) -> None:
    with working_in(place_of("ceph", tmp_path / "a"), make=True):
        pass
    with pytest.raises(BadInputError, match="in another directory"):
        refuse_other_lab(place_of("ceph", tmp_path / "b"))
    refuse_other_lab(place_of("ceph", tmp_path / "a"))
    with (
        pytest.raises(BadInputError, match="in another directory"),
        working_in(place_of("ceph", tmp_path / "b"), make=True),
    ):
        pass


def test_a_dangling_link_to_a_lab_is_replaced(root: Path, tmp_path: Path) -> None:
    root.mkdir(parents=True)
    (root / "ceph").symlink_to(tmp_path / "a/ceph")
    refuse_other_lab(place_of("ceph", tmp_path / "b"))
    with working_in(place_of("ceph"), make=False) as there:
        assert not there
    forget(place_of("ceph"))
    assert not os.path.lexists(root / "ceph")


def test_only_one_command_works_in_a_lab() -> None:
    place = place_of("ceph")
    with working_in(place, make=True):
        assert is_being_worked_in(place)
        with pytest.raises(BadInputError, match="another command") as caught, working_in(place, make=True):
            pass
        assert str(os.getpid()) in caught.value.why
    assert not is_being_worked_in(place)


def test_a_reader_does_not_block_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of("ceph")
    with working_in(place, make=True):
        pass
    looking = os.open(place.directory, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("strakes.lab.lab_directory.time.sleep", lambda _seconds: fcntl.flock(looking, fcntl.LOCK_UN))
    with working_in(place, make=False) as there:
        assert there
    os.close(looking)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "shared/ceph"
    directory.mkdir(parents=True)
    os.chown(directory, 65534, -1)
    with (
        pytest.raises(BadInputError, match="another user"),
        working_in(place_of("ceph", tmp_path / "shared"), make=False),
    ):
        pass


def test_a_file_in_place_of_the_lab_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ceph").touch()
    with pytest.raises(BadInputError, match="not the directory"), working_in(place_of("ceph", tmp_path), make=True):
        pass


def test_a_directory_that_cannot_be_created_is_refused_with_the_reason() -> None:
    with pytest.raises(BadInputError) as caught, working_in(place_of("ceph", Path("/proc/nowhere")), make=True):
        pass
    assert caught.value.why and "--at" in caught.value.remedy


def test_a_path_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="too long"):
        refuse_long_path(tmp_path / ("x" * 80))
    refuse_long_path(Path("/var/lib/strakes-lab/ceph"))
