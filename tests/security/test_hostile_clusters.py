"""Configurations of clusters that somebody else wrote to stall or crash whoever checks them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from strakes.errors import BadInputError
from strakes.failover.blocks import read_corosync
from strakes.failover.cib import Cib
from strakes.failover.rules.rule import findings
from strakes.failover.setup import Setup, read_plan, setup_of
from strakes.failover.simulation import behaviour_of
from strakes.failover.validators import verdicts

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


@pytest.mark.parametrize(
    ("constraints", "resources"),
    [
        ("", "<primitive/>" * 5000),
        ("<rsc_order/>" * 50_000, ""),
        (f"<rsc_order><resource_set>{'<resource_ref/>' * 3000}</resource_set></rsc_order>", ""),
        ("", "<group>" * 2000 + "</group>" * 2000),
        (f"<rsc_location>{'<rule>' * 1500}{'</rule>' * 1500}</rsc_location>", ""),
    ],
    ids=["resources", "constraints", "members of a set", "groups in groups", "rules in rules"],
)
def test_more_than_any_cluster_has_is_refused_in_a_moment(constraints: str, resources: str) -> None:
    began = time.monotonic()
    with pytest.raises(BadInputError, match="no CIB that can be checked") as refused:
        Cib(cib(constraints).replace("</resources>", f"{resources}</resources>"), "cib.xml")
    assert "more than" in refused.value.why and time.monotonic() - began < _MOMENT_S


def test_programs_are_not_asked_about_what_takes_them_minutes(tmp_path: Path) -> None:
    many = "".join(f'<primitive id="p{number}" class="ocf" type="Dummy"/>' for number in range(500))
    setup = plan(tmp_path, cib().replace("</resources>", f"{many}</resources>"))
    assert behaviour_of(setup) is None
    told = {verdict.program: verdict for verdict in verdicts(setup)}["crm_verify"]
    assert told.state == "absent" or (told.state == "unable" and "more than" in told.text)


def test_a_thousand_copies_in_one_file_are_looked_at_in_a_moment_and_more_are_refused(tmp_path: Path) -> None:
    setup = plan(tmp_path, cib())
    one = "resource r{} {{ on a {{ device /dev/drbd{} minor {}; address 10.0.0.1:7789; }} }}\n"
    text = "".join(one.format(number, number, max(number, 1)) for number in range(1000))
    began = time.monotonic()
    found = findings(setup_of("", tmp_path, {"etc/drbd.d/r.res": text}, setup.cluster))[0]
    assert [one.where for one in found if one.rule == "minor-differs-from-the-device"] == [
        "drbd: r0 has device /dev/drbd0 minor 1"
    ]
    assert time.monotonic() - began < 2 * _MOMENT_S
    with pytest.raises(BadInputError, match="no configuration that can be checked"):
        setup_of("", tmp_path, {"etc/drbd.d/r.res": text + one.format(1000, 0, 0)}, setup.cluster)
