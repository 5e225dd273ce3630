"""Good configurations of other styles have no error and at most one warning."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import one_in
from failover.clusters import GOOD, need
from strakes.base.errors import BadInputError
from strakes.failover.check import RuleFinding, check, findings
from strakes.failover.setup import read_plan
from strakes.failover.validators import ValidatorVerdict


def test_there_are_at_least_123_good_configurations() -> None:
    assert len(GOOD) >= 123


# Simulations take most of the time. Without --all, most configurations are judged without them.
_SAMPLE = list(GOOD)[::16]


@pytest.mark.parametrize(
    "name", [*_SAMPLE, *(pytest.param(name, marks=pytest.mark.long) for name in GOOD if name not in _SAMPLE)]
)
def test_a_good_configuration_of_another_style_has_no_error_and_at_most_one_warning(name: str) -> None:
    need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "crm_simulate")
    result = check(read_plan(GOOD[name]))
    _require_good(result.verdicts, result.findings)


@pytest.mark.parametrize("name", one_in(4, [name for name in GOOD if name not in _SAMPLE]))
def test_a_good_configuration_is_good_without_simulations(name: str) -> None:
    _require_good((), findings(read_plan(GOOD[name]))[0])


def _require_good(verdicts: Sequence[ValidatorVerdict], findings: Sequence[RuleFinding]) -> None:
    assert not [verdict for verdict in verdicts if verdict.state == "refuses"]
    assert not [finding for finding in findings if finding.severity == "error"]
    assert len([finding for finding in findings if finding.severity == "warning"]) <= 1


_JUNK = ("", "x", "-1", "99999999999", "a:b:c", ";;", "0", "::", "[::1]", "INFINITY", "a b")


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_damaged_files_are_judged_or_refused_without_a_crash(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    shutil.copytree(GOOD[chance.choice(list(GOOD))], tmp_path, dirs_exist_ok=True)
    path = chance.choice([file for file in sorted(tmp_path.rglob("*")) if file.is_file()])
    for _ in range(3):
        text = path.read_text()
        values = list(re.finditer(r'(?<==")[^"]*(?=")' if path.suffix == ".xml" else r"\S+", text))
        if not values:
            break
        chosen = chance.choice(values)
        path.write_text(
            text[: chosen.start()] + chance.choice([*_JUNK, chance.choice(values)[0]]) + text[chosen.end() :]
        )
    with suppress(BadInputError):
        findings(read_plan(tmp_path))
