"""Values of --impact and --neighbour; invalid ones are refused before the target is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strakes.base.errors import BadInputError
from strakes.base.units import MIB
from strakes.cli.main import run
from strakes.model.record import from_record, to_record
from strakes.runs.impact import Impact, parse_impact
from strakes.studies.neighbour import parse_neighbour

BAD_LIMITS = [
    *("", "fast", "200MiB", "5000", "200MiB/m", "ops/s", "5,000ops/s", "-5ops/s"),
    *("nanops/s", "infops/s", "1KiB/s", "2ops/s", "1e30ops/s", "1MiB/s, 2MiB/s"),
]
BAD_NEIGHBOURS = ["20ms", "p99", "p99=", "p99=20", "p95=20ms", "p99=fast", "p99=0", "p99=1us", "p99=2h", "p99=-1s"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["200MiB/s"], Impact(bytes_per_s=200.0 * MIB)),
        (["5000ops/s"], Impact(operations_per_s=5000.0)),
        (["5000 IOPS/s"], Impact(operations_per_s=5000.0)),
        (["1.5GB/s, 100op/s"], Impact(1.5e9, 100.0)),
        (["100op/s", "1MiB/s"], Impact(float(MIB), 100.0)),
        ([], Impact()),
    ],
)
def test_a_limit_is_on_bytes_or_operations_or_both(words: list[str], expected: Impact) -> None:
    assert parse_impact(words) == expected and from_record(Impact, to_record(expected)) == expected


@pytest.mark.parametrize(
    ("parse", "given"),
    [*((parse_impact, [word]) for word in BAD_LIMITS), *((parse_neighbour, word) for word in BAD_NEIGHBOURS)],
)
def test_an_invalid_limit_is_refused(parse: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(BadInputError):
        parse(given)


@pytest.mark.parametrize(
    "command", ["survey", "study open-close", "run plan.toml", "accept needs.toml", "study reproduce S1"]
)
@pytest.mark.parametrize(
    "option", [("--impact", "2ops/s"), ("--impact", "fast"), ("--neighbour", "p50=1s"), ("--neighbour", "20ms")]
)
def test_every_measuring_command_refuses_invalid_limits_with_status_2_before_it_reads_the_target(
    command: str, option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), str(tmp_path / "nowhere"), *option]) == 2
    assert option[0] in capsys.readouterr().err and os.listdir(tmp_path) == []


def test_a_drill_refuses_the_option_neighbour(tmp_path: Path) -> None:
    words = ["study", "recovery", str(tmp_path), "--neighbour", "p99=20ms", "--yes-this-interrupts-service"]
    assert run(words) in (2, 3) and os.listdir(tmp_path) == []
