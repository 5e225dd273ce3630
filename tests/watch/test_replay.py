"""Replay of recorded years from CSV files: changes, peer groups, and errors of files."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from conftest import StrakesRunner
from strakes.base.errors import BadInputError
from strakes.watch.peer_group import shares_of_equals
from strakes.watch.replay import Columns, changes_of, read_series, replay
from strakes.watch.values import WatchedSeries

DAY_S = 86400.0


def write_year(path: Path, *, index: bool = False) -> None:
    generator = np.random.default_rng(3)
    rows: list[list[str]] = []
    for day in range(300):
        for name in ("/bin/one", "/bin/two"):
            slow = name == "/bin/two" and day >= 200
            rate = 100 * (0.6 if slow else 1.0) * float(np.exp(0.05 * generator.standard_normal()))
            rows.append([*([str(len(rows))] if index else []), str(1.5e9 + day * DAY_S), name, str(rate)])
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as file:
        csv.writer(file).writerows([["start", "app", "rate"], *rows])


COLUMNS = Columns("start", "rate", ("app",))


@pytest.mark.parametrize("index", [False, True])
def test_the_series_that_changed_is_named_with_day_and_size(tmp_path: Path, index: bool) -> None:
    write_year(tmp_path / "year.csv.gz", index=index)
    found = replay(tmp_path / "year.csv.gz", COLUMNS, 0.1)
    (event,) = [event for event in found.events if event.alarm]
    assert event.subject == "two" and found.series == 2 and found.alarms == 1 and not found.learning
    assert abs(event.began_s - (1.5e9 + 200 * DAY_S)) <= DAY_S
    assert event.size == pytest.approx(0.6, abs=0.06)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    write_year(tmp_path / "year.csv")
    with pytest.raises(BadInputError, match="no column 'rat'") as caught:
        read_series(tmp_path / "year.csv", Columns("start", "rat"))
    assert "rate" in caught.value.remedy


def test_the_command_prints_events_and_writes_json(tmp_path: Path, strakes: StrakesRunner) -> None:
    write_year(tmp_path / "year.csv")
    words = f"watch replay {tmp_path}/year.csv --time start --value rate --by app --false-alarms-a-month 0.1".split()
    done = strakes(*words, "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0 and "two changed by -" in done.stdout
    assert "1 alarm (0.10 a month), 0 gains" in done.stdout
    events = json.loads((tmp_path / "out.json").read_text())["events"]
    assert [event["kind"] for event in events if event["alarm"]] == ["level"]
    assert strakes("watch", "replay", str(tmp_path / "year.csv")).returncode == 2


TARGETS = Columns("time", "rate", ("target",))


def write_targets(path: Path, slow: Callable[[int], float], load: float, noise: float) -> None:
    """Write eight equal targets for 300 days. ``slow``: factor of OST0003 by day; ``load``: drift of all by day."""
    generator = np.random.default_rng(5)
    of_all = np.cumsum(load * generator.standard_normal(300))
    rows = [
        (
            1.5e9 + day * DAY_S,
            f"OST{target:04x}",
            100 * (slow(day) if target == 3 else 1.0) * np.exp(of_all[day] + noise * generator.standard_normal()),
        )
        for day in range(300)
        for target in range(8)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("time", "target", "rate"), *rows])


def test_the_slow_target_of_a_peer_group_is_named_under_a_varying_load(tmp_path: Path) -> None:
    write_targets(tmp_path / "targets.csv", lambda day: 0.8 if day >= 200 else 1.0, load=0.2, noise=0.1)
    alarms = [event for event in replay(tmp_path / "targets.csv", TARGETS, 0.02, equals=True).events if event.alarm]
    slowest = min(alarms, key=lambda event: event.size or 1.0)
    assert slowest.subject == "OST0003"
    assert slowest.size is not None
    assert 0.74 < slowest.size < 0.86
    assert 0 <= (slowest.told_s - 1.5e9) / DAY_S - 200 < 30
    assert len(alarms) <= 2


@pytest.mark.parametrize(("slow_days", "load"), [(range(0), 0.2), (range(200, 203), 0.0)])
def test_equal_targets_and_a_short_drop_raise_no_alarm(tmp_path: Path, slow_days: range, load: float) -> None:
    write_targets(tmp_path / "targets.csv", lambda day: 0.5 if day in slow_days else 1.0, load, noise=0.03)
    result = replay(tmp_path / "targets.csv", TARGETS, 0.1, equals=True)
    assert result.alarms == 0 and all(event.kind == "early-warning" for event in result.events)


@pytest.mark.parametrize(
    ("shifts_s", "value", "why"), [((0, 1, 2), 5, "no time has values"), ((0, 0, 0), 0, "zero or")]
)
def test_a_peer_group_that_cannot_be_compared_is_refused_with_the_reason(
    tmp_path: Path, shifts_s: tuple[int, ...], value: int, why: str
) -> None:
    rows = (
        f"{1.7e9 + day * DAY_S + shift_s},{name},{value}\n"
        for day in range(9)
        for name, shift_s in zip("abc", shifts_s, strict=True)
    )
    (tmp_path / "year.csv").write_text(f"start,app,rate\n{''.join(rows)}")
    with pytest.raises(BadInputError, match="cannot be compared with each other") as caught:
        replay(tmp_path / "year.csv", COLUMNS, equals=True)
    assert why in caught.value.why


@pytest.mark.parametrize("targets", [3, 4, 8])
@pytest.mark.parametrize("ratio", [0.5, 0.8])
def test_a_slow_target_does_not_bias_the_shares_of_its_peer_group(targets: int, ratio: float) -> None:
    days = np.arange(600.0)
    changed = []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        load = np.cumsum(0.1 * generator.standard_normal(600))
        series = []
        for target in range(targets):
            noise = 0.2 * generator.standard_normal() + 0.1 * generator.standard_normal(600)
            fall = np.where((target == 1) & (days >= 300), ratio, 1.0)
            series.append(WatchedSeries(f"OST{target}", days * DAY_S, 100 * np.exp(load + noise) * fall))
        shares = shares_of_equals(series)
        changed.append([np.median(share.values[300:]) / np.median(share.values[:300]) for share in shares])
    expected = [ratio if target == 1 else 1.0 for target in range(targets)]
    assert np.mean(changed, axis=0) == pytest.approx(expected, rel=0.04)


def test_a_lasting_drop_is_a_slow_target_when_it_is_confirmed(tmp_path: Path) -> None:
    slow_days = {*range(200, 260)}
    write_targets(tmp_path / "targets.csv", lambda day: 0.5 if day in slow_days else 1.0, load=0.0, noise=0.03)
    result = replay(tmp_path / "targets.csv", TARGETS, 0.1, equals=True)
    slow = next(event for event in result.events if event.kind == "slow-target")
    assert slow.subject == "OST0003" and slow.alarm and result.alarms == 1
    assert "against the others, from 1.0" in slow.text and slow.text.endswith(" times their mean")
    assert 198 <= (slow.began_s - 1.5e9) / DAY_S <= 202 and 203 <= (slow.told_s - 1.5e9) / DAY_S <= 212
    assert slow.ended_s is not None or len(result.events) > 1


def test_a_further_fall_of_a_slow_target_is_a_second_event() -> None:
    times = np.asarray(1.5e9 + DAY_S * np.arange(260), dtype=np.float64)
    values = np.asarray(np.exp(0.05 * np.random.default_rng(4).standard_normal(260)), dtype=np.float64)
    values[200:] *= 0.9
    values[212:] *= 0.6
    events = changes_of(WatchedSeries("OST1", times, values), 0.05, worse_up=False, of_equals=True)
    assert [event.kind for event in events if event.alarm] == ["slow-target", "slow-target"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_target_whose_rows_end_early_is_named(tmp_path: Path, gone: bool) -> None:
    generator = np.random.default_rng(2)
    with (tmp_path / "targets.csv").open("w") as file:
        file.write("time,target,rate\n")
        for day in range(200):
            for target in range(3):
                # Every target lacks some values, and some days are missing.
                if day % 20 < 17 and generator.random() > 0.2 and not (gone and target == 1 and day >= 120):
                    rate = 100 * np.exp(0.05 * generator.standard_normal())
                    file.write(f"{1.5e9 + day * DAY_S},OST{target},{rate}\n")
    events = replay(tmp_path / "targets.csv", TARGETS, equals=True).events
    gaps = [event for event in events if event.kind == "gap"]
    assert [event.subject for event in gaps] == (["OST1"] if gone else [])
    for event in gaps:
        assert 112 <= (event.began_s - 1.5e9) / DAY_S <= 125 and not event.alarm and "until 2018-01" in event.text


def day_rows(time: str = "%Y-%m-%d", value: str = "{:.2f}") -> list[tuple[str, str]]:
    generator = np.random.default_rng(4)
    return [
        (
            datetime.fromtimestamp(1.7e9 + day * DAY_S, UTC).strftime(time),
            value.format(1234 * (0.6 if day >= 80 else 1) * float(np.exp(0.03 * generator.standard_normal()))),
        )
        for day in range(100)
    ]


@pytest.mark.parametrize(
    ("rows", "separator", "encoding"),
    [
        (day_rows(), ",", "utf-8-sig"),
        (day_rows("%Y-%m-%dT%H:%M:%SZ"), ";", "utf-16"),
        (day_rows("%Y%m%d", "{:.3e}"), "\t", "utf-8"),
        ([(f"{1.7e9 + day * DAY_S:.0f}000", value) for day, (_, value) in enumerate(day_rows())], "|", "utf-8"),
    ],
)
def test_files_with_various_separators_and_time_formats_are_read(
    tmp_path: Path, rows: list[tuple[str, str]], separator: str, encoding: str
) -> None:
    with (tmp_path / "year.csv").open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=separator).writerows([("time ", "rate"), *rows])
    (series,), passed_over = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert passed_over == 0
    assert np.allclose(series.times // DAY_S, (1.7e9 + np.arange(100) * DAY_S) // DAY_S)
    assert np.median(series.values[80:]) == pytest.approx(0.6 * 1234, rel=0.02)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("time;rate\n" + "01/02/2026;1\n" * 5, "no row has a time and a value"),
        ("time;rate\n" + "2026-01-01;1,5\n" * 5, "no row has a time and a value"),
        ("time,rate\n" + "44927.125,1\n" * 5, "no row has a time and a value"),
        ("time,rate\n2026-01-01,1\n" + "2026-01-01,1 GiB/s\n" * 5, "rows cannot be read"),
        ('time,rate\n2026-01-01,"1\n2026-01-02,2\n', "not a CSV file"),
        ("", "the file is empty"),
        ("time,rate\n", "no row has a time and a value"),
        ("\x1f\x8bnot gzip", "the file cannot be read to its end"),
        ("time,rate,rate\n2026-01-01,1,2\n2026-01-02,2,3\n", "2 columns are called 'rate'"),
    ],
)
def test_other_formats_are_refused_with_the_faulty_row(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "year.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(BadInputError, match=fault) as caught:
        read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert fault != "rows cannot be read" or "'1 GiB/s'" in caught.value.why


def test_duplicate_rows_count_once_and_different_values_of_one_time_stay(tmp_path: Path) -> None:
    rows = [",".join(row) for row in day_rows()]
    further = f"{day_rows()[7][0]},9"
    (tmp_path / "year.csv").write_text("\n".join(["time,rate", *rows, *rows[::2], further, ""]))
    (series,), passed_over = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert len(series.values) == 101 and passed_over == 0


def test_missing_values_and_a_few_unreadable_rows_are_skipped(tmp_path: Path) -> None:
    rows = [(time, "N/A" if day % 3 else value) for day, (time, value) in enumerate(day_rows())]
    rows[0] = (rows[0][0], "failed")
    (tmp_path / "year.csv").write_text("time,rate\n" + "".join(f"{time},{value}\n" for time, value in rows))
    (series,), passed_over = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert passed_over == 67 and len(series.values) == 33


def test_a_short_file_is_summarised_in_days_and_short_series_are_named(tmp_path: Path, strakes: StrakesRunner) -> None:
    rows = [f"{time},{value}" for time, value in day_rows()[:15]]
    (tmp_path / "year.csv").write_text("\n".join(["time,rate", *rows, ""]))
    done = strakes("watch", "replay", str(tmp_path / "year.csv"), "--time", "time", "--value", "rate")
    assert "too short, with fewer than 60 values: rate" in done.stdout
    assert "1 series over 14 d: 0 alarms, 0 gains" in done.stdout
