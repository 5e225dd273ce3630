"""How busy servers' processors were in each phase: by the clocks of processes, and by quotas that were used up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from strakes.findings.sample import Sample
from strakes.measure import busy
from strakes.measure.busy import ProcessorWatch
from strakes.targets import processors
from strakes.targets.processors import ServerProcess, processor_use, server_process


def phase(name: str, length_s: float, work: bool) -> Sample:
    """Compute or sleep for so long."""
    began, ends = time.time(), time.monotonic() + length_s
    while time.monotonic() < ends:
        if not work:
            time.sleep(length_s / 10)
    return Sample(name, origin_unix_s=began, elapsed_s=time.time() - began)


def test_each_phase_has_the_share_of_what_the_server_may_use() -> None:
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1.0), "gone": ServerProcess(2**22 + 1, 1.0)})
    watch.begin()
    time.sleep(0.03)
    samples = [phase("idle", 0.3, False), phase("work", 0.3, True), phase("moment", 0.01, True)]
    time.sleep(0.03)
    watch.end()
    shares = watch.shares(samples)
    assert set(shares) == {"idle", "work"} and set(shares["work"]) == {"mds"}
    assert shares["idle"]["mds"] < 0.5 * shares["work"]["mds"]


def test_what_was_not_looked_at_from_begin_to_end_is_not_told() -> None:
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1.0)})
    assert watch.shares([Sample("before", origin_unix_s=1.0, elapsed_s=1.0)]) == {}
    watch.begin()
    watch.end()
    assert watch.shares([Sample("before", origin_unix_s=1.0, elapsed_s=1.0)]) == {}


def test_long_visits_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "_MOST_LOOKS", 8)
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1.0)})
    watch.begin()
    samples = [phase("moment", 0.06, True), phase("long", 0.5, True)]
    time.sleep(0.2)
    watch.end()
    assert set(watch.shares(samples)) == {"long"}


def test_periods_in_which_the_quota_was_used_up_count_whole(tmp_path: Path) -> None:
    def counted(periods: int, used_up: int) -> None:
        (tmp_path / "cpu.stat").write_text(f"nr_periods {periods}\nnr_throttled {used_up}\nthrottled_time 5\n")

    counted(100, 10)
    watch = ProcessorWatch({"mds": ServerProcess(os.getpid(), 1000.0, tmp_path)})
    watch.begin()
    time.sleep(0.03)
    began = time.time()
    counted(110, 19)
    time.sleep(0.2)
    watch.end()
    shares = watch.shares([Sample("all", origin_unix_s=began - 0.02, elapsed_s=0.15)])
    assert shares["all"]["mds"] == pytest.approx(0.9, abs=0.01)


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


def test_a_process_that_has_ended_tells_nothing() -> None:
    assert processor_use(ServerProcess(2**22 + 1, 1.0)) is None
    with pytest.raises(OSError, match="No such process"):
        server_process(2**22 + 1, 1.0)
