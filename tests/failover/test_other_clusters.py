"""Clusters configured by others: they are rehearsed without cluster.toml, in agreement with Pacemaker's scheduler."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import StrakesRunner
from failover.clusters import need
from failover.rule_example import setup_of_example
from strakes.failover.check import check
from strakes.failover.model import model_of
from strakes.failover.policy_engine import PolicyEngine, idle_resources
from strakes.failover.rehearsal_room import RoomPart, Scene
from strakes.failover.rehearse import Story, rehearse
from strakes.failover.setup import Setup, read_plan
from strakes.failover.validators import verdicts

CASES = Path(__file__).parent / "cases"
# A sample with groups, promotable clones, bundles, guests, tickets, unmanaged and banned resources.
SAMPLE = CASES / "scheduler"


def _scenes(setup: Setup, place: Path, *failures: str) -> list[Scene]:
    """Play each failure, such as ``node a``, alone."""
    story = Story(setup, Path(tempfile.mkdtemp(dir=place)))
    return [story.play((RoomPart(*failure.split(" ", 1)),)) for failure in failures]


def test_a_rehearsal_begins_with_the_status_in_the_cib(tmp_path: Path) -> None:
    need("crm_simulate")
    (scene,) = _scenes(read_plan(SAMPLE / "stonith-1.xml"), tmp_path, "node sles-3")
    assert scene.places["migrator"] == "sles-4"


def test_the_node_with_the_higher_priority_wins_a_race(tmp_path: Path) -> None:
    need("crm_simulate")
    given = ["property priority-fencing-delay=30s", "group g fs ip meta priority=5", "location l g 50: b"]
    given += ["primitive ip2 ocf:heartbeat:IPaddr2 ip=10.0.0.10", "colocation c -50: ip2 g"]
    given += ["corosync node.1 ring1_addr=", "corosync node.2 ring1_addr="]
    assert "b survives" in _scenes(setup_of_example(given), tmp_path, "network link 0")[0].said


def test_a_first_level_that_only_waits_for_a_crash_dump_allows_no_split_brain(tmp_path: Path) -> None:
    need("crm_simulate")
    levels = "".join(f"pcs stonith level add 1 {node} k\npcs stonith level add 2 {node} f\n" for node in ("na", "nb"))
    (tmp_path / "setup.sh").write_text(
        "pcs cluster setup c na nb\npcs stonith create f fence_azure_arm pcmk_host_map='na:x;nb:y' pcmk_delay_max=15\n"
        f"pcs stonith create k fence_kdump pcmk_reboot_action=off pcmk_host_list='na nb'\n{levels}"
        "pcs resource create fs Filesystem device=srv:/x directory=/x fstype=nfs --group g\n"
    )
    result = rehearse(read_plan(tmp_path), doubles=False)
    assert result.singles and not any(scene.split_brain for scene in result.singles)
    assert "at random" in " ".join(text for scene in result.singles for text in scene.said)


def test_a_remote_node_is_powered_off_itself_and_services_of_guests_move_with_them(tmp_path: Path) -> None:
    need("crm_simulate")
    (tmp_path / "setup.sh").write_text(
        "pcs cluster setup c na nb\npcs stonith create f fence_xvm pcmk_host_list='na nb {}'\n"
        "pcs resource create nr ocf:pacemaker:remote reconnect_interval=60 op monitor interval=10s\n"
        "pcs resource create vm VirtualDomain config=/vm.xml meta remote-node=ng\npcs resource create p Dummy\n"
        "pcs resource create q Dummy\npcs constraint location p prefers nr=100\npcs constraint location q avoids na nb nr\n"
    )
    text, rows = (tmp_path / "setup.sh").read_text(), dict[str, list[Scene]]()
    for fenced in ("nr", ""):
        (tmp_path / "setup.sh").write_text(text.format(fenced))
        rows[fenced] = _scenes(read_plan(tmp_path), tmp_path, "service nr", "node na", "node nb")
    expected = [("take-over", ("nr",)), ("outage", ())]
    assert [(one.ending, one.fenced) for one in rows["nr"][:1] + rows[""][:1]] == expected
    assert {one.ending for one in rows["nr"][1:]} == {"nothing", "take-over"}
    assert set(rows["nr"][0].places) == {"vm", "p", "q"}


def test_resources_of_remote_nodes_move_and_floating_drbd_has_no_second_copy(tmp_path: Path) -> None:
    need("crm_simulate")
    (tmp_path / "setup.sh").write_text(
        "pcs cluster setup c na nb\npcs stonith create f fence_xvm pcmk_host_list='na nb nc'\n"
        "pcs resource create nc ocf:pacemaker:remote op monitor interval=10s\n"
        "pcs resource create p Dummy op monitor interval=10s\npcs constraint location p prefers nc=100\n"
    )
    failed, lost, stuck = _scenes(read_plan(tmp_path), tmp_path, "service p", "service nc", "stop p")
    assert failed.ending == lost.ending == "restart" and stuck.fenced == ("nc",)
    given = ["drbd resource r { device /dev/drbd0; disk /dev/vg/r; floating 10.0.0.9:7788; floating 10.1.0.9:7788; }"]
    given += ["primitive d ocf:linbit:drbd drbd_resource=r", "ms m d meta clone-max=1 notify=true", "group g fs"]
    given += ["primitive fs ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/srv/data fstype=ext4"]
    given += ["colocation c inf: m ip", "colocation d2 inf: g m:Promoted", "order o ip m", "order p m:promote g"]
    assert _scenes(setup_of_example(given), tmp_path, "shelf g")[0].ending == "outage"


def test_outlets_have_the_names_of_nodes_and_disks_are_assumed_normal(tmp_path: Path) -> None:
    need("crm_simulate")
    (tmp_path / "cluster.crm").write_text(
        'node n1\nnode n2\nprimitive f stonith:external/rackpdu params hostlist="n1 n2" pduip=10.9.0.9 community=wc\n'
        "primitive ip IPaddr2 params ip=10.0.0.10\nprimitive d ocf:pacemaker:diskd params name=disk\nclone c d\n"
        "location l ip rule -inf: disk ne normal or not_defined disk\n"
    )
    scenes = _scenes(read_plan(tmp_path), tmp_path, "node n1", "node n2")
    assert [one.fenced for one in scenes] == [("n1",), ("n2",)]
    assert {one.ending for one in scenes} == {"take-over", "nothing"}


def test_bound_mounts_are_left_out_and_locks_wait_for_fencing() -> None:
    need("crm_simulate")
    mount = "ocf:heartbeat:Filesystem directory=/srv/m device"
    given = [f"primitive m1 {mount}=s:/1 fstype=nfs", f"primitive m2 {mount}=s:/2 fstype=nfs", "location x m1 -inf: b"]
    given += ["location y m2 -inf: a", "primitive p ocf:pacemaker:controld"]
    given += [f"primitive s {mount}=/dev/vg/s fstype=gfs2"]
    result = rehearse(setup_of_example([*given, "group l p s", "clone c l"]), doubles=False)
    endings = {scene.failures[0].text: scene.ending for scene in result.singles}
    assert endings["b and its BMC lose their power"] == "hangs" and "m1 is left out" in " ".join(result.assumed)
    assert not any("older copy" in text for scene in result.singles for text in scene.said)


@pytest.mark.parametrize("case", ["rehearse-fencing-enabled-false", "fencing-enabled-false/pacemaker/cib.xml"])
def test_fencing_switched_off_by_its_new_property_allows_split_brain(case: str, strakes: StrakesRunner) -> None:
    need("crm_simulate")
    done = strakes("failover", "rehearse", CASES / case, "--singles")
    assert done.returncode == 1 and "SPLIT BRAIN" in done.stdout and "Split brain possible: nowhere" not in done.stdout
    assert ("assumed: no corosync.conf" in done.stdout) == case.endswith(".xml") and "na dies" in done.stdout


def test_the_cib_supplies_nodes_without_names_or_node_list() -> None:
    for case in ("nodes-without-names", "multicast-without-nodelist"):
        assert len(model_of(read_plan(CASES / case)).cluster.nodes) == 2, case
    (link,) = model_of(read_plan(CASES / "multicast-without-nodelist")).cluster.heartbeats
    assert link.name == "link 0", "corosync.conf has one interface"
    named = model_of(read_plan(CASES / "nodes-without-names"))
    assert all(node.addresses for node in named.cluster.nodes)


@pytest.mark.parametrize("file", sorted(SAMPLE.glob("*.xml")), ids=lambda file: file.stem)
def test_a_sample_of_the_scheduler_inputs_agrees_with_its_summaries(file: Path) -> None:
    need("crm_simulate")
    assert not _contradictions(file, file.with_suffix(".summary"))


def _contradictions(file: Path, summary: Path) -> list[str]:
    """Return the resources that strakes calls idle although the summary shows them running.

    The summaries are from the newest release, so resources that the installed crm_simulate leaves stopped are excluded.
    """
    setup = read_plan(file)
    model_of(setup)
    roles = dict.fromkeys((one.id for one in setup.pacemaker.primitives), "")
    with tempfile.TemporaryDirectory() as place:
        engine = PolicyEngine(setup, Path(place))
        idle = idle_resources(engine, engine.steady(), roles)
    running = _running(summary.read_text(), idle)
    if running:
        # crm_simulate refuses a CIB with the feature set of a newer release.
        readable = re.sub(r'crm_feature_set="[^"]*"', 'crm_feature_set="3.0.14"', file.read_text())
        words = ["crm_simulate", "--xml-pipe", "--simulate"]
        running &= _running(subprocess.run(words, input=readable, capture_output=True, text=True).stdout, idle)
    return [f"{file.stem}: {name}" for name in sorted(running)]


def test_a_copy_of_drbd_without_a_majority_does_not_serve(tmp_path: Path) -> None:
    need("crm_simulate")
    hosts = " ".join(f"on {name} {{ address 10.1.1.{number}:7789; }}" for number, name in enumerate("abc", 1))
    drbd = f"drbd resource r {{ options {{ quorum majority; }} device /dev/drbd0; disk /dev/vg/r; {hosts} }}"
    given = [drbd, "node c", "primitive d ocf:linbit:drbd drbd_resource=r", "ms m d meta notify=true clone-max=3"]
    given += ["primitive fs ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/srv/data fstype=ext4"]
    given += ["order o m:promote g:start", "colocation c1 INFINITY: g m:Promoted"]
    scenes = _scenes(setup_of_example(given), tmp_path, "network replication network", "network link 0")
    assert scenes[0].ending == "outage" != scenes[1].ending


def test_the_attributes_of_drbd_that_promotes_itself_are_simulated(tmp_path: Path) -> None:
    need("crm_simulate")
    given = ["drbd resource r { device /dev/drbd0; disk /dev/vg/r; meta-disk internal; }", "clone y x"]
    given += ["primitive fs ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/srv/data fstype=ext4"]
    given += ["primitive x ocf:linbit:drbd-attr", "location l fs rule -inf: not_defined drbd-promotion-score-r"]
    given += ["location m fs rule drbd-promotion-score-r: defined drbd-promotion-score-r"]
    scenes = _scenes(setup_of_example(given), tmp_path, "node a", "node b")
    assert {one.ending for one in scenes} == {"take-over", "nothing"}


def test_a_configuration_with_only_clones_has_nothing_to_rehearse(tmp_path: Path, strakes: StrakesRunner) -> None:
    need("crm_simulate")
    (tmp_path / "clones.crm").write_text("node a\nnode b\nprimitive p ocf:pacemaker:Dummy\nclone c p\n")
    done = strakes("failover", "rehearse", tmp_path / "clones.crm")
    assert done.returncode == 0 and "Nothing to rehearse" in done.stdout and "Split brain" not in done.stdout


def test_promoted_copies_in_a_bundle_are_simulated_and_their_failures_rehearsed(tmp_path: Path) -> None:
    need("crm_simulate")
    setup = read_plan(CASES / "bundle-with-a-promoted-copy")
    endings = [one.ending for one in _scenes(setup, tmp_path, "node n1", "node n2", "service db", "stop db")]
    # Pacemaker restarts the container of a copy that cannot be stopped.
    assert {*endings[:2]} == {"take-over", "nothing"} and endings[2:] == ["restart", "restart"]


def _running(text: str, names: frozenset[str]) -> set[str]:
    revised = text.rpartition("Revised Cluster Status")[2]
    return {name for name in names if re.search(rf"\* {re.escape(name)}(:\d+)?\t.*(Started|romoted) \S", revised)}


def test_a_file_of_corosync_2_is_not_validated_by_corosync_3(tmp_path: Path) -> None:
    need("corosync")
    (said,) = [one for one in verdicts(read_plan(CASES / "multicast-without-nodelist")) if one.program == "corosync"]
    assert (said.state, said.text) == ("unable", "written for Corosync 2 (no node list)")
    totem, node = "version: 2\ntransport: udpu\ncrypto_hash: sha1", "node {\nring0_addr: 10.0.0.1\nnodeid: 1\n}"
    (tmp_path / "corosync.conf").write_text(f"totem {{\n{totem}\n}}\nnodelist {{\n{node}\n}}\n")
    assert "written for Corosync 2 (encryption without knet)" in [one.text for one in verdicts(read_plan(tmp_path))]


def test_a_cib_of_pacemaker_3_is_accepted_by_tools_of_pacemaker_2(tmp_path: Path) -> None:
    need("crm_verify")
    text = (CASES / "fencing-enabled-false/pacemaker/cib.xml").read_text()
    newer = re.sub(
        r'crm_feature_set="[^"]*" validate-with="[^"]*"', 'crm_feature_set="3.20.4" validate-with="pacemaker-4.0"', text
    )
    (tmp_path / "cib.xml").write_text(newer)
    assert [one.state for one in verdicts(read_plan(tmp_path)) if one.program == "crm_verify"] == ["accepts"]


def test_an_unmanaged_resource_is_not_reported_as_running_nowhere() -> None:
    need("crm_simulate")
    found = check(read_plan(SAMPLE / "unmanaged-stop-1.xml")).findings
    assert not [one for one in found if "nowhere" in one.rule and "rsc1" in " ".join(one.places)]


def test_failures_without_monitor_or_fencing_last_and_the_watchdog_is_a_level(tmp_path: Path) -> None:
    need("crm_simulate")
    rule = "<rsc_location id='l' rsc='g'><rule id='r' score='9'><expression id='e' attribute='x' operation='eq' value='1'/>"
    given = ["property stonith-enabled=false", f"xml constraints {rule}</rule></rsc_location>", "location h g 50: a"]
    given += ["primitive ip ocf:heartbeat:IPaddr2 ip=10.0.0.9 cidr_netmask=24"]
    scenes = _scenes(setup_of_example(given), tmp_path, "service ip", "stop fs", "node a", "node b")
    assert scenes[0].ending == scenes[1].ending == "outage"
    assert (scenes[2].split_brain != "", scenes[3].split_brain) == (True, "")
    given = [
        "property stonith-watchdog-timeout=10 have-watchdog=true",
        "node c",
        "level a 1 fence_a",
        "level a/2 2 watchdog",
    ]
    given += ["corosync node.3 name=c nodeid=3 ring0_addr=10.0.0.3 ring1_addr=10.0.1.3", "corosync quorum two_node=0"]
    (scene,) = _scenes(setup_of_example([*given, "location h g 50: a"]), tmp_path, "supply a")
    assert (scene.ending, scene.fenced, scene.said) == ("take-over", ("a",), ())
