"""Which targets do not answer, and which servers are named for them, in a fail-over pair and elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.targets import calls
from strakes.targets.command import CommandTimeout, Completed
from strakes.targets.lustre_parameters import service_addresses, working_address
from strakes.targets.lustre_target import LustreTarget
from targets.lustre.recorded import PLACE
from targets.lustre.test_own import NAME, Client, lustre
from targets.lustre.test_target import mount

# Two servers; each serves a metadata target that the other one can take over, and a data target.
MDT0, MDT1, OST0, OST1 = (f"lab-{name}" for name in ("MDT0000", "MDT0001", "OST0000", "OST0001"))
SERVICE = {MDT0: ("10.0.0.1", "10.0.0.2"), MDT1: ("10.0.0.2", "10.0.0.1"), OST0: ("10.0.0.1",), OST1: ("10.0.0.2",)}
CUT = dict.fromkeys((MDT1, OST1), "DISCONN")
RECORDED = (PLACE / "wave3" / "mdc_import_two_servicenodes.txt").read_text()
INSTANCE = "0000000082244000"


def parameters(states: Mapping[str, str], *, tries: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the client's parameters. ``states``: FULL for all other targets. ``tries``: target -> address in use."""
    known = {}
    for target, service in SERVICE.items():
        device = "mdc" if "-MDT" in target else "osc"
        name, state = f"{device}.{target}-{device}-{NAME}", states.get(target, "FULL")
        current = f"{tries.get(target, service[0])}@tcp"
        changes = [(1000, "FULL")] + ([] if state == "FULL" else [(1050, state)])
        history = "\n".join(f" - [ {at}, {each} ]" for at, each in changes)
        known[f"{name}.state"] = f"current_state: {state}\nstate_history:\n{history}"
        nids = ", ".join(f'"{host}@tcp"' for host in service)
        lines = f"state: {state}", f"failover_nids: [ {nids} ]", f'current_connection: "{current}"'
        known[f"{name}.import"] = "\n    ".join(("import:", *lines))
    return known


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.lustre_target.time.time", lambda: 1064.0)


def test_a_lost_target_is_named_with_its_last_server_and_not_with_the_one_that_the_client_tries(tmp_path: Path) -> None:
    client = Client(parameters({}), f"lab-{NAME}")
    target = lustre(tmp_path, client)
    assert target.lost_servers() == {} and target.trouble() == ()
    client.parameters = parameters(CUT, tries={MDT1: "10.0.0.1", OST1: "10.0.0.1"})
    assert target.trouble() == (
        f"{MDT1} on 10.0.0.2 does not answer: DISCONN, for 14.0 s.",
        f"{OST1} on 10.0.0.2 does not answer: DISCONN, for 14.0 s.",
    )


@pytest.mark.parametrize(
    ("states", "host"),
    [
        # The other server serves MDT0.
        (CUT, "10.0.0.2"),
        # Nothing shows which of the two servers is dead.
        (dict.fromkeys(SERVICE, "DISCONN"), "10.0.0.2 or 10.0.0.1"),
    ],
)
def test_without_an_earlier_connection_all_configured_servers_without_other_connections_are_named(
    tmp_path: Path, states: Mapping[str, str], host: str
) -> None:
    client = Client(parameters(states, tries={MDT1: "10.0.0.1"}), f"lab-{NAME}")
    lost = lustre(tmp_path, client).lost_servers()
    assert lost is not None and lost[MDT1].host == host


@pytest.mark.parametrize(
    ("now_s", "line"),
    [
        # The client may notice the other targets of a dead machine up to 16 s later.
        (1064.0, f"{MDT1} on 10.0.0.2 does not answer: DISCONN, for 14.0 s."),
        (1067.0, f"{MDT1} does not answer: DISCONN, for 17.0 s; {OST1} on its server 10.0.0.2 is connected."),
    ],
)
def test_a_server_with_another_connected_target_is_called_connected_only_after_a_dead_one_would_have_been_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now_s: float, line: str
) -> None:
    monkeypatch.setattr("strakes.targets.lustre_target.time.time", lambda: now_s)
    client = Client(parameters({}), f"lab-{NAME}")
    target = lustre(tmp_path, client)
    target.trouble()
    client.parameters = parameters({MDT1: "DISCONN"}, tries={MDT1: "10.0.0.1"})
    assert target.trouble() == (line,)


