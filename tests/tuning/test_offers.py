"""The search space has the settings that application and target support, with the current ones as the default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.base.errors import BadInputError
from strakes.base.units import KIB, MIB
from strakes.targets.description import Layout, Striping
from strakes.targets.lustre_layouts import layout_from
from strakes.targets.lustre_target import layout_kinds
from strakes.tuning.advise_app import App, AppPhase
from strakes.tuning.tune_offers import INTERFACES, Abilities, narrowed, offers
from strakes.tuning.tune_plans import layout_of
from strakes.tuning.tune_space import SearchSpace
from strakes.tuning.tune_words import levels_from

DUMP = AppPhase("dump", "write", "per-process", 64 * MIB, (MIB,))
ABLE = Abilities(8, 4 * MIB, tuple(INTERFACES), Striping(3, 64 * KIB), Layout(4 * MIB, 1, pool="data"))


def app(*phases: AppPhase, interface: str = "posix", grouping: int = 1) -> App:
    return App("t", interface, 64, 8, phases or (DUMP,), grouping)  # type: ignore[arg-type]


def levels(space: SearchSpace, name: str) -> tuple[object, ...]:
    return next((factor.levels for factor in space.factors if factor.name == name), ())


def test_the_default_is_the_current_setting_of_the_application() -> None:
    space = offers(app(grouping=8), ABLE)
    assert space.settings(space.default) == {
        "files": "per-process",
        "writers": 8,
        "interface": "posix",
        "transfer_bytes": MIB,
        "stripe_count": 1,
        "stripe_bytes": 4 * MIB,
    }


SHARED = app(AppPhase("dump", "write", "shared", MIB, collective=True), interface="mpiio")
SAME = app(AppPhase("mesh", "read", "same", MIB))
FEW = Abilities(8, 4 * MIB, ("posix", "stdio"))


@pytest.mark.parametrize(
    ("application", "able", "offered"),
    [
        # The application's framework limits how far writers can be merged. Collective writes need a shared file.
        (app(), ABLE, {"writers": ()}),
        (app(grouping=4), ABLE, {"writers": (2, 4, 8)}),
        (app(grouping=64), ABLE, {"writers": (1, 2, 4, 8)}),
        (SHARED, ABLE, {"writers": (1, 2, 4, 8), "files": (), "interface": ("posix", "posix direct")}),
        # All ranks need the same input: some ranks read it and send it to the others.
        (SAME, ABLE, {"readers": (1, 2, 4, 8), "interface": ()}),
        (app(grouping=8), FEW, {"stripe_count": (), "stripe_bytes": (), "pool": (), "interface": ("posix", "stdio")}),
    ],
)
def test_only_settings_that_application_and_target_have_are_offered(
    application: App, able: Abilities, offered: dict[str, tuple[object, ...]]
) -> None:
    space = offers(application, able)
    assert {name: levels(space, name) for name in offered} == offered
    assert application is not SAME or space.settings(space.default)["readers"] == 8


def test_transfers_are_at_most_the_data_of_a_rank_in_the_smallest_trial() -> None:
    assert (
        max(int(str(size)) for size in levels(offers(app(), Abilities(8, 128 * KIB, ("posix",))), "transfer_bytes"))
        == 128 * KIB
    )


def test_merged_writers_use_only_interfaces_that_the_engine_can_merge() -> None:
    space = offers(app(grouping=8), ABLE)
    assert not [
        point
        for point in space.points
        if space.settings(point)["interface"] == "uring" and space.settings(point)["writers"] != 8
    ]


def test_levels_can_be_left_out_as_people_write_them() -> None:
    space = offers(app(grouping=8), ABLE)
    wanted = {"transfer": ("64KiB", "1 MiB"), "writers": ("2",), "stripe size": ("4MiB",)}
    less = narrowed(space, levels_from(space, wanted))
    assert levels(less, "transfer_bytes") == (64 * KIB, MIB)
    assert less.settings(less.default)["writers"] == 2


@pytest.mark.parametrize(("name", "level"), [("colour", "red"), ("writers", "3"), ("transfer", "7")])
def test_unknown_levels_are_refused_with_the_valid_ones(name: str, level: str) -> None:
    space = offers(app(grouping=8), ABLE)
    with pytest.raises(BadInputError) as refused:
        levels_from(space, {name: (level,)})
    assert refused.value.remedy.startswith(("Valid levels are:", "One of: "))


def test_layouts_of_other_kinds_are_separate_choices() -> None:
    kinds = layout_kinds(3)
    able = replace(ABLE, striping=Striping(3, 64 * KIB, kinds))
    space = offers(app(), able)
    assert levels(space, "layout") == ("plain", *kinds.values())
    settings = [space.settings(point) for point in space.points]
    others = [point for point in settings if point["layout"] != "plain"]
    # Only the plain layout has a choice of stripes; the other layouts fix their counts and sizes.
    assert {(point["stripe_count"], point["stripe_bytes"]) for point in others} == {(1, 4 * MIB)}
    plain = [point for point in settings if point["layout"] == "plain"]
    assert len({(point["stripe_count"], point["stripe_bytes"]) for point in plain}) == 15
    assert {layout_of(point) for point in others} == {layout_from(kind) for kind in kinds.values()}
    assert layout_of(space.settings(space.default)) == Layout(4 * MIB, 1)


def test_a_current_composite_layout_is_the_plain_choice() -> None:
    now = layout_from("-E 1M -c 1 -E -1 -c -1")
    space = offers(app(), replace(ABLE, striping=Striping(3, 64 * KIB, layout_kinds(3)), layout=now))
    assert levels(space, "stripe_count") == () and levels(space, "layout")[0] == "plain"
    assert layout_of(space.settings(space.default)) is None
