"""Rehearsals of failures: outcomes on plans, decided by Pacemaker's policy engine, and invariants of the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from conftest import StrakesRunner
from failover.clusters import EXAMPLES, need, planned
from failover.rule_example import setup_of_example
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.failover import policy_engine
from strakes.failover.check import check
from strakes.failover.description import read_description
from strakes.failover.plan import plan_files
from strakes.failover.rehearsal_room import Room, RoomPart, Scene, Wiring
from strakes.failover.rehearse import Story, rehearse
from strakes.failover.setup import read_plan, setup_of
from strakes.targets.command import CommandTimeout, Completed, run

NODE_A, NODE_B = RoomPart("node", "mds-a"), RoomPart("node", "mds-b")
SERVICE, CROSS, MANAGEMENT = (RoomPart("network", name) for name in ("service", "cross", "management"))
TIANHE = read_description(EXAMPLES["tianhe2"])[0]
WIRING = Wiring.of(setup_of("", Path(), {file.path: file.text for file in plan_files(TIANHE)}, TIANHE), TIANHE)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Scene]:
    """Return a function that plays failures on a plan; ``change`` is an edit of one file: (file, old, new).

    The simulated first start of a plan is shared by all its failures.
    """
    need("crm_simulate")

    @cache
    def story(example: str, change: tuple[str, str, str] | None) -> Story:
        plan = planned(example, tmp_path_factory.mktemp("plan"))
        if change:
            path = plan / change[0]
            assert change[1] in path.read_text()
            path.write_text(path.read_text().replace(change[1], change[2]))
        return Story(read_plan(plan), tmp_path_factory.mktemp("work"))

    def on(*failures: RoomPart, example: str = "tianhe2", change: tuple[str, str, str] | None = None) -> Scene:
        return story(example, change).play(failures)

    return on


PAIR, LUSTRE = "tianhe2", "lustre-active-active"
BMC, DISK = RoomPart("bmc", "mds-a"), RoomPart("disk", "mds-a", "mdt0")
RESTART, STOP = RoomPart("service", "mount-mdt0"), RoomPart("stop", "mount-mdt0")
LAN, STORAGE = (RoomPart("network", name) for name in ("lan", "storage"))
SWITCH = RoomPart("switch", "management-switch")
ENDINGS: dict[str, tuple[str, tuple[RoomPart, ...], str, tuple[str, ...]]] = {
    "a node": (PAIR, (NODE_A,), "take-over", ("mds-a",)),
    "a service that fails": (PAIR, (RESTART,), "restart", ()),
    "a service that fails beside a dead BMC": (PAIR, (BMC, RESTART), "restart", ()),
    "a service that does not stop": (PAIR, (STOP,), "take-over", ("mds-a",)),
    "a service that does not stop beside a dead BMC": (PAIR, (BMC, STOP), "outage", ()),
    # Services stay on a node whose power-off cannot be confirmed.
    "a node without power": (PAIR, (RoomPart("supply", "mds-a"),), "outage", ()),
    "a node without its management network": (PAIR, (MANAGEMENT, NODE_A), "outage", ()),
    "a node without its BMC": (PAIR, (BMC, NODE_A), "outage", ()),
    "a node without the management switch": (PAIR, (SWITCH, NODE_A), "outage", ()),
    "a node without power whose outlets answer": (LUSTRE, (RoomPart("supply", "mds1"),), "take-over", ("mds1",)),
    "a node whose peer has an outdated copy": (PAIR, (CROSS, NODE_A), "outage", ("mds-a",)),
    "one copy": (PAIR, (DISK,), "nothing", ()),
    "one copy and the node of the other": (PAIR, (DISK, NODE_B), "outage", ("mds-b",)),
    "one copy and the link to the other": (PAIR, (DISK, CROSS), "outage", ()),
    "all links and the quorum device": (LUSTRE, (LAN, STORAGE), "outage", ()),
    "all links, the switch and the quorum device": (LUSTRE, (STORAGE, SWITCH, LAN), "outage", ()),
}


@pytest.mark.parametrize("failed", ENDINGS)
def test_the_outcome_follows_from_the_failed_parts(failed: str, play: Callable[..., Scene]) -> None:
    example, failures, ending, fenced = ENDINGS[failed]
    scene = play(*failures, example=example)
    assert (scene.ending, scene.fenced, scene.split_brain) == (ending, fenced, "")
    assert "mdt0 on mds-b is stale and not promoted" in scene.said or failures != (CROSS, NODE_A)


def test_only_services_of_the_dead_node_move(play: Callable[..., Scene]) -> None:
    scene = play(RoomPart("node", "mds2"), example=LUSTRE)
    assert scene.places == {"mgs": "mds1", "mdt0": "mds1", "mdt1": "mds1"} and scene.fenced == ("mds2",)


@pytest.mark.parametrize("link", [SERVICE, CROSS])
def test_a_failed_link_moves_no_service_and_powers_no_node_off(link: RoomPart, play: Callable[..., Scene]) -> None:
    scene = play(link)
    # Clients are connected to the service network only.
    ending = "unreachable" if link is SERVICE else "nothing"
    assert (scene.ending, scene.fenced, scene.places, scene.split_brain) == (ending, (), {"mdt0": "mds-a"}, "")
    assert scene.modelled


def test_without_links_the_node_with_the_longer_fencing_delay_survives_or_none(play: Callable[..., Scene]) -> None:
    scene = play(SERVICE, CROSS)
    assert scene.fenced == ("mds-b",) and scene.places == {"mdt0": "mds-a"} and not scene.split_brain
    assert "mds-a survives" in scene.said and scene.cuts_every_heartbeat
    turned = play(SERVICE, CROSS, change=("cluster.toml", 'survivor = "mds-a"', 'survivor = "mds-b"'))
    assert turned.fenced == ("mds-b",)  # the delay in the CIB decides, not cluster.toml
    delay = 'name="pcmk_delay_base" value="{}"'
    longest = play(
        SERVICE, CROSS, change=("pacemaker/cib.xml", delay.format("10s"), delay.format("10s").replace("base", "max"))
    )
    assert longest.fenced == ("mds-b",) and "at random" not in " ".join(longest.said)
    both = play(SERVICE, CROSS, change=("pacemaker/cib.xml", delay.format("10s"), delay.format("0s")))
    assert both.ending == "outage" and both.fenced == ("mds-a", "mds-b")


def test_without_fencing_split_brain_is_possible(play: Callable[..., Scene]) -> None:
    careless = ("pacemaker/cib.xml", 'name="stonith-enabled" value="true"', 'name="stonith-enabled" value="false"')
    assert "each from its own DRBD copy" in play(SERVICE, CROSS, change=careless).split_brain
    assert "is not powered off before" in play(NODE_A, change=careless).split_brain


@pytest.mark.long
def test_no_pair_of_failures_causes_split_brain_in_a_good_plan(tmp_path: Path) -> None:
    need("crm_simulate")
    result = rehearse(read_plan(planned("tianhe2", tmp_path)))
    assert len(result.doubles) > 100
    for scene in (*result.singles, *result.doubles):
        assert not scene.split_brain
        # Services of a dead or silent node move only after its fencing.
        room = Room(TIANHE, WIRING, frozenset(scene.failures))
        # A node whose client interface failed has already handed over its services.
        moved = RoomPart("card", "mds-a", "service") in scene.failures
        gone = not room.alive(TIANHE.nodes[0]) or len(room.islands(TIANHE.nodes)) > 1
        assert not (gone and scene.places["mdt0"] == "mds-b") or "mds-a" in scene.fenced or moved


def test_without_the_policy_engine_a_rehearsal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_engine, "installed", lambda _: False)
    with pytest.raises(EnvironmentLacksError, match="policy engine is not installed") as error:
        rehearse(read_plan(planned("tianhe2", tmp_path)))
    assert "pacemaker-cli-utils" in error.value.remedy and error.value.exit_status == 3
    monkeypatch.setattr(policy_engine, "installed", bool)
    monkeypatch.setattr(policy_engine, "run", lambda *_: Completed((), 0, "<a>\udcff</a>", ""))
    with pytest.raises(BadInputError, match="refuses the configuration"):
        rehearse(read_plan(tmp_path), doubles=False)


def test_a_plan_that_does_not_start_is_refused(tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("tianhe2", tmp_path)
    cib = plan / "pacemaker/cib.xml"
    cib.write_text(cib.read_text().replace('node="mds-a" score="50"', 'node="mds-a" score="-INFINITY"').replace(
        "<constraints>", '<constraints><rsc_location id="x" rsc="serve-mdt0" node="mds-b" score="-INFINITY"/>'))  # fmt: skip
    with pytest.raises(BadInputError, match="no service runs"):
        rehearse(read_plan(plan))
    cib.unlink()
    with pytest.raises(BadInputError, match="no Pacemaker configuration"):
        rehearse(read_plan(plan))


def test_the_table_and_the_document_agree(strakes: StrakesRunner, tmp_path: Path) -> None:
    need("crm_simulate")
    pair = Path(__file__).parent / "cases/one-pair-in-three-forms/a.crm"
    done = strakes("failover", "rehearse", pair, "--singles", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    rows = {row["failures"][0]: row for row in json.loads((tmp_path / "out.json").read_text())["singles"]}
    assert rows["na dies"]["ending"] == "take-over" and rows["na dies"]["decided_by"] == "policy engine"
    assert rows["network link 0 fails"]["decided_by"] == "model, then policy engine"
    assert all(name in done.stdout for name in rows) and "Split brain possible: nowhere" in done.stdout


CIB, COROSYNC = "pacemaker/cib.xml", "etc/corosync/corosync.conf"
PRETENDED = {
    "an agent that does nothing": (CIB, 'type="fence_ipmilan"', 'type="fence_ack_manual"'),
    "a question for off": (CIB, 'name="pcmk_reboot_action" value="off"', 'name="pcmk_off_action" value="status"'),
}


@pytest.mark.parametrize("name", PRETENDED)
def test_fencing_that_does_not_power_off_allows_split_brain(name: str, play: Callable[..., Scene]) -> None:
    assert "still writes" in play(SERVICE, CROSS, change=PRETENDED[name]).split_brain
    assert "still writes" in play(RoomPart("stop", "mount-mdt0"), change=PRETENDED[name]).split_brain


def test_one_of_two_outlets_does_not_power_a_node_off(play: Callable[..., Scene]) -> None:
    lost = (RoomPart("bmc", "mds2"), RoomPart("network", "lan"), RoomPart("network", "storage"))
    # The planned quorum device is on network lan, which failed; an outside one can still decide.
    elsewhere = ("etc/corosync/corosync.conf", "10.20.0.9", "qnetd.example.org")
    assert not play(*lost, example="lustre-active-active", change=elsewhere).split_brain
    split = (CIB, 'devices="outlet-mds2-1,outlet-mds2-2"', 'devices="outlet-mds2-1"')
    scene = play(RoomPart("bmc", "mds2"), RoomPart("stop", "mount-mdt1"), example="lustre-active-active", change=split)
    assert "mds1 takes over while mds2 still writes" in scene.split_brain


def test_a_fencing_device_with_the_address_of_the_wrong_bmc_powers_off_the_survivor(play: Callable[..., Scene]) -> None:
    swapped = (CIB, 'value="10.9.0.1"', 'value="10.9.0.2"')
    scene = play(NODE_A, change=swapped)
    assert scene.ending == "outage" and any("the power of mds-b is cut instead" in text for text in scene.said)
    # With all links cut, mds-b is powered off, by mds-a or by its own attempt to fence mds-a.
    both = play(SERVICE, CROSS, change=swapped)
    assert both.ending == "outage" or both.fenced


def test_rings_that_share_an_address_are_not_redundant(play: Callable[..., Scene]) -> None:
    scene = play(SERVICE, change=(COROSYNC, "ring1_addr: 10.2.0.2", "ring1_addr: 10.2.0.1"))
    assert scene.fenced == ("mds-b",) and scene.cuts_every_heartbeat


def test_writes_pause_until_the_dead_peer_is_confirmed_off(play: Callable[..., Scene]) -> None:
    scene = play(RoomPart("bmc", "mds-b"), NODE_B)
    assert scene.ending == "pause" and scene.places == {"mdt0": "mds-a"}
    assert any("until fence-peer gives up after 180 s" in text for text in scene.said)


def test_a_node_that_boots_alone_waits_for_its_peer(play: Callable[..., Scene]) -> None:
    scene = play(RoomPart("cold", "mds-b"))
    assert scene.ending == "outage" and "wait_for_all" in scene.said[0]
    rash = play(RoomPart("cold", "mds-b"), change=(COROSYNC, "wait_for_all: 1", "wait_for_all: 0"))
    assert rash.fenced == ("mds-a",) and rash.places == {"mdt0": "mds-b"} and "older copy" in rash.said[0]
    change = ("pacemaker/cib.xml", 'no-quorum-policy" value="stop', 'no-quorum-policy" value="ignore')
    lone = play(RoomPart("cold", "mds1"), example="three-nodes", change=change)
    assert lone.places == {"mdt0": "mds1"}, "without the change, mds1 has no quorum"


def test_remote_nodes_do_not_vote(play: Callable[..., Scene]) -> None:
    remote = "".join(f'<node id="r{number}" uname="r{number}" type="remote"/>' for number in range(9))
    change = ("pacemaker/cib.xml", "</nodes>", f"{remote}</nodes>")
    scene = play(RoomPart("node", "mds1"), example="lustre-active-active", change=change)
    assert scene.ending == "take-over" and set(scene.places.values()) == {"mds2"}


def test_the_quorum_device_breaks_a_tie_as_configured(play: Callable[..., Scene]) -> None:
    planned_device = "host: 10.20.0.9\n      algorithm: ffsplit\n      tie_breaker: 1"
    lost = (RoomPart("network", "lan"), RoomPart("network", "storage"))
    for number, winner, loser in ((1, "mds1", "mds2"), (2, "mds2", "mds1")):
        elsewhere = f"host: qnetd.example.org\n      algorithm: ffsplit\n      tie_breaker: {number}"
        scene = play(*lost, example="lustre-active-active", change=(COROSYNC, planned_device, elsewhere))
        assert scene.fenced == (loser,) and f"{winner} survives" in scene.said


def test_simulations_that_time_out_are_counted_and_the_others_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    need("crm_simulate")

    def slow(argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        if argv[-2:] == ["--node-fail", "a"]:
            raise CommandTimeout("no answer")
        return run(argv, timeout_s)

    monkeypatch.setattr(policy_engine, "run", slow)
    monkeypatch.setattr(policy_engine, "_LIMIT_S", 300.0)
    setup = setup_of_example(["location l g 50: a"])
    behaviour = policy_engine.behaviour_of(setup)
    assert behaviour is not None and behaviour.unanswered == 1
    assert set(behaviour.without) == {"b"}
    said = [one for one in check(setup).verdicts if one.program == "crm_simulate"]
    assert [(one.state, one.text) for one in said] == [("unable", "simulations that did not end in time: 1")]
    assert "time limit: a dies" in rehearse(setup, doubles=False).assumed[-1]
    monkeypatch.setattr("strakes.failover.rehearse._MOST_S", 0.0)
    with pytest.raises(BadInputError, match="cannot be rehearsed"):
        rehearse(setup, doubles=False)
