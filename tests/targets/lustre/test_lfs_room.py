"""Parsing of recorded lfs output: space, targets, server checks, pools and quotas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.base.errors import BadInputError, MeasurementError
from strakes.targets.calls import Quota
from strakes.targets.command import Completed
from strakes.targets.lustre_lfs import (
    ClientName,
    TargetSpace,
    TargetState,
    df,
    getname,
    pool_list,
    quota,
    read_df,
    target_list,
)
from targets.lustre.recorded import done


def test_space_is_in_bytes_and_free_space_is_the_available_one() -> None:
    space = df().read(done("lfs_df"))
    assert [target.name[6:9] for target in space.targets] == ["MDT"] * 4 + ["OST"] * 4
    assert space.targets[4] == TargetSpace("labfs-OST0000", 3833116 * 1024, 3605220 * 1024, "")
    assert space.missing == {}


def test_inodes_are_counted_as_they_are() -> None:
    target = df(inodes=True).read(done("lfs_df_i")).targets[0]
    assert (target.total, target.free) == (838864, 838587)


def test_an_inactive_target_is_left_out_or_named() -> None:
    known = df().read(done("ost_inactive_lfs_df")).targets
    assert [target.name[-1] for target in known if "OST" in target.name] == [*"012"]
    assert read_df(done("ost_inactive_lfs_df_v")).missing == {"OST0003": "inactive device"}


def test_the_space_of_a_pool_has_only_its_targets() -> None:
    known = read_df(done("lfs_df_pool")).targets
    assert [target.name for target in known if "OST" in target.name] == ["labfs-OST0000", "labfs-OST0001"]


def test_targets_that_answered_are_read_although_another_did_not() -> None:
    recorded = done("lfs_df")
    lines = recorded.stdout.splitlines(keepends=True)
    # The line that lfs prints for a target that did not answer (showdf in lfs.c).
    lines[6] = "labfs-OST0001_UUID  : Connection timed out\n"
    space = read_df(replace(recorded, status=110, stdout="".join(lines)))
    assert (len(space.targets), space.missing) == (7, {"labfs-OST0001_UUID": "Connection timed out"})


def test_the_state_of_a_degraded_target_is_kept() -> None:
    # lfs marks a degraded target with the letter D (obd_statfs_state_name_find in lustre_user.h).
    stdout = done("lfs_df").stdout.replace("[OST:1] ", "[OST:1] D")
    known = read_df(replace(done("lfs_df"), stdout=stdout)).targets
    assert [target.state for target in known if target.state] == ["degraded"]


def test_targets_are_known_by_number_and_state() -> None:
    assert target_list("osts").read(done("lfs_osts"))[3] == TargetState("labfs-OST0003", "OST", 3, "ACTIVE")
    assert target_list("osts").read(done("ost_inactive_lfs_osts"))[3].state == "INACTIVE"
    assert [target.name for target in target_list("mdts").read(done("twofs_lfs_mdts"))][-1] == "zlab-MDT0000"
    assert target_list("osts", "/mnt/zlab").read(done("twofs_lfs_osts_path"))[0].name == "zlab-OST0000"


def test_a_directory_outside_lustre_has_no_targets() -> None:
    assert target_list("osts", "/tmp").read(done("err_osts_nonlustre")) == ()


def test_the_name_of_a_mount() -> None:
    assert getname("/mnt/labfs").read(done("lfs_getname")) == ClientName("labfs", "ffff8880083a1800")


def test_pools_and_their_targets() -> None:
    assert pool_list("labfs").read(done("lfs_pool_list")) == ("fast",)
    assert pool_list("labfs").read(done("lfs_pool_list_none")) == ()
    assert pool_list("labfs", "fast").read(done("lfs_pool_list_pool")) == ("labfs-OST0000", "labfs-OST0001")
    with pytest.raises(BadInputError, match="the pools are not known") as caught:
        pool_list("nosuchfs").read(done("err_pool_list_nofs"))
    assert "No such file or directory" in caught.value.why


def test_a_quota_without_limits() -> None:
    used = Quota("user root", 318780 * 1024, 0, 1304, 0)
    assert quota("root", "/mnt/labfs").read(done("lfs_quota")) == used
    large = replace(done("lfs_quota"), stdout=done("lfs_quota").stdout.replace("318780", "9" * 26))
    with pytest.raises(MeasurementError, match="not understood"):
        quota("root", "/mnt/labfs").read(large)


def test_a_quota_of_a_long_path_over_its_limit_with_a_silent_server() -> None:
    # A long path is on a separate line, "*" means over the limit, brackets mean that a server did not answer
    # (print_quota in lfs.c).
    stdout = done("lfs_quota").stdout.replace(
        "/mnt/labfs  318780       0 ", "/a/long/path/of/a/mount\n                [318780]*      10 "
    )
    over = Quota("user root", 318780 * 1024, 10 * 1024, 1304, 0)
    assert quota("root", "/mnt/labfs").read(replace(done("lfs_quota"), stdout=stdout)) == over


def test_a_command_ended_by_a_signal_is_a_failure_of_the_measurement() -> None:
    with pytest.raises(MeasurementError) as caught:
        df().read(Completed(("lfs", "df"), -9, "", ""))
    assert "SIGKILL" in caught.value.why
