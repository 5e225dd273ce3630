"""Places to measure in: a tmpfs and an XFS in memory that the bench mounts, or given directories."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from strakes.base.units import GIB, MIB

_UNMOUNT_TRIES, _UNMOUNT_PAUSE_S = 600, 0.1


@dataclass(frozen=True)
class Place:
    """A directory to measure in. ``description``: its file system and device."""

    name: str
    directory: Path
    description: str
    has_device: bool  # O_DIRECT goes to a device, not to memory.
    on_loop: bool = False

    def settle(self) -> None:
        """Write back dirty data, so that the data of one program do not slow down the next."""
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            ctypes.CDLL(None).syncfs(descriptor)
        finally:
            os.close(descriptor)

    def takes_direct(self) -> bool:
        """Return whether O_DIRECT works, which depends on the file system and the kernel."""
        path = self.directory / f"direct-{os.getpid()}"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o600))
        except OSError:
            return False
        finally:
            with suppress(FileNotFoundError):
                path.unlink()
        return True


@contextmanager
def own_places(largest_bytes: int) -> Iterator[list[Place]]:
    """Mount a tmpfs, and an XFS on a loop device over a file in another tmpfs. Needs root.

    XFS is in memory, because the time of a real device would hide the engine's overhead. ``largest_bytes``: maximum
    amount of data in a place at any time.
    """
    size = 2 * largest_bytes + 512 * MIB
    if shutil.which("mkfs.xfs") is None:
        raise SystemExit("bench: mkfs.xfs is missing: install xfsprogs, or give directories with --at NAME=DIR")
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strakes-bench-")))
        stack.enter_context(_mounted(base / "tmpfs", "tmpfs", ["-t", "tmpfs", "-o", f"size={size}"]))
        # XFS needs more space, for its log and its allocation groups.
        image_bytes = max(size, 2 * GIB)
        stack.enter_context(_mounted(base / "memory", "tmpfs", ["-t", "tmpfs", "-o", f"size={image_bytes + 64 * MIB}"]))
        image = base / "memory" / "xfs.img"
        with image.open("wb") as file:
            file.truncate(image_bytes)
        _run(["mkfs.xfs", "-q", str(image)])
        stack.enter_context(_mounted(base / "xfs", str(image), ["-o", "loop"]))
        yield [
            Place("tmpfs", base / "tmpfs", "tmpfs", has_device=False),
            Place(
                "XFS",
                base / "xfs",
                "XFS with the defaults of mkfs.xfs, on a loop device over a file in a tmpfs",
                has_device=True,
                on_loop=True,
            ),
        ]


def given_places(arguments: list[str]) -> list[Place]:
    """Return the places given as ``NAME=DIR``."""
    places = []
    for argument in arguments:
        name, separator, directory = argument.partition("=")
        if not separator or not Path(directory).is_dir():
            raise SystemExit(f"bench: --at takes NAME=DIR with an existing directory, not {argument!r}")
        file_system = _run(["stat", "-f", "-c", "%T", directory]).strip()
        places.append(
            Place(
                name, Path(directory), f"{file_system}, a directory that was given", has_device=file_system != "tmpfs"
            )
        )
    return places


@contextmanager
def _mounted(at: Path, device: str, options: list[str]) -> Iterator[None]:
    at.mkdir()
    _run(["mount", *options, device, str(at)])
    try:
        yield
    finally:
        _unmount(at)


def _unmount(at: Path) -> None:
    """Unmount a file system, trying for a minute.

    A loop device keeps its backing file open for some time after its file system was unmounted.
    """
    for _ in range(_UNMOUNT_TRIES):
        if subprocess.run(["umount", str(at)], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(_UNMOUNT_PAUSE_S)
    _run(["umount", str(at)])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
