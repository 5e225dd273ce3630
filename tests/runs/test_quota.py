"""Quotas that a plan exceeds are reported as quotas, whichever call fails, and all files are removed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mounts import NOBODY, QUOTAS, faulty_mounted, loop_mounted, quota_mounted
from runs.test_faults import MIB, check_told, data, marked, run, with_backend
from strakes.model.phases import MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine, find_engine
from strakes.runs.messages import PlanResult

BACKENDS = pytest.mark.parametrize("backend", ["posix", "stdio", "mmap", "uring"])


def write(backend: str, **more: object) -> TransferPhase:
    return data("w", "write", backend=backend, **more)  # type: ignore[arg-type]


def check_quota(
    result: PlanResult, directory: Path, phase: str, operations: set[str], entry: str, kind: str = ""
) -> None:
    # XFS returns ENOSPC for an exceeded project quota.
    check_told(
        result, errno="ENOSPC" if kind == "xfs-project" else "EDQUOT", phase=phase, operations=operations, entry=entry
    )
    assert all("quota" in error.remedy for error in result.errors)
    assert [sample.name for sample in result.samples] == [phase] and result.cleaned
    assert [path.name for path in directory.iterdir()] == [".strakes-marker"]


@BACKENDS
def test_a_quota_that_the_server_reports_late_is_reported(engine: LocalEngine, backend: str) -> None:
    with_backend(engine, backend)
    with faulty_mounted(writes_later=True) as faulty:
        directory = marked(faulty.place)
        faulty.fail("write", errno=errno.EDQUOT, after_bytes=6 * MIB)
        result = run(engine, Plan(2, (write(backend, sync="fsync"), data("never", "read", files="data"))), directory)
        # If one rank fails, the other one stops and closes without fsync. That close fails with EIO, not EDQUOT.
        closed = [("EIO", "close"), ("EIO", "fclose")]
        told = [error for error in result.errors if (error.errno, error.where["operation"]) not in closed]
        check_quota(replace(result, errors=tuple(told)), directory, "w", {"fsync", "msync"}, "p/data.")


@pytest.fixture
def nobodys_engine(tmp_path: Path) -> Iterator[LocalEngine]:
    program = tmp_path / "engine"
    program.write_text(f"#!/bin/sh\nexec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {find_engine()}\n")
    program.chmod(0o755)
    with LocalEngine(program) as engine:
        yield engine


def nobodys(directory: Path) -> Path:
    os.chown(directory, NOBODY, NOBODY)
    return directory


@pytest.mark.parametrize("kind", QUOTAS)
@BACKENDS
def test_a_real_quota_is_reported(nobodys_engine: LocalEngine, kind: str, backend: str) -> None:
    with_backend(nobodys_engine, backend)
    with quota_mounted(kind, 12 * MIB) as place:
        directory = nobodys(marked(place))
        plan = Plan(2, (write(backend, sync="fsync"), data("never", "read", files="data")))
        result = run(nobodys_engine, plan, directory)
        check_quota(result, directory, "w", {"write", "pwrite", "msync", "fsync", "fflush"}, "p/data.", kind)


@pytest.mark.parametrize("kind", [kind for kind in QUOTAS if kind != "btrfs"])
@pytest.mark.parametrize("backend", ["posix", "uring"])
def test_a_real_quota_of_files_is_reported(nobodys_engine: LocalEngine, kind: str, backend: str) -> None:
    with_backend(nobodys_engine, backend)
    with quota_mounted(kind, 12 * MIB, limit_files=50) as place:
        directory = nobodys(marked(place))
        create = MetadataPhase("c", "file-create", "unique", items=100, backend=backend)
        check_quota(run(nobodys_engine, Plan(2, (create,)), directory), directory, "c", {"open"}, "p/items.", kind)


def test_an_error_of_a_full_file_system_may_be_a_project_quota(engine: LocalEngine) -> None:
    with loop_mounted("xfs") as place:
        directory = marked(place)
        subprocess.run(["chattr", "-p", "42", "+P", directory], check=True)
        left = os.statvfs(place).f_bavail * os.statvfs(place).f_bsize - 4 * MIB
        with (place / "others").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, left)
        result = run(engine, Plan(2, (write("posix"),)), directory)
        check_told(result, errno="ENOSPC", phase="w", operations={"write"}, entry="p/data.")
        assert all("project 42, whose quota" in error.why and "quota" in error.remedy for error in result.errors)
