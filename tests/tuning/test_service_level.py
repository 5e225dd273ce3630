"""Service levels: how bad minutes consume the error budget."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from strakes.model.service_level import judge, parse_service_level

LEVEL = parse_service_level("p99 of create <= 20 ms in 99 % of minutes")


@dataclass(frozen=True)
class Latency:
    took_s: float
    count: int = 60

    def percentile(self, share: float) -> float:
        return self.took_s


@dataclass(frozen=True)
class Row:
    time_s: float
    figures: dict[str, Latency]
    seconds: float = 60.0


def minutes(bad: range, until: int) -> list[Row]:
    return [Row(60.0 * at, {"/fs probe create": Latency(0.05 if at in bad else 0.001)}) for at in range(until)]


def test_the_error_budget_lasts_for_the_first_bad_minute_and_its_overuse_is_stated_as_a_factor() -> None:
    assert "PASS, exceeded in 1 of 2 minutes, 0% of the error budget is left" in str(judge(LEVEL, minutes(range(1), 2)))
    assert "FAIL, exceeded in 66 of 200 minutes, the error budget is used up 33 times" in str(
        judge(LEVEL, minutes(range(66), 200))
    )


@pytest.mark.parametrize(("seconds", "counted"), [(30.0, 0.5), (60.7, 1), (607.0, 10)])
def test_a_minute_that_took_slightly_longer_counts_as_one(seconds: float, counted: float) -> None:
    kept = judge(LEVEL, [Row(0.0, {"/fs probe create": Latency(0.05)}, seconds)])
    assert (kept.minutes, kept.bad) == (counted, counted)


def test_a_minute_with_two_directories_counts_once() -> None:
    row = Row(0.0, {"/a probe create": Latency(0.05), "/b probe create": Latency(0.001)})
    kept = judge(LEVEL, [row])
    assert (kept.minutes, kept.bad) == (1.0, 1.0)


def test_a_level_without_an_error_budget_fails_with_the_first_bad_minute() -> None:
    never = parse_service_level("p99 of create <= 20 ms in 100 % of minutes")
    assert "FAIL" in str(judge(never, minutes(range(1), 3)))
