"""Mistakes, planted or reported in public, are found, each by the rule that the list names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from conftest import one_in
from failover.clusters import need, with_cib, with_start
from failover.planted import PLANTED, REFUSED, Mistake
from failover.rule_example import setup_of_example
from strakes.failover.check import all_rules, findings, places_of
from strakes.failover.setup import read_plan, views_of_nodes
from strakes.failover.validators import verdicts


def test_at_least_85_percent_of_the_costly_mistakes_are_found() -> None:
    costly = [mistake for mistake in PLANTED.values() if mistake.costs]
    assert len(costly) >= 1500 and len([mistake for mistake in costly if mistake.rule]) >= 0.85 * len(costly)


RULES = {rule.name: rule for rule in all_rules()}
_REFUSED = [mistake for mistake in PLANTED.values() if mistake.rule == REFUSED]
_FOUND = [mistake for mistake in PLANTED.values() if mistake.rule in RULES]
_SIMULATED = [mistake for mistake in _FOUND if "behaviour" in RULES[mistake.rule].needs]
_READ = [mistake for mistake in _FOUND if mistake not in _SIMULATED]
BASES = {base: list(mistakes) for base, mistakes in groupby(sorted(_READ, key=attrgetter("base")), attrgetter("base"))}
# Without --all, one of eight mistakes in each configuration is planted: all of them take a minute.
_STEP = 8
# All rules judge every tenth mistake, so that a rule that fails on a damaged file is noticed. They take 80 ms. Without
# --all, they do so only in one of five configurations.
_WHOLE_STEP = 10
_WHOLE = list(BASES)[::5]


def test_every_mistake_that_is_found_names_an_existing_rule() -> None:
    assert len(_REFUSED) + len(_FOUND) == sum(bool(mistake.rule) for mistake in PLANTED.values())


@pytest.mark.parametrize("base", one_in(12, BASES))
def test_the_mistakes_planted_in_a_good_configuration_are_found(
    base: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with_cib(base, tmp_path)
    missed, every = [], request.config.getoption("--all")
    for number, mistake in enumerate(BASES[base][:: 1 if every else _STEP]):
        with mistake.planted(tmp_path):
            setup = read_plan(tmp_path)
        rule = RULES[mistake.rule]
        found = any(places_of(rule, setup, views_of_nodes(setup)))
        if number % _WHOLE_STEP == 0 and (every or base in _WHOLE):
            found = rule.name in {finding.rule for finding in findings(setup)[0]}
        missed += [] if found else [mistake.name]
    assert not missed


_MORE = [pytest.param(one, marks=pytest.mark.long) if number % 5 else one for number, one in enumerate(_SIMULATED)]


@pytest.mark.parametrize("mistake", _MORE, ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found_by_a_simulation(mistake: Mistake, tmp_path: Path) -> None:
    need("crm_simulate")
    with mistake.planted(with_cib(mistake.base, tmp_path / "site")):
        setup = read_plan(tmp_path / "site")
    (tmp_path / "work").mkdir()
    assert any(RULES[mistake.rule].find(with_start(setup, tmp_path / "work")))


@pytest.mark.parametrize("mistake", one_in(12, _REFUSED), ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_refused_by_a_program_of_the_cluster(mistake: Mistake, tmp_path: Path) -> None:
    need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "drbdadm")
    with mistake.planted(with_cib(mistake.base, tmp_path)):
        assert [verdict for verdict in verdicts(read_plan(tmp_path)) if verdict.state == "refuses"]


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
        assert any(places_of(RULES[complaint["rule"]], setup, {}))
