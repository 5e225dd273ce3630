"""Room, targets, servers that answer, pools and quotas, as recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.errors import BadInputError, MeasurementError
from strakes.targets.calls import Sizes
from strakes.targets.command import Completed
from strakes.targets.lustre import posix
from strakes.targets.lustre.lfs_check import check
from strakes.targets.lustre.lfs_df import Missing, TargetSpace, df, read_df
from strakes.targets.lustre.lfs_getname import ClientName, getname
from strakes.targets.lustre.lfs_pools import members, pools
from strakes.targets.lustre.lfs_quota import LustreQuota, quota, read_quota
from strakes.targets.lustre.lfs_targets import TargetState, mdts, osts
from targets.lustre.recorded import recording


def done(name: str) -> Completed:
    return recording(f"client/{name}.txt").done


def test_room_is_in_bytes_and_what_is_free_is_what_may_be_used() -> None:
    space = df().read(done("lfs_df"))
    assert [target.kind for target in space.targets] == ["MDT"] * 4 + ["OST"] * 4
    assert space.targets[4] == TargetSpace(
        "labfs-OST0000", "OST", 0, 3833116 * 1024, 1800 * 1024, 3605220 * 1024, mount_point="/mnt/labfs", state=""
    )
    assert space.missing == ()


def test_inodes_are_counted_as_they_are() -> None:
    target = df(inodes=True).read(done("lfs_df_i")).targets[0]
    assert (target.total, target.used, target.free) == (838864, 277, 838587)


def test_an_inactive_target_is_left_out_or_named() -> None:
    assert [target.index for target in df().read(done("ost_inactive_lfs_df")).targets if target.kind == "OST"] == [
        0,
        1,
        2,
    ]
    assert read_df(done("ost_inactive_lfs_df_v")).missing == (Missing("OST0003", "inactive device"),)


def test_only_a_pool_s_targets_are_in_its_room() -> None:
    assert [target.name for target in read_df(done("lfs_df_pool")).targets if target.kind == "OST"] == [
        "labfs-OST0000",
        "labfs-OST0001",
    ]


def test_two_file_systems_keep_their_mount_points() -> None:
    assert {target.mount_point for target in df().read(done("twofs_lfs_df")).targets} == {"/mnt/labfs", "/mnt/zlab"}


def test_targets_that_answered_are_told_although_another_did_not() -> None:
    recorded = done("lfs_df")
    lines = recorded.stdout.splitlines(keepends=True)
    # The form in which lfs reports a target that it could not ask (showdf in lfs.c).
    lines[6] = "labfs-OST0001_UUID  : Connection timed out\n"
    space = read_df(replace(recorded, status=110, stdout="".join(lines)))
    assert (len(space.targets), space.missing) == (7, (Missing("labfs-OST0001_UUID", "Connection timed out"),))


def test_a_target_s_own_complaint_is_kept() -> None:
    # The letter lfs puts behind a target that is degraded (obd_statfs_state_name_find in lustre_user.h).
    stdout = done("lfs_df").stdout.replace("[OST:1] ", "[OST:1] D")
    assert [target.state for target in read_df(replace(done("lfs_df"), stdout=stdout)).targets if target.state] == [
        "degraded"
    ]


def test_targets_are_known_by_number_and_state() -> None:
    assert osts().read(done("lfs_osts"))[3] == TargetState("labfs-OST0003", "OST", 3, "ACTIVE")
    assert osts().read(done("ost_inactive_lfs_osts"))[3].state == "INACTIVE"
    assert [target.name for target in mdts().read(done("twofs_lfs_mdts"))][-1] == "zlab-MDT0000"
    assert osts("/mnt/zlab").read(done("twofs_lfs_osts_path"))[0].name == "zlab-OST0000"


def test_there_are_no_targets_outside_lustre() -> None:
    assert osts("/tmp").read(done("err_osts_nonlustre")) == ()


def test_servers_that_answer_and_one_that_does_not() -> None:
    found = check("osts").read(done("ost_inactive_check"))
    assert len(found.active) == 3
    assert found.failing == {"labfs-OST0003-osc-ffff8880082b0000": "Cannot send after transport endpoint shutdown"}
    assert check("all").read(done("lfs_check_all")).active[-1] == "MGC192.168.77.1@tcp"


def test_the_name_of_a_mount() -> None:
    assert getname("/mnt/labfs").read(done("lfs_getname")) == ClientName("labfs", "ffff8880083a1800")


def test_pools_and_their_targets() -> None:
    assert pools("labfs").read(done("lfs_pool_list")) == ("fast",)
    assert pools("labfs").read(done("lfs_pool_list_none")) == ()
    assert members("labfs", "fast").read(done("lfs_pool_list_pool")) == ("labfs-OST0000", "labfs-OST0001")
    with pytest.raises(BadInputError, match="the pools are not known") as caught:
        pools("nosuchfs").read(done("err_pool_list_nofs"))
    assert "No such file or directory" in caught.value.why


def test_a_quota_without_limits() -> None:
    assert quota("root", "/mnt/labfs").read(done("lfs_quota")) == LustreQuota(
        318780 * 1024, 0, 0, 1304, 0, 0, exact=True
    )


def test_a_quota_of_a_long_path_over_its_limit_with_a_server_that_is_away() -> None:
    # Long paths stand on a line of their own, "*" is over the limit, brackets are a server that did not answer (print_quota in lfs.c).
    stdout = done("lfs_quota").stdout.replace(
        "/mnt/labfs  318780       0 ", "/a/long/path/of/a/mount\n                [318780]*      10 "
    )
    assert read_quota(replace(done("lfs_quota"), stdout=stdout)) == LustreQuota(
        318780 * 1024, 10 * 1024, 0, 1304, 0, 0, exact=False
    )


def test_sizes_of_the_whole() -> None:
    assert posix.sizes("/mnt/labfs").read(done("stat_f")) == Sizes(
        4096, 3833116 * 4096, 3605212 * 4096, 1047638, 1046572
    )


def test_a_command_ended_by_a_signal_is_a_failure_of_the_measurement() -> None:
    with pytest.raises(MeasurementError) as caught:
        df().read(Completed(("lfs", "df"), -9, "", ""))
    assert "SIGKILL" in caught.value.why
