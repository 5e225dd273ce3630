from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conftest import wait_for
from mounts import NOBODY, other_user, tmpfs_mounted
from strakes.base.errors import BadInputError, MeasurementError
from strakes.targets import calls
from strakes.targets import workspace as module
from strakes.targets.clean import clean
from strakes.targets.marker import MARKER_NAME, Marker, read_marker
from strakes.targets.mountinfo import Mount, find_mount, read_mounts
from strakes.targets.workspace import Workspace

RUN = "20260101-000000-test-0000"


def refusal(directory: Path, run: str = RUN) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        Workspace.create(directory, run)
    return caught.value


def marker_of(path: Path) -> Marker:
    directory = os.open(path, os.O_RDONLY)
    try:
        marker = read_marker(directory, path.name)
    finally:
        os.close(directory)
    assert isinstance(marker, Marker)
    return marker


def test_the_marker_names_run_host_and_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write  # A server may write a part of what a call gives it.
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[: len(content) // 2 + 1]))
    with Workspace.create(tmp_path, RUN) as workspace:
        assert workspace.path == tmp_path / f"strakes-{RUN}"
        document = json.loads((workspace.path / MARKER_NAME).read_text())
        assert document["run"] == RUN
        assert document["host"] == os.uname().nodename
        assert document["pid"] == os.getpid()
        assert document["heartbeat_unix_s"] == pytest.approx(time.time(), abs=60)
        assert marker_of(workspace.path).seems_live()
        assert workspace.path.stat().st_mode & 0o777 == 0o700


def test_a_workspace_of_less_than_a_second_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    with Workspace.create(tmp_path, RUN):
        monkeypatch.setattr("subprocess.Popen", lambda words, **_: started.append(words))
        time.sleep(0.1)
        assert not started
        monkeypatch.undo()


def test_the_heart_beats_from_the_beginning_and_only_it_has_the_marker_open_where_other_hosts_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(module, "_FIRST_BEAT_S", 3600.0)
    monkeypatch.setattr(Mount, "remote", property(lambda _: True))
    with Workspace.create(tmp_path, RUN) as workspace:
        first = marker_of(workspace.path).heartbeat_unix_s
        wait_for(lambda: marker_of(workspace.path).heartbeat_unix_s != first, 20)
        opened = {os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)}
        assert str(workspace.path) in opened and str(workspace.path / MARKER_NAME) not in opened


@pytest.mark.parametrize("full", [False, True])
def test_the_heart_beats_even_on_a_full_target_and_after_its_process_was_killed(
    tmpfs: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(module, "_FIRST_BEAT_S", 0.02)
    with Workspace.create(tmpfs, RUN) as workspace:
        if full:
            with pytest.raises(OSError, match="No space"):
                (workspace.path / "filler").write_bytes(bytes(32 << 20))
        first = marker_of(workspace.path).heartbeat_unix_s
        inode = (workspace.path / MARKER_NAME).stat().st_ino
        wait_for(lambda: marker_of(workspace.path).heartbeat_unix_s != first, 20)
        assert (workspace.path / MARKER_NAME).stat().st_ino == inode
        killed = workspace._heart._child
        assert killed is not None
        killed.kill()
        wait_for(lambda: workspace._heart._child is not killed, 20)
        first = marker_of(workspace.path).heartbeat_unix_s
        wait_for(lambda: marker_of(workspace.path).heartbeat_unix_s != first, 20)


def test_an_exception_in_the_block_removes_the_workspace_and_a_second_removal_does_nothing(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path, RUN)
    (workspace.path / "file").touch()
    with pytest.raises(KeyboardInterrupt), workspace:
        raise KeyboardInterrupt
    assert workspace.remove() == ()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_removed_is_named_in_an_error(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path, RUN)
    inner = workspace.path / "inner"
    inner.mkdir()
    with tmpfs_mounted(place=inner):
        with pytest.raises(MeasurementError, match="not all files") as caught, workspace:
            pass
        assert caught.value.where == str(inner)
        assert "strakes clean" in caught.value.remedy
        assert marker_of(workspace.path).run == RUN
    Workspace.create(tmp_path, "20260101-000000-next-0000").remove()


def test_a_failed_removal_does_not_hide_the_original_exception(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path, RUN)
    (workspace.path / "inner").mkdir()
    with (
        tmpfs_mounted(place=workspace.path / "inner"),
        pytest.raises(ValueError, match="the cause") as caught,
        workspace,
    ):
        raise ValueError("the cause")
    assert "inner" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("missing", "no such directory"),
        ("file", "not a directory"),
        ("circle", "in a circle"),
        ("dangling", "no such directory"),
    ],
)
def test_a_path_that_is_not_a_directory_is_refused(tmp_path: Path, given: str, what: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "dangling").symlink_to("nowhere")
    error = refusal(tmp_path / given)
    assert what in error.what and error.where == str(tmp_path / given) and error.why and error.remedy


