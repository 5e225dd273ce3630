from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mounts import bind_mounted, tmpfs_mounted
from strakes.base.errors import MeasurementError
from strakes.targets import removal
from strakes.targets.clean import clean, others_at_work
from strakes.targets.marker import MARKER_NAME
from strakes.targets.removal import Left, remove_tree, remove_workspace


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "precious").write_text("data")
    (victim / "sub" / "precious").write_text("data")
    return victim


def is_untouched(victim: Path) -> bool:
    return [(victim / path).read_text() for path in ("precious", "sub/precious")] == ["data", "data"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    return tree


def remove(tree: Path) -> tuple[Left, ...]:
    parent = os.open(tree.parent, os.O_RDONLY)
    try:
        return remove_tree(parent, tree.name, str(tree))
    finally:
        os.close(parent)


def test_a_tree_is_removed_with_everything_in_it(tree: Path) -> None:
    for number in range(30):
        directory = tree / f"d{number % 5}" / f"e{number}"
        directory.mkdir(parents=True)
        (directory / "file").write_text("x")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")
    (tree / "dangling").symlink_to("nowhere")
    assert remove(tree) == () and not tree.exists()
    assert remove(tree) == ()


@pytest.mark.parametrize("inner", ["", "v0"])
def test_a_directory_that_its_server_keeps_is_left_over_and_keeps_its_marker(
    tree: Path, inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / MARKER_NAME).write_text("ours")
    if inner:
        (tree / inner).mkdir()
    monkeypatch.setattr(removal, "_PAUSES_S", (0.0,))
    monkeypatch.setattr(os, "rmdir", lambda name, *, dir_fd: None)
    parent, directory = os.open(tree.parent, os.O_RDONLY), os.open(tree, os.O_RDONLY)
    try:
        left = remove_workspace(parent, tree.name, directory, str(tree))
    finally:
        os.close(directory)
        os.close(parent)
    assert left == (Left(str(tree / inner), removal._KEPT),) and (tree / MARKER_NAME).read_text() == "ours"


@pytest.mark.parametrize("again", ["same name", "new name"])
def test_a_server_that_lists_removed_files_again_is_not_believed_for_long(
    tree: Path, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "inner").mkdir()
    (tree / "inner" / "file").touch()
    numbers = itertools.count()

    def keep(name: str, *, dir_fd: int) -> None:
        if again == "new name":
            os.rename(name, f".nfs{next(numbers)}", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", keep)
    (left,) = remove(tree)
    assert left == Left(str(tree / "inner" / os.listdir(tree / "inner")[0]), removal._KEPT)


def test_a_list_without_end_is_given_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "file").touch()
    with os.scandir(tree) as entries:
        gone = list(entries)
    (tree / "file").unlink()

    @contextmanager
    def endless(_: object) -> Iterator[Iterator[os.DirEntry[str]]]:
        yield itertools.cycle(gone)

    monkeypatch.setattr(removal, "_MOST_VANISHED", 1000)
    monkeypatch.setattr(removal, "MOST_LISTED", 1000)
    monkeypatch.setattr(os, "scandir", endless)
    assert remove(tree)[0] == Left(str(tree), "its list does not end (1,000 of 1,000 names do not exist)")
    monkeypatch.setattr("strakes.targets.clean.MOST_LISTED", 1000)
    with pytest.raises(MeasurementError, match="searched for workspaces") as caught:
        clean(tree)
    assert "1,000 names" in caught.value.why and others_at_work(tree, "run") == ()


@pytest.mark.more
def test_a_very_deep_tree_is_removed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        os.mkdir("beside", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with monkeypatch.context() as fewer:
        fewer.setattr(removal, "_MOST_LEVELS", 2000)
        assert "2,000 levels" in remove(tree)[0].why
    assert remove(tree) == () and not tree.exists()


def test_links_are_removed_and_never_followed(tree: Path, victim: Path) -> None:
    (tree / "to-directory").symlink_to(victim)
    (tree / "to-file").symlink_to(victim / "precious")
    (tree / "sub").mkdir()
    (tree / "sub" / "up").symlink_to(victim / "sub")
    os.link(victim / "precious", tree / "hard")
    assert remove(tree) == () and is_untouched(victim)


def test_a_directory_swapped_for_a_link_in_the_last_moment_is_not_entered(
    tree: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tree / "inner"
    inner.mkdir()
    (inner / "file").touch()
    real_open = os.open

    def swap_then_open(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == "inner":
            (inner / "file").unlink()
            inner.rmdir()
            inner.symlink_to(victim)
        return real_open(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_then_open)
    assert [one.path for one in remove(tree)] == [str(inner)] and is_untouched(victim)


def test_a_directory_that_is_moved_away_during_the_removal_is_not_followed(
    tree: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tree / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / "deep" / "file").touch()
    real_open = os.open

    def move_then_open(path: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == ".." and inner.exists():
            inner.rename(victim / "inner")
            (victim / "inner" / "deep").rename(victim / "deep")
        return real_open(path, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", move_then_open)
    assert "moved" in remove(tree)[0].why
    assert is_untouched(victim)


@pytest.mark.parametrize("same", [False, True])
def test_a_mount_in_the_tree_is_left_alone(tree: Path, victim: Path, same: bool) -> None:
    inner = tree / "inner"
    inner.mkdir()
    (tree / "other").write_text("x")
    with bind_mounted(victim, inner) if same else tmpfs_mounted(place=inner):
        assert (os.stat(inner).st_dev == os.stat(tree).st_dev) == same
        (inner / "more").write_text("data")
        left = remove(tree)
        assert (inner / "more").read_text() == "data"
    assert is_untouched(victim)
    assert [one.path for one in left] == [str(inner)]
    assert os.listdir(tree) == ["inner"]


def test_entries_that_cannot_be_removed_are_named_and_the_rest_goes(tree: Path) -> None:
    for name in ("a", "b", "c"):
        (tree / name).mkdir()
        (tree / name / "file").touch()
    if subprocess.run(["chattr", "+i", str(tree / "b" / "file")], capture_output=True).returncode != 0:
        pytest.skip("no immutable files here")
    try:
        left = remove(tree)
    finally:
        subprocess.run(["chattr", "-i", str(tree / "b" / "file")], check=True)
    assert left == (Left(str(tree / "b" / "file"), "Operation not permitted"),)
    assert os.listdir(tree) == ["b"]


def test_removal_is_given_up_where_nothing_can_be_removed() -> None:
    with tmpfs_mounted() as place:
        (place / "tree").mkdir()
        for number in range(500):
            (place / "tree" / f"file{number}").touch()
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        left = remove(place / "tree")
    assert len(left) < 150
    assert left[0].why == "Read-only file system"
    assert "gave up" in left[-1].why


def test_concurrent_creation_of_files_does_not_prolong_a_removal_forever(tree: Path) -> None:
    stop = threading.Event()
    inner = tree / "inner"
    inner.mkdir()
    directory = os.open(inner, os.O_RDONLY)

    def make_files() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                os.close(os.open(f"f{number}", os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory))
            except FileNotFoundError:
                return

    maker = threading.Thread(target=make_files)
    maker.start()
    try:
        left = remove(tree)
    finally:
        stop.set()
        maker.join()
        os.close(directory)
    assert all(entry.why for entry in left)
    assert remove(tree) == ()
    assert not tree.exists()
