"""Mistakes, planted or reported in public, are found, each by the rule that the list names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import one_in
from failover.clusters import need
from failover.planted import PLANTED, REFUSED
from failover.rule_example import setup_of_example
from strakes.failover.rule import all_rules, findings
from strakes.failover.setup import read_plan
from strakes.failover.simulation import behaviour_of
from strakes.failover.validators import verdicts


def test_at_least_85_percent_of_the_costly_mistakes_are_found() -> None:
    costly = [mistake for mistake in PLANTED.values() if mistake.costs]
    found = [mistake for mistake in costly if mistake.rule]
    assert len(costly) >= 1500 and len(found) >= 0.85 * len(costly)


_SIMULATED = {rule.name for rule in all_rules() if "behaviour" in rule.needs}
_FOUND = [name for name, mistake in PLANTED.items() if mistake.rule]


@pytest.mark.parametrize("name", one_in(12, _FOUND))
def test_a_planted_mistake_is_found(name: str, tmp_path: Path) -> None:
    mistake = PLANTED[name]
    setup = read_plan(mistake.plant(tmp_path))
    if mistake.rule == REFUSED:
        need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "drbdadm")
        assert [verdict for verdict in verdicts(setup) if verdict.state == "refuses"]
        return
    if mistake.rule in _SIMULATED:
        need("crm_simulate")
        setup = replace(setup, behaviour=behaviour_of(setup))
    assert mistake.rule in {finding.rule for finding in findings(setup)[0]}


COMPLAINTS = tomllib.loads(Path(__file__).with_name("complaints.toml").read_text(encoding="utf-8"))["complaint"]
_CAUSES = [complaint for complaint in COMPLAINTS if complaint["rule"]]


def test_at_most_one_complaint_is_not_found() -> None:
    assert len({complaint["source"] for complaint in COMPLAINTS}) >= 27 and len(COMPLAINTS) - len(_CAUSES) <= 1


@pytest.mark.parametrize("complaint", _CAUSES, ids=lambda complaint: complaint["source"].partition(".com/")[2])
def test_the_cause_of_a_complaint_is_found(complaint: Mapping[str, Any]) -> None:
    setup = setup_of_example(complaint["change"])
    if complaint["rule"] == REFUSED:
        need("crm_verify")
        assert [one for one in verdicts(setup) if one.state == "refuses"]
    else:
        assert complaint["rule"] in {finding.rule for finding in findings(setup)[0]}