def test_a_read_only_file_system_is_refused(tmpfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    error = refusal(tmpfs)
    assert (error.what, error.why) == ("the file system is read-only", "Read-only file system")
    evicted = FileNotFoundError(2, "")  # What the root of ceph-fuse says then.
    monkeypatch.setattr(calls, "call", Mock(side_effect=[evicted, False]))
    assert refusal(tmpfs / "below").what == "the file system there does not answer"


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_directory_of_another_user_is_refused(tmpfs: Path, mode: int) -> None:
    (tmpfs / "theirs").mkdir(mode=mode)
    with other_user():
        error = refusal(tmpfs / "theirs")
    assert error.why == "Permission denied" and error.remedy and not os.listdir(tmpfs / "theirs")


def test_a_file_system_without_a_free_byte_is_refused(tmpfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="No space"):
        (tmpfs / "filler").write_bytes(bytes(32 << 20))
    before = os.listdir(tmpfs)
    assert "full" in refusal(tmpfs).what and os.listdir(tmpfs) == before
    monkeypatch.setattr(module, "OPEN_DIRECTORY", os.O_DIRECTORY | os.O_CREAT)  # The new directory cannot be opened.
    assert "Invalid argument" in refusal(tmpfs).why and os.listdir(tmpfs) == before


@pytest.mark.parametrize("files", [7, 6])
def test_a_file_system_with_too_few_free_inodes_is_refused_and_left_as_it_was(files: int) -> None:
    with tmpfs_mounted("4m", "nr_inodes=8") as place:
        for number in range(files):
            (place / f"file{number}").touch()
        error = refusal(place)
        assert (error.what, error.why) == ("the file system is full", "No space left on device")
        assert len(os.listdir(place)) == files


def test_a_workspace_inside_a_workspace_is_refused(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, RUN) as workspace:
        (workspace.path / "below").mkdir()
        for place in (workspace.path, workspace.path / "below"):
            error = refusal(place, "20260101-000000-next-0000")
            assert error.where == str(workspace.path)
            assert str(tmp_path) in error.remedy


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_directory_that_takes_the_place_of_a_new_workspace_is_left_alone(
    tmpfs: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    mkdir = os.mkdir

    def mkdir_and_exchange(name: str, *rest: Any, **options: Any) -> None:
        mkdir(name, *rest, **options)
        os.chmod(tmpfs / name, mode)
        os.chown(tmpfs / name, *(2 * [NOBODY if mode == 0o700 else 0]))

    monkeypatch.setattr(os, "mkdir", mkdir_and_exchange)
    assert "took the place" in refusal(tmpfs).what and not any(tmpfs.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than the owner of a directory")
@pytest.mark.parametrize(
    ("owner", "mode", "accepted"),
    [(1000, 0o755, False), (0, 0o777, False), (0, 0o775, False), (0, 0o1777, True), (NOBODY, 0o700, False)],
)
def test_root_refuses_a_directory_whose_entries_others_can_rename(
    tmp_path: Path, owner: int, mode: int, accepted: bool
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    os.chown(place, owner, owner)
    place.chmod(mode)
    if accepted:
        Workspace.create(place, RUN).remove()
        return
    found = refusal(place)
    assert "other users" in found.what and "mkdir" in found.remedy and not any(place.iterdir())
    with pytest.raises(BadInputError, match="other users"):
        clean(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than the owner of a directory")
@pytest.mark.parametrize(("owner", "mode", "followed"), [(0, 0o755, True), (0, 0o1777, False), (NOBODY, 0o755, False)])
def test_root_follows_only_links_that_no_other_user_can_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, followed: bool
) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    home.mkdir()
    (place / "below").mkdir(parents=True)
    (home / "link").symlink_to(place)
    os.chown(home, owner, owner)
    home.chmod(mode)
    if followed:
        with Workspace.create(home / "link" / "below", RUN) as workspace:
            assert workspace.path.parent == place / "below"
        return
    found = refusal(home / "link" / "below")
    assert "another user or server chooses" in found.what and str(place / "below") in found.remedy
    with pytest.raises(BadInputError, match="another user or server chooses"):
        clean(home / "link")
    with pytest.raises(BadInputError, match="cannot work"):
        Workspace.create(home / "link" / "below", RUN, mount=find_mount(read_mounts(), str(place)))
    monkeypatch.setattr(calls, "call", lambda *_: (str(place), -1))
    assert "took its place" in refusal(home).why and not any((place / "below").iterdir())


@pytest.mark.parametrize("made", ["directory", "file", "link"])
def test_a_name_that_is_taken_is_refused_and_left_alone(tmp_path: Path, made: str) -> None:
    place = tmp_path / f"strakes-{RUN}"
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").touch()
    if made == "directory":
        place.mkdir()
        (place / "precious").touch()
    elif made == "file":
        place.touch()
    else:
        place.symlink_to("victim")
    assert "strakes" in refusal(tmp_path).what
    assert place.exists()
    assert (tmp_path / "victim" / "precious").exists()


@pytest.mark.parametrize("run", ["", "../up", "a/b", ".hidden", "x" * 200, "new\nline"])
def test_an_invalid_run_id_is_refused(tmp_path: Path, run: str) -> None:
    assert "run id" in refusal(tmp_path, run).what
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
from strakes.targets.workspace import Workspace
workspace = Workspace.create(Path(sys.argv[1]), sys.argv[2])
(workspace.path / "v1").mkdir()
(workspace.path / "v1" / "file").write_bytes(b"data")
print("ready", flush=True)
time.sleep(600)
"""


def killed_workspace(directory: Path, run: str = RUN) -> Path:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(directory), run], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return directory / f"strakes-{run}"


def test_a_resumed_killed_run_begins_with_an_empty_directory(tmp_path: Path) -> None:
    assert (killed_workspace(tmp_path) / "v1" / "file").exists()
    with Workspace.create(tmp_path, RUN) as workspace:
        assert os.listdir(workspace.path) == [MARKER_NAME]
        assert marker_of(workspace.path).pid == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_before_its_marker_was_written_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / f"strakes-{RUN}").mkdir()
    Workspace.create(tmp_path, RUN).remove()
    (tmp_path / f"strakes-{RUN}").mkdir()
    (tmp_path / f"strakes-{RUN}" / MARKER_NAME).touch()
    Workspace.create(tmp_path, RUN).remove()
    assert list(tmp_path.iterdir()) == []


def test_the_workspace_of_a_dead_process_is_adopted_on_request(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, RUN, keep=True) as workspace:
        (workspace.path / "grown").mkdir()
        with pytest.raises(BadInputError, match="another process"):
            Workspace.create(tmp_path, RUN, adopt=True)
    marker = json.loads((workspace.path / MARKER_NAME).read_text())
    (workspace.path / MARKER_NAME).write_text(json.dumps({**marker, "pid": 2**22 + 1}))
    with Workspace.create(tmp_path, RUN, adopt=True) as again:
        assert (again.path / "grown").is_dir()
        assert marker_of(again.path).pid == os.getpid()
    assert not list(tmp_path.iterdir())
