"""Clear mistakes are found, each by the rule that is about it; at most one in twenty is missed, and the lists say which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import one_in
from failover import (
    mistakes_dangers,
    mistakes_fencing,
    mistakes_files,
    mistakes_fresh,
    mistakes_lustre,
    mistakes_membership,
    mistakes_replication,
    mistakes_resources,
    mistakes_storage,
    mistakes_times,
    mistakes_values,
)
from failover.clusters import need
from strakes.failover.rules.rule import all_rules, findings
from strakes.failover.setup import read_plan
from strakes.failover.simulation import behaviour_of
from strakes.failover.validators import verdicts

PLANTED = {
    **mistakes_fencing.PLANTED,
    **mistakes_membership.PLANTED,
    **mistakes_replication.PLANTED,
    **mistakes_resources.PLANTED,
    **mistakes_lustre.PLANTED,
    **mistakes_times.PLANTED,
    **mistakes_files.PLANTED,
    **mistakes_storage.PLANTED,
    **mistakes_values.PLANTED,
    **mistakes_dangers.PLANTED,
    **mistakes_fresh.PLANTED,
}


def test_there_are_many_of_them_and_hardly_one_is_missed() -> None:
    assert len(PLANTED) >= 500
    assert len(mistakes_fresh.MISSED) <= 0.05 * len(mistakes_fresh.RULES)


_SIMULATED = {rule.name for rule in all_rules() if "behaviour" in rule.needs}


@pytest.mark.parametrize("name", one_in(6, PLANTED))
def test_a_clear_mistake_is_found(name: str, tmp_path: Path) -> None:
    mistake = PLANTED[name]
    wanted = {mistake.rule, *mistakes_fresh.RULES.get(name, ())}
    setup = read_plan(mistake.plant(tmp_path))
    if wanted & _SIMULATED:
        need("crm_simulate")
        setup = replace(setup, behaviour=behaviour_of(setup))
    rules = {finding.rule: finding.severity for finding in findings(setup)[0]}
    if mistakes_fresh.REFUSED in wanted:
        need("corosync", "crm_verify", "drbdadm")
        assert [verdict for verdict in verdicts(setup) if verdict.state == "refuses"]
        return
    assert rules.get(mistake.rule) in ("error", "warning"), rules
    assert wanted <= set(rules)
