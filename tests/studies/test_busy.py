"""Processor utilisation of servers in each phase, from process clocks and cgroup throttling."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from strakes.model.sample import Sample
from strakes.studies import measure_busy as busy
from strakes.studies.measure_busy import ProcessorWatch
from strakes.targets import processors
from strakes.targets.processors import ProcessorUse, ServerProcess, processor_use, server_process


def watched(looks: list[tuple[float, list[ProcessorUse | None]]], *processes: ServerProcess) -> ProcessorWatch:
    """Return a watch of the processes that has taken these samples."""
    watch = ProcessorWatch({f"mds.{number}": process for number, process in enumerate(processes)})
    watch._looks = looks
    return watch


def phase(name: str, began: float, elapsed_s: float) -> Sample:
    return Sample(name, origin_unix_s=began, elapsed_s=elapsed_s)


def test_each_phase_has_the_share_of_what_the_server_may_use() -> None:
    # Server 0 is idle for 0.5 s, then uses all of its quota of 0.2 processors; server 1 ends after 0.6 s.
    looks: list[tuple[float, list[ProcessorUse | None]]] = [
        (100 + step / 100, [ProcessorUse(7 + 0.2 * max(0.0, step / 100 - 0.5)), ProcessorUse(1) if step < 60 else None])
        for step in range(101)
    ]
    watch = watched(looks, ServerProcess(1, 0.2), ServerProcess(2, 1.0))
    samples = [phase("idle", 100.1, 0.3), phase("work", 100.555, 0.4), phase("moment", 100.6, 0.01)]
    assert watch.shares(samples) == {"idle": {"mds.0": 0.0, "mds.1": 0.0}, "work": {"mds.0": pytest.approx(1.0)}}


def test_the_clock_of_this_process_goes_on_while_it_computes() -> None:
    before, ends = processor_use(ServerProcess(os.getpid(), 1.0)), time.process_time() + 0.02
    while time.process_time() < ends:
        pass
    after = processor_use(ServerProcess(os.getpid(), 1.0))
    assert before is not None and after is not None and after.used_s - before.used_s >= 0.02


def test_a_phase_that_was_not_sampled_from_begin_to_end_is_not_reported() -> None:
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1.0)})
    assert watch.shares([Sample("before", origin_unix_s=1.0, elapsed_s=1.0)]) == {}
    watch.begin()
    watch.end()
    assert watch.shares([Sample("before", origin_unix_s=1.0, elapsed_s=1.0)]) == {}


def test_long_visits_are_sampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "_MOST_LOOKS", 8)
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1.0)})
    watch.begin()
    began, ends = time.time(), time.monotonic() + 20
    while watch._every_s < 0.04 and time.monotonic() < ends:
        time.sleep(0.01)
    watch.end()
    assert len(watch._looks) <= 8 and not watch.shares([phase("moment", began, 0.06)])


def test_periods_in_which_the_quota_was_used_up_count_whole(tmp_path: Path) -> None:
    group = ServerProcess(1, 0.2, tmp_path)
    looks: list[tuple[float, list[ProcessorUse | None]]] = [
        (100.0, [ProcessorUse(1.0, 50, 20)]),
        (101.0, [ProcessorUse(1.15, 100, 65)]),
    ]
    assert watched(looks, group).shares([phase("all", 100.0, 1.0)])["all"] == {"mds.0": pytest.approx(0.9)}


def test_the_periods_of_a_group_are_read_from_its_counters(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("nr_periods 110\nnr_throttled 19\nthrottled_time 5\n")
    use = processor_use(ServerProcess(os.getpid(), 0.2, tmp_path))
    assert use is not None and (use.periods, use.used_up) == (110, 19)


@pytest.mark.parametrize(
    "files", [{"cpu.cfs_quota_us": "3000\n", "cpu.cfs_period_us": "20000\n"}, {"cpu.max": "3000 20000\n"}]
)
def test_a_quota_of_either_version_limits_the_processors(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited, inside = tmp_path / "mds", tmp_path / "mds" / "inside"
    inside.mkdir(parents=True)
    for name, text in files.items():
        (limited / name).write_text(text)
    (inside / "cpu.max").write_text("max 100000\n")
    monkeypatch.setattr(processors, "_groups", lambda _pid: [inside])
    found = server_process(os.getpid(), 1.0)
    assert found.group == limited and found.processors == pytest.approx(0.15)


def test_a_process_that_has_ended_has_no_reading() -> None:
    assert processor_use(ServerProcess(2**22 + 1, 1.0)) is None
    with pytest.raises(OSError, match="No such process"):
        server_process(2**22 + 1, 1.0)
