"""Each rule finds its bad example and not its good one; good plans pass; configurations of others are judged right."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from conftest import StrakesRunner
from failover.clusters import EXAMPLES, need, planned
from failover.rule_example import setup_of_example
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.cli.failover_text import print_check
from strakes.failover.check import Check, Rule, all_rules, findings
from strakes.failover.policy_engine import behaviour_of
from strakes.failover.setup import Setup, read_live, read_plan
from strakes.failover.validators import ValidatorVerdict, verdicts
from strakes.targets.command import Completed

COROSYNC, CIB, RES = "etc/corosync/corosync.conf", "pacemaker/cib.xml", "etc/drbd.d/mdt0.res"
_RULES = Path(str(files("strakes.failover") / "rules"))
_NAMED = {rule.name: rule for rule in all_rules()}
# Rules on descriptions, statements and running clusters have no examples; planted mistakes and other tests cover them.
_WITHOUT_EXAMPLE = {"description", "state", "statements"}


def _applied(rule: Rule, example: tuple[str, ...]) -> list[str]:
    setup = setup_of_example(example)
    if "behaviour" in rule.needs:
        need("crm_simulate")
        setup = replace(setup, behaviour=behaviour_of(setup))
    assert rule.needs <= setup.parts
    return list(rule.find(setup))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_finds_its_bad_example_and_not_its_good_one(rule: Rule) -> None:
    assert rule.source.startswith("https://") and rule.reason.endswith(".") and rule.remedy
    if rule.bad or not rule.needs & _WITHOUT_EXAMPLE:
        assert _applied(rule, rule.bad) and not _applied(rule, rule.good)


def test_there_are_at_most_150_rules_and_two_thirds_are_data() -> None:
    rules = all_rules()
    assert len({rule.name for rule in rules}) == len(rules) <= 150
    assert sum(isinstance(rule.find, partial) for rule in rules) >= 2 / 3 * len(rules)
    tables = [*_RULES.glob("*.toml"), *(_RULES.parent / "options").glob("*.toml")]
    assert sum(len(table.read_text().splitlines()) for table in tables) <= 3000


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_good_plan_has_no_finding(name: str, tmp_path: Path) -> None:
    found, _ = findings(read_plan(planned(name, tmp_path)))
    assert not found


def test_a_rule_gives_one_finding_with_all_places() -> None:
    mounts = [f"primitive m{number} ocf:heartbeat:Filesystem device=/dev/sda{number}" for number in (1, 2, 3)]
    (found,) = [one for one in findings(setup_of_example(mounts))[0] if one.rule == "disk-or-export-doubtful"]
    assert [place.split()[1] for place in found.places] == ["m1", "m2", "m3"]


def _case(name: str) -> Setup:
    return read_plan(Path(__file__).parent / "cases" / name)


@pytest.mark.parametrize(
    "name", ["nodes-without-names", "multicast-without-nodelist", "agent-external-ec2", "cluster-uuid-of-pcs"]
)
def test_a_good_foreign_cluster_has_no_error_and_no_unknown_option(name: str) -> None:
    found = findings(_case(name))[0]
    assert not [finding for finding in found if finding.severity == "error" or finding.rule == "option-unknown"]


ARRANGEMENTS = tomllib.loads(Path(__file__).with_name("arrangements.toml").read_text(encoding="utf-8"))["arrangement"]


@pytest.mark.parametrize("one", ARRANGEMENTS, ids=lambda one: one["rule"])
def test_an_arrangement_of_a_published_guide_is_no_mistake_or_only_doubtful(one: dict[str, Any]) -> None:
    rules = [_NAMED[name] for name in one["rule"].split()]
    places = [(place, rule) for rule in rules for place in _applied(rule, tuple(one["change"]))]
    found = {getattr(place, "severity", rule.severity) for place, rule in places}
    assert found == ({one["found"]} if "found" in one else set())


def test_the_page_add_a_rule_shows_an_existing_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/developers/add-a-rule.md").read_text()
    shown = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown and shown[1].strip() in "\n".join(table.read_text() for table in _RULES.glob("*.toml"))


@pytest.mark.parametrize(
    ("file", "old", "new", "program"),
    [
        (RES, "on-io-error detach;", "on-io-eror detach;", "drbdadm"),
        (COROSYNC, "token: 3000", "token: soon", "corosync"),
        (CIB, 'score="INFINITY"', 'scor="INFINITY"', "crm_verify"),
    ],
)
def test_refusals_of_the_cluster_programs_are_reported_with_their_messages(
    file: str, old: str, new: str, program: str, strakes: StrakesRunner, tmp_path: Path
) -> None:
    need("/lib/drbd/drbdadm-84", "corosync", "crm_verify", "crm_simulate")
    plan = planned("tianhe2", tmp_path)
    (plan / file).write_text((plan / file).read_text().replace(old, new))
    done = strakes("failover", "check", plan, "--json", "-")
    said = {one["program"]: one for one in json.loads(done.stdout)["verdicts"]}
    refused = next(one for name, one in said.items() if program in name)
    if refused["state"] == "unable":
        pytest.skip(refused["text"])
    assert done.returncode == 1 and refused["state"] == "refuses" and refused["text"]


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("strakes.failover.validators.installed", lambda _: False)
    said = verdicts(read_plan(planned("tianhe2", tmp_path)))
    assert [one.state for one in said] == ["absent"] * 3 and "install corosync" in {one.text for one in said}


def test_only_errors_affect_the_exit_status(strakes: StrakesRunner, tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    corosync, cib = plan / COROSYNC, plan / CIB
    good = corosync.read_text()
    cib.write_text(cib.read_text().replace('name="concurrent-fencing"', 'name="shutdown-lock"'))
    warned = strakes("failover", "check", plan)
    assert warned.returncode == 0 and "cluster-property-doubtful" in warned.stdout, warned.stdout
    corosync.write_text(good.replace("two_node: 1", "two_node: 0"))
    failed = strakes("failover", "check", plan)
    assert failed.returncode == 1 and "two-nodes-without" in failed.stdout and "https://" in failed.stdout


def test_an_empty_directory_and_unbalanced_braces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no cluster configuration"):
        read_plan(tmp_path)
    plan = planned("tianhe2", tmp_path / "plan")
    (plan / COROSYNC).write_text("totem {\n")
    with pytest.raises(BadInputError, match="'totem' is not closed"):
        read_plan(plan)
    (plan / COROSYNC).write_text("}\n")
    with pytest.raises(BadInputError, match="a closing brace"):
        read_plan(plan)


def test_a_running_cluster_is_checked_by_its_own_files(tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    cib = (plan / CIB).read_text()
    (plan / "etc/fstab").write_text(
        "# nothing\n/dev/drbd0 /mnt/mdt0 lustre defaults 0 0\n/dev/drbd1 /x ext4 noauto 0 0\n"
    )
    live = read_live(lambda argv, timeout_s=0: Completed(tuple(argv), 0, cib, ""), root=plan)
    found, passed_over = findings(live)
    assert [(one.rule, one.places) for one in found] == [
        ("mounted-beside-pacemaker", ("fstab: /dev/drbd0 on /mnt/mdt0",))
    ]
    assert "differs-from-the-description" in passed_over  # a live check has no description


def test_a_machine_without_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="not a node of a cluster"):
        read_live(root=tmp_path)
    plan = planned("tianhe2", tmp_path / "plan")
    with pytest.raises(EnvironmentLacksError, match="Pacemaker does not answer") as error:
        read_live(
            lambda argv, timeout_s=0: Completed(tuple(argv), 102, "", "Transport endpoint is not connected"), root=plan
        )
    assert error.value.exit_status == 3


_HEALTHY = """<pacemaker-result><summary><current_dc with_quorum="true"/></summary>
<nodes><node name="mds-a" online="true"/><node name="mds-b" online="true"/></nodes>
<resources><resource id="mount-mdt0" role="Started" managed="true" failed="false" blocked="false"/></resources>
<fence_history/></pacemaker-result>"""
_LINKS = "Local node ID 1, transport knet\nLINK ID 0 udp\n\taddr\t= 10.1.0.1\n\tstatus:\n\t\tnodeid:          2:\tconnected\n"
_EVENT = '<fence_event target="mds-b" action="off" status="failed"/>'
_DRBD84 = " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n"
_DRBD9 = "mdt0 role:Primary\n  disk:UpToDate\n  mds-b role:Secondary\n    peer-disk:UpToDate\n"


@pytest.mark.parametrize(
    ("command", "old", "new", "rule"),
    [
        ("cat", "", "", ""),
        ("drbdsetup", "", "", ""),
        ("crm_mon", 'name="mds-b" online="true"', 'name="mds-b" online="false" unclean="true"', "cluster-degraded"),
        ("crm_mon", 'with_quorum="true"', 'with_quorum="false"', "cluster-degraded"),
        ("crm_mon", 'blocked="false"', 'blocked="true"', "service-not-running"),
        ("crm_mon", "<fence_history/>", f"<fence_history>{_EVENT}</fence_history>", "failures-not-cleaned-up"),
        ("corosync-cfgtool", "connected", "disconnected", "cluster-degraded"),
        ("corosync-cfgtool", "connected", "FAULTY", "cluster-degraded"),
        ("cat", "cs:Connected", "cs:StandAlone", "cluster-degraded"),
        ("cat", "C r-----", "C s-----", "cluster-degraded"),
        ("drbdsetup", "mdt0 role:Primary", "mdt0 role:Primary suspended:fencing", "cluster-degraded"),
        ("cat", "UpToDate/UpToDate", "UpToDate/Outdated", "cluster-degraded"),
        ("drbdsetup", "peer-disk:UpToDate", "peer-disk:Inconsistent", "cluster-degraded"),
        ("drbdsetup", "mds-b role:Secondary", "mds-b connection:Connecting", "cluster-degraded"),
    ],
)
def test_the_state_of_a_running_cluster_is_checked(command: str, old: str, new: str, rule: str, tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    healthy = {"cibadmin": (plan / CIB).read_text(), "crm_mon": _HEALTHY, "corosync-cfgtool": _LINKS, "cat": _DRBD84}
    if command == "drbdsetup":
        healthy = {**healthy, "drbdsetup": _DRBD9}

    assert old in healthy[command]
    answers = {**healthy, command: healthy[command].replace(old, new)}
    setup = read_live(
        lambda argv, timeout_s=0: Completed(
            tuple(argv), 0 if argv[0] in answers else 127, answers.get(argv[0], ""), ""
        ),
        root=plan,
    )
    assert {finding.rule for finding in findings(setup)[0]} == {rule} - {""}


def test_the_message_of_a_refusing_program_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_check(Check("plan", (), (ValidatorVerdict("corosync", "refuses", "parse error\nin line 3"),), (), 1))
    assert "corosync REFUSES it\n    parse error\n    in line 3\n" in capsys.readouterr().out


def test_links_in_systemd_directories_enable_units_and_links_to_dev_null_mask_them(tmp_path: Path) -> None:
    plan = planned("nfs", tmp_path)
    units = plan / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    (units / "tmp.mount").symlink_to("/dev/null")
    (units / "multi-user.target.wants/chrony.service").symlink_to("/lib/systemd/system/chrony.service")
    (plan / "etc/sysctl.d").mkdir()
    (plan / "etc/sysctl.d/50-coredump.conf").symlink_to("/dev/null")
    assert not findings(read_plan(plan))[0]
    (units / "multi-user.target.wants/nfs-server.service").symlink_to("/nowhere")
    assert [one.rule for one in findings(read_plan(plan))[0]] == ["started-beside-pacemaker"]
