"""LustreTarget on a replay of the recorded machine, and on machines without Lustre or with dead servers."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.units import MIB
from strakes.targets.calls import UnansweredError
from strakes.targets.child import REFUSED_STATUS
from strakes.targets.command import CommandTimeout, Completed, Runner, Servers, run
from strakes.targets.description import Layout, Placement, Server, StorageTarget, difference, disturbed
from strakes.targets.knowledge import unlike_targets
from strakes.targets.local import LocalTarget
from strakes.targets.lustre_lfs import ClientName
from strakes.targets.lustre_servers import connections
from strakes.targets.lustre_target import LustreTarget
from strakes.targets.lustre_tool import Answers
from strakes.targets.mountinfo import Mount, parse_mountinfo
from strakes.targets.registry import target_of_mount
from strakes.targets.target import Target
from targets.control_conformance import ControlConformance
from targets.lustre.recorded import PLACE, Recording, bare, recording
from targets.lustre.replay import AS_ROOT, AS_USER, INSTANCE, ON_SERVER, Replay, recordings

AT = Servers("at {host}")
QUOTA = "lfs quota -u root /mnt/labfs"
SPELLINGS = {
    f"lfs quota -u {os.getuid()} /mnt/labfs": QUOTA,
    # The command that set this default was not recorded.
    "lfs setdirstripe -D -c -1 /mnt/labfs/dne/strall": "lfs setdirstripe -D -c 4 defd",
}
FIRST = StorageTarget("labfs-MDT0000", 0, "192.168.77.1", "active", 1160264 << 10, 1039008 << 10, 838864, 838587)


def mount(root: Path) -> Mount:
    (recorded,) = parse_mountinfo(recording("client/mountinfo.txt").done.stdout)
    return replace(recorded, mount_point=str(root))


def target(root: Path, recorded: Sequence[Recording] = AS_ROOT, servers: Servers | None = None) -> LustreTarget:
    return LustreTarget(root, mount(root), servers=servers, runner=Replay(root, recorded, SPELLINGS, ON_SERVER))


def answering(
    root: Path, names: Callable[[Sequence[str]], bool], answer: Callable[[Sequence[str]], Completed]
) -> Runner:
    """Return a runner of the recorded commands except those that ``names`` selects, which get ``answer``."""
    recorded = Replay(root, AS_ROOT, SPELLINGS)
    return lambda argv, timeout_s=10: answer(argv) if names(argv) else recorded(argv, timeout_s)


def asked(lustre: LustreTarget) -> list[str]:
    asked: list[str] = vars(lustre.run)["asked"]
    return asked


class TestAsRecorded(ControlConformance):
    layout = Layout(MIB, 2)
    placements = (
        ("rem1", Placement("manual", (1,))),
        ("str4", Placement("automatic", count=4)),
        ("strall", Placement("automatic", count=-1, inherited=True)),
    )

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        directory = tmp_path / "s" / "d_c2"
        directory.mkdir(parents=True)
        return directory

    @pytest.fixture
    def target(self, tmp_path: Path, place: Path) -> Target:
        return target(tmp_path, servers=AT)

    @pytest.fixture
    def parent(self, tmp_path: Path) -> Path:
        directory = tmp_path / "dne"
        directory.mkdir()
        return directory


def test_the_mount_of_a_client_is_lustre_and_that_of_a_server_is_not(tmp_path: Path) -> None:
    assert type(target_of_mount(tmp_path, mount(tmp_path))) is LustreTarget
    line = (
        "99 27 254:32 / /mnt/lt/mdt0 rw - lustre /dev/vdc "
        "rw,svname=labfs-MDT0000,mgsnode=192.168.77.1@tcp,osd=osd-ldiskfs"
    )
    assert type(target_of_mount(tmp_path, parse_mountinfo(line)[0])) is LocalTarget
    assert "/dev/vdc /mnt/lt/mdt0 lustre rw,svname=labfs-MDT0000" in recording("server/proc_mounts.txt").done.stdout


def test_facts_are_those_of_the_recorded_mount(tmp_path: Path) -> None:
    facts = target(tmp_path).facts()
    assert (facts.file_system, facts.device, facts.remote) == ("lustre", "192.168.77.1@tcp:/labfs", True)
    assert (facts.total_bytes, facts.free_bytes, facts.free_inodes) == (3833116 * 4096, 3605212 * 4096, 1046572)
    assert "flock" in facts.mount_options and "only from this client" in facts.notes[0]
    assert facts.direct_io is None


def test_a_quota_leaves_less_than_the_file_system(tmp_path: Path) -> None:
    told = recording("client/lfs_quota.txt")
    text = told.done.stdout.replace(
        "318780       0       0       -    1304       0       0",
        "318780  400000  500000       -    1304       0    1500",
    )
    recorded = [replace(one, done=replace(one.done, stdout=text)) if one == told else one for one in AS_ROOT]
    facts = target(tmp_path, recorded).facts()
    assert (facts.free_bytes, facts.free_inodes) == ((400000 - 318780) << 10, 196)
    assert len(facts.quotas) == 1 and "leaves 79.3 MiB of 391 MiB and 196 of 1,500 files" in facts.quotas[0]


def test_the_description_has_every_part(tmp_path: Path) -> None:
    description = target(tmp_path).describe()
    assert (description.file_system_name, description.version) == ("labfs", "2.17.57_62_gc881f8e")
    address = "192.168.77.1@tcp"
    assert description.servers == tuple(
        Server("192.168.77.1", role, address, "" if role == "mgs" else "active") for role in ("mgs", "mds", "oss")
    )
    assert description.metadata_targets[0] == FIRST
    assert [one.index for one in description.metadata_targets] == [0, 1, 2, 3]
    sizes = (3833116 << 10, 3605220 << 10, 262144, 261643)
    assert description.data_targets[0] == StorageTarget(
        "labfs-OST0000", 0, "192.168.77.1", "active", *sizes, pools=("fast",)
    )
    assert [one.pools for one in description.data_targets] == [("fast",), ("fast",), (), ()]
    assert (description.pools, description.network) == (("fast",), ("192.168.77.2@tcp",))
    assert description.client["osc.max_pages_per_rpc"] == "1024"
    assert description.client["llite.max_cached_mb"] == "983"
    assert description.client["mdc.max_mod_rpcs_in_flight"] == "7" and description.notes == ()
    assert unlike_targets(description) == ()


def test_that_large_buffered_calls_become_direct_ones_is_kept_with_the_description(tmp_path: Path) -> None:
    text = (PLACE / "wave2" / "llite_hybrid_io.txt").read_text().replace("ffff888104cfa800", INSTANCE)
    words = ("lctl", "get_param", "llite.*.*")
    later = Recording("wave2", " ".join(words), as_user=False, done=Completed(words, 0, text, ""))
    client = target(tmp_path, (later, *AS_ROOT)).describe().client
    assert (client["llite.hybrid_io"], client["llite.hybrid_io_write_threshold_bytes"]) == ("1", "2097152")
    assert "llite.hybrid_io" not in target(tmp_path).describe().client


def test_an_ordinary_user_gets_readable_parts_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    lustre = target(tmp_path, AS_USER)
    description = lustre.describe()
    assert {one.state for one in (*description.metadata_targets, *description.data_targets)} == {"active"}
    assert (description.pools, description.client["osc.max_rpcs_in_flight"]) == (("fast",), "8")
    assert any("list_nids" in note and "denied" in note for note in description.notes)
    # Truncated counters are not used.
    assert not any(lustre.observe().values())
    limits = {"read counters of servers", "place directories", "read this client's counters"}
    assert {limit.what for limit in lustre.limits()} == limits


def test_a_deactivated_target_is_inactive() -> None:
    replayed = Replay(Path("/nowhere"), (*recordings("ost_inactive"), *AS_ROOT), {"lfs osts /mnt/labfs": "lfs osts"})
    targets = connections(Answers(replayed), "/mnt/labfs", ClientName("labfs", "ffff8880082b0000"))
    assert [one.state for one in targets if one.kind == "OST"] == ["active"] * 3 + ["inactive"]


def test_a_silent_server_is_reported_although_lfs_calls_its_targets_active() -> None:
    name = f"labfs-OST0001-osc-{INSTANCE}"
    lost = f"osc.{name}.state=\ncurrent_state: DISCONN\nstate_history:\n - [ 5, DISCONN ]\n"
    recorded = Replay(Path("/nowhere"), AS_ROOT)

    def down(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        return Completed(tuple(argv), 0, lost, "") if "osc.labfs-*.state" in argv else recorded(argv, timeout_s)

    targets = connections(Answers(down), "/mnt/labfs", ClientName("labfs", INSTANCE))
    assert [one.name for one in targets if one.state == "disconn"] == ["labfs-OST0001"]


@pytest.mark.parametrize(
    ("source", "manager"),
    [
        ("10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp:/labfs", "10.0.0.1@tcp"),
        ("fd00::1@tcp:fd00::2@tcp:/labfs", "fd00::1@tcp"),
        ("mgs:/labfs", "mgs"),
    ],
)
def test_the_first_address_of_the_management_server_is_shown(tmp_path: Path, source: str, manager: str) -> None:
    mounted = replace(mount(tmp_path), source=source)
    described = LustreTarget(tmp_path, mounted, runner=Replay(tmp_path, AS_ROOT, SPELLINGS)).describe()
    assert described.servers[0].address == manager and described.servers[0].name == manager.partition("@")[0]


def test_the_layout_given_to_new_files_is_read_from_one(tmp_path: Path) -> None:
    directory = tmp_path / "s" / "d_over"
    directory.mkdir(parents=True)
    lustre = target(tmp_path)
    given = lustre.set_layout(directory, Layout(stripe_count=8, pattern="overstriped"))
    assert (given.stripe_count, given.first_target, len(given.targets)) == (8, 3, 8)
    assert [line.split(" ")[1] for line in asked(lustre)] == ["setstripe", "getstripe"]
    assert list(directory.iterdir()) == []


def test_a_layout_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "s" / "d_plain"
    directory.mkdir(parents=True)
    with pytest.raises(EnvironmentLacksError, match="layout was not set") as caught:
        target(tmp_path, AS_USER).set_layout(directory, Layout(stripe_count=2))
    assert caught.value.why.endswith("Operation not permitted") and caught.value.remedy
    assert list(directory.iterdir()) == []


def test_a_file_that_cannot_be_created_with_a_layout_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "s" / "d_c2"
    directory.mkdir(parents=True)
    full = Completed((), REFUSED_STATUS, "", str(errno.ENOSPC))
    no_room = answering(tmp_path, lambda argv: "create" in argv, lambda argv: replace(full, argv=tuple(argv)))
    with pytest.raises(MeasurementError, match="no file can be made") as caught:
        LustreTarget(tmp_path, mount(tmp_path), runner=no_room).set_layout(directory, Layout(MIB, 2))
    assert "No space" in caught.value.why


def test_a_directory_on_a_missing_target_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "dne").mkdir()
    with pytest.raises(BadInputError, match="the directory was not made") as caught:
        target(tmp_path).make_directory(tmp_path / "dne", "md99", Placement("manual", (99,)))
    assert caught.value.why.endswith("No such device") and "strakes target" in caught.value.remedy


def test_only_root_may_place(tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()
    for name, wanted in (("r1", Placement("manual", (1,))), ("s4", Placement("automatic", count=4))):
        with pytest.raises(EnvironmentLacksError, match="the directory was not made"):
            target(tmp_path, AS_USER).make_directory(tmp_path / "u", name, wanted)


def test_the_counters_of_the_client_are_per_target(tmp_path: Path) -> None:
    seen = target(tmp_path).observe()
    assert set(seen) == {"client", *(f"labfs-{kind}000{index}" for kind in ("MDT", "OST") for index in range(4))}
    assert seen["client"]["client.md.mkdir"] == 56 and seen["labfs-MDT0001"]["client.md.requests"] == 1800
    assert seen["labfs-OST0000"]["client.data.write_bytes"] == 20742167
    assert all(name.startswith("client.") for counters in seen.values() for name in counters)


def test_the_servers_counters_come_with_servers_only(tmp_path: Path) -> None:
    seen = target(tmp_path, servers=AT).observe()
    assert (seen["labfs-MDT0001"]["md.open"], seen["labfs-MDT0001"]["client.md.close"]) == (353, 347)
    assert seen["labfs-OST0001"]["data.write_requests"] == 31
    assert not any("osd" in name or name == "MGS" for name in seen)


def on_this_node(recorded: Recording) -> Recording:
    return replace(
        recorded, done=replace(recorded.done, stdout=recorded.done.stdout.replace("192.168.77.1@tcp", "0@lo"))
    )


def test_a_server_calls_itself_by_its_address_in_the_network(tmp_path: Path) -> None:
    servers = target(tmp_path, (*map(on_this_node, AS_ROOT), *ON_SERVER)).describe().servers
    assert {server.address for server in servers if server.role != "mgs"} == {"192.168.77.2@tcp"}
    assert "localhost" not in {server.name for server in servers if server.role != "mgs"}


def test_an_ordinary_user_on_a_server_gets_only_the_counters_of_the_client(tmp_path: Path) -> None:
    seen = target(tmp_path, tuple(map(on_this_node, AS_ROOT))).observe()
    assert "localhost" not in seen and "client.md.requests" in seen["labfs-MDT0000"]


def mdtest(moment: str) -> Recording:
    text = bare(f"mdtest/striped_default_md_stats_{moment}.txt").stdout
    recorded = recording("server/get_param_mdt_md_stats.txt")
    return replace(recorded, done=replace(recorded.done, stdout=text))


def test_a_run_is_counted_on_the_metadata_targets_that_took_part(tmp_path: Path) -> None:
    def moment(which: str) -> LustreTarget:
        runner = Replay(tmp_path, AS_ROOT, SPELLINGS, (mdtest(which), *ON_SERVER))
        return LustreTarget(tmp_path, mount(tmp_path), servers=AT, runner=runner)

    before, after = moment("before").observe(), moment("after").observe()
    assert disturbed(before, after) == ()
    done = difference(before, after)
    assert [done[f"labfs-MDT000{index}"]["md.create"] for index in range(4)] == [73, 73, 77, 77]
    assert done["labfs-OST0000"]["data.write_bytes"] == 0


def test_counters_that_were_cleared_in_between_are_named(tmp_path: Path) -> None:
    before = target(tmp_path).observe()
    cleared = recording("client/get_param_llite_stats_after_clear.txt")
    after = target(tmp_path, (cleared, *AS_ROOT)).observe()
    # llite.*-INSTANCE.stats was not recorded separately, so the first recording with the parameter is used.
    assert "client" not in difference(before, after)
    assert disturbed(before, after) == (
        "client: the client's counters were cleared or the client was remounted during the measurement",
    )


def test_servers_that_cannot_be_reached_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    failed = Completed((), 255, "", "ssh: connect to host 192.168.77.1 port 22: No route to host\n")
    away = answering(tmp_path, lambda argv: argv[0] == "sshpass", lambda argv: replace(failed, argv=tuple(argv)))
    servers = Servers("sshpass -p 'hid den' ssh {host} sudo")
    lustre = LustreTarget(tmp_path, mount(tmp_path), servers=servers, runner=away)
    limit = next(limit for limit in lustre.limits() if "No route" in limit.why)
    assert limit.what == "read counters of server 192.168.77.1"
    seen = lustre.observe()
    assert seen["192.168.77.1"] == {} and "client.md.requests" in seen["labfs-MDT0000"]
    assert list(lustre.unread) == ["192.168.77.1"]
    sentence = lustre.unread["192.168.77.1"]
    assert "server 192.168.77.1" in sentence and "ssh 192.168.77.1 sudo lctl" in sentence and "No route" in sentence
    assert any("No route" in note for note in lustre.describe().notes)
    assert "hid" not in sentence and "sshpass -p ... ssh" in sentence


def test_servers_that_can_be_read_leave_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert target(tmp_path, servers=AT).limits() == ()


@pytest.fixture
def dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Return a runner with a time-out of 0.2 s on a machine whose lfs and lctl hang, as with a dead server."""
    for name in ("lfs", "lctl"):
        (tmp_path / name).write_text("#!/bin/sh\ntrap '' TERM INT HUP\necho $0 waits >&2\nwhile :; do sleep 1; done\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda argv, timeout_s=10: run(argv, timeout_s if argv[0] == sys.executable else 0.2)


def test_every_query_of_a_dead_server_ends_at_its_time_limit(tmp_path: Path, dead: Runner) -> None:
    lustre = LustreTarget(tmp_path, mount(tmp_path), servers=AT, runner=dead)
    place = tmp_path / "d"
    place.mkdir()
    for question in (
        *(lustre.describe, lustre.observe),
        *(lambda: lustre.layout(place), lambda: lustre.placement(place)),
        *(
            lambda: lustre.set_layout(place, Layout(stripe_count=1)),
            lambda: lustre.make_directory(tmp_path, "e", Placement("manual", (0,))),
        ),
    ):
        with pytest.raises(CommandTimeout) as caught:
            question()
        assert caught.value.where.startswith(("lfs ", "lctl ")) and caught.value.remedy
    assert any("no answer within" in limit.why for limit in lustre.limits())


def test_a_server_that_dies_later_leaves_what_is_known_and_a_note(tmp_path: Path) -> None:
    half_dead = answering(
        tmp_path, lambda argv: list(argv[:2]) == ["lfs", "df"], lambda argv: run(["sleep", "60"], 0.1)
    )
    description = LustreTarget(tmp_path, mount(tmp_path), runner=half_dead).describe()
    assert [one.total_bytes for one in description.data_targets] == [0] * 4
    assert any("no answer within" in note for note in description.notes) and unlike_targets(description) == ()


def test_a_machine_without_lfs_says_so_and_describes_the_mount(tmp_path: Path) -> None:
    lustre = LustreTarget(tmp_path, mount(tmp_path), runner=lambda argv, timeout_s=10: run(["strakes-no-lfs-here"]))
    description = lustre.describe()
    assert description.file_system_name == "labfs" and "flock" in description.client["mount options"]
    assert "cannot be started" in description.notes[0]
    assert lustre.observe() == {} and lustre.layout(tmp_path) is None
    assert not lustre.interruptions() and not lustre.trouble()
    assert any("cannot be started" in limit.why for limit in lustre.limits())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Completed((), 255, "", "ssh: connect to host 192.168.77.1 port 22: No route to host\n"), "No route to host"),
        (Completed((), 1, "", "error: get_param: param_path 'mdt/*/md_stats': Permission denied\n"), "Permission"),
        (Completed((), 0, "mdt.other-MDT0000.md_stats=\nsnapshot_time 1.0 secs.nsecs\n", ""), "no target of labfs"),
    ],
)
def test_a_requested_server_that_cannot_be_read_is_an_error_with_the_command(
    tmp_path: Path, answer: Completed, why: str
) -> None:
    target(tmp_path, servers=AT).require_answers()
    refuses = answering(tmp_path, lambda argv: argv[0] == "ssh", lambda argv: replace(answer, argv=tuple(argv[2:])))
    with pytest.raises(EnvironmentLacksError) as refused:
        LustreTarget(tmp_path, mount(tmp_path), servers=Servers("ssh {host}"), runner=refuses).require_answers()
    assert refused.value.where == "192.168.77.1" and why in refused.value.why
    assert "ssh 192.168.77.1 lctl get_param" in refused.value.remedy


