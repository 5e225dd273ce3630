"""Every rule with a planted mistake that it must find; all of them silent on the good plans."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import StrakesRunner
from failover.clusters import EXAMPLES, need, planned
from failover.mistakes_fresh import REFUSED, RULES
from failover.test_mistakes import PLANTED
from strakes.cli.failover_text import print_check
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.failover.check import Check
from strakes.failover.rules.rule import OWN, all_rules, findings
from strakes.failover.setup import read_live, read_plan
from strakes.failover.validators import ValidatorVerdict
from strakes.targets.command import Completed

COROSYNC, CIB, TOML, LUSTRE = (
    "etc/corosync/corosync.conf",
    "pacemaker/cib.xml",
    "cluster.toml",
    "lustre/make-targets.sh",
)


@dataclass(frozen=True)
class Mistake:
    """``old`` (a regular expression) becomes ``new`` in one file of the plan of an example."""

    file: str
    old: str
    new: str
    example: str = "tianhe2"


def value(name: str, new: str, *, old: str = '[^"]*') -> Mistake:
    """Another value of an attribute in the CIB, wherever it is."""
    return Mistake(CIB, rf'name="{name}" value="{old}"', f'name="{name}" value="{new}"')


RES = "etc/drbd.d/mdt0.res"
MISTAKES = {
    "one-heartbeat-path": Mistake(COROSYNC, r"ring1_addr: .*", ""),
    "heartbeat-links-share-a-subnet": Mistake(COROSYNC, r"ring1_addr: 10\.2\.0\.(.)", r"ring1_addr: 10.1.0.10\1"),
    "heartbeat-links-share-a-switch": Mistake(
        TOML, r"(?m)^heartbeat = true\nreplication", 'switch = "service-switch"\nheartbeat = true\nreplication'
    ),
    "heartbeat-on-loopback": Mistake(COROSYNC, r"ring0_addr: 10\.1\.0\.1\b", "ring0_addr: 127.0.1.1"),
    "links-differ-between-nodes": Mistake(COROSYNC, r"ring1_addr: 10\.2\.0\.2", ""),
    "transport-without-redundancy": Mistake(COROSYNC, "transport: knet", "transport: udpu"),
    "node-ids-missing-or-repeated": Mistake(COROSYNC, "nodeid: 2", "nodeid: 1"),
    "heartbeat-not-encrypted": Mistake(COROSYNC, "crypto_cipher: aes256", "crypto_cipher: none"),
    "names-differ-from-corosync": Mistake(CIB, 'uname="mds-b"', 'uname="mds-b.example.org"'),
    "no-quorum-provider": Mistake(COROSYNC, "provider: corosync_votequorum", ""),
    "two-nodes-without-tie-breaker": Mistake(COROSYNC, "two_node: 1", ""),
    "two-node-with-quorum-device": Mistake(
        COROSYNC, "provider: .*", "provider: corosync_votequorum\n  two_node: 1", "lustre-active-active"
    ),
    "two-node-with-more-nodes": Mistake(
        COROSYNC,
        r"nodelist \{",
        "nodelist {\n  node {\n    name: mds-c\n    nodeid: 3\n    ring0_addr: 10.1.0.3\n    ring1_addr: 10.2.0.3\n  }",
    ),
    "wait-for-all-switched-off": Mistake(COROSYNC, "wait_for_all: 1", "wait_for_all: 0"),
    "cluster-has-two-names": Mistake(
        CIB, r"(<cluster_property_set [^>]*>)", r'\1<nvpair id="planted" name="cluster-name" value="another"/>'
    ),
    "deprecated": Mistake(
        CIB, r"(<cluster_property_set [^>]*>)", r'\1<nvpair id="planted" name="crmd-transition-delay" value="1s"/>'
    ),
    "loss-of-quorum-ignored": value("no-quorum-policy", "ignore"),
    "fencing-switched-off": value("stonith-enabled", "false"),
    "node-without-fencing-device": value("pcmk_host_list", "mds-a", old="mds-b"),
    "fencing-device-for-unknown-node": value("pcmk_host_list", "mds-2", old="mds-b"),
    "fencing-that-pretends": Mistake(CIB, 'type="fence_ipmilan"', 'type="external/ssh"'),
    "one-bmc-for-two-nodes": value("ip", "10.9.0.1", old=r"10\.9\.0\.2"),
    "fencing-race": value("pcmk_delay_base", "0s"),
    "power-cycle-instead-of-off": value("method", "cycle"),
    "ipmi-without-lanplus": value("lanplus", "0"),
    "password-in-the-cib": Mistake(CIB, 'name="password_script" value="[^"]*"', 'name="password" value="hunter2"'),
    "split-brain-discards-the-secondary": Mistake(RES, "after-sb-1pri consensus", "after-sb-1pri discard-secondary"),
    "fencing-shares-the-heartbeat-network": Mistake(TOML, "management-switch", "service-switch"),
    "bmc-dies-with-its-node": Mistake(TOML, r'"feed-1", "feed-2"', '"feed-1"'),
    "fencing-level-with-unusable-device": Mistake(
        CIB, 'devices="outlet-mds1-1,', 'devices="outlet-mds1,', "lustre-active-active"
    ),
    "token-too-short": Mistake(COROSYNC, "token: 3000", "token: 1000"),
    "token-too-long": Mistake(COROSYNC, "token: 3000", "token: 60000"),
    "stonith-timeout-too-short": value("stonith-timeout", "20s"),
    "no-monitor": Mistake(
        CIB, 'name="monitor" interval="60s" timeout="300s"', 'name="monitor" interval="0s" timeout="300s"'
    ),
    "one-role-not-monitored": Mistake(CIB, 'interval="31s"', 'interval="29s"'),
    "monitor-timeout-too-short": Mistake(CIB, 'interval="60s" timeout="300s"', 'interval="60s" timeout="5s"'),
    "stop-timeout-too-short": Mistake(
        CIB, 'name="stop" interval="0s" timeout="300s"', 'name="stop" interval="0s" timeout="20s"'
    ),
    "start-timeout-too-short": Mistake(CIB, 'timeout="600s"', 'timeout="60s"'),
    "replication-not-synchronous": Mistake(RES, "protocol C;", "protocol A;"),
    "no-replication-fencing": Mistake(RES, "fencing resource-and-stonith;", ""),
    "no-fence-peer-handler": Mistake(RES, "fence-peer .*", ""),
    "handler-of-the-other-version": Mistake(RES, r"crm-fence-peer\.sh", "crm-fence-peer.9.sh"),
    "two-primaries": Mistake(RES, "protocol C;", "protocol C; allow-two-primaries;"),
    "split-brain-solved-by-discarding": Mistake(RES, "discard-zero-changes", "discard-younger-primary"),
    "split-brain-not-reported": Mistake(RES, "split-brain .*", ""),
    "flushes-off": Mistake(RES, "on-io-error detach;", "on-io-error detach; disk-flushes no;"),
    "disk-error-passed-to-the-file-system": Mistake(RES, "on-io-error detach;", "on-io-error pass_on;"),
    "copies-never-compared": Mistake(RES, "verify-alg .*", ""),
    "devices-collide": Mistake("etc/drbd.d/mdt1.res", "/dev/md/mdt1", "/dev/md/mdt0", "lustre-active-active"),
    "secret-readable-by-all": Mistake(RES, "protocol C;", "protocol C; shared-secret hunter2;"),
    "drbd-device-not-managed": value("target", "/dev/drbd7"),
    "mount-not-with-the-primary": Mistake(CIB, 'with-rsc-role="Promoted"', 'with-rsc-role="Started"'),
    "mount-before-promotion": Mistake(CIB, "<rsc_order [^>]*>", ""),
    "drbd-clone-wrong": value("notify", "false"),
    "leftover-move-constraint": Mistake(
        CIB,
        "<constraints>",
        '<constraints><rsc_location id="cli-ban-serve-mdt0-on-mds-b" rsc="serve-mdt0" node="mds-b" score="-INFINITY"/>',
    ),
    "pinned-to-one-node": Mistake(
        CIB, 'rsc="serve-mdt0" node="mds-a" score="50"', 'rsc="serve-mdt0" node="mds-b" score="-INFINITY"'
    ),
    "stickiness-not-set": Mistake(
        CIB, r'<nvpair [^>]*name="resource-stickiness"[^>]*>|<rsc_location id="serve[^>]*/>', ""
    ),
    "fencing-device-not-monitored": Mistake(CIB, r'<op id="fence-mds-a-monitor[^>]*>', ""),
    "no-stickiness": value("resource-stickiness", "10"),
    "nothing-is-managed": Mistake(
        CIB, 'name="concurrent-fencing" value="true"', 'name="maintenance-mode" value="true"'
    ),
    "failure-never-forgotten": Mistake(CIB, '<nvpair [^>]*name="failure-timeout"[^>]*>', ""),
    "nobody-is-alerted": Mistake(CIB, r"(?s)<alerts>.*</alerts>", ""),
    "multiple-mount-protection-off": Mistake(LUSTRE, "--mgs ", '--mgs --mkfsoptions="-O ^mmp" '),
    "clients-know-one-server": Mistake(LUSTRE, r"--servicenode=10\.1\.0\.2@tcp \\\n", ""),
    "mgs-known-on-one-node": Mistake(LUSTRE, r"--mgsnode=10\.30\.0\.2@o2ib \\\n", "", "lustre-active-active"),
    "failnode-and-servicenode": Mistake(LUSTRE, "--mgs ", "--mgs --failnode=10.1.0.2@tcp "),
    "recovery-shorter-than-the-clients-need": Mistake(LUSTRE, "recovery_time_hard=900", "recovery_time_hard=120"),
    "both-nodes-on-one-feed": Mistake(TOML, r'"feed-1", "feed-2"', '"feed-1"'),
}
# What can only be looked for on a node has a test of its own.
LIVE_ONLY = {
    "mounted-beside-pacemaker",
    "node-not-available",
    "service-not-running",
    "fencing-device-does-not-answer",
    "failures-not-cleaned-up",
    "link-down",
    "copies-not-the-same",
}
# Of files that a plan does not have.
_PARTS_OF_OTHERS = {
    "behaviour",
    "hosts",
    "exports",
    "lnet",
    "modules",
    "sysctl",
    "units",
    "nodes",
    "fstab",
    "sbd",
    "authkey",
    "heartbeat 2",
    "state",
    "link state",
    "replication state",
    "booth",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_good_plan_is_passed_in_silence(name: str, tmp_path: Path) -> None:
    found, passed_over = findings(read_plan(planned(name, tmp_path)))
    assert not found
    others = {rule.name for rule in all_rules() if rule.needs & _PARTS_OF_OTHERS}
    assert "lustre" not in name or set(passed_over) == others


def test_every_rule_has_its_mistake_a_reason_and_a_public_source() -> None:
    rules = all_rules()
    planted = {planted.rule for planted in PLANTED.values()} | {name for names in RULES.values() for name in names}
    planted -= {REFUSED}
    assert {rule.name for rule in rules} == set(MISTAKES) | planted | LIVE_ONLY and len(rules) >= 25
    for rule in rules:
        assert (rule.source == OWN or rule.source.startswith("https://")) and rule.reason.endswith(".") and rule.remedy


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    plan = planned(mistake.example, tmp_path)
    path = plan / mistake.file
    text, times = re.subn(mistake.old, mistake.new, path.read_text())
    assert times
    path.write_text(text)
    found, _ = findings(read_plan(plan))
    assert name in {finding.rule for finding in found}


def test_options_common_to_all_resources_count_for_each(tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    resource, common = plan / RES, plan / "etc/drbd.d/global_common.conf"
    resource.write_text(resource.read_text().replace("protocol C;", ""))
    common.write_text(common.read_text() + "common { net { protocol A; } }\n")
    found, _ = findings(read_plan(plan))
    assert [finding.rule for finding in found] == ["replication-not-synchronous"]


def test_a_device_that_promotes_itself_as_drbd_9_can_needs_no_resource_of_pacemakers(tmp_path: Path) -> None:
    plan = planned("lustre-active-active", tmp_path)
    cib, resource = plan / CIB, plan / RES
    cib.write_text(cib.read_text().replace('name="drbd_resource" value="mdt0"', 'name="drbd_resource" value="other"'))
    rules = {one.rule for one in findings(read_plan(plan))[0]}
    assert "drbd-device-not-managed" in rules
    resource.write_text(resource.read_text().replace("auto-promote no;", "auto-promote yes;"))
    rules = {one.rule for one in findings(read_plan(plan))[0]}
    assert "drbd-device-not-managed" not in rules


def test_the_writes_of_one_that_served_are_never_thrown_away_unasked(tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    resource = plan / RES
    resource.write_text(resource.read_text().replace("after-sb-1pri consensus", "after-sb-1pri discard-secondary"))
    assert [one.rule for one in findings(read_plan(plan))[0]] == ["split-brain-discards-the-secondary"]


@pytest.mark.parametrize(
    ("file", "old", "new", "program"),
    [
        (RES, "on-io-error detach;", "on-io-eror detach;", "drbdadm"),
        (COROSYNC, "token: 3000", "token: soon", "corosync"),
        (CIB, 'score="INFINITY"', 'scor="INFINITY"', "crm_verify"),
    ],
)
def test_what_the_programs_themselves_refuse_is_passed_on_in_their_words(
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


def test_programs_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from strakes.failover import validators

    monkeypatch.setattr(validators, "installed", lambda _: False)
    said = validators.verdicts(read_plan(planned("tianhe2", tmp_path)))
    assert [one.state for one in said] == ["absent"] * 3 and "install corosync" in {one.text for one in said}


def test_errors_decide_the_exit_status_and_warnings_do_not(strakes: StrakesRunner, tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    corosync = plan / COROSYNC
    good = corosync.read_text()
    corosync.write_text(good.replace("token: 3000", "token: 60000"))
    warned = strakes("failover", "check", plan)
    assert warned.returncode == 0 and "token-too-long" in warned.stdout, warned.stdout
    corosync.write_text(good.replace("wait_for_all: 1", "wait_for_all: 0"))
    failed = strakes("failover", "check", plan)
    assert failed.returncode == 1 and "wait-for-all-switched-off" in failed.stdout and "https://" in failed.stdout


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no configuration of a cluster"):
        read_plan(tmp_path)
    plan = planned("tianhe2", tmp_path / "plan")
    (plan / COROSYNC).write_text("totem {\n")
    with pytest.raises(BadInputError, match="'totem' is not closed"):
        read_plan(plan)
    (plan / COROSYNC).write_text("}\n")
    with pytest.raises(BadInputError, match="a brace is closed"):
        read_plan(plan)


def test_a_running_cluster_is_checked_by_its_own_files(tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    cib = (plan / CIB).read_text()
    (plan / "etc/fstab").write_text(
        "# nothing\n/dev/drbd0 /mnt/mdt0 lustre defaults 0 0\n/dev/drbd1 /x ext4 noauto 0 0\n"
    )
    live = read_live(lambda argv, timeout_s=0: Completed(tuple(argv), 0, cib, ""), root=plan)
    found, passed_over = findings(live)
    assert [(one.rule, one.where) for one in found] == [("mounted-beside-pacemaker", "fstab: /dev/drbd0 on /mnt/mdt0")]
    assert "both-nodes-on-one-feed" in passed_over  # nobody described the room


def test_a_machine_without_a_cluster_is_told_so(tmp_path: Path) -> None:
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
_DRBD84 = " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n"
_DRBD9 = "mdt0 role:Primary\n  disk:UpToDate\n  mds-b role:Secondary\n    peer-disk:UpToDate\n"


@pytest.mark.parametrize(
    ("command", "old", "new", "rule"),
    [
        ("crm_mon", 'name="mds-b" online="true"', 'name="mds-b" online="false" unclean="true"', "node-not-available"),
        ("crm_mon", 'name="mds-b" online="true"', 'name="mds-b" online="true" standby="true"', "node-not-available"),
        ("crm_mon", 'with_quorum="true"', 'with_quorum="false"', "node-not-available"),
        ("crm_mon", 'role="Started"', 'role="Stopped"', "service-not-running"),
        ("crm_mon", 'managed="true"', 'managed="false"', "service-not-running"),
        ("crm_mon", 'blocked="false"', 'blocked="true"', "service-not-running"),
        (
            "crm_mon",
            "<fence_history/>",
            '<failures><failure op_key="fence-mds-b_monitor_60000" node="mds-a" exitstatus="error"/></failures>',
            "fencing-device-does-not-answer",
        ),
        (
            "crm_mon",
            "<fence_history/>",
            '<failures><failure op_key="mount-mdt0_monitor_60000" node="mds-a" exitstatus="not running"/></failures>',
            "failures-not-cleaned-up",
        ),
        (
            "crm_mon",
            "<fence_history/>",
            '<fence_history><fence_event target="mds-b" action="off" status="failed"/></fence_history>',
            "failures-not-cleaned-up",
        ),
        ("corosync-cfgtool", "connected", "disconnected", "link-down"),
        ("corosync-cfgtool", "connected", "FAULTY", "link-down"),
        ("cat", "cs:Connected", "cs:StandAlone", "copies-not-the-same"),
        ("cat", "C r-----", "C s-----", "copies-not-the-same"),
        ("drbdsetup", "mdt0 role:Primary", "mdt0 role:Primary suspended:fencing", "copies-not-the-same"),
        ("cat", "UpToDate/UpToDate", "UpToDate/Outdated", "copies-not-the-same"),
        ("drbdsetup", "peer-disk:UpToDate", "peer-disk:Inconsistent", "copies-not-the-same"),
        ("drbdsetup", "mds-b role:Secondary", "mds-b connection:Connecting", "copies-not-the-same"),
    ],
)
def test_the_state_of_a_running_cluster_is_checked(command: str, old: str, new: str, rule: str, tmp_path: Path) -> None:
    plan = planned("tianhe2", tmp_path)
    healthy = {"cibadmin": (plan / CIB).read_text(), "crm_mon": _HEALTHY, "corosync-cfgtool": _LINKS, "cat": _DRBD84}
    if command == "drbdsetup":
        healthy = {**healthy, "drbdsetup": _DRBD9}

    def live(answers: dict[str, str]) -> set[str]:
        setup = read_live(
            lambda argv, timeout_s=0: Completed(
                tuple(argv), 0 if argv[0] in answers else 127, answers.get(argv[0], ""), ""
            ),
            root=plan,
        )
        return {finding.rule for finding in findings(setup)[0]}

    assert not live(healthy)
    assert old in healthy[command]
    assert live({**healthy, command: healthy[command].replace(old, new)}) == {rule}


def test_each_line_of_a_program_that_refuses_its_configuration_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_check(Check("plan", (), (ValidatorVerdict("corosync", "refuses", "parse error\nin line 3"),), (), 1))
    assert "corosync REFUSES it\n    parse error\n    in line 3\n" in capsys.readouterr().out


def test_what_is_enabled_is_a_link_and_what_is_a_link_to_nothing_is_switched_off(tmp_path: Path) -> None:
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


def test_a_ban_that_has_ended_and_a_voter_in_standby_are_no_mistakes(tmp_path: Path) -> None:
    ban = (
        '<rsc_location id="cli-ban-serve-home-on-nfs2" rsc="serve-home"><rule id="b1" score="-INFINITY">'
        '<expression id="b2" attribute="#uname" operation="eq" value="nfs2"/>'
        '<date_expression id="b3" operation="lt" end="{}"/></rule></rsc_location></constraints>'
    )
    plan = planned("nfs", tmp_path / "nfs")
    good = (plan / CIB).read_text()
    (plan / CIB).write_text(good.replace("</constraints>", ban.format("2024-01-01 12:00:00 +01:00")))
    assert not findings(read_plan(plan))[0]
    (plan / CIB).write_text(good.replace("</constraints>", ban.format("2999-01-01 12:00:00 +01:00")))
    assert "leftover-move-constraint" in {one.rule for one in findings(read_plan(plan))[0]}
    plan = planned("three-nodes", tmp_path / "three")
    text = re.sub(r'<rsc_location id="serve-mdt0-not-login1"[^>]*>', "", (plan / CIB).read_text())
    standby = '<instance_attributes id="n1"><nvpair id="n2" name="standby" value="on"/></instance_attributes></node>'
    (plan / CIB).write_text(re.sub(r'(<node id="3" uname="login1") />', rf"\1>{standby}", text))
    assert not findings(read_plan(plan))[0]
