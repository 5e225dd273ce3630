"""File systems with a common prefix in their names, one that is mounted twice, and many silent servers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from strakes.targets.command import CommandTimeout, Completed, Runner
from strakes.targets.lustre_servers import ask_health, server_counters
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.lustre_tool import Answers
from targets.lustre.test_target import mount

LOST = "\ncurrent_state: EVICTED\nstate_history:\n - [ 1795231205, DISCONN ]\n - [ 1795231209, EVICTED ]"
WELL = "\ncurrent_state: FULL\nstate_history:\n - [ 1795231205, CONNECTING ]\n - [ 1795231205, FULL ]"
NAME = "ffff888000000001"
OTHER = "ffff888000000002"


class Client:
    """A runner with these parameters for lctl; ``getname``: the answer of lfs getname, empty if it hangs."""

    def __init__(self, parameters: Mapping[str, str], getname: str = "") -> None:
        self.parameters, self.getname = parameters, getname
        self.nids: tuple[str, ...] = ()

    def __call__(self, argv: Sequence[str], timeout_s: float = 10) -> Completed:
        if argv[1] == "getname":
            if not self.getname:
                raise CommandTimeout("no answer within 10 s")
            return Completed(tuple(argv), 0, f"{self.getname} /mnt/lab\n", "")
        if argv[1] == "list_nids":
            return Completed(tuple(argv), 0, "".join(f"{nid}\n" for nid in self.nids), "")
        patterns = argv[2:]
        lines = [
            f"{name}={value}\n"
            for name, value in self.parameters.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
        return Completed(tuple(argv), 0, "".join(lines), "")


def lustre(root: Path, client: Client, file_system: str = "lab") -> LustreTarget:
    return LustreTarget(root, replace(mount(root), source=f"10.0.0.1@tcp:/{file_system}"), runner=client)


def connection(target: str, instance: str, state: str, address: str) -> dict[str, str]:
    device, kind = ("mdc", "mds") if "-MDT" in target else ("osc", "ost")
    name = f"{device}.{target}-{device}-{instance}"
    current = state.partition("current_state: ")[2].partition("\n")[0]
    text = f"import:\n    state: {current}\n    failover_nids: [ {address} ]\n    current_connection: {address}"
    return {f"{name}.state": state, f"{name}.{kind}_conn_uuid": address, f"{name}.import": text}


@pytest.mark.parametrize("lost", ["lab-2-MDT0000", "lab-MDT-OST0001", "lab-lab-MDT000a"])
def test_a_file_system_with_a_common_prefix_in_its_name_is_another_one(tmp_path: Path, lost: str) -> None:
    client = Client(
        {
            **connection("lab-MDT0000", NAME, WELL, "10.0.0.1@tcp"),
            **connection("lab-OST000f", NAME, WELL, "10.0.0.2@tcp"),
            **connection(lost, OTHER, LOST, "10.9.9.9@tcp"),
        }
    )
    mine, theirs = lustre(tmp_path, client), lustre(tmp_path, client, lost.rpartition("-")[0])
    assert mine.trouble() == () and mine.interruptions() == () and mine.connection_changes() == ()
    assert mine.server_addresses() == {"lab-MDT0000": "10.0.0.1@tcp", "lab-OST000f": "10.0.0.2@tcp"}
    assert [each.target for each in theirs.interruptions()] == [lost]
    assert theirs.server_addresses() == {lost: "10.9.9.9@tcp"} and len(theirs.trouble()) == 1


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("own", "evicted"), [(NAME, True), (OTHER, False)])
def test_only_connections_of_this_mount_count(tmp_path: Path, order: int, own: str, evicted: bool) -> None:
    there = [
        connection("lab-MDT0000", NAME, LOST, "10.0.0.1@tcp"),
        connection("lab-MDT0000", OTHER, WELL, "10.0.0.7@tcp"),
        # The connection of a metadata server on this machine to a data target.
        connection("lab-OST0000", "MDT0000", LOST, "10.0.0.3@tcp"),
    ]
    client = Client({key: value for each in there[::order] for key, value in each.items()}, f"lab-{own}")
    mine = lustre(tmp_path, client)
    assert [each.target for each in mine.interruptions()] == (["lab-MDT0000"] if evicted else [])
    assert bool(mine.trouble()) == evicted
    assert mine.server_addresses() == {"lab-MDT0000": "10.0.0.1@tcp" if evicted else "10.0.0.7@tcp"}


def test_a_target_that_was_never_connected_has_no_server_and_is_named_so(tmp_path: Path) -> None:
    new = "\ncurrent_state: NEW\nstate_history:\n - [ 1795231205, NEW ]"
    client = Client(
        {**connection("lab-OST0000", NAME, WELL, "10.0.0.2@tcp"), **connection("lab-OST0001", NAME, new, "<none>")}
    )
    mine = lustre(tmp_path, client)
    assert mine.server_addresses() == {"lab-OST0000": "10.0.0.2@tcp", "lab-OST0001": ""}
    assert mine.trouble() == ("lab-OST0001 does not answer: never connected.",)


def test_trouble_is_reported_even_if_the_name_of_the_mount_is_unknown(tmp_path: Path) -> None:
    two = {name: connection("lab-MDT0000", name, LOST, "10.0.0.1@tcp") for name in (NAME, OTHER)}
    assert lustre(tmp_path, Client({**two[NAME], **two[OTHER]})).trouble()


def test_counters_of_another_file_system_on_a_server_are_ignored() -> None:
    stats = "\nsnapshot_time 1795231205.0 secs.nsecs\nopen 3 samples [reqs]"
    recovery = "\nstatus: RECOVERING\nrecovery_start: 1795231205\ntime_remaining: 60\nconnected_clients: 1/4"
    server = Client(
        {f"mdt.{name}-MDT0000.md_stats": stats for name in ("lab", "lab-2")}
        | {f"mdt.{name}-MDT0000.recovery_status": recovery for name in ("lab", "lab-2")}
    )
    assert not server_counters({"a": server}, "lab")[1]
    assert "serves no target of lab-3" in server_counters({"a": server}, "lab-3")[1]["a"]
    answers = Answers(server)
    assert [each.target for each in ask_health(answers, {"a": server}, "lab")[0]] == ["lab-MDT0000"]


@pytest.mark.parametrize("number", [4, 60])
@pytest.mark.parametrize(
    "question",
    [lambda ways: ask_health(Answers(Client({})), ways, "lab"), lambda ways: server_counters(ways, "lab")[1]],
)
def test_silent_servers_are_awaited_in_parallel(
    number: int, question: Callable[[Mapping[str, Runner]], object]
) -> None:
    # The barrier opens when all servers are queried at once; sequential queries get a BrokenBarrierError.
    all_asked = threading.Barrier(number, timeout=20)

    def silent(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        all_asked.wait()
        raise CommandTimeout("no answer within 10 s")

    question({f"oss{index}": silent for index in range(number)})
    assert not all_asked.broken
