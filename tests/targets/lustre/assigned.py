"""Assignment of each recording to a command of strakes, or to a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from strakes.base.units import KIB, MIB
from strakes.targets.command import Command, Completed
from strakes.targets.description import Layout, LayoutComponent
from strakes.targets.lustre_layouts import (
    dir_stripe,
    getstripe,
    mkdir,
    read_default,
    read_dir_stripe,
    read_layout,
    set_default,
    setstripe,
)
from strakes.targets.lustre_lfs import (
    LIST_NIDS,
    VERSION,
    df,
    getname,
    pool_list,
    quota,
    read_df,
    read_version,
    target_list,
)
from strakes.targets.lustre_tool import get_param, refusal, set_param
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
    yield from ((f"getstripe_{name}", getstripe(name)) for name in files)
    for kind in ("c2", "dom", "over", "pfl", "plain"):
        yield f"getstripe_d_{kind}_f", getstripe(f"d_{kind}/f")
        yield f"getstripe_dir_d_d_{kind}", getstripe("-d", f"d_{kind}")
    yield "lfs_getstripe_root_dir", getstripe("-d", LABFS)
    yield "err_getstripe_d_nonlustre_dir", getstripe("-d", "/tmp")
    yield "err_getstripe_nonlustre_dir", getstripe("/tmp")
    yield "err_getstripe_noent", getstripe("nosuchfile")
    yield "err_getstripe_noent_abs", getstripe(f"{LABFS}/nosuchfile")


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
    ):
        yield name, setstripe(path, wanted)


def _placements() -> Iterator[tuple[str, Command[object]]]:
    own = (
        "defd defd2 defd2/sub defd/sub defrr plain rem1 rem1/sub rem23 str2crush str2fnv str4 str4D str4/sub strall a3"
    )
    for path in own.split():
        yield f"getdirstripe_{path.replace('/', '_')}", dir_stripe(path)
    for path in ("defd", "defd/sub", "defrr", "plain", "rem1", "str4", "str4D", "strall"):
        yield f"getdirstripe_Dflag_{path.replace('/', '_')}", dir_stripe("-D", path)
    for name in ("before", "after", "after2"):
        yield f"getdirstripe_mig_{name}", dir_stripe("mig")
    yield "lfs_getdirstripe_root", dir_stripe(LABFS)
    yield "err_getdirstripe_file", dir_stripe("c4")
    yield "err_getdirstripe_noent", dir_stripe("nosuchdir")
    yield "err_getdirstripe_nonlustre", dir_stripe("/tmp")
    yield "mkdir_c4", mkdir("str4", count=4)
    yield "mkdir_c_all", mkdir("strall", count=-1)
    yield "mkdir_i1", mkdir("rem1", targets=(1,))
    yield "mkdir_i_list", mkdir("rem23", targets=(2, 3))
    yield "err_mkdir_i99", mkdir("md99", targets=(99,))
    yield "err_mkdir_nonlustre", mkdir("/tmp/mdx", targets=(1,))
    yield "err_mkdir_noparent", mkdir("nosuch/mdx", targets=(1,))
    yield "user_mkdir_c4", mkdir(f"{LABFS}/u/s4", count=4)
    yield "user_mkdir_c4_in_remote", mkdir(f"{LABFS}/u/rem/s4", count=4)
    yield "user_mkdir_i1", mkdir(f"{LABFS}/u/r1", targets=(1,))
    yield "user_mkdir_noperm", mkdir(f"{LABFS}/s/userdir", targets=(1,))


def _whole() -> Iterator[tuple[str, Command[object]]]:
    for name in ("lfs_df", "user_df", "ost_inactive_lfs_df", "twofs_lfs_df"):
        yield name, df()
    for name in ("lfs_df_i", "ost_inactive_lfs_df_i", "twofs_lfs_df_i"):
        yield name, df(inodes=True)
    yield "err_df_nonlustre", df("/tmp")
    yield "err_df_offline", df("/mnt/nosuch")
    for name in ("lfs_osts", "user_osts", "ost_inactive_lfs_osts", "twofs_lfs_osts"):
        yield name, target_list("osts")
    for name in ("lfs_mdts", "user_mdts", "twofs_lfs_mdts"):
        yield name, target_list("mdts")
    yield "lfs_osts_path", target_list("osts", LABFS)
    yield "lfs_mdts_path", target_list("mdts", LABFS)
    yield "twofs_lfs_osts_path", target_list("osts", "/mnt/zlab")
    yield "err_osts_nonlustre", target_list("osts", "/tmp")
    yield "lfs_getname", getname(LABFS)
    yield "lfs_pool_list", pool_list("labfs")
    yield "lfs_pool_list_none", pool_list("labfs")
    yield "user_pool_list", pool_list("labfs")
    yield "lfs_pool_list_path", pool_list(LABFS)
    yield "lfs_pool_list_pool", pool_list("labfs", "fast")
    yield "err_pool_list_nofs", pool_list("nosuchfs")
    yield "err_pool_list_nopool", pool_list("labfs", "nopool")
    yield "lfs_quota", quota("root", LABFS)
    yield "lctl_list_nids", LIST_NIDS
    yield "user_list_nids", LIST_NIDS


def _parameters_set() -> Iterator[tuple[str, Command[object]]]:
    for name, parameter, value in (
        ("set_param_ok", "osc.*.max_rpcs_in_flight", "16"),
        ("set_param_lru_clear", "ldlm.namespaces.*osc*.lru_size", "clear"),
        ("ost_inactive_set", "osc.labfs-OST0003-osc-*.active", "0"),
        ("ost_active_set", "osc.labfs-OST0003-osc-*.active", "1"),
        ("user_set_param", "osc.*.max_rpcs_in_flight", "16"),
        ("user_set_param_ra", "llite.*.max_read_ahead_mb", "16"),
        ("err_set_param_range_pages", "osc.*.max_pages_per_rpc", "100000"),
    ):
        yield name, set_param(parameter, value)


def _last_of_several() -> Iterator[tuple[str, Command[object]]]:
    yield "err_getstripe_nonlustre_file", getstripe("/tmp/plainfile")
    yield "err_setstripe_noopt_path", getstripe("bad17")
    yield "err_setstripe_o_dup", getstripe("bad10")
    yield "err_setstripe_pool_nonexist_dir", setstripe("dp", Layout(pool="nopool"))
    yield "setstripe_pool", getstripe("inpool")
    yield "setstripe_dir_pool", getstripe("-d", "d_pool")
    yield "setstripe_d_delete", getstripe("-d", "d_c2")
    yield "user_setstripe", getstripe(f"{LABFS}/u/f1")
    yield "mirror_create", getstripe("mir")
    yield "err_mkdir_exists", mkdir("mdx", targets=(1,))
    yield "setdirstripe_D_existing", set_default("defd", 4)
    yield "setdirstripe_D_delete", dir_stripe("-D", "spl")
    yield "getdirstripe_Dflag_spl", dir_stripe("-D", "spl")
    yield "setdirstripe_split", dir_stripe("spl")
    yield "migrate_mig4_striped", dir_stripe("mig4")
    yield "user_setdirstripe_D", set_default(f"{LABFS}/u/dd", 4)
    for name in ("set_param_pages_256", "set_param_pages_4096", "set_param_pages_4M"):
        yield name, get_param("osc.*.max_pages_per_rpc")
    yield "set_param_dirty_2000", get_param("osc.*.max_dirty_mb")
    yield "set_param_mod_rpcs", get_param("mdc.*.max_mod_rpcs_in_flight", "mdc.*.max_rpcs_in_flight")


def _parameters() -> Iterator[tuple[str, Command[object]]]:
    for folder in ("client", "server"):
        for name in names(folder):
            words = recording(name).command.split(" ")
            if words == ["lctl", "get_param", "version"]:
                yield name, VERSION
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
    "server/lctl_list_nids.txt": LIST_NIDS,
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
        (read_df, "lfs_df_h lfs_df_pool lfs_df_v lfs_df_y ost_inactive_lfs_df_v"),
        (read_layout, "getstripe_hex getstripe_v_pfl getstripe_I1_pfl getstripe_opt_O err_setstripe_pool_i_outside"),
        (read_dir_stripe, "getdirstripe_v"),
        (_each_line(read_default), "user_getdirstripe"),
        (pool_list("labfs").read, "lfs_pool_list_v"),
        (read_version, "lctl_version lfs_version"),
        (setstripe("f", Layout()).read, "err_setstripe_badopt err_setstripe_count_text err_setstripe_noargs"),
        (setstripe("f", Layout()).read, "err_setstripe_size_text err_setstripe_size_32k"),
        (setstripe("f", Layout()).read, "err_setstripe_c_o_mismatch err_setstripe_count_99999"),
        (setstripe("f", Layout()).read, "err_setstripe_count_neg err_setstripe_dom_not_first"),
        (setstripe("f", Layout()).read, "err_setstripe_dom_too_big err_setstripe_exists err_setstripe_has_data_dir"),
        (setstripe("f", Layout()).read, "err_setstripe_i_99 err_setstripe_nonlustre_dir"),
        (setstripe("f", Layout()).read, "err_setstripe_nonlustre_file err_setstripe_o_99"),
        (setstripe("f", Layout()).read, "err_setstripe_overstripe_too_many err_setstripe_pfl_bad_order"),
        (setstripe("f", Layout()).read, "err_setstripe_pfl_unaligned err_setstripe_pool_nonexist"),
        (setstripe("f", Layout()).read, "err_setstripe_size_5g err_setstripe_size_60k err_setstripe_size_unaligned"),
        (mkdir("d").read, "err_mkdir_badhash mkdir_c2_H mkdir_c2_fnv"),
        (set_default("d", 4).read, "setdirstripe_D_c2_i2 setdirstripe_D_maxinherit user_setdirstripe_D_i"),
        (set_param("x", "1").read, "err_set_param_badval err_set_param_dirty err_set_param_mod_ge"),
        (set_param("x", "1").read, "err_set_param_noent err_set_param_ra err_set_param_range err_set_param_zero"),
        (_refused, "err_lctl_nocmd err_lfs_nocmd err_mkdir_noarg err_mkdir_text mkdir_c4_D set_param_P_on_client"),
    )
    for name in several.split()
} | {
    "server/lctl_version.txt": read_version,
    "server/get_param_version_n.txt": read_version,
    "server/pool_list_mgs.txt": pool_list("labfs").read,
    "server/pool_list_mgs_pool.txt": pool_list("labfs", "fast").read,
}

# Recordings that the test of their subject takes apart.
OTHERS = (
    "client/err_setstripe_count_too_many",
    "client/err_setstripe_pool_c_too_big",
    "client/getdirstripe_D_root",
    "client/getstripe_root_default",
    "client/mountinfo",
    "client/set_param_pages_100000",
    "server/get_param_mdt_md_stats_n",
    "server/proc_mounts",
)
