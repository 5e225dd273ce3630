"""Service levels: the error budget, the page of `strakes watch report`, and needs of `strakes accept`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conftest import StrakesRunner
from strakes.base.errors import BadInputError
from strakes.model.service_level import judge, parse_service_level
from strakes.watch.histogram import Histogram
from strakes.watch.ring import Ring, RingRow


def test_the_error_budget_counts_minutes() -> None:
    level = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")
    good, bad = Histogram.of([0.001] * 100), Histogram.of([0.001] * 90 + [0.05] * 10)
    made = [RingRow(60.0 * n, 60.0, {"/fs probe create": bad if n < 5 else good}) for n in range(1000)]
    kept = judge(level, made)
    assert kept.kept and kept.minutes == 1000 and kept.bad == 5 and kept.budget == "50% of the error budget is left"
    spent = judge(level, [RingRow(0.0, 600.0, {"/fs probe create": bad}), *made[10:400]])
    assert spent.kept is False and "used up" in spent.budget
    assert judge(level, []).kept is None


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
    ring, slow = Ring(store), Histogram.of([0.01] * 30)
    for minute in range(100):
        assert ring.add(RingRow(time.time() - 86400 + 60 * minute, 60.0, {"/fs probe create": slow}))
    level = ("--level", "p99 of create <= 1 ms in 99 % of minutes")
    done = strakes("watch", "report", "--since", "30d", "--store", str(store), *level, "--html", str(page))
    assert done.returncode == 0
    assert "FAIL" in page.read_text() and "http" not in page.read_text().replace("http-equiv", "")
