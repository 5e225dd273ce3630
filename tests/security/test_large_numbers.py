"""Extreme numbers: each parser of amounts returns a finite value or refuses the text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.toml_file import parse_toml
from strakes.base.units import parse_bytes, parse_seconds
from strakes.failover.facts import score, seconds
from strakes.interop.foreign import number, time_of
from strakes.interop.formats import read_file
from strakes.model.plan_read import plan_from_toml
from strakes.model.service_level import parse_service_level
from strakes.predict.asked import parse_asked
from strakes.runs.impact import parse_impact
from strakes.survey.comparison import parse_fail_on
from strakes.tuning.accept_needs import needs_from_toml

_UNITS = (
    "",
    *["b", "k", "KiB", "MB", "GiB", "TiB", "ms", "s", "m", "min", "h", "d", "/s", "GiB/s", "ops/s", "iops/s", "%"],
)
_digits = st.builds(lambda digit, count: digit * count, st.sampled_from("1279"), st.integers(1, 6000))
_numbers = (
    _digits
    | st.builds("{}.{}".format, _digits, _digits)
    | st.builds("{}e{}".format, st.integers(0, 99), st.integers(-(10**6), 10**6))
    | st.sampled_from(("inf", "-inf", "nan", "INFINITY", "1_000", "²", "٣", "0x10", "-1", "+1", "1e400", "1" * 310))
)
PARSERS: tuple[Callable[[str], object], ...] = (
    parse_bytes,
    parse_seconds,
    parse_impact,
    parse_service_level,
    parse_fail_on,
    parse_asked,
    lambda text: parse_asked(f"clients={text}"),
    lambda text: parse_asked(f"link={text}"),
    lambda text: parse_fail_on(f"slower:{text}"),
    lambda text: parse_service_level(f"99% of requests within {text}"),
    number,
    time_of,
    seconds,
    lambda text: seconds(f"PT{text}S"),
)


@pytest.mark.parametrize("parse", PARSERS)
@settings(deadline=None, max_examples=60)
@given(_numbers, st.sampled_from(_UNITS))
@example("9" * 400, "GiB")
@example("9" * 5000, "")
@example("1e400", "")
@example("inf", "ops/s")
def test_an_amount_is_finite_or_refused(parse: Callable[[str], object], digits: str, unit: str) -> None:
    try:
        amount = parse(digits + unit)
    except BadInputError:
        return
    if isinstance(amount, int | float):
        assert math.isfinite(amount)


@settings(deadline=None)
@given(_numbers)
@example("99999999999999999999")
def test_accepted_sizes_and_times_fit_into_the_engines_integers(digits: str) -> None:
    for parse in (parse_bytes, parse_seconds):
        with suppress(BadInputError):
            assert parse(digits) <= 2**60


def test_a_score_is_a_number_or_infinite() -> None:
    assert score("9" * 5000) == math.inf and score("-INFINITY") == -math.inf


@pytest.mark.parametrize("number", ["9" * 400, "0x" + "f" * 300, "0b" + "1" * 1100, f"-{1 << 64}", str(1 << 64)])
def test_a_whole_number_beyond_64_bits_is_refused_in_every_toml_file(number: str) -> None:
    for text in (f"seed = {number}", f"[[phase]]\n[phase.a]\nitems = [1, {number}]"):
        with pytest.raises(BadInputError, match="more than 64 bits"):
            parse_toml(text, "plan.toml", "the plan")


@pytest.mark.parametrize("value", ['"' + "9" * 400 + 'GiB"', "9" * 400, "1e400", "inf", "nan"])
def test_a_plan_with_an_extreme_size_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'ranks = 1\n[[phase]]\nkind = "write"\nblock_bytes = {value}\ntransfer_bytes = 4096\n')
    with pytest.raises(BadInputError):
        plan_from_toml(path, 1)
    path.write_text(f"[need]\nbytes_per_s = {value}\n")
    with pytest.raises(StrakesError):
        needs_from_toml(path)


@pytest.mark.parametrize("stamp", [10**17, -(10**17), 10**300, 1e300, "soon", [], {"a": 1}, True])
def test_an_impossible_time_in_a_fio_result_is_ignored(tmp_path: Path, stamp: object) -> None:
    side = {"io_bytes": 1 << 30, "bw_bytes": 1 << 20, "iops": 5.0, "runtime": 1000, "total_ios": 5}
    document = {"fio version": "fio-3.36", "timestamp": stamp, "jobs": [{"jobname": "x", "write": side}]}
    path = tmp_path / "fio.json"
    path.write_text(json.dumps(document))
    (run,) = read_file(path).tests
    assert run.figures and (run.when is None or run.when.year < 9999)
