"""Context managers that mount real file systems for tests and always unmount them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from strakes.targets import calls


@contextmanager
def tmpfs_mounted(size: str = "16m", options: str = "", place: Path | None = None) -> Iterator[Path]:
    with _mounted(
        ["-t", "tmpfs", "-o", ",".join(filter(None, [f"size={size}", "mode=1777", options])), "strakes-test"], place
    ) as mounted:
        yield mounted


@contextmanager
def loop_mounted(kind: str, options: str = "loop", made_with: Sequence[str] = ()) -> Iterator[Path]:
    """Mount a new file system of a kind ("xfs", "ext4", "btrfs") on a loop device of 320 MiB.

    ``options`` go to mount, ``made_with`` to mkfs.
    """
    maker = f"mkfs.{kind}"
    if shutil.which(maker) is None:
        pytest.skip(f"{maker} is not installed")
    with tempfile.TemporaryDirectory() as place:
        image = Path(place) / "image"
        with image.open("wb") as file:
            file.truncate(320 << 20)  # XFS wants 300 MiB; the file is sparse
        subprocess.run([maker, "-q", *made_with, str(image)], check=True, capture_output=True)
        # The kernel removes a loop device that mount set up when it is unmounted.
        with _mounted(["-t", kind, "-o", options, str(image)]) as mounted:
            yield mounted


NOBODY = 65534
QUOTAS = ("xfs-user", "xfs-project", "ext4-project", "btrfs")
"""Kinds of quota; no kernel need support all of them."""
_PROJECT = "42"


@contextmanager
def quota_mounted(kind: str, limit_bytes: int, limit_files: int = 0) -> Iterator[Path]:
    """Make a directory of user :data:`NOBODY` with a quota, on a file system of 320 MiB.

    btrfs ignores ``limit_files``.
    """
    system, _, whose = kind.partition("-")
    letter, name = ("u", str(NOBODY)) if whose == "user" else ("p", _PROJECT)
    option = {"user": "loop,uquota", "project": "loop,prjquota"}.get(whose, "loop")
    # Without extents ext4 cannot preallocate (fallocate).
    made_with = ["-O", "quota,project,^extent,^64bit", "-E", "quotatype=prjquota"] if system == "ext4" else []
    with loop_mounted(system, option, made_with) as mounted:
        place = mounted / "limited"
        if system == "btrfs":
            commands = [
                ("quota", "enable", mounted),
                ("subvolume", "create", place),
                ("qgroup", "limit", str(limit_bytes), place),
            ]
            for command in commands:
                subprocess.run(["btrfs", *command], check=True, capture_output=True)
        else:
            place.mkdir()
            if whose == "project":
                subprocess.run(["chattr", "-p", _PROJECT, "+P", place], check=True)
            if shutil.which("xfs_quota") is None:
                pytest.skip("xfs_quota is not installed")
            limit = f"limit -{letter} bhard={limit_bytes} ihard={limit_files} {name}"
            done = subprocess.run(["xfs_quota", "-f", "-x", "-c", limit, mounted], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
        os.chown(place, NOBODY, NOBODY)
        yield place


class FaultyMount:
    """A mounted fault-injecting file system (faulty_fs.py)."""

    def __init__(self, place: Path, server: subprocess.Popen[str]) -> None:
        self.place = place
        self._server = server

    def fail(self, *calls: str, errno: int, processes: Collection[int] = (), after_bytes: int = 0) -> None:
        """Make the calls fail until the next order; ``_Fault`` in faulty_fs.py describes the arguments."""
        self._order({"calls": calls, "errno": errno, "processes": tuple(processes), "after_bytes": after_bytes})

    def hang(self, *calls: str) -> None:
        """Leave the calls unanswered until the next order; as with a dead server, callers cannot be killed."""
        self._order({"calls": calls})

    def keep(self, *calls: str) -> None:
        self._order({"calls": calls, "errno": -1})

    def mend(self) -> None:
        self._order({})

    def _order(self, fault: dict[str, object]) -> None:
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(fault), file=self._server.stdin, flush=True)
        assert self._server.stdout.readline() == "done\n"


@contextmanager
def faulty_mounted(*, writes_later: bool = False, mounter: int = 0) -> Iterator[FaultyMount]:
    """Mount a fault-injecting file system in the name of the user id ``mounter``.

    With ``writes_later`` the kernel caches writes and reports errors of writes late, as for a network file system.
    """
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting it needs root and FUSE")
    place = Path(tempfile.mkdtemp(prefix="strakes-mount-"))
    words = [
        sys.executable,
        str(Path(__file__).with_name("faulty_fs.py")),
        *(str(place), str(mounter)),
        *(["later"] if writes_later else []),
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        try:
            assert server.stdout.readline() == "mounted\n"
            yield FaultyMount(place, server)
        finally:
            try:
                unmount(place)
            finally:
                server.stdin.close()
    place.rmdir()


@contextmanager
def _mounted(arguments: list[str], place: Path | None = None) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    directory = place or Path(tempfile.mkdtemp(prefix="strakes-mount-"))
    try:
        done = subprocess.run(["mount", *arguments, str(directory)], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine does not mount it: {done.stderr.splitlines()[0].rpartition(': ')[2]}")
        try:
            yield directory
        finally:
            unmount(directory)
    finally:
        if place is None:
            directory.rmdir()


@contextmanager
def bind_mounted(source: Path, place: Path) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    subprocess.run(["mount", "--bind", str(source), str(place)], check=True)
    try:
        yield
    finally:
        unmount(place)


def fill_up(path: Path) -> None:
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def unmount(place: Path) -> None:
    # After a process ends, the kernel releases its io_uring requests and mappings with a delay.
    deadline = time.monotonic() + 10
    while subprocess.run(["umount", str(place)], capture_output=True).returncode != 0:
        if time.monotonic() > deadline:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
            raise AssertionError(f"something still uses {place}")
        time.sleep(0.1)


@contextmanager
def other_user(uid: int = 65534) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("becoming somebody else needs root")
    os.setegid(uid)
    os.seteuid(uid)
    try:
        own = os.access(sys.executable, os.X_OK, effective_ids=True)
        interpreter = sys.executable if own else "/usr/bin/python3"
        with (
            patch.object(sys, "executable", interpreter),
            patch.object(calls, "CHILD", (interpreter, *calls.CHILD[1:])),
        ):
            yield
    finally:
        os.seteuid(0)
        os.setegid(0)
