"""Faults of a Pacemaker cluster: on a configuration without a running cluster, and on the real pair of the lab."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from conftest import wait_for
from failover.clusters import need, planned
from lab.running import Labs
from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.control.drill_pair import CUT_ALL, POWER_OFF, switched_off
from strakes.control.drill_run import Drill, play
from strakes.control.fault import Ask
from strakes.control.fault_pacemaker import FailResource, FenceNode, StandbyNode, View, is_served, view_of
from strakes.control.fault_registry import make_fault
from strakes.failover.setup import read_plan
from strakes.failover.timeline import Moment
from strakes.lab.ha_pair import Alert, Button
from strakes.model.recovery_clients import Timing
from strakes.targets.command import Completed, run
from strakes.targets.mountinfo import Mount

MON = """<pacemaker-result><nodes><node name="a" online="{online}" unclean="{unclean}"/></nodes>
<resources><clone><resource id="d" role="Promoted"><node name="a"/></resource><resource id="d" role="Stopped"/></clone></resources>
<fence_history><fence_event action="off" target="b" status="success" completed="2026-01-02 03:04:05"/></fence_history></pacemaker-result>"""


@pytest.fixture
def via(tmp_path: Path) -> str:
    """Save a CIB with both nodes of a plan online, and return the prefix that makes Pacemaker's tools use it."""
    need("crm_simulate", "crm_mon", "crm_standby")
    plan = planned("tianhe2", tmp_path / "plan")
    status = tmp_path / "status.xml"
    words = f"crm_simulate -x {plan}/pacemaker/cib.xml -u mds-a -u mds-b -S --save-output {status}"
    done = run(words.split())
    assert done.status == 0, done.stderr
    return f"env CIB_file={status}"


def test_a_node_is_put_into_standby_and_back_and_the_watcher_reports_both(via: str, tmp_path: Path) -> None:
    fault = StandbyNode(Ask(tmp_path, node="mds-a", via=via))
    assert "crm_standby --node mds-a --update on" in fault.text and not fault.lacking()
    moments: list[Moment] = []
    stop = threading.Event()
    watcher = threading.Thread(target=fault.watch, args=(moments.append, stop))
    watcher.start()
    fault.strike()
    wait_for(lambda: moments and moments[-1].text == "online, standby")
    assert "mds-a" in fault.lacking() and fault.undo is not None
    assert fault.undo.to_json()["argv"][-2:] == ("--lifetime", "forever")  # crm_standby hides failures without it.
    fault.undo.do()
    wait_for(lambda: moments and moments[-1].text == "online")
    # The watcher reports the last change even if it is stopped right after it.
    fault.strike()
    stop.set()
    watcher.join()
    assert [one.text for one in moments] == ["online, standby", "online", "online, standby"]
    assert {one.source for one in moments} == {"node mds-a"}
    fault.undo.do()
    assert not fault.lacking() and {one.target for one in fault.recoveries()} >= {"mount-mdt0", "drbd-mdt0"}


