"""Distribution of directories over metadata targets: each directory once, balanced loads, without links or mounts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import shell_line
from strakes.cli.predict import command
from strakes.predict.namespace import NamespacePlan, Tally, commands, place, walk


def busiest(plan: NamespacePlan) -> float:
    return max(share.load for share in plan.shares)


def tree(*sizes: int) -> Tally:
    parts = [Tally(Path(f"/d/{number}"), size, size) for number, size in enumerate(sizes)]
    return Tally(Path("/d"), sum(sizes) + len(sizes), sum(sizes), parts)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1, 8))
def test_every_directory_is_on_one_target_and_loads_add_up(sizes: list[int], targets: int) -> None:
    plan = place(tree(*sizes), targets)
    placed = [path for share in plan.shares for path in share.directories]
    assert sorted(placed) == sorted(Path(f"/d/{number}") for number in range(len(sizes)))
    assert sum(share.load for share in plan.shares) == pytest.approx(1)
    # The maximum is a fair share plus the largest directory.
    assert busiest(plan) <= 1 / targets + max([*sizes, 1]) / max(1, sum(sizes)) + 1e-9


def test_a_directory_larger_than_a_fair_share_is_split() -> None:
    large = Tally(Path("/d/large"), 300, 300, [Tally(Path(f"/d/large/{name}"), 100, 100) for name in "abc"])
    plan = place(Tally(Path("/d"), 400, 400, [large, Tally(Path("/d/small"), 100, 100)]), 2)
    assert busiest(plan) == pytest.approx(0.5)
    assert Path("/d/large") not in [path for share in plan.shares for path in share.directories]


def test_recent_changes_are_the_load_and_old_entries_are_not() -> None:
    quiet, lively = Tally(Path("/d/quiet"), 1_000_000, 0), Tally(Path("/d/lively"), 100, 100)
    other = Tally(Path("/d/other"), 100, 90)
    plan = place(Tally(Path("/d"), 1_000_200, 190, [quiet, lively, other]), 2)
    assert busiest(plan) == pytest.approx(100 / 190)


def test_a_walk_follows_no_link_and_counts_changed_entries(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "deep" / "deeper").mkdir(parents=True)
        for number in range(5):
            (tmp_path / name / "deep" / "deeper" / str(number)).touch()
    old = tmp_path / "b" / "deep" / "deeper" / "0"
    os.utime(old, (0, 0))
    (tmp_path / "link").symlink_to("/")
    tally, seen = walk(tmp_path, since_s=86400.0, limit_s=60)
    assert seen.whole and tally.entries == 3 + 2 * (1 + 1 + 5)
    assert {part.path.name: part.entries for part in tally.parts} == {"a": 7, "b": 7}
    assert (seen.read, seen.told, seen.unread, seen.mounts) == (7, 0, [], [])
    none, late = walk(tmp_path, since_s=86400.0, limit_s=-1)
    assert not late.whole and none.entries == 0
    with pytest.raises(BadInputError, match="cannot be read"):
        walk(old, since_s=1, limit_s=1)
    with pytest.raises(BadInputError, match="cannot be read"):
        walk(tmp_path / "missing", since_s=1, limit_s=1)


def test_commands_place_every_directory_if_the_file_system_can() -> None:
    plan = place(tree(3, 2, 1), 2)
    assert ("setfattr", "-n", "ceph.dir.pin", "-v", "0", "/d/0") in commands(plan, "ceph")
    assert ("lfs", "migrate", "-m", "1", "/d/1") in commands(plan, "lustre")
    assert len(commands(plan, "lustre")) == 3 and commands(plan, "xfs") == []


def said(directory: Path, *options: str) -> str:
    done = CliRunner().invoke(command, ["namespace", str(directory), *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_directories_that_cannot_be_read_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("strakes.predict.namespace.os.scandir", refuse)
    text = said(tmp_path, "--mdts", "2")
    assert f"Counted as empty, because they could not be read: {tmp_path}/closed" in text
    assert "3 directories read" in text


@pytest.mark.skipif(not os.path.ismount("/dev/pts"), reason="needs a mount below a small tree")
def test_a_mount_below_the_directory_is_left_out_and_reported() -> None:
    assert Path("/dev/pts") in walk(Path("/dev"), since_s=1.0, limit_s=20)[1].mounts
    assert "Left out, because other file systems are mounted there: " in said(Path("/dev"), "--mdts", "2")


def test_counters_of_cephfs_are_named_if_they_were_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
    told = {"ceph.dir.rentries": b"1000", "ceph.dir.rctime": b"1.09"}
    monkeypatch.setattr("strakes.predict.namespace.os.getxattr", lambda _path, name: told[name])
    tally, seen = walk(tmp_path, since_s=1.0, limit_s=20)
    assert (seen.told, tally.entries) == (2, 1 + 2 + 2000)
    text = said(tmp_path, "--mdts", "2")
    assert "Counted by CephFS (ceph.dir.rentries, ceph.dir.rctime) for 2 trees" in text
    assert "2 directories read" in text


def test_one_huge_directory_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "huge").mkdir()
    for number in range(20):
        (tmp_path / "huge" / str(number)).touch()
    text = said(tmp_path, "--mdts", "3")
    assert f"{tmp_path}/huge alone has 95 % of the load" in text and "ceph.dir.pin.distributed" in text


@pytest.mark.parametrize(
    "name", [b"new\nline", b"bad\xff", b"\x1b[31mred", b"$(touch owned)", b"sp ace'quote", b"-rf", b"\\"]
)
def test_commands_name_exactly_the_directory_whatever_bytes_it_has(tmp_path: Path, name: bytes) -> None:
    path = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))
    path.mkdir()
    (path / "inside").touch()
    plan = place(Tally(tmp_path, 1, 1, [Tally(path, 1, 1)]), 2)
    (line,) = (shell_line(("ls", *each[-1:])) for each in commands(plan, "ceph"))
    assert line.isprintable() and line.isascii()
    assert subprocess.run(["bash", "-c", line], check=True, stdout=subprocess.PIPE).stdout == b"inside\n"
