"""Service levels: the minutes that count as bad, and the page that ``strakes watch report`` writes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conftest import StrakesRunner
from live_parts import histogram_of
from strakes.base.errors import BadInputError
from strakes.model.service_level import ServiceLevel, judge, parse_service_level
from strakes.watch.ring import Ring, RingRow

LEVEL = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
NEVER = parse_service_level("p99 of create <= 20 ms in 100 % of minutes")
GOOD, BAD = histogram_of([0.001] * 100), histogram_of([0.001] * 90 + [0.05] * 10)


def minutes(bad: int, all_minutes: int) -> list[RingRow]:
    figures = [{"/fs probe create": BAD if minute < bad else GOOD} for minute in range(all_minutes)]
    return [RingRow(60.0 * minute, 60.0, figure) for minute, figure in enumerate(figures)]


@pytest.mark.parametrize(
    ("level", "bad", "of", "text"),
    [
        (LEVEL, 5, 1000, "PASS, exceeded in 5 of 1,000 minutes"),
        (LEVEL, 11, 1000, "FAIL, exceeded in 11 of 1,000 minutes"),
        (LEVEL, 1, 2, "PASS, exceeded in 1 of 2 minutes"),
        (NEVER, 1, 3, "FAIL, exceeded in 1 of 3 minutes"),
        (LEVEL, 0, 0, "UNKNOWN, nothing was measured"),
    ],
)
def test_a_service_level_is_met_if_few_minutes_or_a_single_one_exceed_it(
    level: ServiceLevel, bad: int, of: int, text: str
) -> None:
    assert str(judge(level, minutes(bad, of))).endswith(text)


@pytest.mark.parametrize(("seconds", "counted"), [(30.0, 0.5), (60.7, 1), (607.0, 10)])
def test_a_minute_that_took_slightly_longer_counts_as_one_however_many_directories_it_has(
    seconds: float, counted: float
) -> None:
    kept = judge(LEVEL, [RingRow(0.0, seconds, {"/a probe create": BAD, "/b probe create": GOOD})])
    assert (kept.minutes, kept.bad) == (counted, counted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p99 of create",
        "p0 of create <= 1ms in 99 % of minutes",
        "p99 of x <= 5 in 99 % of hours",
        "p99 of create <= 20 in 99 % of minutes",
    ],
)
def test_an_invalid_service_level_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="not a service level"):
        parse_service_level(text)


def test_the_page_judges_service_levels(tmp_path: Path, strakes: StrakesRunner) -> None:
    store, page = tmp_path / "store", tmp_path / "page.html"
    ring, slow = Ring(store), histogram_of([0.01] * 30)
    for minute in range(100):
        assert ring.add(RingRow(time.time() - 86400 + 60 * minute, 60.0, {"/fs probe create": slow}))
    level = ("--level", "p99 of create <= 1 ms in 99 % of minutes")
    done = strakes("watch", "report", "--since", "30d", "--store", str(store), *level, "--html", str(page))
    assert done.returncode == 0
    assert "FAIL" in page.read_text() and "http" not in page.read_text().replace("http-equiv", "")
