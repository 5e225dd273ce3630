"""Writing a file never follows a link or opens a pipe that another user planted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mounts import tmpfs_mounted
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.files import default_root, read_below, read_whole, write_below, write_whole

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    directory = tmp_path / "theirs"
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    (tmp_path / "precious").write_text("precious")
    return directory


def plant(link: Path, to: Path, owner: int = NOBODY) -> None:
    link.symlink_to(to)
    os.chown(link, owner, owner, follow_symlinks=False)


@needs_root
@pytest.mark.parametrize("owner", [NOBODY, 0])
def test_a_link_that_somebody_else_planted_or_moved_is_replaced(theirs: Path, owner: int) -> None:
    plant(theirs / "page", theirs.parent / "precious", owner)
    write_whole(theirs / "page", b"new")
    assert (theirs.parent / "precious").read_text() == "precious"
    assert not (theirs / "page").is_symlink() and (theirs / "page").read_bytes() == b"new"
    assert os.listdir(theirs) == ["page"]


@needs_root
def test_our_link_is_followed_and_a_link_of_somebody_else_behind_it_is_replaced(theirs: Path, tmp_path: Path) -> None:
    plant(theirs / "page", tmp_path / "precious")
    (tmp_path / "link").symlink_to("theirs/page")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "precious").read_text() == "precious" and (tmp_path / "link").is_symlink()
    assert (theirs / "page").read_bytes() == b"new"


@needs_root
def test_a_pipe_that_somebody_else_planted_is_replaced_without_waiting(theirs: Path) -> None:
    os.mkfifo(theirs / "page")
    os.chown(theirs / "page", NOBODY, NOBODY)
    write_whole(theirs / "page", b"new")
    assert (theirs / "page").is_file() and (theirs / "page").read_bytes() == b"new"


@needs_root
def test_a_hard_link_and_a_mode_of_somebody_else_are_not_kept(theirs: Path, tmp_path: Path) -> None:
    (theirs / "page").write_text("theirs")
    os.chown(theirs / "page", NOBODY, NOBODY)
    (theirs / "page").chmod(0o666)
    os.link(tmp_path / "precious", theirs / "other")
    (tmp_path / "precious").chmod(0o666)
    write_whole(theirs / "page", b"new")
    write_whole(theirs / "other", b"new")
    assert {(theirs / name).stat().st_mode & 0o022 for name in ("page", "other")} == {0} and (
        theirs / "page"
    ).stat().st_uid == 0
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_process_that_is_killed_while_it_writes_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[list[str]]()
    with tmpfs_mounted() as place:
        monkeypatch.setattr("os.fsync", lambda _file: seen.append(os.listdir(place)))
        write_whole(place / "page", b"new")
        assert (seen, os.listdir(place)) == ([[]], ["page"])


def test_an_open_pipe_and_a_link_of_ours_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"text"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    reading, writing = os.pipe()
    write_whole(Path(f"/proc/self/fd/{writing}"), b"text")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"text"


def test_a_name_that_somebody_else_exchanges_meanwhile_leads_to_no_other_file(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, page, real_open = tmp_path / "victim", theirs / "page", os.open
    victim.write_text("old")
    os.mkfifo(page)

    def exchanging(name: str | Path, flags: int, *rest: int, **options: int) -> int:
        descriptor = real_open(name, flags, *rest, **options)
        if str(name) == "page" and not page.is_symlink():
            page.unlink()
            page.symlink_to(victim)
        return descriptor

    monkeypatch.setattr(os, "open", exchanging)
    reader = real_open(page, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(page, b"new")
    assert victim.read_text() == "old"
    os.close(reader)


def test_a_pipe_of_ours_that_nobody_reads_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(OSError, match="No such device"):
        write_whole(tmp_path / "link", b"text")


def test_data_appended_to_a_file_while_it_is_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, really = tmp_path / "file", os.fstat
    file.write_bytes(b"text")

    def grown(descriptor: int) -> os.stat_result:
        before = really(descriptor)
        file.write_bytes(b"text" * 100)
        return before

    with file.open("rb") as opened:
        monkeypatch.setattr(os, "fstat", grown)
        assert read_whole(opened, file, 1000) == b"text"


def test_links_in_a_circle_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to("there")
    (tmp_path / "there").symlink_to("here")
    write_whole(tmp_path / "here", b"text")
    assert b"text" in [(tmp_path / "here").read_bytes(), (tmp_path / "there").read_bytes()]


def test_write_below_follows_no_link_below_its_directory(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (top / "etc").symlink_to(outside)
    (top / "book").symlink_to(outside / "book")
    with pytest.raises(OSError, match="etc/file"):
        write_below(top, "etc/file", b"text", 0o644)
    write_below(top, "book", b"text", 0o755)
    assert os.listdir(outside) == [] and stat.S_IMODE((top / "book").stat().st_mode) == 0o755
    write_below(top, "new/below/file", b"text", 0o600)
    assert (top / "new/below/file").read_bytes() == b"text" and sorted(os.listdir(top)) == ["book", "etc", "new"]


def test_a_directory_that_is_moved_while_it_is_passed_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "top" / "a" / "b" / "x", tmp_path / "out" / "x"
    inside.mkdir(parents=True)
    outside.parent.mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "top" / "link").symlink_to("a/b/x/../../precious")
    really_open = os.open

    def open_and_move(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened = really_open(path, flags, mode, dir_fd=dir_fd)
        if path == "x":
            inside.rename(outside)
        return opened

    monkeypatch.setattr(os, "open", open_and_move)
    with pytest.raises(BadInputError, match="cannot be read"):
        read_below(tmp_path / "top", "link", 100)
    assert outside.exists()


@pytest.mark.parametrize("target", ["/", "..", "../../..", "a", "a/.."])
def test_a_link_to_a_directory_is_not_a_file_below_it(tmp_path: Path, target: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(BadInputError):
        read_below(tmp_path, "link", 100)


def test_a_store_in_the_home_of_an_unknown_user_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAKES_STORE", "~no-such-user/x")
    with pytest.raises(EnvironmentLacksError, match="home directory is unknown"):
        default_root()
