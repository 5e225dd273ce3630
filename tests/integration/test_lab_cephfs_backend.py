"""The backend cephfs on a real cluster: every rank is a client through libcephfs, without the mount."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT, StrakesRunner
from integration.conftest import items_of
from lab.running import Labs
from runs.test_mpi import needs_mpi
from strakes.base.errors import BadInputError
from strakes.model.phases import ProbePhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.choice import engine_for
from strakes.runs.engine import LocalEngine
from strakes.runs.launch import LOCAL, Launch

pytestmark = [pytest.mark.lab, pytest.mark.more]

KIB = 1 << 10


@pytest.fixture(scope="module")
def mount(shared_labs: Labs) -> Path:
    with LocalEngine() as engine:
        if why := engine.start().absent.get("cephfs"):
            pytest.skip(why["why"])
    return shared_labs.up("ceph --osds 1 --mds 1 --standby 0 --store memstore --osd-size 2GiB")


def data(name: str, operation: str, layout: str, access: str, **more: object) -> TransferPhase:
    return TransferPhase(
        name,
        operation,  # type: ignore[arg-type]
        layout,  # type: ignore[arg-type]
        access,  # type: ignore[arg-type]
        transfer_bytes=64 * KIB,
        block_bytes=256 * KIB,
        segments=4,
        files=layout,
        backend="cephfs",
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "launch", [LOCAL, pytest.param(Launch("mpi", ranks=3), marks=needs_mpi)], ids=lambda launch: launch.launcher
)
def test_every_operation_works_and_reads_return_the_written_data(place: Path, launch: Launch) -> None:
    phases = (
        data("w", "write", "file-per-process", "random", sync="fsync"),
        data("r", "read", "file-per-process", "random", verify=True, rank_shift=1),
        data("sw", "write", "shared-file", "strided"),
        data("sr", "read", "shared-file", "whole", verify=True),
        data("sm", "mixed", "shared-file", "strided", read_percent=50),
        items_of("cephfs", "file-create"),
        items_of("cephfs", "file-stat", share="all"),
        items_of("cephfs", "file-read", rank_shift=1),
        items_of("cephfs", "file-open-close"),
        items_of("cephfs", "file-rename"),
        items_of("cephfs", "file-remove"),
        items_of("cephfs", "dir-create"),
        items_of("cephfs", "dir-stat"),
        items_of("cephfs", "dir-rename"),
        items_of("cephfs", "dir-remove"),
    )
    with engine_for(launch) as engine:
        result = engine.run(Plan(ranks=3, phases=phases, seed=7), place, "p", limit_s=120)
    assert result.ended == "ok", result.errors
    assert result.cleaned
    by_name = {sample.name: sample for sample in result.samples}
    assert by_name["r"].effective["verified_bytes"] == 3 * 1024 * KIB
    assert by_name["sr"].effective["verified_bytes"] == 9 * 1024 * KIB
    assert all(by_name[f"file-{one}"].operations == 120 for one in ("create", "rename", "remove"))


def test_kept_files_of_probes_items_and_transfers_appear_on_the_mount(place: Path) -> None:
    def probe(operation: str, file_bytes: int) -> ProbePhase:
        more = {"backend": "cephfs", "files": operation, "file_bytes": file_bytes, "log": True}
        return ProbePhase(operation, operation, 50, 0.2, **more)  # type: ignore[arg-type]

    phases = (
        *(probe("file-create", 10), probe("write-fsync", 100), probe("file-stat", 0)),
        *(replace(items_of("cephfs", "file-create"), name="items"), data("w", "write", "shared-file", "segmented")),
    )
    with LocalEngine() as engine:
        result = engine.run(Plan(ranks=3, phases=phases), place, "kept", limit_s=60, keep=True)
    assert result.ended == "ok", result.errors
    assert [sample.operations for sample in result.samples[:3]] == [30, 30, 30]
    assert all(one.acknowledged for one in result.log)
    kept = place / "kept"
    assert [path.stat().st_size for path in kept.glob("file-create.*.probe/f*")] == [10] * 30
    assert [path.stat().st_size for path in kept.glob("write-fsync.*.probe/data")] == [1000] * 3
    assert [path.stat().st_size for path in kept.glob("items.tree/b*/f*")] == [100] * 120
    assert (kept / "shared-file.data").stat().st_size == 3 * 1024 * KIB
    shutil.rmtree(kept)


def test_directories_without_the_marker_and_existing_ones_of_plans_are_refused(mount: Path, place: Path) -> None:
    (bare := mount / "bare").mkdir()
    (place / "p").mkdir()
    (place / "p" / "file").touch()
    plan = Plan(ranks=1, phases=(items_of("cephfs", "file-create"),))
    with LocalEngine() as engine:
        unmarked, taken = (engine.run(plan, where, "p", limit_s=60) for where in (bare, place))
    assert (unmarked.ended, unmarked.errors[0].what) == ("refused", "the directory has no marker of strakes")
    assert (taken.ended, taken.errors[0].where["key"]) == ("refused", "id")
    bare.rmdir()
    (place / "p" / "file").unlink()
    (place / "p").rmdir()


def test_nothing_elsewhere_is_removed_if_the_directory_is_exchanged(mount: Path, place: Path) -> None:
    other, moved = mount / "other", mount / "moved"
    (other / "p" / "directory").mkdir(parents=True)
    (other / ".strakes-marker").touch()

    def exchange(_progress: object) -> None:
        if list(place.glob("p/*.probe")) and not moved.exists():
            place.rename(moved)
            other.rename(place)

    probe = ProbePhase("a", "file-create", 50, 5.0, backend="cephfs", files="a", file_bytes=10)
    with LocalEngine() as engine:
        result = engine.run(Plan(ranks=1, phases=(probe,)), place, "p", limit_s=60, on_progress=exchange)
    assert moved.exists() and (place / "p" / "directory").exists() and not result.cleaned
    shutil.rmtree(moved)
    shutil.rmtree(place / "p")


def test_a_directory_on_another_file_system_is_refused(tmp_path: Path) -> None:
    with LocalEngine() as engine, pytest.raises(BadInputError, match="needs a directory on a Ceph file system"):
        engine.run(Plan(ranks=1, phases=(items_of("cephfs", "file-create"),)), tmp_path, "p", limit_s=60)


def test_the_example_runs_with_one_client_per_rank(mount: Path, strakes: StrakesRunner, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = strakes("run", ROOT / "examples" / "ceph" / "clients.toml", mount, "--budget", "20s", "--json", out)
    assert done.returncode == 0, done.stderr
    expected = ["create", "look", "write", "read"]
    assert [cell["id"].partition(":")[2] for cell in json.loads(out.read_text())["cells"]] == expected
    assert not list(mount.iterdir())
