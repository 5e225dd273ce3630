"""In a store that another user controls, no link leads root to read, change or remove a file elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.files import (
    create_kept,
    make_new_directory,
    move_kept,
    open_directory,
    open_kept,
    read_kept,
    remove_kept,
    replace_kept,
    write_kept,
)
from strakes.control.knob_journal import KnobJournal
from strakes.runs.store import Store
from strakes.watch.ring import DAY_S, Ring, RingRow

OTHER = 65534
TEXT = "line one\nlast line without an end"

_CALLS = "trace=open,openat,creat,rename,unlink,truncate"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant files of another user")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    directory = tmp_path / "victim"
    directory.mkdir(mode=0o700)
    (directory / "file").write_text(TEXT)
    (directory / "file").chmod(0o640)
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    os.chown(tmp_path / "store", OTHER, OTHER)
    return tmp_path / "store"


def plant(link: Path, target: Path) -> None:
    link.symlink_to(target)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)


def plant_hard_link(link: Path, target: Path) -> None:
    os.link(target, link)


def unchanged(victim: Path) -> bool:
    state = (victim / "file").stat()
    return os.listdir(victim) == ["file"] and (victim / "file").read_text() == TEXT and state.st_mode & 0o777 == 0o640


ACTS: dict[str, Callable[[Path], object]] = {
    "append": lambda path: open_kept(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    "change": lambda path: open_kept(path, os.O_RDWR),
    "write": lambda path: write_kept(path, "new"),
    "read": lambda path: read_kept(path, 1000),
    "replace": lambda path: replace_kept(path, b"new"),
    "create": lambda path: create_kept(path, b"new"),
    "move": lambda path: move_kept(path, path.with_name("moved")),
    "remove": remove_kept,
    "make a directory": make_new_directory,
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("how", [plant, plant_hard_link])
def test_a_link_in_place_of_a_file_leads_nowhere(
    store: Path, victim: Path, act: str, how: Callable[[Path, Path], None]
) -> None:
    if act == "read" and how is plant_hard_link:
        pytest.skip("to make a hard link takes the right to read the file")
    how(store / "file", victim / "file")
    # These acts apply to the link itself.
    if act in ("replace", "move", "remove"):
        ACTS[act](store / "file")
    else:
        with pytest.raises(OSError, match=r"link|second name|exists"):
            ACTS[act](store / "file")
    assert unchanged(victim)


@pytest.mark.parametrize("act", [*ACTS.values(), open_directory])
def test_a_link_in_place_of_a_directory_leads_nowhere(store: Path, victim: Path, act: Callable[[Path], object]) -> None:
    plant(store / "runs", victim)
    (store / "copy").symlink_to(victim)  # A link of root that the owner of the directory has moved there.
    for name in ("runs", "copy"):
        with pytest.raises(PermissionError, match=f"{name} is a symbolic link of (another user|root, in)"):
            act(store / name / "file")
    assert unchanged(victim)


def test_links_of_root_and_of_this_user_are_followed_and_a_ring_of_links_ends(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "relative").symlink_to("victim")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative" / ".." / "relative")
    replace_kept(tmp_path / "absolute" / "new", b"text")
    assert (victim / "new").read_bytes() == b"text"
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        read_kept(tmp_path / "a" / "file", 10)


def test_a_pipe_in_place_of_a_file_is_refused_at_once(store: Path) -> None:
    os.mkfifo(store / "events.jsonl")
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
        with pytest.raises(PermissionError, match="not a regular file"):
            open_kept(store / "events.jsonl", flags)


def test_only_its_user_can_read_the_rows_of_a_watch(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ring = Ring(tmp_path / "watch")
        for minute in range(5):
            ring.add(RingRow(20000 * DAY_S + 60 * minute, 60, {}))
    finally:
        os.umask(before)
    (rows,) = (tmp_path / "watch").iterdir()
    assert rows.stat().st_mode & 0o777 == 0o600


def test_a_run_that_another_user_could_have_written_is_not_resumed(tmp_path: Path, store: Path) -> None:
    for stored in (Store(store), Store(tmp_path)):
        stored.create("plan", "p", tmp_path, {"fingerprint": "f"}, {}).close()
    with pytest.raises(BadInputError, match="other users can replace the store"):
        Store(store).resume("f")
    stored.resume("f").close()
    os.chown(stored.runs()[0].path, OTHER, OTHER)
    with pytest.raises(BadInputError, match="other users can replace the store"):
        stored.resume("f")


@pytest.mark.parametrize("name", ["runs", "knobs", "knobs/lock"])
def test_nothing_in_a_store_is_written_through_a_link(tmp_path: Path, store: Path, victim: Path, name: str) -> None:
    path = store / name
    path.parent.mkdir(exist_ok=True)
    plant(path, victim / "file" if "." in name or "/" in name else victim)
    for act in (
        lambda: Store(store).create("plan", "p", tmp_path, {}, {}).close(),
        lambda: Store(store).runs(),
        lambda: KnobJournal.begin(store, "/x", ["strakes"]).release(),
    ):
        with suppress(StrakesError):
            act()
    assert unchanged(victim)


def test_files_are_opened_for_writing_only_below_checked_directories(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    (tmp_path / "measured").mkdir()
    (tmp_path / "p.toml").write_text(
        'title = "m"\nranks = 1\n[[phase]]\nkind = "metadata"\nname = "c"\noperation = "file-create"\n'
        'directory = "shared"\nitems = 20\n'
    )
    trace = tmp_path / "trace"
    environment = os.environ | {"STRAKES_STORE": str(tmp_path / "store")}
    for limit, *words in (
        ("60", "run", tmp_path / "p.toml", tmp_path / "measured", "--budget", "1s", "-q"),
        ("60", "runs"),
        ("60", "export", "latest", "-o", tmp_path / "run.json"),
        ("60", "report", "latest", "--html", tmp_path / "page.html"),
        ("8", "watch", "run", tmp_path / "measured", "--store", tmp_path / "watch"),
    ):
        subprocess.run(
            [strace, "-f", "-qq", "-o", trace, "-e", _CALLS, "timeout", "-s", "INT", limit, "strakes", *words],
            env=environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        lines = trace.read_text(errors="replace").splitlines()
        assert len(lines) > 100 and [line for line in lines if _writes_by_path(line)] == []


def _writes_by_path(line: str) -> bool:
    call = re.search(r"(?:openat\(AT_FDCWD, |\b(?:open|creat|rename|unlink|truncate)\()\"([^\"]*)\"(.*)", line)
    if call is None or not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat\(|rename\(|unlink\(|truncate\(", line):
        return False
    # O_EXCL opens no existing file. Python writes .pyc files next to the installed source.
    return "O_EXCL" not in line and ".pyc" not in call[1] and not call[1].startswith(("/dev/", "/proc/self/"))
