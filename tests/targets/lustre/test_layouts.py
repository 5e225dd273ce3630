"""Layouts: reading and setting them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.description import Layout, LayoutComponent, layout_differences
from strakes.targets.lustre_layouts import getstripe, layout_from, options_of, read_layout, setstripe
from strakes.targets.lustre_target import layout_kinds
from targets.lustre.assigned import DOM, PFL
from targets.lustre.recorded import done, recording

FOUR_M = 4 * MIB
FILES = "c2s4m c4 call i2 o1to3 o31 over16 over8 pfl dom d_c2_f d_dom_f d_over_f d_pfl_f d_plain_f"


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("getstripe_c2s4m", Layout(FOUR_M, 2, 1, "", "raid0", targets=(1, 2))),
        ("setstripe_pool", Layout(FOUR_M, 2, 1, "fast", "raid0", targets=(1, 0))),
        ("setstripe_dir_pool", Layout(FOUR_M, 1, None, "fast", "raid0")),
        ("err_setstripe_pool_i_outside", Layout()),  # it was refused
    ],
)
def test_a_plain_layout_is_read(name: str, layout: Layout) -> None:
    assert read_layout(done(name)) == layout


@pytest.mark.parametrize(("other", "name"), [("getstripe_hex", "getstripe_c4"), ("getstripe_v_pfl", "getstripe_pfl")])
def test_hexadecimal_numbers_and_more_details_give_the_same_layout(other: str, name: str) -> None:
    assert read_layout(done(other)) == read_layout(done(name))


def test_a_target_may_have_several_stripes() -> None:
    layout = read_layout(done("getstripe_over8"))
    assert (layout.pattern, layout.stripe_count, layout.targets) == ("overstriped", 8, (1, 2, 3, 0, 1, 2, 3, 0))


def test_a_composite_file_has_targets_as_far_as_it_is_written() -> None:
    layout = read_layout(done("getstripe_pfl"))
    assert layout.components == (
        LayoutComponent(0, MIB, Layout(MIB, 1, 0, "", "raid0", targets=(0,))),
        LayoutComponent(MIB, 64 * MIB, Layout(FOUR_M, 2, 1, "", "raid0", targets=(1, 2))),
        LayoutComponent(64 * MIB, None, Layout(FOUR_M, -1, None, "", "raid0")),
    )
    assert (layout.stripe_count, layout.targets) == (None, (0, 1, 2))


def test_data_on_a_metadata_target() -> None:
    first, rest = read_layout(done("getstripe_d_dom_f")).components
    assert first == LayoutComponent(0, 64 * KIB, Layout(64 * KIB, 0, 3, "", "mdt"))
    assert (rest.begin, rest.end, rest.layout.targets) == (64 * KIB, None, ())


def test_mirrors_are_components_of_the_same_extent() -> None:
    expected = [(0, None, 1), (0, None, 2)]
    assert [(part.begin, part.end, part.mirror) for part in read_layout(done("mirror_create")).components] == expected


def test_a_directory_without_a_layout_has_no_pattern() -> None:
    assert getstripe("-d", "d_plain").read(done("getstripe_dir_d_d_plain")) == Layout(FOUR_M, 1, None, "", "")
    root = done("getstripe_root_default")
    text = root.stdout.partition("\n\n")[0]
    assert read_layout(replace(root, stdout=text)) == Layout(FOUR_M, 1, None, "", "")


@pytest.mark.parametrize("name", ["getstripe_c4", "getstripe_pfl", "getstripe_dom"])
def test_a_layout_that_is_cut_off_is_not_taken_for_whole(name: str) -> None:
    lines = done(name).stdout.splitlines(keepends=True)
    for kept in range(2, len(lines)):
        # The list of objects may be empty.
        last = "lcme_id" not in "".join(lines[kept:])
        if (last and lines[kept].strip().startswith(("lmm_objects:", "obdidx"))) or not "".join(lines[kept:]).strip():
            continue
        with pytest.raises(NotUnderstoodError):
            read_layout(replace(done(name), stdout="".join(lines[:kept])))


def test_files_get_the_layout_of_their_directory() -> None:
    for name, wanted in (
        ("c2", Layout(MIB, 2)),
        ("over", Layout(stripe_count=8, pattern="overstriped")),
        ("pfl", PFL),
        ("dom", DOM),
    ):
        assert layout_differences(wanted, read_layout(done(f"getstripe_d_{name}_f"))) == ()


def test_an_empty_layout_removes_the_one_that_was_set() -> None:
    assert setstripe("d_c2", Layout()).argv == ("lfs", "setstripe", "-d", "d_c2")
    assert recording("client/setstripe_d_delete.txt").command.startswith("lfs setstripe -d d_c2;")


def test_sizes_are_typed_in_the_largest_unit_that_fits() -> None:
    assert setstripe("d", Layout(3 << 30)).argv[3:4] == ("3G",)
    assert setstripe("d", Layout(1536 * KIB)).argv[3:4] == ("1536K",)
    assert setstripe("d", Layout(65537)).argv[3:4] == ("65537",)


def test_a_layout_that_lfs_cannot_express_is_refused() -> None:
    with pytest.raises(BadInputError, match="this layout is not possible") as caught:
        setstripe("d", Layout(pattern="raid5"))
    assert caught.value.why


def test_a_layout_read_from_a_file_can_be_set() -> None:
    argv = setstripe("d", read_layout(done("setstripe_pool"))).argv
    assert argv == ("lfs", "setstripe", "-p", "fast", "-c", "2", "-S", "4M", "-o", "1,0", "d")


def _unplaced(layout: Layout) -> Layout:
    parts = tuple(replace(part, layout=_unplaced(part.layout)) for part in layout.components)
    pattern = "" if layout.pattern == "raid0" else layout.pattern
    plain = replace(layout, targets=(), first_target=None, pattern=pattern, components=parts)
    return replace(plain, stripe_count=None, stripe_size_bytes=None) if pattern == "mdt" else plain


@pytest.mark.parametrize("name", [*(f"getstripe_{name}" for name in FILES.split()), "setstripe_pool", "mirror_create"])
def test_a_recorded_layout_written_as_options_is_read_back_the_same(name: str) -> None:
    wanted = _unplaced(read_layout(done(name)))
    options = options_of(wanted)
    assert layout_from(" ".join(options)) == wanted and options.count("-N") == (2 if name == "mirror_create" else 0)


@pytest.mark.parametrize("text", ["-E", "-E 1X -c 1", "--what 3", "-c four", "-c"])
def test_invalid_options_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="invalid options of lfs setstripe"):
        layout_from(text)


@pytest.mark.parametrize("targets", [1, 2, 5, 96])
def test_every_kind_of_layout_can_be_set_and_reads_as_it_is_written(targets: int) -> None:
    for options in layout_kinds(targets).values():
        assert " ".join(options_of(layout_from(options))) == options
        counts = [part.layout.stripe_count or 0 for part in layout_from(options).components]
        assert all(count <= targets for count in counts)


@pytest.mark.parametrize(("targets", "stripes"), [(1, 2), (8, 16), (1000, 2000), (1999, 2000), (2000, 0), (2400, 0)])
def test_overstriping_requests_at_most_the_maximum_number_of_stripes(targets: int, stripes: int) -> None:
    assert layout_kinds(targets).get("overstriped", "-C 0") == f"-C {stripes}"
