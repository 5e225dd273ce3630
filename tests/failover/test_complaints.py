"""The rules find mistakes that people reported in public."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failover.clusters import need
from failover.planted import REFUSED
from failover.rule_example import setup_of_example
from strakes.failover.rule import findings
from strakes.failover.validators import verdicts

COMPLAINTS = tomllib.loads(Path(__file__).with_name("complaints.toml").read_text(encoding="utf-8"))["complaint"]
_FOUND = [complaint for complaint in COMPLAINTS if complaint["rule"]]


def test_at_most_one_complaint_is_not_found() -> None:
    assert len({complaint["source"] for complaint in COMPLAINTS}) >= 27 and len(COMPLAINTS) - len(_FOUND) <= 1


@pytest.mark.parametrize("complaint", _FOUND, ids=lambda complaint: complaint["source"].partition(".com/")[2])
def test_the_cause_of_a_complaint_is_found(complaint: Mapping[str, Any]) -> None:
    setup = setup_of_example(complaint["change"])
    if complaint["rule"] == REFUSED:
        need("crm_verify")
        assert [one for one in verdicts(setup) if one.state == "refuses"]
    else:
        assert complaint["rule"] in {finding.rule for finding in findings(setup)[0]}
