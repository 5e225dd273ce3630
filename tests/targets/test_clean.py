from __future__ import annotations

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mounts import bind_mounted, other_user
from strakes.base.errors import BadInputError, MeasurementError
from strakes.targets.clean import clean
from strakes.targets.marker import MARKER_NAME, WATCH_S, Marker
from strakes.targets.workspace import Workspace
from targets.test_workspace import RUN, killed_workspace

NOBODY = 65534


def dead_marker(run: str = RUN) -> Marker:
    return dataclasses.replace(Marker.of_this_process(run), pid=2**22 + 1, heartbeat_unix_s=time.time() - 3600)


def make(directory: Path, run: str = RUN, marker: Marker | None = None) -> Path:
    place = directory / f"strakes-{run}"
    place.mkdir()
    (place / MARKER_NAME).write_bytes((marker or dead_marker(run)).to_bytes())
    (place / "file").touch()
    return place


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("data")
    return victim


def test_only_the_remains_of_a_killed_run_are_removed(tmp_path: Path, victim: Path) -> None:
    remains = killed_workspace(tmp_path)
    (tmp_path / "strakes-notes").mkdir()
    (tmp_path / "strakes.txt").touch()
    report = clean(tmp_path)
    assert (report.removed, report.left, report.skipped_live) == ((str(remains),), (), ())
    assert sorted(os.listdir(tmp_path)) == ["strakes-notes", "strakes.txt", "victim"]
    assert [(one.path, one.why) for one in report.ignored] == [(str(tmp_path / "strakes-notes"), "it has no marker")]


