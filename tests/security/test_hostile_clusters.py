"""Configurations of clusters that somebody else wrote to stall or crash whoever checks them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from strakes.errors import BadInputError
from strakes.failover.blocks import read_corosync
from strakes.failover.cib import Cib
from strakes.failover.rules.rule import findings
from strakes.failover.setup import Setup, read_plan

_MOMENT_S = 5.0
_CIB = (
    '<cib><configuration><crm_config/><nodes><node id="1" uname="{long}"/></nodes>'
    '<resources><primitive id="{long}" class="stonith" type="fence_ipmilan"/></resources>'
    "<constraints>{constraints}</constraints><fencing-topology>{levels}</fencing-topology></configuration></cib>"
)


def cib(constraints: str = "", levels: str = "") -> str:
    return _CIB.format(long="a" * 40, constraints=constraints, levels=levels)


@pytest.mark.parametrize("pattern", ["(a+)+$b", "(a|a)*b", "(", "*", "a{99999999999}", "(" * 5000])
def test_a_pattern_without_end_or_meaning_is_refused_in_a_moment(pattern: str) -> None:
    level = f'<fencing-level id="l" target-pattern="{pattern}" index="1" devices="x"/>'
    began = time.monotonic()
    with pytest.raises(BadInputError, match="pattern") as refused:
        Cib(cib(levels=level), "cib.xml").levels_of("a" * 40)
    assert refused.value.where == pattern[:80]
    assert time.monotonic() - began < _MOMENT_S


def test_a_pattern_of_resources_is_refused_like_one_of_nodes(tmp_path: Path) -> None:
    constraint = '<rsc_location id="x" rsc-pattern="(a|a)*b" node="b" score="1"/>'
    with pytest.raises(BadInputError, match="pattern"):
        list(findings(plan(tmp_path, cib(constraint))))


def plan(place: Path, configuration: str, corosync: str = "totem {\n version: 2\n}\n") -> Setup:
    for name, text in (("etc/corosync/corosync.conf", corosync), ("pacemaker/cib.xml", configuration)):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text(text)
    return read_plan(place)


def test_numbers_that_nobody_can_calculate_with_are_refused(tmp_path: Path) -> None:
    level = f'<fencing-level id="l" target="b" index="{"9" * 5000}" devices="x"/>'
    with pytest.raises(BadInputError, match="no configuration") as refused:
        plan(tmp_path, cib(levels=level))
    assert "digits" in refused.value.why


def test_digits_of_other_scripts_are_no_number_of_milliseconds(tmp_path: Path) -> None:
    list(findings(plan(tmp_path, cib(), "totem {\n token: ²\n consensus: ²\n}\n")))


def test_open_quotes_take_a_time_like_their_length() -> None:
    began = time.monotonic()
    assert read_corosync('"\\' * 500_000, "corosync.conf").blocks == []
    assert time.monotonic() - began < _MOMENT_S