def test_an_lctl_that_fails_is_reported_with_its_own_message(tmp_path: Path) -> None:
    done = Completed((), 5, "", "error: get_param: /sys/fs/lustre: cannot open: Input/output error\n")
    fails = answering(tmp_path, lambda argv: argv[0] == "lctl", lambda argv: replace(done, argv=tuple(argv)))
    with pytest.raises(EnvironmentLacksError) as refused:
        LustreTarget(tmp_path, mount(tmp_path), servers=Servers("ssh {host}"), runner=fails).require_answers()
    assert "Input/output error" in refused.value.why and "root" not in refused.value.why
    assert refused.value.where == "localhost" and "ssh" not in refused.value.remedy


def hanging_tool(root: Path, name: str) -> Runner:

    def hang(argv: Sequence[str]) -> Completed:
        raise CommandTimeout(
            "no answer within 10 s", where=shlex.join(argv), why="the command printed nothing until then"
        )

    return answering(root, lambda argv: argv[0] == name, hang)


@pytest.mark.parametrize(
    ("hanging", "where", "said"),
    [
        ("lctl", "lctl get_param version", f"lctl hangs on {platform.node()}"),
        ("lfs", "lfs getname", f"lfs hangs on {platform.node()}"),
        ("ssh", "192.168.77.1", "ssh 192.168.77.1 lctl get_param"),
    ],
)
def test_a_tool_that_hangs_from_the_start_is_an_error_with_command_and_host(
    tmp_path: Path, hanging: str, where: str, said: str
) -> None:
    runner = hanging_tool(tmp_path, hanging)
    lustre = LustreTarget(tmp_path, mount(tmp_path), servers=Servers("ssh {host}"), runner=runner)
    with pytest.raises(EnvironmentLacksError, match="no answer within") as refused:
        lustre.require_answers()
    assert refused.value.exit_status == 3 and refused.value.where.startswith(where)
    assert said in f"{refused.value.what} {refused.value.remedy}"


def test_lfs_that_waits_for_a_dead_server_is_no_fault_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lustre = LustreTarget(tmp_path, mount(tmp_path), runner=hanging_tool(tmp_path, "lfs"))
    monkeypatch.setattr(lustre, "_silent_targets", lambda: ("labfs-MDT0000 on mds1 does not answer: DISCONN.",))
    with pytest.raises(UnansweredError, match="labfs-MDT0000 on mds1 does not answer"):
        lustre.require_answers()
