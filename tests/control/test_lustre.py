"""Knobs of Lustre, on a simulated client that answers, refuses and adjusts as the recorded one did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from control.lustre_machine import Machine
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.control.knob_change import changed, read
from strakes.targets.command import DEFAULT_TIMEOUT_S, CommandTimeout, Completed, Servers
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.mountinfo import Mount
from targets.lustre.recorded import PLACE, Recording
from targets.lustre.replay import AS_ROOT, AS_USER, INSTANCE, ON_SERVER, Replay

MOUNT = Mount(1, 0, 1, "/", "/mnt/labfs", ("rw",), "lustre", "192.168.77.1@tcp:/labfs", ())
OSC = "osc.labfs-OST000{}-osc-ffff8880083a1800"


@pytest.fixture
def machine() -> Machine:
    return Machine(Replay(Path("/mnt/labfs"), (hybrid_io(), *AS_ROOT), server=ON_SERVER))


def hybrid_io() -> Recording:
    text = (PLACE / "wave2" / "llite_hybrid_io.txt").read_text().replace("ffff888104cfa800", INSTANCE)
    words = ("lctl", "get_param", "llite.*.*")
    return Recording("wave2", " ".join(words), as_user=False, done=Completed(words, 0, text, ""))


def target(machine: Machine, servers: Servers | None = None) -> LustreTarget:
    return LustreTarget(Path("/mnt/labfs"), MOUNT, servers=servers, runner=machine)


def test_values_are_read_for_each_target(machine: Machine) -> None:
    (rpcs, cached, age) = read(target(machine), ["osc.max_rpcs_in_flight", "llite.max_cached_mb", "ldlm.lru_max_age"])
    assert dict(rpcs.values) == {f"{OSC.format(number)}.max_rpcs_in_flight": "8" for number in range(4)}
    assert set(cached.values.values()) == {"983"} and [*age.values.values()] == ["600000"] * 8


def test_every_client_knob_of_the_catalogue_is_in_the_recordings(machine: Machine) -> None:
    absent = {
        reading.knob.name: reading.why
        for reading in read(target(machine))
        if reading.why and reading.knob.where == "client"
    }
    lustre = {name: why for name, why in absent.items() if name.startswith(("osc", "mdc", "llite", "ldlm"))}
    # The recording has no value of short_io_bytes, and lru_size cannot be restored.
    assert set(lustre) == {"osc.short_io_bytes", "ldlm.lru_size"}


def test_a_change_reaches_every_target_and_is_undone(machine: Machine) -> None:
    with changed(target(machine), {"osc.max_rpcs_in_flight": 16, "llite.max_read_ahead_mb": 64}) as effective:
        assert {machine.values[f"{OSC.format(number)}.max_rpcs_in_flight"] for number in range(4)} == {"16"}
        assert {machine.values[f"{OSC.format(number)}.max_dirty_mb"] for number in range(4)} == {"64"}
        assert len(effective["osc.max_rpcs_in_flight"].values) == 4 and not effective.remarks
    with changed(target(machine), {"llite.max_read_ahead_mb": 16, "llite.max_read_ahead_per_file_mb": 8}) as effective:
        assert sorted(machine.values.values()) == ["16", "8"]
    assert [one.outcome for one in effective.restored] == ["restored"] * 2 and not machine.values


def test_a_silently_adjusted_value_is_reported(machine: Machine) -> None:
    with changed(target(machine), {"osc.max_pages_per_rpc": 100000}) as effective:
        pass
    assert len(effective.remarks) == 4
    assert "is 24 pages instead of 100000 pages: a value above the limit of the server" in effective.remarks[0]
    assert {one.outcome for one in effective.restored} == {"restored"}


@pytest.mark.parametrize(
    ("knob", "value"),
    [("osc.max_dirty_mb", 2000), ("osc.max_pages_per_rpc", 4096), ("llite.max_read_ahead_mb", 10000000)],
)
def test_a_refused_value_is_reported_with_the_message_of_lctl_and_all_changes_are_undone(
    machine: Machine, knob: str, value: int
) -> None:
    with pytest.raises(BadInputError) as caught, changed(target(machine), {"osc.max_rpcs_in_flight": 16, knob: value}):
        pass
    assert "Numerical result out of range" in caught.value.why and not machine.values


def test_missing_privileges_are_reported() -> None:
    def as_user(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        replay = Replay(Path("/mnt/labfs"), AS_USER)
        if list(argv[:2]) == ["lctl", "set_param"]:
            return Machine.recorded("client/user_set_param.txt", argv[2].partition("=")[0])
        return replay(argv, timeout_s) if argv[0] == "lfs" else Replay(Path("/mnt/labfs"), AS_ROOT)(argv, timeout_s)

    place = LustreTarget(Path("/mnt/labfs"), MOUNT, runner=as_user)
    with (
        pytest.raises(EnvironmentLacksError, match="Permission denied"),
        changed(place, {"osc.max_rpcs_in_flight": 16}),
    ):
        pass


def test_knobs_of_servers_need_the_servers_option(machine: Machine) -> None:
    (without,) = read(target(machine), ["ost_io.threads_max"])
    assert "--servers" in without.why
    (within,) = read(target(machine, Servers("at {host}")), ["ost_io.threads_max"])
    assert dict(within.values) == {"192.168.77.1: ost.OSS.ost_io.threads_max": "80"}

    def endless(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        lines = (f"osd-x.labfs-OST{number:04x}.read_cache_enable=1\n" for number in range(10_001))
        asked = argv[0] == "at" and argv[-1].endswith("read_cache_enable")
        return Completed(tuple(argv), 0, "".join(lines), "") if asked else machine(argv, timeout_s)

    lustre = LustreTarget(Path("/mnt/labfs"), MOUNT, servers=Servers("at {host}"), runner=endless)
    with pytest.raises(EnvironmentLacksError, match="more than 10000 parameters"):
        read(lustre, ["ost.read_cache_enable"])


@pytest.mark.parametrize("hangs", [True, False])
def test_servers_that_cannot_be_read_end_the_list_with_host_command_and_reason(machine: Machine, hangs: bool) -> None:
    asked: list[str] = []

    def away(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        if argv[0] != "ssh":
            return machine(argv, timeout_s)
        asked.append(argv[-1])
        if hangs:
            raise CommandTimeout("no answer within 10 s", why="the command printed nothing until then")
        return Completed(tuple(argv), 1, "", "sudo: a password is required\n")

    lustre = LustreTarget(Path("/mnt/labfs"), MOUNT, servers=Servers("ssh {host} sudo"), runner=away)
    with pytest.raises(EnvironmentLacksError) as caught:
        read(lustre)
    why = "no answer within 10 s" if hangs else "a password is required"
    assert caught.value.where == "192.168.77.1" and why in caught.value.why
    assert "ssh 192.168.77.1 sudo lctl get_param" in caught.value.why
    # strakes first asks for the health. After one more query without an answer, it stops asking this server.
    assert not hangs or len(asked) == 2
