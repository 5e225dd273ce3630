"""Parsing of mountinfo lines of real machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mounts import bind_mounted, tmpfs_mounted
from strakes.base.errors import EnvironmentLacksError
from strakes.targets.calls import mount_of
from strakes.targets.child import mount_id_of
from strakes.targets.mountinfo import Mount, find_mount, mounts_of, parse_mountinfo, read_mounts

RECORDED = Path(__file__).parent / "recorded" / "mountinfo.txt"


@pytest.fixture
def mounts() -> tuple[Mount, ...]:
    return parse_mountinfo(RECORDED.read_text())


@pytest.mark.parametrize(
    ("path", "file_system", "source", "remote"),
    [
        ("/home/x", "ext4", "/dev/vda", False),
        ("/dev/shm/a", "tmpfs", "tmpfs", False),
        ("/scratch", "lustre", "192.168.77.1@tcp:/labfs", True),
        ("/nfs/data", "nfs4", "filer:/export/data", True),
        ("/old nfs/x", "nfs", "10.0.0.7:/vol/vol0", True),
        ("/ceph", "ceph", "10.1.1.1:6789,10.1.1.2:6789:/volumes/a", True),
        ("/ceph-fuse/x", "fuse.ceph-fuse", "ceph-fuse", True),
        ("/gluster", "fuse.glusterfs", "vm1:/gv0", True),
        ("/mfs", "fuse", "mfsmaster:9421", True),
        ("/win", "cifs", "//server/share", True),
        ("/ssh", "fuse.sshfs", "me@host:/home/me", True),
        ("/ntfs", "fuseblk", "/dev/sdc1", False),
        ("/docker/x", "overlay", "overlay", False),
        ("/vol/sub/x", "btrfs", "/dev/sdb", False),
        ("/data", "xfs", "/dev/loop0", False),
    ],
)
def test_a_path_is_on_its_mount(
    mounts: tuple[Mount, ...], path: str, file_system: str, source: str, remote: bool
) -> None:
    mount = find_mount(mounts, path)
    assert (mount.file_system, mount.source, mount.remote) == (file_system, source, remote)


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/a b\tc\nd\\e#f/x", "source", "/dev/disk with space"),
        # An escaped backslash before digits is not a second escape.
        ("/tricky\\040name", "file_system", "xfs"),
        ("/bind/file", "root", "/home/project"),
        ("/vol/sub", "root", "/@sub"),
        ("/many", "super_options", ("rw",)),  # after optional fields
        ("/twice/x", "file_system", "xfs"),  # the last of two mounts
        ("/datalake", "mount_point", "/"),  # only a common prefix
    ],
)
def test_a_line_is_read_as_the_kernel_writes_it(
    mounts: tuple[Mount, ...], path: str, field: str, value: object
) -> None:
    assert getattr(find_mount(mounts, path), field) == value


def test_the_mounts_of_this_machine_are_read() -> None:
    assert any(mount.mount_point == "/" for mount in read_mounts()) and mount_of(Path("/proc")).file_system == "proc"


def test_a_mount_that_hides_another_is_found() -> None:
    with tmpfs_mounted() as outer:
        inner = outer / "inner"
        inner.mkdir()
        with bind_mounted(Path("/proc"), inner):
            # The new mount hides the one below, whose line remains in mountinfo.
            with tmpfs_mounted(place=outer):
                inner.mkdir()
                assert mount_of(inner).file_system == "tmpfs"
                assert find_mount(read_mounts(), str(inner)).file_system == "proc"
            assert mount_of(inner).file_system == "proc"


def test_a_carriage_return_in_a_name_does_not_end_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"36 35 0:9 / /mnt/a\rb rw - tmpfs none rw\n")
    assert [mount.mount_point for mount in mounts_of("7")] == ["/mnt/a\rb"]


def test_the_number_of_a_mount_is_the_kernels(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert mount_id_of(descriptor) == mount_of(tmp_path).mount_id
    finally:
        os.close(descriptor)


def test_a_chroot_without_a_mount_of_its_own_is_refused_with_a_next_step(mounts: tuple[Mount, ...]) -> None:
    proc = tuple(mount for mount in mounts if mount.mount_point == "/proc")
    with pytest.raises(EnvironmentLacksError, match="the mount of the directory is not visible to this process"):
        find_mount(proc, "/srv")
