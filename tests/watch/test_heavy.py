"""Heavy jobs are found with bounded memory."""

from __future__ import annotations

import pytest

from strakes.watch.heavy import _MOST_JOBS, HeavyJobs
from strakes.watch.lustre import read_text
from strakes.watch.metrics import Metrics
from strakes.watch.reading import CounterReading
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch


def test_ten_thousand_jobs_need_no_more_memory_than_few() -> None:
    heavy = HeavyJobs("operations")
    for window in range(10):
        counts = {f"job{number}": float(window) for number in range(10_000)} | {"j" * 5000: window * 1e6}
        heavy.add("server", 20.0 * window, {"MDT0000": counts})
    assert len(heavy.top) == 20 and heavy.top[0][0] == "j" * 1000
    assert len(heavy._counted) <= _MOST_JOBS


def test_exported_shares_do_not_exceed_the_true_ones() -> None:
    heavy, metrics = HeavyJobs("bytes"), Metrics()
    names = [f"vasp.{number}" for number in range(10_000)]
    for window in range(20):
        # One job has a tenth of the load; the others share the rest equally.
        counts = dict.fromkeys(names, float(window)) | {"large": 1111.0 * window}
        heavy.add("server", 20.0 * window, {"OST0000": counts})
    metrics.now = {"top": {("bytes", str(rank), name): share for rank, (name, share) in enumerate(heavy.top)}}
    (family,) = (each for each in metrics.collect() if each.name == "strakes_watch_load_share")
    shares = {sample.labels["name"]: sample.value for sample in family.samples}
    assert shares.pop("large") == pytest.approx(0.1, rel=0.02)
    assert all(0 < share <= 1.01e-4 for share in shares.values())


def test_an_everyday_job_is_not_named_and_a_new_one_is() -> None:
    heavy = HeavyJobs("operations")
    events = []
    for window in range(30):
        counts = {"daily": 1000.0 * window}
        if window >= 15:
            counts["new"] = 3000.0 * (min(window, 22) - 14)
        events += heavy.add("server", 20.0 * window, {"MDT0000": counts})
    assert [event.subject for event in events] == ["new", "new"]
    assert events[0].ended_s is None and events[1].ended_s is not None


def test_a_burst_of_one_job_during_a_general_rise_is_not_an_event() -> None:
    def counts(at: int) -> dict[str, dict[str, float]]:
        # From reading 30 on all four jobs have three times their rate; from reading 36 on the first one has twice that.
        busy, burst = max(0, at - 30), max(0, at - 36)
        jobs = {f"job{number}": 1000.0 * at + 2000.0 * busy for number in range(3)}
        return {"MDT0000": {"first": 1000.0 * at + 2000.0 * busy + 3000.0 * burst, **jobs}}

    assert heavy_jobs(*(("server", counts(at)) for at in range(44))) == []
    alone = [
        ("server", {"MDT0000": {"first": 1000.0 * at + 5000.0 * max(0, at - 30), "b": 3000.0 * at}}) for at in range(44)
    ]
    assert heavy_jobs(*alone) == ["first"]


def heavy_jobs(*readings: tuple[str, dict[str, dict[str, float]]]) -> list[str]:
    heavy = HeavyJobs("operations")
    events = [event for at, (source, counts) in enumerate(readings) for event in heavy.add(source, 10.0 * at, counts)]
    return [event.subject for event in events if event.ended_s is None]


def test_counts_of_two_servers_are_kept_apart() -> None:
    one = [("one", {"MDT0000": {"daily": 1000.0 * at}}) for at in range(40)]
    other = [("other", {"OST0000": {"daily": 900_000 + 10.0 * at, "writer": 700_000 + 10.0 * at}}) for at in range(40)]
    assert heavy_jobs(*(each for pair in zip(one, other, strict=True) for each in pair)) == []


def test_reset_counters_of_a_target_make_no_job_heavy() -> None:
    def counts(at: int) -> dict[str, dict[str, float]]:
        return {"MDT0000": {"daily": 500_000 + 100.0 * at}, "MDT0001": {"daily": 100.0 * (at if at < 20 else at - 20)}}

    assert heavy_jobs(*(("server", counts(at)) for at in range(40))) == []


def test_a_job_that_is_noisy_again_is_named_again() -> None:
    noisy, readings = 0.0, []
    for at in range(80):
        noisy += 6000.0 if at % 20 >= 14 else 0.0
        readings.append(("server", {"MDT0000": {"daily": 1000.0 * at, "noisy": noisy}}))
    assert heavy_jobs(*readings) == ["noisy"] * 4


def test_a_load_caused_by_many_jobs_becomes_the_usual_load() -> None:
    def counts(at: int) -> dict[str, dict[str, float]]:
        jobs = {f"job{number}": 100.0 * max(0, at if number < 4 else at - 60) for number in range(12)}
        return {"MDT0000": jobs | {"new": 1000.0 * max(0, at - 600)}}

    # Compared with all other jobs the new one is not heavy; compared with the first ten minutes it would be.
    assert heavy_jobs(*(("server", counts(at)) for at in range(640))) == []


def noisy(seconds: float, rate: float) -> float:
    return rate * min(max(seconds - 307, 0.0), 104.0)


@pytest.mark.parametrize("every_s", [15.0, 20.0])
def test_a_job_that_is_heavy_in_operations_and_bytes_is_one_event_with_its_time(every_s: float) -> None:
    watch, events = Watch(), []
    for window in range(40):
        at_s = every_s * window
        jobs = {"daily": 10 * at_s, "noisy": noisy(at_s, 90)}
        sizes = {job: count * 2**20 for job, count in jobs.items()}
        events += watch.add(CounterReading("server", at_s, jobs={"MDT0": jobs}, job_bytes={"OST0": sizes}))
    begun, ended = (event for event in events if event.kind == "heavy")
    assert begun.key == ended.key and begun.ended_s is None and ended.ended_s is not None
    assert "operations a second" in begun.text
    assert begun.began_s == pytest.approx(307, abs=every_s) and ended.ended_s == pytest.approx(411, abs=every_s)


def test_a_source_with_names_of_targets_without_end_is_given_up_alone() -> None:
    watch, told = Watch(), list[WatchEvent]()
    counters = "\n".join(f"x{number} 9 samples [usecs] 1 1 9 9" for number in range(20_000))
    (event,) = watch.add(read_text("one", 0.0, f"mdt.lab-MDT0000.md_stats=\nsnapshot_time 1.0 secs.nsecs\n{counters}"))
    assert "names of its targets do not end" in event.text
    for step in range(100):
        names = [f"lab-OST{step:04x}-{'x' * 90}{number}" for number in range(300)]
        told += watch.add(CounterReading("server", 20.0 * step, full=dict.fromkeys(names, 0.95)))
    assert [event.text for event in told if event.kind == "gap"] == [told[-1].text] and len(told) < 12_000
    assert "names of its targets do not end" in told[-1].text
    (event,) = watch.add(CounterReading("other", 2000.0, full={"lab-OST0000": 0.95}))
    assert event.kind == "saturation"
