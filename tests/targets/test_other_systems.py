"""GlusterFS and MooseFS with recorded answers, NFS with documented ones, and limits of other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from strakes.base.errors import EnvironmentLacksError, MeasurementError, StrakesError
from strakes.targets import ceph_tool, gluster, moosefs, nfs
from strakes.targets.command import DEFAULT_TIMEOUT_S, Command, Completed
from strakes.targets.description import Layout
from strakes.targets.knowledge import unlike_targets
from strakes.targets.local import LocalTarget
from strakes.targets.mountinfo import Mount, parse_mountinfo
from strakes.targets.registry import target_of_mount
from strakes.targets.target import Target, UnsupportedError

RECORDED = Path(__file__).parent / "recorded"
MASTER = """master info:|master version|3.0.117
master info:|total space|4160749568
"""
CHUNKSERVERS = """chunk servers:|10.75.198.90|9501|1|-|3.0.117|0|maintenance_off|1|182743040|2080374784|-|0|0|0
chunkservers:|10.75.198.90|9502|2|-|4.59.2|0|Normal|maintenance_on|1|182743040|2080374784|-|0|0|0

Disconnected chunk servers:|10.75.198.91|9503|3|maintenance_off
"""
MOOSEFS_4 = """chunkservers:|10.75.198.90|9501|1|-|4.59.2|0|normal|maintenance_off|1|7|20|-|0|0|0
Disconnected chunk servers:|10.75.198.91|9502|2|maintenance off
"""


def xml(name: str) -> ElementTree.Element:
    return ElementTree.fromstring((RECORDED / f"gluster_{name}.xml").read_text())


def mount(kind: str, source: str, options: str = "rw") -> Mount:
    return parse_mountinfo(f"48 27 0:43 / /mnt/there rw - {kind} {source} {options}")[0]


def rows(text: str) -> list[list[str]]:
    return [line.split("|") for line in text.splitlines()]


class Answering:
    """A runner that answers command lines by the words they contain; other commands are not installed."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        self.asked.append(" ".join(argv))
        for words, answer in self.answers.items():
            if words in self.asked[-1]:
                return Completed(tuple(argv), 0, answer, "")
        raise EnvironmentLacksError(f"{argv[0]} cannot be started", why="No such file or directory")


@pytest.mark.parametrize("number", ["9" * 6000, "9" * 400, "nan", "1e999", "-5"])
def test_impossible_numbers_of_a_gluster_volume_are_not_understood(number: str) -> None:
    status = xml("volume_status")
    next(status.iter("sizeTotal")).text = number
    with pytest.raises(MeasurementError, match="gluster is not understood"):
        gluster.describe(xml("volume_info"), status)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (gluster.gluster(()), "<a>" * 600_000),
        (gluster.gluster(()), f"<a>{'<b/>' * 600_000}</a>"),
        (gluster.gluster(()), f"<a>{'b' * 300_000}</a>"),
        (gluster.gluster(()), '<!DOCTYPE a [<!ENTITY b "b">]><a>&b;</a>'),
        (ceph_tool.ceph(ceph_tool.Access()), f"[{'[],' * 1_000_000}[]]"),
        (ceph_tool.ceph(ceph_tool.Access()), f'["{"[" * 300_000}"]'),
        (moosefs.mfscli("", "", "IN"), "|" * 3_000_000),
        (moosefs.mfscli("", "", "IN"), f"a|{'b' * 300_000}"),
    ],
)
def test_an_answer_of_more_values_than_any_system_has_is_not_understood(command: Command[Any], answer: str) -> None:
    with pytest.raises(MeasurementError, match="is not understood") as caught:
        command.read(Completed((), 0, answer, ""))
    assert "values" in caught.value.why or "entities" in caught.value.why


@pytest.mark.parametrize("command", [gluster.gluster(()), ceph_tool.ceph(ceph_tool.Access()), moosefs.goal("/x")])
def test_a_long_line_of_a_tool_is_quoted_by_its_beginning(command: Command[Any]) -> None:
    with pytest.raises(StrakesError) as caught:
        command.read(Completed((), 1, "[" * 60_000_000, ""))
    assert len(caught.value.why) <= 400


def test_a_gluster_volume_is_its_bricks() -> None:
    told = gluster.describe(xml("volume_info"), xml("volume_status"))
    assert told.file_system_name == "strakes"
    assert [(one.name.partition(":")[2], one.state, one.total_bytes) for one in told.data_targets] == [
        (f"/lab/brick/{number}/data", "online", 2080374784) for number in (1, 2, 3)
    ]
    assert told.servers[0].state == "3 of 3 bricks online"
    assert told.notes == ("Volume of type Distribute: 3 bricks, one copy of every file.",)


