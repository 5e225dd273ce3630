"""Real file systems for tests: mounted in a temporary directory, unmounted whatever happens."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def tmpfs_mounted(size: str = "16m", options: str = "", place: Path | None = None) -> Iterator[Path]:
    """A tmpfs of its own, over ``place`` where one is given; its directory is open to every user."""
    with _mounted(["-t", "tmpfs", "-o", ",".join(filter(None, [f"size={size}", "mode=1777", options])), "strakes-test"], place) as mounted:
        yield mounted


@contextmanager
def loop_mounted(kind: str) -> Iterator[Path]:
    """An empty file system of the kind ("xfs", "ext4") on a file behind a loop device."""
    maker = f"mkfs.{kind}"
    if shutil.which(maker) is None:
        pytest.skip(f"{maker} is not installed")
    with tempfile.TemporaryDirectory() as place:
        image = Path(place) / "image"
        with image.open("wb") as file:
            file.truncate(320 << 20)  # XFS wants 300 MiB; the file is sparse
        subprocess.run([maker, "-q", str(image)], check=True, capture_output=True)
        # mount's own loop device goes away with the mount.
        with _mounted(["-t", kind, "-o", "loop", str(image)]) as mounted:
            yield mounted


@contextmanager
def _mounted(arguments: list[str], place: Path | None = None) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    directory = place or Path(tempfile.mkdtemp(prefix="strakes-mount-"))
    try:
        done = subprocess.run(["mount", *arguments, str(directory)], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine does not mount it: {done.stderr.strip()}")
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


def unmount(place: Path) -> None:
    if subprocess.run(["umount", str(place)], capture_output=True).returncode != 0:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        raise AssertionError(f"something still uses {place}")


@contextmanager
def other_user(uid: int = 65534) -> Iterator[None]:
    """Be somebody else for a while."""
    if os.geteuid() != 0:
        pytest.skip("becoming somebody else needs root")
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
