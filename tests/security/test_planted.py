"""If the owner of the measured directory replaces the workspace, the front end writes nothing to the replacement."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from strakes.base.errors import StrakesError
from strakes.control.drill_outcome import read_back
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.targets import calls
from strakes.targets.clean import clean
from strakes.targets.command import run
from strakes.targets.description import Placement
from strakes.targets.marker import MARKER_NAME, Marker, read_marker
from strakes.targets.registry import detect
from strakes.targets.removal import remove_workspace
from strakes.targets.workspace import Workspace, sweep
from strakes.watch.probing import CreateTest, DirectoryProbe

RUN = "20260101-000000-demo-1a2b"
Write = Callable[[str], object]


WRITES: dict[str, Write] = {
    "a directory": lambda path: calls.call("mkdir", f"{path}/made"),
    "directories": lambda path: calls.call("mkdir", f"{path}/made", f"{path}/made/below"),
    "a placed directory": lambda path: detect(Path(path).parent).make_directory(
        Path(path), "made", Placement("inherit")
    ),
    "a file": lambda path: calls.call("create", f"{path}/made"),
    "files": lambda path: calls.call("create", f"{path}/one", f"{path}/made"),
    "a trial": lambda path: calls.call("try", f"{path}/made", MARKER_NAME),
    "an attribute": lambda path: calls.call("setxattr", path, "user.strakes", "1"),
    "files read back": lambda path: read_back(path, 4096, 10.0),
    "a trial of direct I/O": lambda path: calls.call("direct", path, MARKER_NAME, "probe", "4096"),
    "a file made by a tool": lambda path: calls.through_held(run)(("touch", f"{path}/made")),
    "a removed file": lambda path: calls.call("unlink", f"{path}/theirs"),
    "a removed directory": lambda path: calls.call("rmdir", f"{path}/empty"),
    "removed directories": lambda path: calls.call("empty", f"{path}/full"),
}


def plant(place: Path) -> None:
    place.mkdir()
    (place / "theirs").write_text("theirs")
    (place / "empty").mkdir()
    (place / "full" / "below").mkdir(parents=True)


def seen(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


@pytest.mark.parametrize("kind", ["directory", "link", "link above"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_directory_or_link_in_place_of_the_workspace_is_not_touched(tmp_path: Path, write: Write, kind: str) -> None:
    directory, elsewhere = tmp_path / "measured", tmp_path / "elsewhere"
    directory.mkdir()
    with Workspace.create(directory, RUN) as workspace:
        moved = directory / "moved"
        if kind == "link above":
            directory.rename(tmp_path / "moved")
            elsewhere.mkdir()
            planted = elsewhere / workspace.path.name
            directory.symlink_to(elsewhere)
        else:
            workspace.path.rename(moved)
            planted = workspace.path if kind == "directory" else elsewhere
        plant(planted)
        if kind == "link":
            workspace.path.symlink_to(elsewhere)
        before = seen(planted)
        with pytest.raises((calls.RefusedError, StrakesError)) as refused:
            write(str(workspace.path))
        assert f"{workspace.path} was renamed or replaced" in str(refused.value)
        assert seen(planted) == before and "user.strakes" not in os.listxattr(planted)
        workspace.write_file("token", "ours")
        assert seen(planted) == before
        workspace.remove_file("token")
        workspace.remove_file("token")
        if kind == "link above":
            directory.unlink()
            (tmp_path / "moved").rename(directory)
        elif kind == "link":
            workspace.path.unlink()
            moved.rename(workspace.path)
        else:
            workspace.path.rename(elsewhere)
            moved.rename(workspace.path)
    assert os.listdir(directory) == []


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_in_the_workspace_every_write_works(tmp_path: Path, write: Write) -> None:
    with Workspace.create(tmp_path, RUN) as workspace:
        (workspace.path / "theirs").write_text("ours")
        (workspace.path / "empty").mkdir()
        (workspace.path / "full" / "below").mkdir(parents=True)
        write(str(workspace.path))
        (workspace.path / "token").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(FileExistsError):
            workspace.write_file("token", "ours")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("below", ["", "layout0"])
def test_a_directory_in_place_of_the_workspace_stays_and_the_workspace_goes(tmp_path: Path, below: str) -> None:
    workspace = Workspace.create(tmp_path, RUN)
    (workspace.path / below / "full").mkdir(parents=True)
    workspace.path.rename(tmp_path / "renamed")
    plant(workspace.path)
    (workspace.path / "layout0").symlink_to(workspace.path)
    shutil.copy(tmp_path / "renamed" / MARKER_NAME, workspace.path)
    before = seen(workspace.path)
    with LocalEngine() as engine:
        result = engine.run(Plan(1, (MetadataPhase("w", "file-create", "unique", items=5),)), workspace.path, "v0", 60)
    assert [error.what for error in result.errors] == ["the directory was replaced"]
    assert sweep(workspace.path / below, "full") == () and not (tmp_path / "renamed" / below / "full").exists()
    assert workspace.remove() == ()
    assert os.listdir(tmp_path) == [workspace.path.name] and seen(workspace.path) == before


def test_the_watch_makes_nothing_below_a_link_in_place_of_its_directory(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "watched", tmp_path / "elsewhere"
    directory.mkdir()
    probe = DirectoryProbe(directory, RUN)
    directory.rmdir()
    elsewhere.mkdir()
    directory.symlink_to(elsewhere)
    before = elsewhere.stat()
    assert CreateTest(directory).run() in (errno.ELOOP, errno.ENOTDIR)
    operations, (event,) = probe.step(1000.0)
    assert not operations and f"a link replaced the directory: the link leads to {elsewhere}" in event.text
    assert elsewhere.stat().st_mtime_ns == before.st_mtime_ns


def test_a_workspace_that_was_moved_away_and_back_is_recognised(tmp_path: Path) -> None:
    measured, elsewhere = tmp_path / "measured", tmp_path / "elsewhere"
    measured.mkdir()
    workspace = Workspace.create(measured, RUN)
    (workspace.path / "file").touch()
    workspace.path.rename(elsewhere)
    plant(workspace.path)
    (left,) = workspace.remove()
    assert "another directory has taken its place" in left.why and os.listdir(elsewhere) == [MARKER_NAME]
    workspace.path.rename(tmp_path / "planted")
    elsewhere.rename(workspace.path)
    assert clean(measured, force=True).removed == (str(workspace.path),) and os.listdir(measured) == []


def test_a_workspace_that_cannot_be_removed_keeps_its_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace.create(tmp_path, RUN)
    parent, directory = (os.open(place, os.O_RDONLY) for place in (tmp_path, workspace.path))

    def refuse(name: str, *, dir_fd: int) -> None:
        raise OSError(errno.EBUSY, "")

    with monkeypatch.context() as refusing:
        refusing.setattr(os, "rmdir", refuse)
        (left,) = remove_workspace(parent, workspace.path.name, directory, "here")
    assert left.path == "here" and os.listdir(workspace.path) == [MARKER_NAME]
    assert isinstance(read_marker(directory, workspace.path.name), Marker) and workspace.remove() == ()
    for descriptor in (parent, directory):
        os.close(descriptor)