def test_an_offline_brick_is_reported() -> None:
    status = xml("volume_status")
    state = status.find("./volStatus/volumes/volume/node/status")
    assert state is not None
    state.text = "0"
    volume = status.find("./volStatus/volumes/volume")
    assert volume is not None
    volume.remove(volume.findall("node")[1])  # Its server is down.
    told = gluster.describe(xml("volume_info"), status)
    assert [one.state for one in told.data_targets] == ["offline", "not reported", "online"]
    assert "offline" in unlike_targets(told)[0] and told.servers[0].state == "1 of 3 bricks online"


def test_a_volume_with_a_running_profile_has_counters_and_another_one_a_reason() -> None:
    seen = gluster.counters(xml("profile"))
    assert len(seen) == 3 and all(one["md.create"] == 0 for one in seen.values())
    command = gluster.gluster(("volume", "profile", "strakes", "info"))
    refused = "<cliOutput><opRet>-1</opRet><opErrstr>Profile on Volume strakes is not started</opErrstr></cliOutput>"
    with pytest.raises(MeasurementError) as caught:
        command.read(Completed(command.argv, 1, refused, ""))
    assert caught.value.why == "Profile on Volume strakes is not started"
    with pytest.raises(EnvironmentLacksError):
        command.read(
            Completed(command.argv, 1, "", "Connection failed. Please check if gluster daemon is operational.")
        )


def test_a_moosefs_is_its_master_and_chunkservers() -> None:
    told = moosefs.describe("10.75.198.90", "9421", rows(MASTER), rows(CHUNKSERVERS))
    assert (told.version, told.metadata_targets[0].name) == ("3.0.117", "master")
    assert [one.state for one in told.data_targets] == ["online", "maintenance on", "disconnected"]
    assert [line.split()[0] for line in unlike_targets(told)] == ["10.75.198.90:9502", "10.75.198.91:9503"]
    later = moosefs.describe("10.75.198.90", "9421", rows(MASTER), rows(MOOSEFS_4)).data_targets
    assert [(one.state, one.free_bytes) for one in later] == [("online", 13), ("disconnected", 0)]


@pytest.mark.parametrize(
    ("said", "goal"), [("/mnt/d: 2\n", "2"), ("/mnt/d: goal: 3\n", "3"), ("/mnt/d: archive\n", "archive")]
)
def test_goals_are_read(said: str, goal: str) -> None:
    command = moosefs.goal("/mnt/d")
    assert command.read(Completed(command.argv, 0, said, "")) == goal


def test_an_nfs_mount_is_described_by_its_options() -> None:
    mounted = mount("nfs4", "filer:/export", "rw,vers=4.2,rsize=1048576,addr=10.0.0.9")
    told = nfs.NfsTarget(Path("/mnt/there"), mounted).describe()
    assert (told.version, told.client["rsize"]) == ("4.2", "1048576")
    assert (told.servers[0].name, told.servers[0].address) == ("filer", "10.0.0.9")


@pytest.mark.parametrize(
    ("kind", "source", "options"),
    [
        ("fuse.glusterfs", "h:--log-file=x", "rw,user_id=0"),
        ("fuse.glusterfs", "--glusterd-sock=x:vol", "rw,user_id=0"),
        ("fuse.glusterfs", "10.0.0.1:vol", "rw,user_id=65534"),
        ("fuse", "mfs#-evil:9421", "rw,user_id=0"),
        ("fuse.mfs", "-evil:9421", "rw,user_id=0"),
        ("fuse", "mfs#10.0.0.1:9421", "rw,user_id=65534"),
        ("fuse.ceph-fuse", "ceph-fuse", "rw,user_id=65534"),
    ],
)
def test_a_planted_source_of_a_mount_reaches_no_tool(kind: str, source: str, options: str) -> None:
    assert type(target_of_mount(Path("/mnt/there"), mount(kind, source, options))) is LocalTarget


@pytest.mark.parametrize(
    ("kind", "source", "chosen"),
    [
        ("beegfs", "beegfs_nodev", LocalTarget),
        ("gpfs", "/dev/gpfs0", LocalTarget),
        ("cvfs", "snfs1", LocalTarget),
        ("nfs4", "filer:/export", nfs.NfsTarget),
        ("fuse.glusterfs", "10.0.0.1:vol", gluster.GlusterTarget),
        ("fuse", "mfs#10.0.0.1:9421", moosefs.MooseFsTarget),
        ("fuse.mfs", "mfsmaster:9421/below", moosefs.MooseFsTarget),
    ],
)
def test_each_file_system_is_detected_by_its_mount_and_has_limits_with_a_reason(
    kind: str, source: str, chosen: type[Target]
) -> None:
    there = mount(kind, source)
    assert type(target_of_mount(Path("/mnt/there"), there)) is chosen
    target = chosen(Path("/mnt/there"), there, runner=Answering({}))
    assert target.describe().file_system_name and target.observe() == {}
    assert target.striping() is None
    assert any("layout" in limit.what for limit in target.limits()) and all(limit.why for limit in target.limits())
    with pytest.raises((UnsupportedError, EnvironmentLacksError)):
        target.set_layout(Path("/mnt/there"), Layout(stripe_count=2))