def test_an_unknown_node_resource_or_directory_is_refused_with_the_known_ones(via: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--node was not given or is not in the cluster") as refused:
        make_fault("node-standby", Ask(tmp_path, node="mds-c", via=via))
    assert "mds-a, mds-b" in refused.value.remedy
    with pytest.raises(BadInputError, match="--resource was not given") as refused:
        make_fault("resource-fail", Ask(tmp_path, node="mds-a", resource="nfs", via=via))
    assert "mount-mdt0" in refused.value.remedy
    with pytest.raises(EnvironmentLacksError, match="does not answer"):
        make_fault("node-standby", Ask(tmp_path, node="mds-a", via="false"))
    with pytest.raises(BadInputError, match="does not serve this directory") as refused:
        StandbyNode(Ask(tmp_path, node="mds-a", via=via)).require_serves(tmp_path)
    assert "/mnt/mdt0" in refused.value.why


STATE = """<r><nodes><node name="a" {node}/><node name="b" online="true"/></nodes><resources>
<resource id="fs" role="Started" {resource}><node name="a"/></resource></resources><node_history><node name="a">
<resource_history id="fs" fail-count="{failures}"/></node></node_history></r>"""
DEVICES = """<cib><configuration><resources><primitive id="bmc" class="stonith" type="fence_ipmilan"/>
<primitive id="disk" class="stonith" type="external/sbd"/></resources>
<fencing-topology>{}</fencing-topology></configuration></cib>"""
ON, OFF_DUTY = 'online="true"', 'online="true" standby="true"'


@pytest.mark.parametrize(
    ("fault", "on", "node", "resource", "failures", "why"),
    [
        (StandbyNode, "a", OFF_DUTY, "", "0", "a is online, standby"),
        (StandbyNode, "a", ON, 'managed="false"', "0", "fs is Started on a, unmanaged"),
        (FenceNode, "a", 'online="false"', "", "0", "a is offline"),
        (FenceNode, "a", 'online="false"/><node name="a" online="true"', "", "0", "a is offline and online"),
        (FenceNode, "a", ON, "", "INFINITY", "fs has failures on a"),
        (FailResource, "a", ON, 'failed="true"', "1", "fs is Started on a, failed; fs has failures on a"),
        (FailResource, "b", ON, "", "0", "fs is Started on a"),
        (StandbyNode, "a", ON, "", "INFINITY", ""),
        (FailResource, "a", ON, "", "0", ""),
    ],
)
def test_a_node_whose_state_the_undoing_would_change_is_refused(
    fault: type[StandbyNode | FailResource], on: str, node: str, resource: str, failures: str, why: str, tmp_path: Path
) -> None:
    commands, states, counts, name, levels = list[str](), [node], [failures], Mock(return_value="a\n"), ""

    def run_one(argv: Sequence[str], timeout_s: float = 0) -> Completed:
        commands.append(argv[0])
        if "crm_node" in argv or "cibadmin" in argv:
            return Completed(tuple(argv), 0, name() if "crm_node" in argv else DEVICES.format(levels), "")
        text = STATE.format(node=states[0], resource=resource, failures=counts[0])
        return Completed(tuple(argv), 0, text, str(timeout_s))

    ask = Ask(tmp_path, node=on, resource="fs" if fault is FailResource else "")
    if why:
        with pytest.raises(BadInputError, match="not in the state that this fault needs") as refused:
            fault(ask, run_one)
        assert refused.value.why == why
        return
    counts[0] = "0"
    for name.return_value, host, match in (
        ("a\n", "x", "switched on again"),
        ("b", "a.site", "again"),
        ("", "x", "unknown"),
        ("b", "x", "again"),
    ):
        with patch("socket.gethostname", return_value=host), pytest.raises(StrakesError, match=match):
            FenceNode(replace(ask, node="a", via="ssh a"), run_one)
    levels = '<fencing-level target="a" index="1" devices="bmc"/><fencing-level target="a" index="2" devices="disk"/>'
    assert FenceNode(replace(ask, node="a", resource="", via="ssh a"), run_one).undo
    ready = fault(ask, run_one)
    with patch("strakes.control.fault_pacemaker._EFFECT_S", 0.0), pytest.raises(MeasurementError, match="no effect"):
        ready.strike()
    counts[0] = "1"
    assert ready.changed() == ("fs has failures on a" if fault is FailResource else "")
    states[0], counts[0] = OFF_DUTY, "0"
    drill = Drill(tmp_path, 1, 10.0, Timing(1.0, 1.0, None), sessions=False)
    with pytest.raises(MeasurementError, match="the servers are not ready") as late:
        play(drill, ready, tmp_path / "store", lambda _text: None)
    assert late.value.why == "a is online, standby" and {*commands} == {"crm_mon", "ssh", ready._strike[0]}


@pytest.mark.parametrize(
    ("line", "served"),
    [
        ("/mnt ext4 /dev/sda1", False),
        ("/srv/home ext4 /dev/drbd0", True),
        ("/mnt nfs4 192.168.10.10:/srv/home/export", True),
        ("/mnt nfs4 [::1]:/export", False),
        ("/mnt nfs4 192.0.2.9:/export", False),
        ("/mnt nfs4 unknown.invalid:/export", True),
        ("/mnt lustre 10.1.0.1@o2ib:10.1.0.2@o2ib:/fs", False),
    ],
)
def test_mounts_served_by_the_cluster_are_recognised(line: str, served: bool, tmp_path: Path) -> None:
    cib = read_plan(planned("nfs", tmp_path)).pacemaker
    point, kind, source = line.split()
    assert is_served(cib, Mount(1, 0, 1, "/", point, (), kind, source, ())) == served


def test_changes_of_nodes_resources_and_fencing_are_listed() -> None:
    states = (("true", "false"), ("false", "true"))
    before, after = (view_of(MON.format(online=online, unclean=unclean)) for online, unclean in states)
    assert before.resources == {"d": "Promoted on a; Stopped on nowhere"}
    assert list(after.differences(before)) == [("node a", "offline, unclean")]
    told = list(after.differences(View({}, {}, ())))
    assert ("fencing", "off of b: success at 2026-01-02 03:04:05") in told and ("node a", "offline, unclean") in told


def test_a_cluster_is_restored_when_everything_runs_again_on_any_node() -> None:
    resources = {"mdt": "Promoted on a; Unpromoted on b", "mount": "Started on a"}
    before = View({"a": "online", "b": "online"}, resources, ())
    moved = View(before.nodes, {"mdt": "Promoted on b; Unpromoted on a", "mount": "Started on b"}, ())
    assert moved.unlike(before) == []
    resources = {"mdt": "Promoted on a; Stopped on nowhere", "mount": "Started on a, failed"}
    assert View({"a": "online", "b": "offline"}, resources, ()).unlike(before) == ["b", "mdt", "mount"]


@pytest.mark.lab
@pytest.mark.long
def test_the_real_pair_recovers_from_each_fault_without_loss(labs: Labs, tmp_path: Path) -> None:
    labs.up("ha")
    status = labs.status("ha")
    facts, directory = status["facts"], status["directory"]
    via = " ".join(facts["commands"]["mds-b"])
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_text(subprocess.run([f"{directory}/bmc-password"], capture_output=True, text=True, check=True).stdout)
    place = tmp_path / "clients"
    place.mkdir()
    # The pair serves no file system, so the command would refuse the directory; the drill is played directly.
    asks = {
        "resource-fail": Ask(place, node="mds-a", via=via, resource="journal"),
        "node-standby": Ask(place, node="mds-a", via=via),
        "node-fence": Ask(place, node="mds-a", via=via),
        "power-off": Ask(
            place, bmc="10.9.0.1", bmc_user="fence", bmc_password_file=secret, via=f"nsenter --net={directory}/net.hub"
        ),
    }
    for name, ask in asks.items():
        drill = Drill(place, 1, 10.0, Timing(1.0, 20.0, None), sessions=False)
        outcome = play(drill, make_fault(name, ask), tmp_path / "store", lambda _text: None)
        assert not outcome.lost and not outcome.lacking, name
        said = outcome.line.moments
        assert any(one.text == "the servers have recovered" for one in said)
        if name == "resource-fail":
            seen = [one.text for one in said if one.source == "journal"]
            assert seen[-1] == "Started on mds-a" and any("failed" in text for text in seen), said
        elif name != "power-off":
            assert any(one.source == "node mds-a" and one.text != "online" for one in said), said
    assert os.listdir(place) == []


OFF = "[mds-b] fencing: Operation off of mds-a by mds-b for pacemaker-controld.31@mds-b: "


def test_only_the_command_that_powers_a_node_off_counts_and_no_routine_query_of_its_bmc() -> None:
    asked = [Button(at_s, "mds-a", "get power") for at_s in (101.9, 114.0, 118.2)]
    alerts = [Alert(114.2, "webhook", f"{OFF}OK (ref=1)"), Alert(114.1, "mail", f"{OFF}OK (ref=1)")]
    expired = [Alert(114.2, "webhook", f"{OFF}Timer expired (ref=1)")]
    for buttons, said, at in ((asked, alerts, {"mds-a": 14.0}), (asked[:1], [], {}), (asked, expired, {})):
        assert switched_off(buttons, said, POWER_OFF, "mds-a", 100.0) == at
    commands = ((103.1, "get power"), (103.4, "set power 0"), (104.9, "set power 0"))
    pressed = [Button(at_s, "mds-b", what) for at_s, what in commands]
    assert switched_off(pressed, [], CUT_ALL, "mds-a", 100.0) == {"mds-b": pytest.approx(3.4)}
