"""Layouts: reading the YAML and text forms, and setting them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from strakes.errors import BadInputError
from strakes.targets.command import Completed, run
from strakes.targets.description import Layout, LayoutComponent, layout_differences
from strakes.targets.lustre.layouts import (
    directory_layout,
    layout_from,
    options_of,
    read_text,
    read_yaml,
    setstripe,
)
from strakes.targets.lustre.target import LustreTarget, layout_kinds
from strakes.targets.lustre.tool import NotUnderstoodError
from strakes.units import KIB, MIB
from targets.lustre.assigned import DOM, LEFT, PFL, pfl
from targets.lustre.recorded import recording
from targets.lustre.test_target import mount

FOUR_M = 4 * MIB
FILES = (
    "c2s4m",
    "c4",
    "call",
    "i2",
    "o1to3",
    "o31",
    "over16",
    "over8",
    "pfl",
    "dom",
    "d_c2_f",
    "d_dom_f",
    "d_over_f",
    "d_pfl_f",
    "d_plain_f",
)


def done(name: str) -> Completed:
    return recording(f"client/{name}.txt").done


@pytest.mark.parametrize("name", FILES)
def test_both_forms_say_the_same_of_a_file(name: str) -> None:
    assert read_text(done(f"getstripe_{name}")) == read_yaml(done(f"getstripe_y_{name}"))


@pytest.mark.parametrize("kind", ["c2", "dom", "over", "pfl", "plain"])
def test_both_forms_say_the_same_of_a_directory(kind: str) -> None:
    assert read_text(done(f"getstripe_dir_d_d_{kind}")) == read_yaml(done(f"getstripe_dir_dy_d_{kind}"))


PFL_UNSET = pfl(
    *((end, Layout(stripe_count=count, pattern="raid0")) for end, count in ((MIB, 1), (64 * MIB, 2), (None, -1)))
)


def test_a_plain_file() -> None:
    assert read_yaml(done("getstripe_y_c2s4m")) == Layout(FOUR_M, 2, 1, "", "raid0", targets=(1, 2))
    assert read_yaml(done("getstripe_y_o31")).targets == (3, 1)


def test_a_target_may_have_several_stripes() -> None:
    layout = read_yaml(done("getstripe_y_over8"))
    assert (layout.pattern, layout.stripe_count, layout.targets) == ("overstriped", 8, (1, 2, 3, 0, 1, 2, 3, 0))


def test_a_composite_file_has_targets_as_far_as_it_is_written() -> None:
    layout = read_yaml(done("getstripe_y_pfl"))
    assert layout.components == (
        LayoutComponent(0, MIB, Layout(MIB, 1, 0, "", "raid0", targets=(0,))),
        LayoutComponent(MIB, 64 * MIB, Layout(FOUR_M, 2, 1, "", "raid0", targets=(1, 2))),
        LayoutComponent(64 * MIB, None, Layout(FOUR_M, -1, None, "", "raid0")),
    )
    assert (layout.stripe_count, layout.targets) == (None, (0, 1, 2))


def test_data_on_a_metadata_target() -> None:
    first, rest = read_yaml(done("getstripe_y_d_dom_f")).components
    assert first == LayoutComponent(0, 64 * KIB, Layout(64 * KIB, 0, 3, "", "mdt"))
    assert (rest.begin, rest.end, rest.layout.targets) == (64 * KIB, None, ())


def test_mirrors_are_components_of_the_same_extent() -> None:
    assert [(part.begin, part.end, part.mirror) for part in read_yaml(done("getstripe_y_mir")).components] == [
        (0, None, 1),
        (0, None, 2),
    ]
    assert read_text(done("mirror_create")) == read_yaml(done("getstripe_y_mir"))


def test_a_pool_is_read() -> None:
    assert (
        read_yaml(done("getstripe_y_pool"))
        == read_text(done("setstripe_pool"))
        == Layout(FOUR_M, 2, 1, "fast", "raid0", targets=(1, 0))
    )
    assert (
        read_yaml(done("getstripe_dir_dy_pool"))
        == read_text(done("setstripe_dir_pool"))
        == Layout(FOUR_M, 1, None, "fast", "raid0")
    )


def test_a_directory_without_a_layout_has_no_pattern() -> None:
    assert directory_layout("d_plain").read(done("getstripe_dir_dy_d_plain")) == Layout(FOUR_M, 1, None, "", "")
    text, _, yaml = done("getstripe_root_default").stdout.partition("\n\n")
    root = done("getstripe_root_default")
    assert (
        read_text(replace(root, stdout=text))
        == read_yaml(replace(root, stdout=yaml))
        == Layout(FOUR_M, 1, None, "", "")
    )


def test_numbers_may_be_hexadecimal() -> None:
    assert read_text(done("getstripe_hex")) == read_text(done("getstripe_c4"))


def test_details_that_are_not_needed_do_not_disturb() -> None:
    assert read_text(done("getstripe_v_pfl")) == read_text(done("getstripe_pfl"))


def test_a_file_whose_layout_was_refused_has_none() -> None:
    assert read_text(done("err_setstripe_pool_i_outside")) == Layout()


@pytest.mark.parametrize("name", ["getstripe_y_c4", "getstripe_y_pfl", "getstripe_y_dom"])
def test_a_layout_that_is_cut_off_is_not_taken_for_whole(name: str) -> None:
    lines = done(name).stdout.splitlines(keepends=True)
    for kept in range(len(lines)):
        # Only the name of the last object may be missing, and the list of objects may be empty.
        last = "lcme_id" not in "".join(lines[kept:])
        if kept == len(lines) - 1 and lines[kept].strip().startswith("l_fid"):
            continue
        if last and lines[kept].strip() == "lmm_objects:":
            continue
        with pytest.raises(NotUnderstoodError):
            read_yaml(replace(done(name), stdout="".join(lines[:kept])))


def test_files_get_the_layout_of_their_directory() -> None:
    for name, wanted in (
        ("c2", Layout(MIB, 2)),
        ("over", Layout(stripe_count=8, pattern="overstriped")),
        ("pfl", PFL),
        ("dom", DOM),
    ):
        assert layout_differences(wanted, read_yaml(done(f"getstripe_y_d_{name}_f"))) == ()


def test_counts_that_lustre_lowers_are_differences() -> None:
    # -c 99 on four targets and -c 4 in a pool of two both succeed, with fewer stripes.
    for name, wanted, given in (("err_setstripe_count_too_many", 99, 4), ("err_setstripe_pool_c_too_big", 4, 2)):
        assert f"client/{name}" in str(LEFT)
        recorded = done(name)
        assert (recorded.status, int(recorded.stdout.split()[-1])) == (0, given)
        assert layout_differences(Layout(stripe_count=wanted), Layout(stripe_count=given)) == (
            f"stripe count {given} instead of {wanted}",
        )


def test_an_empty_layout_removes_the_one_that_was_set() -> None:
    assert setstripe("d_c2", Layout()).argv == ("lfs", "setstripe", "-d", "d_c2")
    assert recording("client/setstripe_d_delete.txt").command.startswith("lfs setstripe -d d_c2;")


def test_sizes_are_typed_in_the_largest_unit_that_fits() -> None:
    assert setstripe("d", Layout(3 << 30)).argv[3:4] == ("3G",)
    assert setstripe("d", Layout(1536 * KIB)).argv[3:4] == ("1536K",)
    assert setstripe("d", Layout(65537)).argv[3:4] == ("65537",)


@pytest.mark.parametrize(
    "wanted",
    [
        Layout(pattern="overstriped"),
        Layout(pattern="raid5"),
        Layout(components=(LayoutComponent(0, MIB, Layout()), LayoutComponent(2 * MIB, None, Layout()))),
        Layout(components=(LayoutComponent(0, None, PFL),)),
    ],
)
def test_a_layout_that_lfs_cannot_express_is_refused(wanted: Layout) -> None:
    with pytest.raises(BadInputError, match="no such layout") as caught:
        setstripe("d", wanted)
    assert caught.value.why


def test_a_layout_read_from_a_file_can_be_set() -> None:
    argv = setstripe("d", read_yaml(done("getstripe_y_pool"))).argv
    assert argv == ("lfs", "setstripe", "-p", "fast", "-c", "2", "-S", "4M", "-o", "1,0", "d")


def _unplaced(layout: Layout) -> Layout:
    """Return the layout without the targets and other values that cannot be requested."""
    parts = tuple(replace(part, layout=_unplaced(part.layout)) for part in layout.components)
    pattern = "" if layout.pattern == "raid0" else layout.pattern
    plain = replace(layout, targets=(), first_target=None, pattern=pattern, components=parts)
    return replace(plain, stripe_count=None, stripe_size_bytes=None) if pattern == "mdt" else plain


@pytest.mark.parametrize("name", [*FILES, "pool", "mir"])
def test_a_recorded_layout_written_as_options_is_read_back_the_same(name: str) -> None:
    wanted = _unplaced(read_yaml(recording(f"client/getstripe_y_{name}.txt").done))
    options = options_of(wanted)
    assert layout_from(" ".join(options)) == wanted
    assert options.count("-N") == (2 if name == "mir" else 0)


@pytest.mark.parametrize("text", ["-E", "-E 1X -c 1", "--what 3", "-c four", "-c"])
def test_invalid_options_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="not options of lfs setstripe"):
        layout_from(text)


@pytest.mark.parametrize("targets", [1, 2, 5, 96])
def test_every_kind_of_layout_can_be_set_and_reads_as_it_is_written(targets: int) -> None:
    for options in layout_kinds(targets).values():
        assert " ".join(options_of(layout_from(options))) == options
        counts = [part.layout.stripe_count or 0 for part in layout_from(options).components]
        assert all(count <= targets for count in counts)


def as_older_lfs_writes_it(text: str) -> str:
    """Return the YAML in the form before 2.13: a line ``componentN:`` with the keys indented below it."""
    numbers = count()
    return re.sub(r"(?m)^  - lcme_id:", lambda _: f"  component{next(numbers)}:\n    lcme_id:", text)


@pytest.mark.parametrize("name", ["y_pfl", "y_dom", "y_mir", "y_d_pfl_f", "y_d_dom_f", "dir_dy_d_pfl", "dir_dy_d_dom"])
def test_components_as_older_versions_write_them_are_the_same(name: str) -> None:
    recorded = done(f"getstripe_{name}")
    older = replace(recorded, stdout=as_older_lfs_writes_it(recorded.stdout))
    assert "component1:" in older.stdout
    assert read_yaml(older) == read_yaml(recorded)


@pytest.mark.parametrize("components", [9, 12])
def test_older_versions_number_more_than_ten_components(components: int) -> None:
    parts = "".join(
        f"  component{number}:\n    lcme_id: {number + 1}\n    lcme_extent.e_start: {number << 20}\n"
        f"    lcme_extent.e_end: {(number + 1) << 20}\n    sub_layout:\n      lmm_stripe_count: 1\n"
        "      lmm_stripe_size: 1048576\n      lmm_pattern: 1\n      lmm_stripe_offset: -1\n"
        for number in range(components)
    )
    header = f"composite_header:\n  lcm_magic: 0x0BD60BD0\n  lcm_entry_count: {components}\ncomponents:\n"
    layout = read_yaml(Completed(("lfs", "getstripe", "-y", "f"), 0, header + parts, ""))
    assert [part.begin for part in layout.components] == [number << 20 for number in range(components)]


def test_the_text_is_read_if_the_yaml_has_an_unknown_form(tmp_path: Path) -> None:
    def lfs(argv: Sequence[str], timeout_s: float = 10) -> Completed:
        if argv[0] == "stat":
            return run(argv, timeout_s)
        text = "!!layout {of: another form}\n" if "-y" in argv else done("getstripe_pfl").stdout
        return Completed(tuple(argv), 0, text, "")

    lustre = LustreTarget(tmp_path, mount(tmp_path), runner=lfs)
    (tmp_path / "pfl").touch()
    assert lustre.layout(tmp_path / "pfl") == read_yaml(done("getstripe_y_pfl"))
    unreadable = LustreTarget(
        tmp_path,
        mount(tmp_path),
        runner=lambda argv, timeout_s=10: (
            run(argv, timeout_s)
            if argv[0] == "stat"
            else Completed(tuple(argv), 0, f"{tmp_path}/pfl\n  layout <3>\n", "")
        ),
    )
    with pytest.raises(NotUnderstoodError):
        unreadable.layout(tmp_path / "pfl")


@pytest.mark.parametrize(("targets", "count"), [(1, 2), (8, 16), (1000, 2000), (1200, 2000), (1999, 2000)])
def test_overstriping_requests_at_most_the_maximum_number_of_stripes(targets: int, count: int) -> None:
    assert layout_kinds(targets)["overstriped"] == f"-C {count}"


@pytest.mark.parametrize("targets", [2000, 2400])
def test_overstriping_is_not_offered_with_too_many_targets(targets: int) -> None:
    assert "overstriped" not in layout_kinds(targets)
