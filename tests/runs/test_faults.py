"""File systems that fail while a plan runs: errors name rank, operation and path, and everything is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mounts import faulty_mounted, loop_mounted, tmpfs_mounted, unmount
from runs.conftest import once
from strakes.model.phases import MetadataPhase, Stop, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.runs.messages import PlanResult, Progress
from strakes.targets.workspace import Workspace, sweep

MIB = 1 << 20
LONG = Stop("seconds", 60.0)
# EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: shut down without flushing the journal.
_SHUTDOWN, _AT_ONCE = 0x8004587D, 2


def marked(place: Path) -> Path:
    directory = place / "strakes-test"
    directory.mkdir()
    (directory / ".strakes-marker").touch()
    return directory


def once_in(phase: str, act: Callable[[], object]) -> Callable[[Progress], None]:
    return once(act, lambda progress: progress.name == phase and progress.operations > 0)


def run(engine: LocalEngine, plan: Plan, directory: Path, act: Callable[[Progress], None] | None = None) -> PlanResult:
    try:
        return engine.run(plan, directory, "p", 60, act)
    finally:
        engine.close()


def check_told(result: PlanResult, *, errno: str | set[str], phase: str, operations: set[str], entry: str) -> None:
    assert result.ended == "failed"
    assert result.errors and {error.errno for error in result.errors} <= (
        {errno} if isinstance(errno, str) else errno
    ), result.errors
    for error in result.errors:
        assert error.where["phase"] == phase and error.where["operation"] in operations
        assert entry in str(error.where["path"]) and error.where["rank"] in (0, 1)
        assert error.why and error.remedy
    assert result.samples[-1].name == phase and result.samples[-1].stopped_by == "error"
    # Both ranks left the phase, because both have a row.
    assert len(result.samples[-1].ranks) == 2


@contextmanager
def failing_device() -> Iterator[tuple[Path, Path]]:
    """Mount an ext4 of 256 MiB in a file on a tmpfs of 24 MiB; return the mount point and the file."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    with tmpfs_mounted("24m") as memory:
        image = memory / "image"
        with image.open("wb") as file:
            file.truncate(256 * MIB)
        # With a journal one failed write could abort the whole file system.
        subprocess.run(
            ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1", image],
            check=True,
            capture_output=True,
        )
        place = memory / "mount"
        place.mkdir()
        done = subprocess.run(["mount", "-o", "loop,errors=continue", image, place], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine does not mount it: {done.stderr.strip()}")
        try:
            yield place, image
        finally:
            unmount(place)


def data(name: str, operation: str, block_bytes: int = 8 * MIB, **more: object) -> TransferPhase:
    return TransferPhase(name, operation, "file-per-process", "segmented", MIB, block_bytes, **more)  # type: ignore[arg-type]


def with_backend(engine: LocalEngine, backend: str) -> None:
    if backend not in engine.start().backends:
        pytest.skip(f"the engine is without {backend}")


@pytest.mark.parametrize("backend", ["posix", "stdio", "mmap", "uring"])
def test_an_overcommitted_device_ends_the_phase_and_everything_is_removed(engine: LocalEngine, backend: str) -> None:
    with_backend(engine, backend)
    with failing_device() as (place, _):
        write = data("w", "write", 32 * MIB, sync="fsync", backend=backend)
        directory = marked(place)
        result = run(engine, Plan(2, (write, data("never", "read", files="data"))), directory)
        # The error that a loop device returns for a full tmpfs depends on the kernel.
        check_told(result, errno={"EIO", "ENOSPC"}, phase="w", operations={"fsync", "msync", "write"}, entry="p/data.")
        assert [sample.name for sample in result.samples] == ["w"] and result.cleaned
        assert [path.name for path in directory.iterdir()] == [".strakes-marker"]


# Without mmap, because a store to a mapped page succeeds until msync.
@pytest.mark.parametrize("backend", ["posix", "stdio", "uring"])
def test_a_file_system_that_shuts_down_is_reported_with_the_remains(engine: LocalEngine, backend: str) -> None:
    with_backend(engine, backend)
    with loop_mounted("ext4") as place:
        write = data("w", "write", 2 * MIB, stop=LONG, backend=backend)

        def shut_down() -> None:
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _AT_ONCE))
            finally:
                os.close(descriptor)

        result = run(engine, Plan(2, (write,)), marked(place), once_in("w", shut_down))
        check_told(
            result, errno="EIO", phase="w", operations={"open", "write", "fsync", "fclose", "close"}, entry="p/data."
        )
        assert not result.cleaned and result.left


