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
from failover.clusters import GOOD, need, with_start
from strakes.base.errors import BadInputError
from strakes.failover.check import RuleFinding, check, findings
from strakes.failover.setup import read_plan
from strakes.failover.validators import ValidatorVerdict, verdicts


def test_there_are_at_least_123_good_configurations() -> None:
    assert len(GOOD) >= 123


# Every sixth one is checked with simulations of all failures, which take most of the time, the others only with --all.
_SAMPLE = list(GOOD)[::6]


@pytest.mark.parametrize(
    "name", [*_SAMPLE, *(pytest.param(name, marks=pytest.mark.long) for name in GOOD if name not in _SAMPLE)]
)
def test_a_good_configuration_of_another_style_has_no_error_and_at_most_one_warning(name: str) -> None:
    need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "crm_simulate")
    result = check(read_plan(GOOD[name]))
    _require_good(result.verdicts, result.findings)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.more) for name in GOOD if name not in _SAMPLE])
def test_a_good_configuration_of_another_style_is_good_when_it_starts(name: str, tmp_path: Path) -> None:
    need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "crm_simulate")
    setup = with_start(read_plan(GOOD[name]), tmp_path)
    _require_good(verdicts(setup), findings(setup)[0])


def _require_good(verdicts: Sequence[ValidatorVerdict], findings: Sequence[RuleFinding]) -> None:
    assert not [verdict for verdict in verdicts if verdict.state == "refuses"]
    assert not [finding for finding in findings if finding.severity == "error"]
    assert len([finding for finding in findings if finding.severity == "warning"]) <= 1


_JUNK = ("", "x", "-1", "99999999999", "a:b:c", ";;", "0", "::", "[::1]", "INFINITY", "a b")


@pytest.mark.parametrize("seed", one_in(4, range(40)))
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
