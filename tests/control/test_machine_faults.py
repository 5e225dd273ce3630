"""Faults of a machine's disk and network, really caused on mounts and network namespaces of the test, and undone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import StrakesRunner
from mounts import tmpfs_mounted
from strakes.base.errors import BadInputError
from strakes.control.drill_guard import Promise
from strakes.control.drill_journal import all_pending
from strakes.control.drill_undo import from_record, to_record
from strakes.control.fault import Ask
from strakes.control.fault_registry import FAULTS, make_fault


@pytest.fixture
def small() -> Iterator[Path]:
    with tmpfs_mounted("8m") as place:
        yield place


def room(place: Path) -> int:
    system = os.statvfs(place)
    return system.f_bavail * system.f_frsize


def without_room(file: Path) -> bool:
    """Return whether writing 8 KiB to ``file`` fails with ENOSPC, and remove the file."""
    try:
        file.write_bytes(bytes(8192))
    except OSError as error:
        return error.errno == errno.ENOSPC
    else:
        return False
    finally:
        file.unlink()


def test_a_filled_disk_has_less_than_a_page_left_until_it_is_undone(small: Path) -> None:
    fault = make_fault("disk-full", Ask(small))
    fault.strike()
    assert room(small) < 4096 and fault.lacking()
    assert without_room(small / "more")
    assert fault.undo is not None
    for _ in range(2):  # undoing is idempotent
        fault.undo.do()
    assert room(small) == 8 << 20 and not fault.lacking() and not any(small.iterdir())


@pytest.mark.parametrize("when", ["before the fault", "before the undoing"])
def test_only_the_announced_disk_is_filled_even_if_the_directory_is_replaced(
    small: Path, tmp_path: Path, when: str
) -> None:
    measured, other = small / "measured", tmp_path / "other"
    measured.mkdir()
    other.mkdir()

    def exchange() -> None:
        measured.rename(small / "renamed")
        measured.symlink_to(other)

    with tmpfs_mounted("16m", place=other):
        fault = make_fault("disk-full", Ask(measured))
        assert str(small) in fault.text and f"{8 << 20:,}" in fault.text
        if when == "before the fault":
            exchange()
        fault.strike()
        assert room(small) < 4096 and room(other) == 16 << 20
        if when == "before the undoing":
            exchange()
        assert fault.undo is not None
        fault.undo.do()
        assert room(small) == 8 << 20 and room(other) == 16 << 20 and not any(other.iterdir())


def test_no_more_space_is_taken_than_announced(small: Path) -> None:
    (small / "others").write_bytes(bytes(4 << 20))
    fault = make_fault("disk-full", Ask(small))
    (small / "others").unlink()
    fault.strike()
    assert room(small) == 4 << 20
    assert fault.undo is not None
    fault.undo.do()


def test_a_file_system_without_unnamed_files_cannot_be_filled() -> None:
    with pytest.raises(BadInputError, match="unnamed file"):
        make_fault("disk-full", Ask(Path("/proc")))


def test_a_filled_disk_is_freed_when_the_drill_ends_without_undoing_it(small: Path, tmp_path: Path) -> None:
    fault = make_fault("disk-full", Ask(small))
    assert fault.undo is not None
    promise = Promise(tmp_path / "store", fault.text, fault.undo)
    fault.strike()
    assert len(all_pending(tmp_path / "store")) == 1
    promise.close()  # closes the pipe to the guard, as the end of a killed drill does
    assert room(small) == 8 << 20 and not all_pending(tmp_path / "store")
    assert from_record(to_record(fault.undo)).do() == "" and room(small) == 8 << 20


def test_the_list_of_faults_states_where_each_works(strakes: StrakesRunner, tmp_path: Path) -> None:
    listed = strakes("failover", "drill", tmp_path, "--fault", "list")
    assert listed.returncode == 0
    for name, entry in FAULTS.items():
        assert any(
            line.startswith(f"{name} ") and entry.works_on in line and line.endswith(entry.summary)
            for line in listed.stdout.splitlines()
        )