@pytest.mark.parametrize("backend", ["posix", "uring"])
def test_a_read_error_of_the_device_is_reported_with_the_offset(engine: LocalEngine, backend: str) -> None:
    with_backend(engine, backend)
    with failing_device() as (place, image):
        phases = (
            data("w", "write", 4 * MIB, sync="fsync"),
            data("r", "read", 4 * MIB, direct=True, stop=LONG, backend=backend),
        )

        def cut() -> None:
            with image.open("r+b") as file:
                file.truncate(4096)

        def mend() -> None:
            with image.open("r+b") as file:
                file.truncate(256 * MIB)

        result = run(engine, Plan(2, phases), marked(place), once_in("r", cut))
        mend()
        check_told(result, errno="EIO", phase="r", operations={"read"}, entry="p/data.")
        assert all("offset_bytes" in error.where for error in result.errors)


def test_a_file_system_that_becomes_read_only_is_reported_with_the_remains(engine: LocalEngine) -> None:
    with tmpfs_mounted("256m") as place:
        directory = marked(place)
        create = MetadataPhase("d", "dir-create", "unique", items=50_000_000, stop=Stop("stonewall", 60.0))

        def protect() -> None:
            # The remount fails with EBUSY while a mkdir is in progress.
            for _ in range(1000):
                if subprocess.run(["mount", "-o", "remount,ro", place], capture_output=True).returncode == 0:
                    return
            raise AssertionError("always busy")

        result = run(engine, Plan(2, (create,)), directory, once_in("d", protect))
        subprocess.run(["mount", "-o", "remount,rw", place], check=True)
        check_told(result, errno="EROFS", phase="d", operations={"mkdir"}, entry="p/items.")
        assert not result.cleaned and result.left
        assert all((directory / name).exists() for name in result.left)


def test_a_file_that_somebody_else_removes_is_named(engine: LocalEngine, tmp_path: Path) -> None:
    workspace_path = marked(tmp_path)
    phases = (
        MetadataPhase("create", "file-create", "unique", items=50),
        MetadataPhase("stat", "file-stat", "unique", items=50, stop=LONG),
    )
    gone = workspace_path / "p" / "items.1.tree" / "f1.07"
    result = run(engine, Plan(2, phases), workspace_path, once_in("stat", gone.unlink))
    check_told(result, errno="ENOENT", phase="stat", operations={"stat"}, entry="p/items.1.tree/f1.07")
    assert [error.where["rank"] for error in result.errors] == [1] and result.cleaned
    assert not (workspace_path / "p").exists()


def test_files_that_a_server_keeps_after_their_removal_are_named_as_left(engine: LocalEngine) -> None:
    plan = Plan(1, (MetadataPhase("create", "file-create", "unique", items=20),))
    with faulty_mounted() as mount, Workspace.create(mount.place, "20260101-000000-demo-1a2b") as workspace:
        directory = workspace.path
        mount.keep("unlink")
        result = run(engine, plan, directory)
        mount.mend()
        assert (result.ended, result.cleaned) == ("failed", False)
        assert result.left and "listed again" in result.errors[-1].why
        assert sweep(directory, "p") == () and os.listdir(directory) == [".strakes-marker"]
