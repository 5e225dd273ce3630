"""Knobs of this machine's kernel: a loop device of the test, changed by processes that are killed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from conftest import StrakesRunner
from control.world import World, in_child
from mounts import loop_mounted
from strakes.base.errors import BadInputError
from strakes.cli.main import run
from strakes.control.knob_change import changed, read, set_values
from strakes.control.knob_place import KnobPlace, inode_above
from strakes.control.knob_restore import restore
from strakes.targets.block_device import block_device_of
from strakes.targets.calls import mount_of
from strakes.targets.registry import detect


def change_until_killed(place: Path) -> int:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            target = detect(place)
            for value in itertools.cycle((256, 512, 1024)):
                with changed(target, {"queue.read_ahead_kb": value, "queue.nomerges": 1}):
                    if writing >= 0:
                        os.write(writing, b".")
                        writing = -1
                    time.sleep(0.005)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"."
    os.close(reading)
    return pid


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with loop_mounted("ext4") as mounted:
        yield mounted


@pytest.fixture
def queue(place: Path) -> Path:
    device = block_device_of(mount_of(place))
    assert device is not None
    return Path("/sys/block") / device.name / "queue"


def value(path: Path) -> str:
    return path.read_text().strip()


def test_values_are_read_from_the_kernel(place: Path, queue: Path) -> None:
    readings = {reading.knob.name: reading for reading in read(detect(place))}
    assert set(readings["queue.read_ahead_kb"].values.values()) == {value(queue / "read_ahead_kb")}
    assert set(readings["vm.dirty_ratio"].values.values()) == {value(Path("/proc/sys/vm/dirty_ratio"))}
    assert "local disk" in readings["bdi.read_ahead_kb"].why and "mkfs" in readings["local.block_size"].knob.how_to_set


def test_a_change_is_made_read_back_and_undone(place: Path, queue: Path) -> None:
    before = value(queue / "read_ahead_kb")
    with changed(detect(place), {"queue.read_ahead_kb": 333}) as effective:
        assert value(queue / "read_ahead_kb") == "332"
        assert effective.remarks == (f"{queue}/read_ahead_kb is 332 KiB instead of 333 KiB: rounded to whole pages",)
    assert value(queue / "read_ahead_kb") == before


@pytest.mark.parametrize(
    ("knob", "beside"), [("max_sectors_kb", "read_ahead_kb"), ("nr_requests", "iosched/async_depth")]
)
def test_a_setting_that_the_kernel_changes_along_is_restored(
    place: Path, queue: Path, tmp_path: Path, knob: str, beside: str
) -> None:
    (queue / "scheduler").write_text("mq-deadline")
    for name, own in (("nr_requests", "77"), (beside, "33" if "depth" in beside else "500")):
        (queue / name).write_text(own)
    names = (knob, beside, "read_ahead_kb")
    before = [value(queue / name) for name in names]
    wanted = {"queue.read_ahead_kb": 100, f"queue.{knob}": 64}
    for journal_lost in (False, True):
        assert in_child(lambda: set_values(detect(place), wanted, store=tmp_path), World(tmp_path)) == 0
        assert (value(queue / knob), value(queue / "read_ahead_kb")) == ("64", "100")
        if journal_lost:
            shutil.rmtree(tmp_path / "knobs")
        assert all(one.good for one in restore(tmp_path)) and [value(queue / name) for name in names] == before
    assert bool(set_values(detect(place), {f"queue.{knob}": 64}, store=tmp_path).moved) == ("depth" in beside)
    restore(tmp_path)
    assert [value(queue / name) for name in names] == before


def test_a_disk_that_has_got_the_name_of_another_keeps_its_values(
    place: Path, queue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = value(queue / "read_ahead_kb")
    set_values(detect(place), {"queue.read_ahead_kb": 64}, store=tmp_path)
    place_of = KnobPlace("queue.read_ahead_kb", "x", file=f"{queue}/read_ahead_kb", inode=1)
    assert replace(place_of, inode=2).key != place_of.key  # The records of two disks are two files.
    assert inode_above(f"{queue}/iosched/async_depth") == inode_above(place_of.file)
    (journal,) = (tmp_path / "knobs").glob("*.jsonl")
    journal.write_text(re.sub(r'"inode":\s?\d+', '"inode":1', journal.read_text()))
    shutil.rmtree(Path(os.environ["STRAKES_RUN"]) / "knobs")
    with monkeypatch.context() as patch:
        covered = Mock(side_effect=lambda _, path: Mock(file_system="tmpfs" if "/devices/" in path else "sysfs"))
        patch.setattr("strakes.control.knob_place.find_mount", covered)
        assert [one.outcome for one in restore(tmp_path)] == ["not put back"]
    assert [one.outcome for one in restore(tmp_path)] == ["gone"] and value(queue / "read_ahead_kb") == "64"
    (queue / "read_ahead_kb").write_text(before)


def test_a_value_refused_by_the_kernel_is_reported_with_its_error(place: Path, queue: Path) -> None:
    with pytest.raises(BadInputError) as caught, changed(detect(place), {"queue.nr_requests": 10**9}):
        pass
    assert caught.value.where == str(queue / "nr_requests") and caught.value.why == "Invalid argument"


def test_a_knob_can_be_restored_after_its_file_system_is_unmounted(queue: Path, tmp_path: Path) -> None:
    with loop_mounted("ext4") as mounted:
        gone = changed(detect(mounted), {"queue.read_ahead_kb": 256}, store=tmp_path)
        effective = gone.__enter__()
        subprocess.run(["umount", mounted], check=True)
        device = next(iter(effective["queue.read_ahead_kb"].values))
        # The loop device still exists after the unmount, so its knob is restored.
        gone.__exit__(None, None, None)
        assert effective.restored[0].good and device.startswith("/sys/block/loop")
        subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=True)


@pytest.mark.parametrize("words", [("knobs", "restore"), ("runs",)])
def test_the_next_command_restores_the_values_of_a_killed_process(
    place: Path, queue: Path, strakes: StrakesRunner, words: tuple[str, ...]
) -> None:
    knobs = {name: value(queue / name) for name in ("read_ahead_kb", "nomerges")}
    worker = change_until_killed(place)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    done = strakes(*words)
    assert done.returncode == 0, done.stderr
    assert {name: value(queue / name) for name in knobs} == knobs
    assert "No settings to put back" in strakes("knobs", "journal").stdout


def test_the_command_sets_shows_and_restores(place: Path, queue: Path, strakes: StrakesRunner) -> None:
    before = value(queue / "read_ahead_kb")
    done = strakes("knobs", "set", place, "queue.read_ahead_kb=512")
    assert done.returncode == 0 and "strakes knobs restore" in done.stdout
    assert "queue.read_ahead_kb: 512 KiB" in done.stdout and value(queue / "read_ahead_kb") == "512"
    assert strakes("runs").returncode == 0 and value(queue / "read_ahead_kb") == "512"
    assert "512 KiB" in strakes("knobs", "list", place, "queue.read_ahead_kb").stdout
    journal = strakes("knobs", "journal", place).stdout
    assert f"{before} -> 512" in journal and "until strakes knobs restore" in journal
    assert f"still changed for {place}" in strakes("knobs", "restore", "/").stdout
    restored = strakes("knobs", "restore", place)
    assert restored.returncode == 0 and f"put back to {before}" in restored.stdout
    assert value(queue / "read_ahead_kb") == before
    assert "No settings to put back" in strakes("knobs", "restore").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("queue.read_ahead_kb",), "NAME=VALUE"),
        (("queue.read_ahead_kb=-1",), "0 to 1048576 KiB"),
        (("read_ahead_kb=1",), "queue.read_ahead_kb"),
        (("queue.nomerges=1", "queue.nomerges=2"), "twice"),
        (("local.block_size=4096",), "mkfs.xfs"),
        (("queue.scheduler=none",), "resets nr_requests"),
        (("bdi.read_ahead_kb=1",), "queue.read_ahead_kb"),
    ],
)
def test_wrong_usage_is_refused_before_any_change(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert run(["knobs", "set", str(place), *words]) == 2
    errors = capsys.readouterr().err
    assert says in errors and "Traceback" not in errors


def test_knobs_of_a_directory_and_all_file_systems_are_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = []
    for words in ([str(place), "--json"], ["--json"], []):
        assert run(["knobs", "list", *words]) == 0
        listed.append(capsys.readouterr().out)
    here, everything = map(json.loads, listed[:2])
    assert {one["name"] for one in here} < {one["name"] for one in everything}
    assert next(one for one in here if one["name"] == "queue.nr_requests")["values"]
    assert "the inode cache of StorNext" in listed[2]
