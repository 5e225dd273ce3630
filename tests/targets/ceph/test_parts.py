"""Parsing of the answers of a real cluster (16.2.15), and the ways to mount CephFS."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError
from strakes.base.units import GIB, MIB
from strakes.targets import ceph_cluster as cluster
from strakes.targets.ceph_target import DISTRIBUTED, PIN, RANDOM, pin_for, read_layout, read_pins, write_layout
from strakes.targets.ceph_tool import access_of, ask_socket, ceph, data_counters, metadata_counters
from strakes.targets.command import Completed
from strakes.targets.description import SERVER, Description, Layout, Placement, difference, disturbed
from strakes.targets.knowledge import unlike_targets
from strakes.targets.mountinfo import Mount, parse_mountinfo

RECORDED = Path(__file__).parent / "recorded"
FUSE = "48 27 0:43 / /lab/mnt rw,relatime - fuse.ceph-fuse ceph-fuse rw,user_id=0"


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


def described(**changed: Any) -> Description:
    names = ("fs_dump", "osd_df", "osd_dump", "osd_tree", "mon_dump", "versions")
    answers = {name: recorded(name) for name in names} | changed
    mdsmap = cluster.file_system_of(answers["fs_dump"], "", "cephfs_data", answers["osd_dump"]["pools"])
    assert mdsmap is not None
    return cluster.description(answers, mdsmap, recorded("pg_dump_pgs_brief")["pg_stats"])


def mount(line: str) -> Mount:
    return parse_mountinfo(line)[0]


def test_a_cluster_is_described_with_its_ranks_stores_and_pools() -> None:
    found = described()
    assert (found.file_system_name, found.version) == ("cephfs", "16.2.15 pacific")
    assert found.pools == ("cephfs_meta", "cephfs_data")
    ranks = [(one.name, one.server, one.state) for one in found.metadata_targets]
    assert ranks == [("cephfs:0", "mds.c", "active"), ("cephfs:1", "mds.a", "active")]
    assert [(one.name, one.state, one.total_bytes, one.pools) for one in found.data_targets] == [
        (f"osd.{number}", "up", 4 * GIB, ("cephfs_data",)) for number in range(3)
    ]
    states = {one.name: one.state for one in found.servers if one.role == "mds"}
    assert states == {"mds.a": "active", "mds.b": "standby", "mds.c": "active"} and unlike_targets(found) == ()


def test_an_osd_that_is_down_and_ranks_without_a_server_are_reported() -> None:
    osd_dump, fs_dump = recorded("osd_dump"), recorded("fs_dump")
    osd_dump["osds"][1] |= {"up": 0, "state": ["exists"]}
    mdsmap = fs_dump["filesystems"][0]["mdsmap"]
    holder = next(key for key, one in mdsmap["info"].items() if one["rank"] == 1)
    del mdsmap["info"][holder]
    next(iter(mdsmap["info"].values()))["laggy_since"] = "2026-11-21T10:40:00.0+0000"
    lines = unlike_targets(described(osd_dump=osd_dump, fs_dump=fs_dump))
    assert [line.split()[0] for line in lines] == ["osd.1", "cephfs:0", "cephfs:1"]
    assert "down" in lines[0] and "laggy" in lines[1] and "failed" in lines[2]
    with pytest.raises(ValueError, match="more than 256 metadata ranks"):  # Each would be queried by a command.
        cluster.ranks_of(mdsmap | {"in": list(range(20_000))})


def test_the_mounted_one_of_several_file_systems_is_described() -> None:
    fs_dump, pools = recorded("fs_dump"), recorded("osd_dump")["pools"]
    other = json.loads(json.dumps(fs_dump["filesystems"][0]))
    other["mdsmap"] |= {"fs_name": "other", "data_pools": [9]}
    fs_dump["filesystems"].insert(0, other)

    def name(asked: str, pool: str) -> str | None:
        found = cluster.file_system_of(fs_dump, asked, pool, pools)
        return None if found is None else str(found["fs_name"])

    assert [name("", "cephfs_data"), name("other", "cephfs_data"), name("none", "")] == ["cephfs", "other", None]


def test_counters_have_the_common_names_and_a_new_server_of_a_rank_is_detected() -> None:
    dump = recorded("mds_perf_dump")
    before = metadata_counters(dump) | {SERVER: 4109.0}
    for kind, count in (("create", 5), ("readdir", 2), ("lssnap", 1)):
        dump["mds_server"][f"req_{kind}_latency"]["avgcount"] += count
    after = metadata_counters(dump) | {SERVER: 4109.0}
    counted = {name: value for name, value in difference({"fs:0": before}, {"fs:0": after})["fs:0"].items() if value}
    assert counted == {"md.create": 5, "md.readdir": 2, "md.requests": 8}
    replaced = {"fs:0": after | {SERVER: 4200.0}}
    assert difference({"fs:0": before}, replaced) == {} and "fs:0" in disturbed({"fs:0": before}, replaced)[0]
    assert data_counters(recorded("osd_perf_dump"))["data.write_requests"] == 2


@pytest.mark.parametrize(
    ("words", "environment", "options", "file_system"),
    [
        ("-c /lab/ceph.conf -n client.admin -f /lab/mnt", "", "--conf /lab/ceph.conf --name client.admin", ""),
        ("--id=web --conf=etc/c.conf mnt --client_fs=home", "", "--conf /lab/etc/c.conf --id web", "home"),
        (
            "-k key --client_mds_namespace old /lab/mnt/",
            "CEPH_CONF=/e/c.conf",
            "--conf /e/c.conf --keyring /lab/key",
            "old",
        ),
        ("/lab/mnt", "", "", ""),
        ("-c /other/ceph.conf /elsewhere", "", "", ""),
    ],
)
def test_a_fuse_mount_is_queried_with_the_options_of_its_process(
    tmp_path: Path, words: str, environment: str, options: str, file_system: str
) -> None:
    process = tmp_path / "77"
    process.mkdir()
    (process / "cmdline").write_bytes("\0".join(["/usr/bin/ceph-fuse", *words.split(), ""]).encode())
    (process / "environ").write_bytes(f"{environment}\0".encode())
    (process / "status").write_text("Name:\tceph-fuse\nUid:\t0\t0\t0\t0\nCapEff:\t3fffffffff\n")
    (process / "cwd").symlink_to("/lab")
    (tmp_path / "78").mkdir()
    found = access_of(mount(FUSE), tmp_path)
    assert (" ".join(found.options), found.file_system) == (options, file_system)
    assert found.configuration == (options.split()[1] if "--conf" in options else "")


@pytest.mark.parametrize(
    ("source", "more", "options", "file_system"),
    [
        ("10.0.0.1:6789,10.0.0.2:6789:/", "name=web,secret=<hidden>,mds_namespace=home", ("--id", "web"), "home"),
        ("web@0e7d.home=/", "mon_addr=10.0.0.1:6789", ("--id", "web"), "home"),
        ("10.0.0.1:/dir@a.b=/", "acl", (), ""),
    ],
)
def test_a_kernel_mount_gives_its_own_client_name(
    source: str, more: str, options: tuple[str, ...], file_system: str
) -> None:
    found = access_of(mount(f"48 27 0:43 / /mnt rw - ceph {source} rw,{more}"))
    assert (found.options, found.file_system) == (options, file_system)


@given(
    unit=st.sampled_from([64 << 10, MIB, 8 * MIB, 3 << 16]),
    count=st.integers(1, 99),
    pool=st.sampled_from(["", "data", "a pool"]),
)
def test_a_layout_written_is_the_layout_read_and_stripes_fit_into_objects(unit: int, count: int, pool: str) -> None:
    wanted = Layout(unit, count, pool=pool)
    found = read_layout(write_layout(wanted, Layout(4 * MIB, 1, object_bytes=4 * MIB), 3))
    assert replace(found, object_bytes=None) == wanted
    assert found.object_bytes is not None and found.object_bytes % unit == 0


def test_a_layout_that_ceph_cannot_express_is_refused() -> None:
    with pytest.raises(BadInputError, match="first target"):
        write_layout(Layout(first_target=1), Layout(), 3)
    with pytest.raises(MeasurementError):
        read_layout("stripe_unit=x")


@pytest.mark.parametrize(
    ("values", "placement"),
    [
        ({PIN: "-1", DISTRIBUTED: "0", RANDOM: "0"}, Placement("inherit")),
        ({PIN: "1", DISTRIBUTED: "0", RANDOM: "0"}, Placement("manual", (1,), inherited=True)),
        ({PIN: "-1", DISTRIBUTED: "1", RANDOM: "0"}, Placement("automatic", count=1, hash="distributed")),
        ({}, Placement("inherit")),
    ],
)
def test_pins_are_placements(values: Mapping[str, str], placement: Placement) -> None:
    assert read_pins(values) == placement
    attribute = pin_for(placement, (0, 1))
    assert attribute is None or values[attribute[0]] == attribute[1]


def test_a_random_pin_is_read() -> None:
    assert read_pins({RANDOM: "0.01"}) == Placement("automatic", count=1, hash="random 0.01", inherited=True)


@pytest.mark.parametrize("wanted", [Placement("manual", (7,)), Placement("automatic", count=2)])
def test_a_placement_that_ceph_ignores_or_cannot_do_is_refused(wanted: Placement) -> None:
    with pytest.raises(BadInputError):
        pin_for(wanted, (0, 1))


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("ObjectNotFound('RADOS object not found (error calling conf_read_file)')", EnvironmentLacksError),
        ("Error EACCES: access denied", EnvironmentLacksError),
        ("[errno 110] RADOS timed out (error connecting to the cluster)", MeasurementError),
    ],
)
def test_refusals_have_a_remedy(stderr: str, kind: type[Exception]) -> None:
    command = ceph(access_of(mount("48 27 0:43 / /mnt rw - ceph a:/ rw")), "fs", "dump")
    with pytest.raises(kind) as caught:
        command.read(Completed(command.argv, 1, "", stderr + "\n"))
    assert getattr(caught.value, "why") == stderr and getattr(caught.value, "remedy")  # noqa: B009


def test_a_daemon_that_listens_but_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.ceph_tool._SOCKET_S", 0.1)
    path = str(tmp_path / "asok")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        with pytest.raises(MeasurementError, match="does not answer"):
            ask_socket(path, "perf dump")
    os.unlink(path)
    with pytest.raises(MeasurementError, match="cannot be reached"):
        ask_socket(path, "perf dump")


@pytest.mark.parametrize("name", ["commit_lat", "txc_commit_lat"])
def test_an_osd_is_timed_by_its_own_device_and_not_by_its_replicas(name: str) -> None:
    requests = {"op_latency": {"avgcount": 5, "sum": 50.0}, "op_w": 5}
    own = {name: {"avgcount": 8, "sum": 0.4}, "read_lat": {"avgcount": 2, "sum": 0.1}}
    counted = data_counters({"osd": requests, "bluestore": own})
    assert (counted["data.waited_requests"], counted["data.waited_s"]) == (10, 0.5)
    # An OSD in memory has no device.
    counted = data_counters({"osd": requests})
    assert (counted["data.waited_requests"], counted["data.waited_s"]) == (5, 50.0)


@pytest.mark.parametrize("name", ["bluestore_buffer_miss_bytes", "buffer_miss_bytes"])
def test_an_osd_reports_the_bytes_missed_by_its_cache(name: str) -> None:
    assert data_counters({"osd": {}, "bluestore": {name: 4096}})["data.device_read_bytes"] == 4096
    assert "data.device_read_bytes" not in data_counters({"osd": {}})
