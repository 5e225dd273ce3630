"""What failures do to the plans, by the real policy engine; and what the model of the room may never say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import StrakesRunner
from failover.clusters import EXAMPLES, need, planned
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.failover.description import read_description
from strakes.failover.rehearsal import engine
from strakes.failover.rehearsal.engine import PolicyEngine
from strakes.failover.rehearsal.rehearse import rehearse
from strakes.failover.rehearsal.room import Part, Room, parts_of
from strakes.failover.rehearsal.story import Scene, Story
from strakes.failover.setup import read_plan

NODE_A, NODE_B = Part("node", "mds-a"), Part("node", "mds-b")
SERVICE, CROSS, MANAGEMENT = (Part("network", name) for name in ("service", "cross", "management"))
TIANHE = read_description(EXAMPLES["tianhe2"])


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Scene]:
    """Plays failures on a plan; ``change`` is what a careless hand did to one of its files: (file, old, new)."""
    need("crm_simulate")

    def on(*failures: Part, example: str = "tianhe2", change: tuple[str, str, str] | None = None) -> Scene:
        directory = tmp_path / f"plan{len(list(tmp_path.iterdir()))}"
        plan = planned(example, directory)
        if change:
            path = plan / change[0]
            assert change[1] in path.read_text()
            path.write_text(path.read_text().replace(change[1], change[2]))
        setup = read_plan(plan)
        assert setup.cib is not None
        work = directory / "work"
        work.mkdir()
        return Story(setup, PolicyEngine(setup.cib, setup.texts["pacemaker/cib.xml"], work)).play(failures)

    return on


def test_the_standby_takes_over_from_a_node_that_dies_once_that_is_powered_off(play: Callable[..., Scene]) -> None:
    scene = play(NODE_A)
    assert (scene.ending, scene.fenced, scene.places) == ("take-over", ("mds-a",), {"mdt0": "mds-b"})
    assert not scene.modelled


@pytest.mark.parametrize("link", [SERVICE, CROSS])
def test_one_link_less_interrupts_nothing_and_powers_off_nobody(link: Part, play: Callable[..., Scene]) -> None:
    scene = play(link)
    assert (scene.ending, scene.fenced, scene.places, scene.split_brain) == ("nothing", (), {"mdt0": "mds-a"}, "")
    assert scene.modelled


def test_without_any_link_the_side_that_waits_longer_to_be_powered_off_survives(play: Callable[..., Scene]) -> None:
    scene = play(SERVICE, CROSS)
    assert scene.fenced == ("mds-b",) and scene.places == {"mdt0": "mds-a"} and not scene.split_brain
    assert "mds-a survives" in scene.said and scene.cuts_every_heartbeat
    turned = play(SERVICE, CROSS, change=("cluster.toml", 'survivor = "mds-a"', 'survivor = "mds-b"'))
    assert turned.fenced == ("mds-b",)  # the delay in the CIB decides, not the wish


def test_without_a_delay_both_power_each_other_off(play: Callable[..., Scene]) -> None:
    scene = play(SERVICE, CROSS, change=("pacemaker/cib.xml", 'name="pcmk_delay_base" value="10s"', 'name="pcmk_delay_base" value="0s"'))
    assert scene.ending == "outage" and scene.fenced == ("mds-a", "mds-b")


def test_without_fencing_split_brain_is_possible(play: Callable[..., Scene]) -> None:
    careless = ("pacemaker/cib.xml", 'name="stonith-enabled" value="true"', 'name="stonith-enabled" value="false"')
    assert "each from its own copy" in play(SERVICE, CROSS, change=careless).split_brain
    assert "without being powered off" in play(NODE_A, change=careless).split_brain


def test_a_node_that_cannot_be_made_sure_to_be_off_is_not_taken_over_from(play: Callable[..., Scene]) -> None:
    for lost in (Part("supply", "mds-a"), MANAGEMENT, Part("bmc", "mds-a"), Part("switch", "management-switch")):
        scene = play(lost, *(() if lost.kind == "supply" else (NODE_A,)))
        assert scene.ending == "outage" and not scene.split_brain and not scene.fenced, lost
    scene = play(Part("supply", "mds1"), example="lustre-active-active")
    assert scene.ending == "take-over" and scene.fenced == ("mds1",)  # its outlets answer


def test_an_old_copy_is_never_served(play: Callable[..., Scene]) -> None:
    scene = play(CROSS, NODE_A)
    assert scene.ending == "outage" and scene.fenced == ("mds-a",) and "mdt0 on mds-b is old and not promoted" in scene.said


def test_a_service_is_restarted_and_one_that_does_not_stop_costs_its_node_the_power(play: Callable[..., Scene]) -> None:
    assert play(Part("service", "mount-mdt0")).ending == "restart"
    assert play(Part("bmc", "mds-a"), Part("service", "mount-mdt0")).ending == "restart"
    assert play(Part("bmc", "mds-a"), Part("stop", "mount-mdt0")).ending == "outage"
    scene = play(Part("stop", "mount-mdt0"))
    assert (scene.ending, scene.fenced, scene.places) == ("take-over", ("mds-a",), {"mdt0": "mds-b"})


def test_a_disk_less_leaves_the_service_on_the_other_copy(play: Callable[..., Scene]) -> None:
    assert play(Part("disk", "mds-a", "mdt0")).ending == "nothing"
    assert play(Part("disk", "mds-a", "mdt0"), NODE_B).ending == "outage"
    assert play(Part("disk", "mds-a", "mdt0"), CROSS).ending == "outage"


def test_only_what_ran_on_the_dead_node_moves(play: Callable[..., Scene]) -> None:
    scene = play(Part("node", "mds2"), example="lustre-active-active")
    assert scene.places == {"mgs": "mds1", "mdt0": "mds1", "mdt1": "mds1"} and scene.fenced == ("mds2",)


def test_a_survivor_without_its_quorum_device_stops(play: Callable[..., Scene]) -> None:
    scene = play(Part("network", "lan"), Part("network", "storage"), example="lustre-active-active")
    assert scene.ending == "outage" and not scene.split_brain and not scene.fenced
    scene = play(Part("network", "storage"), Part("switch", "management-switch"), Part("network", "lan"), example="lustre-active-active")
    assert scene.ending == "outage" and not scene.split_brain


def test_no_pair_of_failures_splits_the_brain_of_a_good_plan(tmp_path: Path) -> None:
    need("crm_simulate")
    result = rehearse(read_plan(planned("tianhe2", tmp_path)))
    assert len(result.doubles) > 100
    for scene in (*result.singles, *result.doubles):
        assert not scene.split_brain
        # Nobody takes over from a node that is dead or out of sight, unless it is surely off.
        room = Room(TIANHE, frozenset(scene.failures))
        gone = not room.alive(TIANHE.nodes[0]) or not room.heartbeat_works
        assert not (gone and scene.places["mdt0"] == "mds-b") or "mds-a" in scene.fenced


@given(st.lists(st.sampled_from(parts_of(TIANHE)), max_size=6, unique=True), st.sampled_from(parts_of(TIANHE)))
def test_breaking_more_never_repairs_anything(broken: list[Part], more: Part) -> None:
    before, after = Room(TIANHE, frozenset(broken)), Room(TIANHE, frozenset([*broken, more]))
    for one, other in zip(_signs(before), _signs(after), strict=True):
        assert one or not other


def _signs(room: Room) -> list[bool]:
    nodes = room.cluster.nodes
    return [
        room.heartbeat_works,
        room.replication_works,
        not room.clients_cut_off,
        *(room.alive(node) for node in nodes),
        *(room.can_power_off(node) for node in nodes),
    ]


def test_without_the_policy_engine_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "installed", lambda _: False)
    with pytest.raises(EnvironmentLacksError, match="policy engine is not installed") as error:
        rehearse(read_plan(planned("tianhe2", tmp_path)))
    assert "pacemaker-cli-utils" in error.value.remedy and error.value.exit_status == 3


def test_a_plan_that_does_not_start_is_refused(tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("tianhe2", tmp_path)
    cib = plan / "pacemaker/cib.xml"
    cib.write_text(cib.read_text().replace('node="mds-a" score="50"', 'node="mds-a" score="-INFINITY"').replace(
        "<constraints>", '<constraints><rsc_location id="x" rsc="serve-mdt0" node="mds-b" score="-INFINITY"/>'))  # fmt: skip
    with pytest.raises(BadInputError, match="does not start everything"):
        rehearse(read_plan(plan))
    (plan / "cluster.toml").unlink()
    with pytest.raises(BadInputError, match="not whole"):
        rehearse(read_plan(plan))


def test_the_table_and_the_document_say_the_same(strakes: StrakesRunner, tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("nfs", tmp_path / "plan")
    done = strakes("failover", "rehearse", plan, "--singles", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    rows = {row["failures"][0]: row for row in json.loads((tmp_path / "out.json").read_text())["singles"]}
    assert rows["nfs1 dies"]["ending"] == "take-over" and rows["nfs1 dies"]["decided_by"] == "policy engine"
    assert rows["network cross fails"]["decided_by"] == "model, then policy engine"
    assert all(name in done.stdout for name in rows) and "Split brain possible: nowhere" in done.stdout
