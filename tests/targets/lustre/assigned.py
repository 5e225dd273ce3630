"""Assignment of each recording to a command of strakes, to a reader, or to none with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre.layouts import (
    default_stripe,
    dir_stripe,
    directory_layout,
    file_layout,
    mkdir,
    read_default,
    read_dir_stripe,
    read_layout,
    set_default,
    setstripe,
)
from strakes.targets.lustre.lfs import (
    df,
    getname,
    list_nids,
    mdts,
    members,
    osts,
    pools,
    quota,
    read_df,
    read_version,
    version,
)
from strakes.targets.lustre.tool import get_param, refusal, set_param
from strakes.units import GIB, KIB, MIB
from targets.lustre.recorded import names, recording

LABFS = "/mnt/labfs"


def pfl(*parts: tuple[int | None, Layout]) -> Layout:
    begins = (0, *(end for end, _ in parts if end is not None))
    return Layout(
        components=tuple(LayoutComponent(begin, end, part) for begin, (end, part) in zip(begins, parts, strict=False))
    )


ONE = Layout(stripe_count=1)
ON_MDT = Layout(pattern="mdt")
PFL = pfl((MIB, ONE), (64 * MIB, Layout(stripe_count=2)), (None, Layout(stripe_count=-1)))
DOM = pfl((64 * KIB, ON_MDT), (None, ONE))


def _layouts() -> Iterator[tuple[str, Command[object]]]:
    files = ("c2s4m", "c4", "call", "dom", "i2", "o1to3", "o31", "over16", "over8", "pfl")
    yield from ((f"getstripe_{name}", file_layout(name)) for name in files)
    for kind in ("c2", "dom", "over", "pfl", "plain"):
        yield f"getstripe_d_{kind}_f", file_layout(f"d_{kind}/f")
        yield f"getstripe_dir_d_d_{kind}", directory_layout(f"d_{kind}")
    yield "lfs_getstripe_root_dir", directory_layout(LABFS)
    yield "err_getstripe_d_nonlustre_dir", directory_layout("/tmp")
    yield "err_getstripe_nonlustre_dir", file_layout("/tmp")
    yield "err_getstripe_noent", file_layout("nosuchfile")
    yield "err_getstripe_noent_abs", file_layout(f"{LABFS}/nosuchfile")


def _layouts_set() -> Iterator[tuple[str, Command[object]]]:
    for name, path, wanted in (
        ("setstripe_c2_S4M", "c2s4m", Layout(4 * MIB, 2)),
        ("setstripe_c4", "c4", Layout(stripe_count=4)),
        ("setstripe_c_all", "call", Layout(stripe_count=-1)),
        ("setstripe_dir_c2", "d_c2", Layout(MIB, 2)),
        ("setstripe_dir_dom", "d_dom", DOM),
        ("setstripe_dir_over", "d_over", Layout(stripe_count=8, pattern="overstriped")),
        ("setstripe_dir_pfl", "d_pfl", PFL),
        ("setstripe_dom", "dom", DOM),
        ("setstripe_i2", "i2", Layout(stripe_count=1, first_target=2)),
        ("setstripe_o", "o31", Layout(targets=(3, 1))),
        ("setstripe_overstripe", "over8", Layout(stripe_count=8, pattern="overstriped")),
        ("setstripe_overstripe_16", "over16", Layout(MIB, 16, pattern="overstriped")),
        ("setstripe_pfl", "pfl", PFL),
        ("user_setstripe_dir", f"{LABFS}/u/dd", Layout(stripe_count=2)),
        ("user_setstripe_dir_noperm", f"{LABFS}/s/d_plain", Layout(stripe_count=2)),
        ("user_setstripe_noperm", f"{LABFS}/s/userfile", Layout(stripe_count=2)),
        ("err_setstripe_c_o_mismatch", "bad11", Layout(stripe_count=4, targets=(0, 1))),
        ("err_setstripe_count_99999", "bad2", Layout(stripe_count=99999)),
        ("err_setstripe_count_neg", "bad3", Layout(stripe_count=-5)),
        ("err_setstripe_dom_not_first", "bad15b", pfl((MIB, ONE), (2 * MIB, ON_MDT), (None, ONE))),
        ("err_setstripe_dom_too_big", "bad15", pfl((2 * GIB, ON_MDT), (None, ONE))),
        ("err_setstripe_exists", "c4", ONE),
        ("err_setstripe_has_data_dir", f"{LABFS}/nosuchdir/x", ONE),
        ("err_setstripe_i_99", "bad8", Layout(first_target=99)),
        ("err_setstripe_nonlustre_dir", "/tmp", ONE),
        ("err_setstripe_nonlustre_file", "/tmp/x1", ONE),
        ("err_setstripe_o_99", "bad9", Layout(targets=(99,))),
        ("err_setstripe_overstripe_too_many", "bad16", Layout(stripe_count=5000, pattern="overstriped")),
        ("err_setstripe_pfl_bad_order", "bad13", pfl((64 * MIB, ONE), (MIB, ONE))),
        ("err_setstripe_pfl_unaligned", "bad14", pfl((1000, ONE), (None, ONE))),
        ("err_setstripe_pool_nonexist", "bad12", Layout(pool="nopool")),
        ("err_setstripe_size_5g", "bad6", Layout(5 * GIB)),
        ("err_setstripe_size_60k", "bad5b", Layout(60 * KIB)),
        ("err_setstripe_size_unaligned", "bad5", Layout(1000)),
    ):
        yield name, setstripe(path, wanted)


def _placements() -> Iterator[tuple[str, Command[object]]]:
    own = (
        "defd",
        "defd2",
        "defd2/sub",
        "defd/sub",
        "defrr",
        "plain",
        "rem1",
        "rem1/sub",
        "rem23",
        "str2crush",
        "str2fnv",
        "str4",
        "str4D",
    )
    for path in (*own, "str4/sub", "strall", "a3"):
        yield f"getdirstripe_{path.replace('/', '_')}", dir_stripe(path)
    for path in ("defd", "defd/sub", "defrr", "plain", "rem1", "str4", "str4D", "strall"):
        name = path.replace("/", "_")
        yield f"getdirstripe_Dflag_{name}", default_stripe(path)
    for name in ("before", "after", "after2"):
        yield f"getdirstripe_mig_{name}", dir_stripe("mig")
    yield "lfs_getdirstripe_root", dir_stripe(LABFS)
    yield "err_getdirstripe_file", dir_stripe("c4")
    yield "err_getdirstripe_noent", dir_stripe("nosuchdir")
    yield "err_getdirstripe_nonlustre", dir_stripe("/tmp")
    yield "mkdir_c2_H", mkdir("str2crush", count=2, hash_type="crush")
    yield "mkdir_c2_fnv", mkdir("str2fnv", count=2, hash_type="fnv_1a_64")
    yield "mkdir_c4", mkdir("str4", count=4)
    yield "mkdir_c_all", mkdir("strall", count=-1)
    yield "mkdir_i1", mkdir("rem1", targets=(1,))
    yield "mkdir_i_list", mkdir("rem23", targets=(2, 3))
    yield "err_mkdir_badhash", mkdir("mdh", count=2, hash_type="nosuchhash")
    yield "err_mkdir_i99", mkdir("md99", targets=(99,))
    yield "err_mkdir_nonlustre", mkdir("/tmp/mdx", targets=(1,))
    yield "err_mkdir_noparent", mkdir("nosuch/mdx", targets=(1,))
    yield "user_mkdir_c4", mkdir(f"{LABFS}/u/s4", count=4)
    yield "user_mkdir_c4_in_remote", mkdir(f"{LABFS}/u/rem/s4", count=4)
    yield "user_mkdir_i1", mkdir(f"{LABFS}/u/r1", targets=(1,))
    yield "user_mkdir_noperm", mkdir(f"{LABFS}/s/userdir", targets=(1,))
    yield "user_setdirstripe_D_i", set_default(f"{LABFS}/u/dd", count=1, targets=(2,))


def _whole() -> Iterator[tuple[str, Command[object]]]:
    for name in ("lfs_df", "user_df", "ost_inactive_lfs_df", "twofs_lfs_df"):
        yield name, df()
    for name in ("lfs_df_i", "ost_inactive_lfs_df_i", "twofs_lfs_df_i"):
        yield name, df(inodes=True)
    yield "err_df_nonlustre", df("/tmp")
    yield "err_df_offline", df("/mnt/nosuch")
    for name in ("lfs_osts", "user_osts", "ost_inactive_lfs_osts", "twofs_lfs_osts"):
        yield name, osts()
    for name in ("lfs_mdts", "user_mdts", "twofs_lfs_mdts"):
        yield name, mdts()
    yield "lfs_osts_path", osts(LABFS)
    yield "lfs_mdts_path", mdts(LABFS)
    yield "twofs_lfs_osts_path", osts("/mnt/zlab")
    yield "err_osts_nonlustre", osts("/tmp")
    yield "lfs_getname", getname(LABFS)
    yield "lfs_pool_list", pools("labfs")
    yield "lfs_pool_list_none", pools("labfs")
    yield "user_pool_list", pools("labfs")
    yield "lfs_pool_list_path", pools(LABFS)
    yield "lfs_pool_list_pool", members("labfs", "fast")
    yield "err_pool_list_nofs", pools("nosuchfs")
    yield "err_pool_list_nopool", members("labfs", "nopool")
    yield "lfs_quota", quota("root", LABFS)
    yield "lctl_list_nids", list_nids()
    yield "user_list_nids", list_nids()


def _parameters_set() -> Iterator[tuple[str, Command[object]]]:
    for name, parameter, value in (
        ("set_param_ok", "osc.*.max_rpcs_in_flight", "16"),
        ("set_param_lru_clear", "ldlm.namespaces.*osc*.lru_size", "clear"),
        ("ost_inactive_set", "osc.labfs-OST0003-osc-*.active", "0"),
        ("ost_active_set", "osc.labfs-OST0003-osc-*.active", "1"),
        ("user_set_param", "osc.*.max_rpcs_in_flight", "16"),
        ("user_set_param_ra", "llite.*.max_read_ahead_mb", "16"),
        ("err_set_param_badval", "osc.*.max_rpcs_in_flight", "abc"),
        ("err_set_param_dirty", "osc.*.max_dirty_mb", "100000"),
        ("err_set_param_mod_ge", "mdc.*.max_mod_rpcs_in_flight", "64"),
        ("err_set_param_noent", "osc.*.nosuchparam", "1"),
        ("err_set_param_ra", "llite.*.max_read_ahead_mb", "10000000"),
        ("err_set_param_range", "osc.*.max_rpcs_in_flight", "100000"),
        ("err_set_param_range_pages", "osc.*.max_pages_per_rpc", "100000"),
        ("err_set_param_zero", "osc.*.max_rpcs_in_flight", "0"),
    ):
        yield name, set_param(parameter, value)


def _last_of_several() -> Iterator[tuple[str, Command[object]]]:
    """Yield the last of several recorded commands. The others printed nothing, or the last reads back their setting."""
    yield "err_getstripe_nonlustre_file", file_layout("/tmp/plainfile")
    yield "err_setstripe_noopt_path", file_layout("bad17")
    yield "err_setstripe_o_dup", file_layout("bad10")
    yield "err_setstripe_pool_nonexist_dir", setstripe("dp", Layout(pool="nopool"))
    yield "setstripe_pool", file_layout("inpool")
    yield "setstripe_dir_pool", directory_layout("d_pool")
    yield "setstripe_d_delete", directory_layout("d_c2")
    yield "user_setstripe", file_layout(f"{LABFS}/u/f1")
    yield "mirror_create", file_layout("mir")
    yield "err_mkdir_exists", mkdir("mdx", targets=(1,))
    yield "setdirstripe_D_existing", set_default("defd", count=4)
    yield "setdirstripe_D_c2_i2", set_default("defd2", count=2, targets=(2,))
    yield "setdirstripe_D_maxinherit", set_default("defrr", count=1, targets=(-1,), levels=(2, 1))
    yield "setdirstripe_D_delete", default_stripe("spl")
    yield "getdirstripe_Dflag_spl", default_stripe("spl")
    yield "setdirstripe_split", dir_stripe("spl")
    yield "migrate_mig4_striped", dir_stripe("mig4")
    yield "user_setdirstripe_D", set_default(f"{LABFS}/u/dd", count=4)
    for name in ("set_param_pages_256", "set_param_pages_4096", "set_param_pages_4M"):
        yield name, get_param("osc.*.max_pages_per_rpc")
    yield "set_param_dirty_2000", get_param("osc.*.max_dirty_mb")
    yield "set_param_mod_rpcs", get_param("mdc.*.max_mod_rpcs_in_flight", "mdc.*.max_rpcs_in_flight")


def _parameters() -> Iterator[tuple[str, Command[object]]]:
    """Yield each plain get_param, with the command derived from the recorded command line."""
    for folder in ("client", "server"):
        for name in names(folder):
            words = recording(name).command.split(" ")
            if words == ["lctl", "get_param", "version"]:
                yield name, version()
            elif (
                words[:2] == ["lctl", "get_param"]
                and not any(word.startswith("-") for word in words)
                and "|" not in words
            ):
                yield name, get_param(*words[2:])


def _in_client(pairs: Iterator[tuple[str, Command[object]]]) -> dict[str, Command[object]]:
    return {f"client/{name}.txt": command for name, command in pairs}


# Recordings whose command line strakes uses.
COMMANDS: Mapping[str, Command[object]] = {
    **_in_client(_layouts()),
    **_in_client(_layouts_set()),
    **_in_client(_placements()),
    **_in_client(_whole()),
    **_in_client(_parameters_set()),
    **dict(_parameters()),
    "server/lctl_list_nids.txt": list_nids(),
}
# Recordings of several commands; strakes uses the last one.
LAST_COMMANDS: Mapping[str, Command[object]] = _in_client(_last_of_several())


def _each_line(read: Callable[[Completed], object]) -> Callable[[Completed], object]:
    def read_lines(done: Completed) -> object:
        return [read(replace(done, stdout=line)) for line in done.stdout.splitlines()]

    return read_lines


def _refused(done: Completed) -> object:
    raise refusal(done, "nothing was done")


# Recordings of a command line that strakes does not use, with output for one of its readers.
READERS: Mapping[str, Callable[[Completed], object]] = {
    f"client/{name}.txt": read
    for read, several in (
        (read_df, ("lfs_df_h", "lfs_df_pool", "lfs_df_v", "lfs_df_y", "ost_inactive_lfs_df_v")),
        (
            read_layout,
            ("getstripe_hex", "getstripe_v_pfl", "getstripe_I1_pfl", "getstripe_opt_O", "err_setstripe_pool_i_outside"),
        ),
        (read_dir_stripe, ("getdirstripe_v",)),
        (_each_line(read_default), ("user_getdirstripe",)),
        (pools("labfs").read, ("lfs_pool_list_v",)),
        (read_version, ("lctl_version", "lfs_version")),
        (
            setstripe("f", Layout()).read,
            (
                "err_setstripe_badopt",
                "err_setstripe_count_text",
                "err_setstripe_noargs",
                "err_setstripe_size_text",
                "err_setstripe_size_32k",
            ),
        ),
        (
            _refused,
            (
                "err_lctl_nocmd",
                "err_lfs_nocmd",
                "err_mkdir_noarg",
                "err_mkdir_text",
                "mkdir_c4_D",
                "set_param_P_on_client",
            ),
        ),
    )
    for name in several
} | {
    "server/lctl_version.txt": read_version,
    "server/get_param_version_n.txt": read_version,
    "server/pool_list_mgs.txt": pools("labfs").read,
    "server/pool_list_mgs_pool.txt": members("labfs", "fast").read,
}

# Recordings without a reader, by reason.
LEFT: Mapping[str, tuple[str, ...]] = {
    "a listing of names only": (
        *(
            "client/get_param_llite_all_names_F",
            "client/get_param_mdc_names_F",
            "client/get_param_osc_names_F",
            "client/list_param",
        ),
        *(
            "server/get_param_mdt_all_names",
            "server/get_param_mdt_all_names_F",
            "server/get_param_obdfilter_all_names_F",
        ),
        "server/get_param_osp_stats_names",
    ),
    "one value, where strakes reads the whole layout or placement": (
        *(
            f"client/getstripe_{name}"
            for name in ("E_pfl", "comp_count_pfl", "m", "opt_F", "opt_L", "opt_S", "opt_c", "opt_c_pfl")
        ),
        *(f"client/getstripe_{name}" for name in ("opt_i", "opt_m", "opt_p")),
        *(f"client/getdirstripe_{name}" for name in ("H", "T", "c", "i", "m")),
        *(
            "client/err_setstripe_count_too_many",
            "client/err_setstripe_pool_c_too_big",
            "client/err_mkdir_c99",
            "client/migrate_c2",
        ),
        *("client/lfs_mkdir_qos_spread", "client/ls_str4"),
    ),
    "several outputs in one, which tests of their subject take apart": (
        *(
            "client/getdirstripe_D_root",
            "client/getstripe_root_default",
            "client/set_param_pages_100000",
            "client/set_param_checksums",
        ),
        *("client/set_param_readahead", "client/set_param_lru_size"),
        *("client/ost_inactive_setstripe_c4", "client/ost_inactive_setstripe_i3", "client/err_setstripe_pfl_no_eof"),
    ),
    "migration, which strakes does not do": (
        *(f"client/migrate_{name}" for name in ("m1", "m1_again", "m_c2", "m_v", "mig2_files_only", "mig3_nested")),
        *(
            "client/getdirstripe_mig_after3",
            "client/getdirstripe_mig_again",
            "client/err_migrate_m99",
            "client/err_migrate_nonlustre",
        ),
        "client/user_migrate_m",
    ),
    "identifiers, searches, states of archives and logs, which strakes does not ask for": (
        *(
            "client/lfs_changelog_err",
            "client/lfs_data_version",
            "client/lfs_fid2path",
            "client/lfs_find_ost",
            "client/lfs_hsm_state",
        ),
        *(
            "client/lfs_path2fid",
            "client/lfs_path2fid_dirs",
            "client/find_mdt",
            "client/find_striped",
            "client/user_fid2path",
        ),
        *(
            "client/err_path2fid_nonlustre",
            "server/llog_catlist",
            "server/llog_print_client",
            "server/lctl_get_param_R",
        ),
    ),
    "another spelling of what strakes types, without output": (
        *(
            "client/setstripe_o_range",
            "client/mkdir_multi_i",
            "client/set_param_n",
            "client/set_param_clear_stats",
            "client/rmdir_remote",
        ),
    ),
    "layouts of several files, which strakes asks for one by one": (
        *(f"client/getstripe_dir_d_{kind}" for kind in ("c2", "dom", "over", "pfl", "plain")),
        *("client/getstripe_r_dir", "client/getstripe_recursive"),
    ),
    "layouts as raw attributes, which lfs getstripe tells any user": (
        *(f"client/getfattr_trusted_lov_{name}" for name in ("c2s4m", "d_plain_f", "dom", "over8", "pfl")),
        *(f"client/getfattr_lustre_lov_{name}" for name in ("c2s4m", "dom", "over8", "pfl", "d_plain_f", "dir_plain")),
        *(f"client/getfattr_all_{name}" for name in ("c2s4m", "d_plain_f", "dir_d_c2", "dir_d_pfl", "dom", "over8")),
        *("client/getfattr_all_pfl", "client/getfattr_lov_pool", "client/user_getfattr", "client/user_getfattr_lov"),
    ),
    "placement as raw attributes, which lfs getdirstripe tells any user": (
        "client/getfattr_dir_defd",
        "client/getfattr_dir_str4",
    ),
    "mounts, which are read from mountinfo (as the test of the target does)": (
        "client/mountinfo",
        *(
            "client/findmnt",
            "client/mount_t_lustre",
            "client/proc_mounts",
            "client/twofs_mounts",
            "server/mount_t_lustre",
        ),
        *("server/proc_mounts", "server/df_T_targets", "server/tunefs_print"),
    ),
    "sizes, which statvfs(3) returns": ("client/df_T", "client/df_i", "client/stat_f", "client/stat_f_type"),
    "less than get_param tells": (
        *(
            "client/lctl_dl",
            "client/lctl_dl_t",
            "client/ost_inactive_dl",
            "client/twofs_lctl_dl",
            "client/user_lctl_dl",
            "server/lctl_dl",
        ),
        *(
            "client/lctl_ping",
            "client/lctl_ping_dead",
            "client/twofs_getname",
            "client/modinfo_lustre",
            "client/version_dmesg",
        ),
        "server/sys_version",
    ),
    "a form of get_param that leaves names out, or is no YAML": (
        *("client/get_param_osc_max_rpcs_in_flight_n", "client/get_param_y_import", "client/err_get_param_n_noent"),
        *("server/get_param_health_check_n", "server/get_param_mdt_md_stats_n", "server/get_param_mgs_live_labfs"),
    ),
    "the network below Lustre, which strakes does not set or judge": (
        *("client/lnetctl_net_show", "client/lnetctl_peer_show", "client/lnetctl_stats_show"),
    ),
    "the making of pools, which is the administrator's": (
        *(
            f"server/{name}"
            for name in (
                "pool_add",
                "pool_add_err",
                "pool_new",
                "pool_new_err_exists",
                "pool_new_err_name",
                "pool_new_err_nofs",
            )
        ),
    ),
}
