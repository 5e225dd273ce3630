"""A client on a server node, an unhealthy client, and a client without permissions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.targets.calls import UnansweredError
from strakes.targets.command import CommandTimeout, Completed
from strakes.targets.description import Interruption, lost_between
from strakes.targets.lustre_parameters import lost_changes, parse_states
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.nfs import counters
from targets.lustre.test_own import LOST, NAME, WELL, Client, connection, lustre
from targets.lustre.test_target import mount

STATS = "\nsnapshot_time 1795231205.0 secs.nsecs\nopen 3 samples [reqs]"
TWO = connection("lab-MDT0000", NAME, WELL, "10.0.0.7@tcp") | connection("lab-OST0000", NAME, WELL, "10.0.0.8@tcp")


def on_server(*addresses: str) -> Client:
    client = Client(TWO | {"mdt.lab-MDT0000.md_stats": STATS}, f"lab-{NAME}")
    client.nids = addresses
    return client


@pytest.mark.parametrize("addresses", [("10.0.0.7@tcp",), ("10.1.0.7@o2ib", "10.0.0.7@tcp")])
def test_counters_of_this_node_are_read_at_any_of_its_addresses(tmp_path: Path, addresses: tuple[str, ...]) -> None:
    mine = lustre(tmp_path, on_server(*addresses))
    assert mine.observe()["lab-MDT0000"]["md.open"] == 3
    assert mine.server_addresses() == {"lab-MDT0000": "0@lo", "lab-OST0000": "10.0.0.8@tcp"}


def test_counters_of_this_node_are_not_attributed_to_servers_on_other_nodes(tmp_path: Path) -> None:
    mine = lustre(tmp_path, on_server("10.0.0.9@tcp"))
    assert "md.open" not in mine.observe().get("lab-MDT0000", {})


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ("healthy\nhealthy", ""),
        ("LBUG", "LBUG"),
        ("device x reported unhealthy\nNOT HEALTHY", "device x"),
        ("NOT HEALTHY", "gives no reason"),
    ],
)
def test_an_unhealthy_client_is_reported(tmp_path: Path, told: str, complaint: str) -> None:
    trouble = lustre(tmp_path, Client(TWO | {"health_check": told})).trouble()
    assert bool(trouble) == bool(complaint)
    assert not complaint or ("This client is not healthy" in trouble[0] and complaint in trouble[0])


def test_a_client_without_server_addresses_says_why_it_has_no_counters(tmp_path: Path) -> None:
    limits = lustre(tmp_path, Client({}, f"lab-{NAME}")).limits()
    assert any("shows only root on which servers" in limit.why for limit in limits)


def test_an_idle_connection_to_a_dead_server_is_lost_from_its_first_attempt() -> None:
    states = parse_states(
        "current_state: FULL\nstate_history:\n - [ 10, CONNECTING ]\n - [ 10, IDLE ]\n - [ 76, CONNECTING ]\n"
        " - [ 81, DISCONN ]\n - [ 87, CONNECTING ]\n - [ 90, FULL ]"
    )
    assert states.interruptions("t") == (Interruption("t", 76, 90),)
    assert [change.unix_s for change in lost_changes(states.changes)] == [76, 81, 87, 90]


def test_an_expired_nfs_lease_is_an_interruption() -> None:
    text = (
        "device 10.0.0.9:/e mounted on /nfs with fstype nfs4 statvers=1.1\n"
        "\tnfsv4:\tbm0=0x1,lease_time=90,lease_expired={}\n\t        READ: 5 5 0 1 1 1 1 1 0\n"
    )
    well, expired = ({"client": counters(text.format(age), "/nfs")} for age in (0, 12))
    assert lost_between(well, expired) == lost_between(expired, well) == ("client",)
    assert lost_between(well, well) == ()


def test_the_error_of_an_unanswered_call_names_silent_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.calls._silent", {})
    monkeypatch.setattr("strakes.targets.lustre_target._FOLLOW_S", 0.0)
    known = Client(TWO | connection("lab-OST0003", NAME, LOST, "10.0.0.3@tcp"), f"lab-{NAME}")

    def hangs(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        if argv[0] == sys.executable:
            raise CommandTimeout("no answer within 10 s", why="the command printed nothing until then")
        return known(argv, timeout_s)

    with pytest.raises(UnansweredError, match="does not answer") as raised:
        LustreTarget(tmp_path, replace(mount(tmp_path), source="10.0.0.1@tcp:/lab"), runner=hangs).facts()
    assert "lab-OST0003 on 10.0.0.3 does not answer" in raised.value.why