def test_directories_of_others_use_up_no_files_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remains = killed_workspace(tmp_path)
    for number in range(300):
        (tmp_path / f"strakes-{number:06}").mkdir()
        make(tmp_path, f"dead-{number}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        report = clean(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert str(remains) in report.removed and len(report.removed) == 301 and len(report.ignored) == 300
    monkeypatch.setattr("strakes.targets.clean._MOST_NAMES", 299)
    with pytest.raises(MeasurementError, match="cannot be searched"):
        clean(tmp_path)


def test_a_reused_process_id_is_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Marker.of_this_process(RUN)
    place = make(tmp_path, marker=dataclasses.replace(mine, pid_start=mine.pid_start - 1))
    with monkeypatch.context() as unread:  # The marker cannot be opened.
        unread.setattr("strakes.targets.marker.child.READ_FILE", os.O_DIRECTORY)
        assert [left.path for left in clean(tmp_path).left] == [str(place)]
    assert clean(tmp_path).removed == (str(place),)


CONTAINERS = {
    "of its own processes": ["--pid", "--mount-proc", "--fork", sys.executable],
    "of another name": ["--uts", "sh", "-c", 'hostname another; exec "$0" "$@"', sys.executable],
    "of another time": ["--pid", "--mount-proc", "--time", "--boottime", "100000", "--fork", sys.executable],
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_suspended_run_in_a_container_of_this_machine_is_alive(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.targets.marker.WATCH_S", 0.1)
    if os.geteuid() != 0 or not Path("/proc/self/ns/time").exists():
        pytest.skip("needs root and a kernel with time namespaces")
    work = (
        "import os, signal; from pathlib import Path; from strakes.targets.workspace import Workspace; "
        f"print(Workspace.create(Path({str(tmp_path)!r}), {RUN!r}).path, flush=True); signal.pause()"
    )
    command = ["unshare", *CONTAINERS[kind], "-I", "-c", work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            marker = Path(process.stdout.readline().strip()) / MARKER_NAME
            os.killpg(process.pid, signal.SIGSTOP)
            stopped = Marker(**json.loads(marker.read_text()))
            marker.write_bytes(dataclasses.replace(stopped, heartbeat_unix_s=0.0).to_bytes())
            assert len(clean(tmp_path).skipped_live) == 1
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert len(clean(tmp_path).removed) == 1


def test_a_run_is_alive_for_a_process_in_another_time_namespace(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not Path("/proc/self/ns/time").exists():
        pytest.skip("needs root and a kernel with time namespaces")
    shifted = ["unshare", "--time", "--boottime", "100000", "--fork", sys.executable, "-I", "-c"]
    script = "import sys; from pathlib import Path; from strakes.targets.clean import clean; "
    script += "print(len(clean(Path(sys.argv[1])).skipped_live))"
    with Workspace.create(tmp_path, RUN):
        assert subprocess.check_output([*shifted, script, str(tmp_path)], text=True) == "1\n"


@pytest.mark.parametrize("elsewhere", [{"host": "another"}, {"boot": "another"}, {"pid_namespace": "pid:[1]"}])
@pytest.mark.parametrize(("age_s", "live"), [(0, True), (30, True), (61, False), (1e6, False)])
def test_the_heartbeat_decides_for_an_invisible_process(
    tmp_path: Path, elsewhere: dict[str, str], age_s: float, live: bool
) -> None:
    beat = time.time() - age_s
    marker = dataclasses.replace(dead_marker(), heartbeat_unix_s=beat, **elsewhere)  # type: ignore[arg-type]
    place = make(tmp_path, marker=marker)
    assert bool(clean(tmp_path).skipped_live) is live and place.exists() is live


def test_a_run_on_a_host_with_a_late_clock_stays_while_its_heart_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By our clock the heartbeats are an hour old, and so are the times of the files that such a client writes."""
    behind = dataclasses.replace(dead_marker(), host="another")
    beating, still = make(tmp_path, marker=behind), make(tmp_path, "still", dataclasses.replace(behind, run="still"))

    def beat(seconds: float) -> None:
        if seconds != WATCH_S:
            return  # a sleep of other code
        later = dataclasses.replace(behind, heartbeat_unix_s=behind.heartbeat_unix_s + seconds)
        (beating / MARKER_NAME).write_bytes(later.to_bytes())

    monkeypatch.setattr("strakes.targets.marker.WATCH_S", WATCH_S)
    monkeypatch.setattr("strakes.targets.marker.time.sleep", beat)
    report = clean(tmp_path)
    assert report.removed == (str(still),) and report.skipped_live[0].path == str(beating)
    assert (beating / "file").exists()


def test_a_workspace_that_is_mounted_from_elsewhere_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real = make(tmp_path / "elsewhere")
    place = tmp_path / real.name
    place.mkdir()
    with bind_mounted(real, place):
        (left,) = clean(tmp_path).ignored
    assert left.path == str(place) and (real / "file").exists()


def test_a_suspended_process_of_this_host_is_alive_with_any_heartbeat(tmp_path: Path) -> None:
    make(tmp_path, marker=dataclasses.replace(Marker.of_this_process(RUN), heartbeat_unix_s=0.0))
    assert len(clean(tmp_path).skipped_live) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"rubbish",
        b"[]",
        b"null",
        b'{"run": "x"}',
        b"\xff\xfe",
        json.dumps({**dataclasses.asdict(dead_marker()), "more": 1}).encode(),
        json.dumps({**dataclasses.asdict(dead_marker()), "pid": "1"}).encode(),
        json.dumps({**dataclasses.asdict(dead_marker()), "run": "../../etc"}).encode(),
        dead_marker("another-run").to_bytes(),
        b" " * 100_000 + dead_marker().to_bytes(),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_directory_with_a_foreign_or_invalid_marker_stays(tmp_path: Path, content: bytes, force: bool) -> None:
    place = make(tmp_path)
    (place / MARKER_NAME).write_bytes(content)
    report = clean(tmp_path, force=force)
    assert (report.removed, len(report.ignored)) == ((), 1) and (place / "file").exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_link_of_our_name_is_not_followed(tmp_path: Path, victim: Path, force: bool) -> None:
    (victim / MARKER_NAME).write_bytes(dead_marker().to_bytes())
    (tmp_path / f"strakes-{RUN}").symlink_to(victim)
    report = clean(tmp_path, force=force)
    assert (report.removed, len(report.ignored)) == ((), 1) and (victim / "precious").read_text() == "data"


@pytest.mark.parametrize(
    ("make_other", "why"),
    [
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
        (lambda path: path.symlink_to(path.parents[1] / "marker"), "a symbolic link"),
    ],
)
def test_a_marker_that_is_no_file_does_not_count(tmp_path: Path, make_other: Callable[[Path], None], why: str) -> None:
    place = make(tmp_path)
    (place / MARKER_NAME).rename(tmp_path / "marker")
    make_other(place / MARKER_NAME)
    assert clean(tmp_path).ignored[0].why == f"its marker is {why}" and (place / "file").exists()


@pytest.mark.parametrize("of", ["directory", "marker", "both"])
def test_directories_of_another_user_stay_and_however_many_do_not_keep_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    place = make(tmp_path)
    if of in ("directory", "both"):
        os.chown(place, NOBODY, NOBODY)
    if of in ("marker", "both"):
        os.chown(place / MARKER_NAME, NOBODY, NOBODY)
    report = clean(tmp_path, force=True)
    assert (report.removed, "belongs to user" in report.ignored[0].why) == ((), True) and (place / "file").exists()
    if of != "marker":
        ours = make(tmp_path, "20260101-000000-ours-0000")
        for number in range(3):
            (tmp_path / f"strakes-{number}").touch()
        monkeypatch.setattr("strakes.targets.clean._MOST_NAMES", 2)
        assert clean(tmp_path).removed == (str(ours),)


def test_a_user_cannot_remove_the_remains_of_roots_run_and_gets_the_reason(tmpfs: Path) -> None:
    place = make(tmpfs)
    place.chmod(0o755)
    with other_user():
        report = clean(tmpfs)
    assert report.removed == () and [one.path for one in report.left] == [str(place / "file")]
    assert "Permission denied" in report.left[0].why or "not permitted" in report.left[0].why


def test_a_directory_killed_before_its_marker_is_removed_only_when_old_and_empty(tmp_path: Path) -> None:
    old = time.time() - 3600
    names = {"strakes-watch-0123abcd": [], "strakes-20260101-000000-torn-0000": [MARKER_NAME]}
    for name, files in {**names, "strakes-20260101-000000-full-0000": ["precious"], "strakes-notes": []}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
        os.utime(tmp_path / name, (old, old))
    (tmp_path / "strakes-20260101-000000-fresh-0000").mkdir()
    report = clean(tmp_path)
    assert {Path(path).name for path in report.removed} == set(names)
    assert {Path(one.path).name.split("-")[-2] for one in report.ignored} == {"full", "strakes", "fresh"}


def test_cleaning_a_workspace_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="this directory is a workspace of strakes") as caught:
        clean(make(tmp_path))
    assert str(tmp_path) in caught.value.remedy
