"""Replay of recorded years from CSV files: changes, and errors of files."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from conftest import StrakesRunner
from strakes.base.errors import BadInputError
from strakes.watch.replay import Columns, read_series, replay

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
    (series,), passed_over, impossible = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert passed_over == 0 and not impossible
    assert np.allclose(series.times // DAY_S, (1.7e9 + np.arange(100) * DAY_S) // DAY_S)
    assert np.median(series.values[80:]) == pytest.approx(0.6 * 1234, rel=0.02)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("time;rate\n" + "01/02/2026;1\n" * 5, "no row has both a time and a value"),
        ("time;rate\n" + "2026-01-01;1,5\n" * 5, "no row has both a time and a value"),
        ("time,rate\n" + "44927.125,1\n" * 5, "no row has both a time and a value"),
        ("time,rate\n2026-01-01,1\n" + "2026-01-01,1 GiB/s\n" * 5, "rows cannot be read"),
        ('time,rate\n2026-01-01,"1\n2026-01-02,2\n', "not a CSV file"),
        ("", "the file is empty"),
        ("time,rate\n", "no row has both a time and a value"),
        ("\x1f\x8bnot gzip", "the file cannot be read to the end"),
        ("time,rate\n" + "".join(f"20210602,{value}\n" for value in range(80)), "all rows have the same time"),
        ("time,rate,rate\n2026-01-01,1,2\n2026-01-02,2,3\n", "2 columns are called 'rate'"),
        # Before the year 1 in UTC, which datetime cannot represent.
        ("time,rate\n0001-01-01T00:00+14:00,-1\n" + "2026-01-01,1\n" * 200, "a number that is too large"),
    ],
)
def test_other_formats_are_refused_with_the_faulty_row(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "year.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(BadInputError, match=fault) as caught:
        replay(tmp_path / "year.csv", Columns("time", "rate"))
    assert fault != "rows cannot be read" or "'1 GiB/s'" in caught.value.why


def test_duplicate_rows_count_once_and_different_values_of_one_time_stay(tmp_path: Path) -> None:
    rows = [",".join(row) for row in day_rows()]
    further = f"{day_rows()[7][0]},9"
    (tmp_path / "year.csv").write_text("\n".join(["time,rate", *rows, *rows[::2], further, ""]))
    (series,), passed_over, impossible = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert len(series.values) == 101 and passed_over == 0 and not impossible


def test_missing_values_and_a_few_unreadable_rows_are_skipped(tmp_path: Path) -> None:
    rows = [(time, "N/A" if day % 3 else value) for day, (time, value) in enumerate(day_rows())]
    rows[0] = (rows[0][0], "failed")
    (tmp_path / "year.csv").write_text("time,rate\n" + "".join(f"{time},{value}\n" for time, value in rows))
    (series,), passed_over, impossible = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert passed_over == 67 and len(series.values) == 33 and not impossible


def test_a_separator_at_the_end_of_each_row_shifts_no_column(tmp_path: Path) -> None:
    rows = "".join(f"{time},{value},7,\n" for time, value in day_rows())
    (tmp_path / "year.csv").write_text("time,rate,latency\n" + rows)
    (series,), *_ = read_series(tmp_path / "year.csv", Columns("time", "rate"))
    assert np.median(series.values) > 700


def test_a_negative_value_of_a_positive_series_is_named_and_left_out(tmp_path: Path) -> None:
    rows = day_rows()
    rows[40] = (rows[40][0], "-1.02e14")
    (tmp_path / "year.csv").write_text("time,rate\n" + "".join(f"{time},{value}\n" for time, value in rows))
    result = replay(tmp_path / "year.csv", Columns("time", "rate"))
    assert any("1 impossible value left out: -1.02e+14 at 20" in note for note in result.notes)
    alarms = [event for event in result.events if event.alarm]
    assert alarms and all(event.size == pytest.approx(0.62, abs=0.06) for event in alarms)


def test_a_short_file_is_summarised_in_days_and_short_series_are_named(tmp_path: Path, strakes: StrakesRunner) -> None:
    rows = [f"{time},{value}" for time, value in day_rows()[:15]]
    (tmp_path / "year.csv").write_text("\n".join(["time,rate", *rows, ""]))
    done = strakes("watch", "replay", str(tmp_path / "year.csv"), "--time", "time", "--value", "rate")
    assert "too short, with fewer than 60 values: rate" in done.stdout
    assert "1 series over 14 d: 0 alarms, 0 gains" in done.stdout
