"""Free space is limited by quotas."""

from __future__ import annotations

import ctypes  # noqa: F401 - strakes imports it after the switch to NOBODY, who may not read its file
import os

import pytest

from mounts import NOBODY, QUOTAS, other_user, quota_mounted
from strakes.targets.calls import Quota, Sizes
from strakes.targets.child import CALLS
from strakes.targets.registry import detect

MIB = 1 << 20
# The fields of statvfs: 4 GiB of 8 GiB and 900 of 1000 inodes are free.
ROOM = (4096, 4096, 8 << 18, 5 << 18, 4 << 18, 1000, 950, 900, 0, 255)


Row = tuple[str, int, int, int, int, int, int]


@pytest.mark.parametrize(
    ("quotas", "free"),
    [
        ([], (4096 * MIB, 900)),
        ([("user 7", 0, 64 * MIB, 24 * MIB, 0, 0, 3)], (40 * MIB, 900)),
        (
            [("user 7", 32 * MIB, 64 * MIB, 24 * MIB, 20, 0, 3), ("group 7", 0, 64 * MIB, 60 * MIB, 0, 0, 3)],
            (4 * MIB, 17),
        ),
        ([("project 42", 0, 64 * MIB, 70 * MIB, 0, 10, 10)], (0, 0)),
        ([("user 7", 0, 0, 1024, 0, 0, 3)], (4096 * MIB, 900)),
        ([("user 7", 0, 9000000000000, 0, 0, 2000, 3)], (4096 * MIB, 900)),
    ],
)
def test_free_space_is_the_minimum_over_quotas_and_file_system(quotas: list[Row], free: tuple[int, int]) -> None:
    sizes = Sizes.of(ROOM, quotas)
    assert (sizes.free_bytes, sizes.free_inodes) == free and sizes.total_bytes == 8192 * MIB

    unknown = Sizes.of((4096, 4096, 2**62, 0, 2**64 - 1, *ROOM[5:]), quotas)
    assert (unknown.total_bytes, unknown.free_bytes) == (2**63 - 1, 0)


def test_the_limiting_quota_is_named() -> None:
    told = Sizes.of(ROOM, [("user 7", 0, 64 * MIB, 24 * MIB, 0, 0, 3), ("group 7", 0, 0, 5, 0, 0, 3)])
    assert [str(one) for one in told.quotas] == ["The quota of user 7 leaves 40 MiB of 64 MiB."]


def test_quotas_of_cephfs_directories_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("quota.max_bytes", "quota.max_files", "dir.rbytes", "dir.rentries")
    attributes = dict(zip(names, ("67108864", "100", "25165824", "90"), strict=True))
    monkeypatch.setattr(
        "strakes.targets.child._attribute",
        lambda path, name: attributes[name.removeprefix("ceph.")] if path == "/mnt/a tree" else None,
    )
    told = CALLS["trees"]("/mnt/a tree", "/mnt")
    assert (
        isinstance(told, list)
        and str(Quota.of(*told[0])) == "The quota of directory /mnt/a tree leaves 40 MiB of 64 MiB and 10 of 100 files."
    )


@pytest.mark.parametrize("kind", [kind for kind in QUOTAS if kind != "btrfs"])  # only root can read its quotas
def test_a_real_quota_is_detected(kind: str) -> None:
    with quota_mounted(kind, 16 * MIB, limit_files=40) as place:
        with other_user(NOBODY):
            (place / "file").write_bytes(os.urandom(4 * MIB))
            os.sync()
            his = detect(place).facts()
        assert 11 * MIB < his.free_bytes <= 12 * MIB and 30 < his.free_inodes < 40
        # For project quotas the kernel gives users other than root only statvfs.
        told = his.quotas if kind == "xfs-user" else detect(place).facts().quotas
        assert len(told) == 1 and ("user 65534" in told[0] if kind == "xfs-user" else "project 42" in told[0])
