"""Parsing of lctl parameters: counters, connections and recoveries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.command import Completed
from strakes.targets.description import CLIENT
from strakes.targets.lustre_lfs import LIST_NIDS, VERSION, read_version
from strakes.targets.lustre_parameters import LLITE_COUNTERS, MD_COUNTERS, Counter, parse_stats
from strakes.targets.lustre_tool import Params, device, get_param, read_params, set_param
from targets.lustre.recorded import bare, recording


def done(name: str) -> Completed:
    return recording(f"{name}.txt").done


def params(name: str) -> Params:
    return read_params(done(name))


def test_values_of_one_line_and_of_many() -> None:
    in_flight = params("client/get_param_osc_max_rpcs_in_flight").values
    assert in_flight["osc.labfs-OST0000-osc-ffff8880083a1800.max_rpcs_in_flight"] == "8"
    assert params("client/get_param_lov_pools").values == {
        "lov.labfs-clilov-ffff8880083a1800.pools.fast": "labfs-OST0000_UUID\nlabfs-OST0001_UUID"
    }
    assert params("client/get_param_at").values == {"at_min": "5", "at_max": "600", "timeout": "100"}


def test_a_value_may_have_equals_signs_and_blank_lines() -> None:
    assert params("client/get_param_jobid").values["jobid_name"] == "%e.%u"
    assert (
        params("server/get_param_nrs_policies").values["ost.OSS.ost_io.nrs_policies"].startswith("\nregular_requests:")
    )
    assert len(params("server/get_param_mgs_live").values) == 2


def test_names_with_dots_of_their_own_are_whole() -> None:
    (name,) = params("client/get_param_mgc_import").values
    assert device(name) == "MGC192.168.77.1@tcp"


def test_missing_names_are_reported() -> None:
    assert params("client/err_get_param_noent") == Params(
        {},
        missing=("osc.*.nosuchparam",),
        why="error: get_param: param_path 'osc/*/nosuchparam': No such file or directory",
    )
    assert params("server/get_param_obdfilter_brw_stats").missing == ("obdfilter.*.brw_stats",)
    assert not params("server/get_param_obdfilter_brw_stats").cut_off


def test_parameters_that_a_user_may_not_read_are_cut_off() -> None:
    for name in ("import", "state"):
        hidden = params(f"client/user_get_param_{name}")
        assert (hidden.values, hidden.cut_off, hidden.why) == ({}, True, "")
    assert not params("client/user_get_param_rpcs").cut_off
    # The lines of the counters are truncated.
    stats = params("client/user_get_param_stats")
    assert stats.cut_off
    with pytest.raises(NotUnderstoodError):
        parse_stats(stats.values["llite.labfs-ffff8880083a1800.stats"])


def test_the_value_that_set_param_echoes_is_not_the_value_in_force() -> None:
    set_param("osc.*.max_pages_per_rpc", "100000").read(done("client/err_set_param_range_pages"))
    recorded = done("client/set_param_pages_100000")
    lines = recorded.stdout.splitlines(keepends=True)
    assert [line.rstrip().partition("=")[2] for line in lines] == ["100000"] * 4 + ["24"] * 4 + ["1024"] * 4
    read_back = get_param("osc.*.max_pages_per_rpc")
    values = read_back.read(replace(recorded, argv=read_back.argv, stdout="".join(lines[4:8]))).values.values()
    assert set(values) == {"24"} and set(params("client/set_param_pages_4M").values.values()) == {"1024"}
    assert set(params("client/set_param_pages_4096").values.values()) == {"256"}


def test_a_value_out_of_range_is_bad_input_and_one_that_only_root_may_set_is_not() -> None:
    with pytest.raises(BadInputError) as caught:
        set_param("osc.*.max_dirty_mb", "100000").read(done("client/err_set_param_dirty"))
    assert caught.value.why == "error: set_param: setting 'osc/*/max_dirty_mb'='100000': Numerical result out of range"
    with pytest.raises(EnvironmentLacksError):
        set_param("osc.*.max_rpcs_in_flight", "16").read(done("client/user_set_param"))


def test_versions() -> None:
    assert VERSION.read(done("client/user_get_param_version")) == "2.17.57_62_gc881f8e"
    for name in ("client/lfs_version", "server/lctl_version", "server/get_param_version_n"):
        assert read_version(done(name)) == "2.17.57_62_gc881f8e"


def test_only_root_may_list_the_networks() -> None:
    assert LIST_NIDS.read(done("client/lctl_list_nids")) == ("192.168.77.2@tcp",)
    with pytest.raises(EnvironmentLacksError):
        LIST_NIDS.read(done("client/user_list_nids"))


def test_counters() -> None:
    stats = parse_stats(params("server/get_param_mdt_md_stats").values["mdt.labfs-MDT0000.md_stats"])
    assert stats.counters["open"] == Counter(127, "usecs", 905855, 40565212865)
    assert stats.start_s == 1795231176.003342156
    assert parse_stats(done("server/get_param_mdt_md_stats_n").stdout).samples("open") == 127


@pytest.mark.parametrize("way", ["single", "striped", "striped_dirs", "striped_default"])
def test_the_sum_over_all_metadata_targets_counts_the_files_of_mdtest(way: str) -> None:
    def counted(moment: str) -> dict[str, dict[str, float]]:
        values = read_params(bare(f"mdtest/{way}_md_stats_{moment}.txt", "lctl", "get_param", "mdt.*.md_stats")).values
        return {device(name): parse_stats(text).named(MD_COUNTERS) for name, text in values.items()}

    # The counters were cleared before mdtest, which creates 300 files, opens them again, closes them twice and removes
    # them; or creates and removes 120 directories in two others.
    assert all(value == 0 for counters in counted("before").values() for value in counters.values())
    after = counted("after")
    total = {name: sum(counters[name] for counters in after.values()) for name in after["labfs-MDT0000"]}
    if way == "striped_dirs":
        assert total["md.mkdir"] == total["md.rmdir"] == 122
    else:
        assert (total["md.create"], total["md.open"], total["md.close"], total["md.unlink"]) == (300, 600, 600, 300)
    # If subdirectories do not inherit the striping, the whole tree is on one target.
    busy = [name for name, counters in after.items() if counters["md.create"] or counters["md.mkdir"] > 2]
    assert len(busy) == (4 if way == "striped_default" else 1)


@pytest.mark.parametrize("way", ["single", "striped", "striped_dirs", "striped_default"])
def test_the_client_counted_the_same_files(way: str) -> None:
    patterns = ("llite.*.stats", "mdc.*.stats")
    values = read_params(bare(f"mdtest/{way}_client_stats_after.txt", "lctl", "get_param", *patterns)).values
    (mount,) = [
        parse_stats(text).named(LLITE_COUNTERS, CLIENT) for name, text in values.items() if name.startswith("llite.")
    ]
    if way == "striped_dirs":
        assert mount["client.md.mkdir"] == mount["client.md.rmdir"] == 122
    else:
        assert (mount["client.md.create"], mount["client.md.unlink"], mount["client.md.open"]) == (300, 300, 600)
    assert len([name for name in values if name.startswith("mdc.")]) == 4


def test_the_client_and_the_server_counted_the_same_writes_to_a_target() -> None:
    server = parse_stats(params("server/get_param_obdfilter_stats").values["obdfilter.labfs-OST0000.stats"]).data()
    client = parse_stats(
        params("client/get_param_osc_stats").values["osc.labfs-OST0000-osc-ffff8880083a1800.stats"]
    ).data(CLIENT)
    assert client == {f"client.{name}": value for name, value in server.items()}


GREETING = "*** Maintenance on Monday: 8 o'clock = no service ***\n\n  Welcome to mds1\n"
ASKED = ("server/get_param_obdfilter_stats", "server/get_param_mdt_md_stats", "server/get_param_mgs_live")


@pytest.mark.parametrize("name", ASKED)
def test_a_greeting_does_not_hide_the_values_of_a_server(name: str) -> None:
    own = done(name)
    expected = params(name)
    assert expected.values and read_params(replace(own, stdout=GREETING + own.stdout)).values == expected.values


def test_errors_of_lctl_are_distinguished_from_other_messages() -> None:
    missing = done("server/get_param_obdfilter_brw_stats")
    for stderr in (
        f"Warning: Permanently added 'oss1' to the list of known hosts.\n{missing.stderr}",
        f"{missing.stderr}Connection to oss1 closed.\n",
    ):
        told = read_params(replace(missing, status=2, stderr=stderr))
        assert (told.missing, told.cut_off) == (("obdfilter.*.brw_stats",), False)
        denied = "error: read_param: '/sys/fs/lustre/x': Permission denied\n"
        assert read_params(replace(missing, status=2, stderr=stderr + denied)).cut_off


def test_parameters_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strakes.targets.lustre_tool._MOST_PARAMETERS", 10)
    lines = "".join(f"mdt.a{number}.md_stats=\n" for number in range(11))
    with pytest.raises(NotUnderstoodError) as caught:
        read_params(Completed(("lctl", "get_param", "mdt.*.md_stats"), 0, lines, ""))
    assert caught.value.why == "it has more than 10 parameters"


def test_a_greeting_alone_is_not_a_parameter() -> None:
    with pytest.raises(NotUnderstoodError):
        read_params(Completed(("lctl", "get_param", "mdt.*.md_stats"), 0, GREETING, ""))
