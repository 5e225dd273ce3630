"""Reading the placement of directories on metadata targets: manual, striped, round-robin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.targets.description import Placement
from strakes.targets.lustre_layouts import DirStripe, placement, read_default, read_dir_stripe
from targets.lustre.recorded import done


def test_stripes_are_read_in_order() -> None:
    assert read_dir_stripe(done("getdirstripe_strall")) == DirStripe(4, 2, "fnv_1a_64", (2, 1, 3, 0))
    assert read_dir_stripe(done("getdirstripe_str2crush")).hash == "crush"
    assert read_dir_stripe(done("getdirstripe_v")) == read_dir_stripe(done("getdirstripe_str4"))


def test_the_flags_of_a_migration_are_no_part_of_the_hash() -> None:
    assert read_dir_stripe(done("getdirstripe_mig_after")).hash == "fnv_1a_64"
    assert read_dir_stripe(done("migrate_mig4_striped")).hash == "fnv_1a_64"


def test_the_default_of_a_directory() -> None:
    assert read_default(done("getdirstripe_Dflag_defd")) == DirStripe(4, -1, "none", ())
    first, *_ = done("getdirstripe_D_root").stdout.splitlines(keepends=True)
    assert read_default(replace(done("getdirstripe_D_root"), stdout=first)) == DirStripe(1, -1, "none", ())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("str4", Placement("automatic", (0, 1, 2, 3), 4, "fnv_1a_64", inherited=False)),
        ("strall", Placement("automatic", (2, 1, 3, 0), 4, "fnv_1a_64", inherited=True)),
        ("defrr", Placement("automatic", (3,), 1, inherited=True)),
        ("defd", Placement("automatic", (1,), 4, inherited=True)),
        # The root directory spreads its subdirectories over targets, and these spread theirs.
        ("plain", Placement("automatic", (3,), 1, inherited=True)),
        ("rem1", Placement("inherit", (1,), 1, inherited=True)),
    ],
)
def test_the_placement_follows_from_the_stripes_and_the_default(name: str, expected: Placement) -> None:
    stripes, default = read_dir_stripe(done(f"getdirstripe_{name}")), read_default(done(f"getdirstripe_Dflag_{name}"))
    assert placement(stripes, default) == expected
