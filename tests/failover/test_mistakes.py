"""Clear mistakes are found, each by the rule that is about it; at most one in twenty is missed, and the lists say which."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover import mistakes, mistakes_dangers, mistakes_fresh, mistakes_storage, mistakes_values
from strakes.failover.rules.rule import findings
from strakes.failover.setup import read_plan

PLANTED = {
    **mistakes.PLANTED,
    **mistakes_storage.PLANTED,
    **mistakes_values.PLANTED,
    **mistakes_dangers.PLANTED,
    **mistakes_fresh.PLANTED,
}


def test_there_are_many_of_them_and_hardly_one_is_missed() -> None:
    assert len(PLANTED) >= 500
    assert len(mistakes_fresh.MISSED) <= 0.05 * len(mistakes_fresh.RULES)


@pytest.mark.parametrize("name", PLANTED)
def test_a_clear_mistake_is_found(name: str, tmp_path: Path) -> None:
    mistake = PLANTED[name]
    rules = {finding.rule: finding.severity for finding in findings(read_plan(mistake.plant(tmp_path)))[0]}
    assert rules.get(mistake.rule) in ("error", "warning"), rules
    assert set(mistakes_fresh.RULES.get(name, ())) <= set(rules)
