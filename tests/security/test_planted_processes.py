"""Root ignores the command lines of processes that another user started under the name of a daemon."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strakes.base.processes import commands_of, lock_holder, mark_of, trusted_words
from strakes.targets.ceph_tool import access_of
from strakes.targets.gluster import daemons
from strakes.targets.mountinfo import parse_mountinfo

OTHER = 65534
(MOUNT,) = parse_mountinfo("48 27 0:43 / /planted rw,relatime - fuse.ceph-fuse ceph-fuse rw,user_id=0")
SETUID = (OTHER, 0, 0)  # real, effective and saved user id of su, which every user can start under any name

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of another user")


_BECOME = "import os, sys; os.setresuid(*map(int, sys.argv[1:4])); os.execv('/usr/bin/tail', sys.argv[4:])"


@contextmanager
def started(users: tuple[int, int, int], *words: str) -> Iterator[None]:
    """Run tail(1) under the name of a daemon (argv[0]) with these real, effective and saved user ids."""
    with subprocess.Popen(
        [sys.executable, "-c", _BECOME, *map(str, users), *words], stderr=subprocess.DEVNULL
    ) as child:
        try:
            while not Path(f"/proc/{child.pid}/cmdline").read_text().startswith(words[0]):
                time.sleep(0.01)
                assert child.poll() is None
            yield
        finally:
            child.kill()


@pytest.mark.parametrize("users", [(0, 0, 0), (OTHER, OTHER, OTHER), SETUID])
def test_only_a_ceph_client_of_root_names_the_configuration(users: tuple[int, int, int]) -> None:
    with started(users, "ceph-fuse", "-c", "1", "-f", "/dev/null", "/planted"):
        access = access_of(MOUNT)
    assert access.configuration == os.path.abspath("1") if users == (0, 0, 0) else access.options == ()


@pytest.mark.parametrize("users", [(OTHER, OTHER, OTHER), SETUID])
def test_a_planted_gluster_daemon_is_not_queried(users: tuple[int, int, int]) -> None:
    before = daemons()
    with started(users, "glusterd", "-f", "/dev/null"):
        assert daemons() == before


@pytest.mark.parametrize("users", [(0, 0, 0), (OTHER, OTHER, OTHER), SETUID])
def test_a_process_with_a_planted_mark_is_not_taken_for_strakes(
    users: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, value),) = mark_of(os.getpid(), 7).items()
    monkeypatch.setenv(name, value)
    with started(users, "tail", "-f", "/dev/null"):
        assert (commands_of(os.getpid(), 7) != ()) == (users == (0, 0, 0))


def test_the_memory_of_processes_of_others_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.base.processes._MOST_WORDS_BYTES", 4096)
    with (tmp_path / "environ").open("wb") as file:
        file.truncate(1 << 40)  # A process can name any range of its memory as its environment (PR_SET_MM, prctl(2)).
    for user, capabilities, words in ((0, "3fffffffff", [b""] * 4097), (0, "a80425fb", []), (OTHER, "0", [])):
        (tmp_path / "status").write_text(f"Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities}\n")
        assert trusted_words(tmp_path, "environ") == words


_LOCK = "import fcntl, os, sys, time; os.setuid(int(sys.argv[1])); fcntl.flock(0, 2); print(flush=True); time.sleep(60)"


@pytest.mark.parametrize("user", [0, OTHER])
def test_a_lock_of_another_user_is_not_that_of_a_command_on_a_lab(tmp_path: Path, user: int) -> None:
    place = tmp_path / "lab"
    with place.open("w+") as file:
        words = [sys.executable, "-c", _LOCK, str(user)]
        with subprocess.Popen(words, stdin=file, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline()
            assert lock_holder(place) == ("" if user else str(child.pid))
            child.kill()


def test_a_pipe_as_configuration_of_gluster_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "glusterd.vol")
    before = daemons()
    with started((0, 0, 0), "glusterd", "-f", str(tmp_path / "glusterd.vol")):
        assert daemons() == before
