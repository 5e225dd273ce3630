"""Service levels, and the comparison before and after an upgrade, on simulated rows with a known difference."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import StrakesRunner
from strakes.base.errors import BadInputError
from strakes.model.service_level import judge, parse_service_level
from strakes.watch.gate import compare
from strakes.watch.histogram import Histogram
from strakes.watch.ring import Ring, RingRow

START_S = 1_700_000_000.0 - 1_700_000_000.0 % 86400


def rows(days: int, factor: float, seed: int, start_s: float = START_S) -> list[RingRow]:
    generator = np.random.default_rng(seed)
    made = []
    for tenth in range(days * 144):
        busy = 1.5 if 48 <= tenth % 144 < 108 else 1.0
        values = 0.01 * busy * factor * np.exp(0.2 * generator.standard_normal(30) + 0.1 * generator.standard_normal())
        made.append(RingRow(start_s + 600.0 * tenth, 600.0, {"/fs probe create": Histogram.of(values.tolist())}))
    return made


@pytest.mark.parametrize(("factor", "verdict"), [(1.12, "SLOWER"), (1.0, "SAME"), (0.8, "FASTER")])
def test_the_effect_of_an_upgrade_is_reported_with_its_interval(factor: float, verdict: str) -> None:
    (gate,) = compare(rows(10, 1.0, 1), rows(10, factor, 2))
    assert gate.verdict == verdict
    assert gate.low * 0.97 <= factor <= gate.high * 1.03


def test_a_difference_smaller_than_a_bucket_has_an_interval() -> None:
    (gate,) = compare(rows(10, 1.0, 3), rows(10, 1.02, 4))
    assert 1.005 < gate.ratio < 1.035 and gate.high - gate.low > 0.002


def test_too_few_days_are_inconclusive() -> None:
    (gate,) = compare(rows(10, 1.0, 1), rows(10, 2.0, 2)[:60])
    assert gate.verdict == "INCONCLUSIVE" and "too few days: each side needs 3" in gate.needs


def test_hours_that_only_one_side_has_are_not_compared() -> None:
    busy, longer = (
        [row for row in rows(10, 1.0, seed) if 8 <= row.time_s % 86400 / 3600 < until]
        for seed, until in ((1, 22), (2, 24))
    )
    (gate,) = compare(busy, longer)
    assert gate.verdict == "SAME" and gate.hours_after == 140
    (gate,) = compare(rows(10, 1.0, 1), [row for row in rows(10, 1.0, 2) if row.time_s % 86400 < 6 * 3600])
    assert gate.verdict == "INCONCLUSIVE" and math.isnan(gate.ratio)


def test_a_short_comparison_warns_of_weekends() -> None:
    (gate,) = compare(rows(4, 1.0, 1), rows(4, 1.3, 2))
    assert gate.verdict == "SLOWER" and "a weekend may look like a change" in str(gate)


def test_an_unchanged_system_is_seldom_reported_as_changed() -> None:
    generator = np.random.default_rng(5)
    told = 0
    for _ in range(100):
        sides = []
        for start in (0, 7 * 24):
            noise, values = 0.0, []
            for hour in range(start, start + 7 * 24):
                noise = 0.8 * noise + 0.06 * generator.standard_normal()
                took_s = 0.01 * math.exp(noise + 0.4 * (8 <= hour % 24 < 18))
                values.append(RingRow(START_S + 3600.0 * hour, 3600.0, {"/fs probe create": Histogram.of([took_s])}))
            sides.append(values)
        told += compare(sides[0], sides[1])[0].verdict in ("SLOWER", "FASTER")
    # The nominal rate is 10 %; the strong autocorrelation of the hours raises it.
    assert told <= 20


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


def test_the_commands_compare_and_report_read_the_store(tmp_path: Path, strakes: StrakesRunner) -> None:
    ring = Ring(tmp_path / "store")
    now_s = time.time()
    for row in [*rows(4, 1.0, 1, now_s - 8 * 86400), *rows(4, 1.5, 2, now_s - 4 * 86400)]:
        assert ring.add(row)
    early = str(now_s - 8 * 86400)
    done = strakes("watch", "compare", "--before", early, "--after", early, "--store", str(tmp_path / "store"))
    assert done.returncode == 0 and "there are 0 before" in done.stdout
    middle = str(now_s - 4 * 86400)
    done = strakes("watch", "compare", "--before", middle, "--after", middle, "--store", str(tmp_path / "store"))
    assert done.returncode == 1 and "SLOWER" in done.stdout
    level = "p99 of create <= 1 ms in 99 % of minutes"
    page = tmp_path / "page.html"
    done = strakes(
        "watch", "report", "--since", "30d", "--store", str(tmp_path / "store"), "--level", level, "--html", str(page)
    )
    assert (
        done.returncode == 0 and "FAIL" in page.read_text() and "http" not in page.read_text().replace("http-equiv", "")
    )


def test_a_service_level_is_a_need_that_accept_answers(tmp_path: Path) -> None:
    from strakes.model.results import Results
    from strakes.tuning.accept_judge import judge as answer
    from strakes.tuning.accept_needs import needs_from_toml

    (tmp_path / "needs.toml").write_text(
        '[[need]]\nkind = "service-level"\nlevel = "p99 of create <= 20 ms in 99 % of minutes"\n'
    )
    _, needs = needs_from_toml(tmp_path / "needs.toml")
    results = Results((), 0.9, {})
    fast, slow = ([RingRow(0.0, 600.0, {"/fs probe create": Histogram.of([took] * 100)})] for took in (0.001, 0.05))
    verdicts = [answer(needs, {}, results, (), minutes)[0].verdict for minutes in (fast, slow, [])]
    assert verdicts == ["PASS", "FAIL", "UNKNOWN"]