def test_an_idle_target_of_a_dead_server_is_lost_but_not_one_of_a_server_that_refuses(tmp_path: Path) -> None:
    client = Client(parameters({OST1: "IDLE"}), f"lab-{NAME}")
    target = lustre(tmp_path, client)
    assert target.lost_servers() == {}
    client.parameters = parameters({MDT1: "DISCONN", OST1: "IDLE"})
    lost = target.lost_servers()
    assert (
        lost is not None
        and lost[OST1].sentence(OST1) == f"{OST1} on 10.0.0.2 does not answer: IDLE, and its server is dead."
    )
    refused = "\n - [ 1050, DISCONN ]\n - [ 1055, CONNECTING ]\n - [ 1055, DISCONN ]"
    state = f"mdc.{MDT1}-mdc-{NAME}.state"
    client.parameters[state] = client.parameters[state].replace("\n - [ 1050, DISCONN ]", refused)
    lost = target.lost_servers()
    assert lost is not None and list(lost) == [MDT1] and lost[MDT1].refuses


def test_a_target_that_is_taking_its_clients_back_is_in_trouble_but_not_lost(tmp_path: Path) -> None:
    target = lustre(tmp_path, Client(parameters({MDT1: "EVICTED"}), f"lab-{NAME}"))
    assert len(target.trouble()) == 1 and target.lost_servers() == {}


def test_the_servers_in_a_recorded_import_are_read(tmp_path: Path) -> None:
    text, _, history = RECORDED.partition(f"mdc.lus-MDT0001-mdc-{INSTANCE}.state=\n")
    assert service_addresses(text) == ("10.77.0.2@tcp", "10.77.0.1@tcp")
    # The run time must not grow with the square of the length: both texts would take hours.
    assert (
        service_addresses("failover_nids: [" * 500_000) == service_addresses(f"failover_nids: [{'a' * 5_000_000}") == ()
    )
    assert working_address(text) == "10.77.0.2@tcp"
    assert working_address(re.sub("state: FULL", "state: CONNECTING", text)) == ""
    states = {f"mdc.lus-MDT0001-mdc-{INSTANCE}.state": history}
    client = Client({**states, f"mdc.lus-MDT0001-mdc-{INSTANCE}.import": text}, f"lus-{INSTANCE}")
    target = LustreTarget(tmp_path, replace(mount(tmp_path), source="10.77.0.1@tcp:/lus"), runner=client)
    assert target.lost_servers() == {}


UNANSWERED = calls.UnansweredError("the file system does not answer within 10 s", why="a look does not end")


@pytest.mark.parametrize(("noticed_s", "waited_s"), [(0, 5), (6, 11), (99, 16)])
def test_an_unanswered_call_is_named_as_soon_as_the_client_notices_its_lost_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed_s: int, waited_s: int
) -> None:
    client, clock = Client(parameters({}), f"lab-{NAME}"), [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        client.parameters = parameters(CUT if clock[0] >= noticed_s else {})

    monkeypatch.setattr("strakes.targets.lustre_target.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("strakes.targets.lustre_target.time.sleep", sleep)
    sleep(0.0)
    error = lustre(tmp_path, client).named(UNANSWERED)
    assert clock[0] == waited_s
    assert error.names_servers == (f"{MDT1} on 10.0.0.2 does not answer" in error.why) == (noticed_s < 99)
    assert not error.names_servers or lustre(tmp_path, client).named(error) is error


@pytest.mark.parametrize("hangs", [True, False])
def test_states_that_can_no_longer_be_read_are_a_trouble_and_a_hanging_lctl_is_asked_once(
    tmp_path: Path, hangs: bool
) -> None:
    client, asked = Client(parameters({}), f"lab-{NAME}"), []

    def fails(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        asked.append(argv)
        if hangs:
            raise CommandTimeout("no answer within 10 s")
        return Completed(tuple(argv), 5, "", "error: get_param: Input/output error")

    target = lustre(tmp_path, client)
    assert target.trouble() == ()
    target.run = fails
    (line,) = target.trouble()
    assert line.startswith("strakes cannot detect dead servers, because it cannot read the states of connections: ")
    assert not hangs or (len(asked) == 1 and target.named(UNANSWERED).why == UNANSWERED.why and len(asked) == 1)
