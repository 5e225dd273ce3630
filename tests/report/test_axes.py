from __future__ import annotations

from collections.abc import Sequence

import pytest

from strakes.base.units import GIB, KIB, MIB
from strakes.model.portrait import Figure, Point, Reference, Series
from strakes.report.axes import band, x_axis, y_axis


def figure(
    points: list[float | str],
    scale: str = "log",
    unit: str = "B",
    y_unit: str = "B/s",
    references: tuple[Reference, ...] = (),
) -> Figure:
    series = Series("write", tuple(Point(x, f"c{i}") for i, x in enumerate(points)))
    return Figure("s", "t", "q", "size", unit, scale, "rate", y_unit, (series,), references)  # type: ignore[arg-type]


def texts(ticks: tuple[tuple[float, str], ...]) -> list[str]:
    return [text for _, text in ticks]


@pytest.mark.parametrize(
    ("points", "unit", "labels"),
    [
        ([4 * KIB, 64 * KIB, MIB, 16 * MIB], "B", "4 KiB|64 KiB|1 MiB|16 MiB"),
        ([1, 2, 4, 1024], "", "1|2|4|1,024"),
        ([1, 2, 4, 4096], "", "1|4|16|64|256|1,024|4,096"),
        ([1e3, 1e4, 1e7], "", "1,000|10,000|10,000,000"),
    ],
)
def test_levels_are_labelled_in_their_unit(points: list[float | str], unit: str, labels: str) -> None:
    assert texts(x_axis(figure(points, unit=unit)).ticks) == labels.split("|")


def test_many_levels_have_no_more_ticks_than_fit() -> None:
    ticks = x_axis(figure([2.0**power for power in range(40)])).ticks
    assert 4 <= len(ticks) <= 9 and texts(ticks)[0] == "1 B"


@pytest.mark.parametrize("points", [range(2000, 26000, 2000), range(40, 70, 3), (3, 4, 5, 6, 7, 8, 9, 10, 11, 900)])
def test_crowded_levels_within_few_decades_have_round_ticks_between_the_powers(points: Sequence[int]) -> None:
    axis = x_axis(figure([float(point) for point in points], unit=""))
    assert 4 <= len(axis.ticks) <= 9 and all(axis.low <= place <= axis.high for place, _ in axis.ticks)


def test_categories_are_in_the_order_of_their_first_appearance() -> None:
    axis = x_axis(figure(["b", "a", "b"], scale="category"))
    assert axis.ticks == ((0.0, "b"), (1.0, "a")) and (axis.low, axis.high) == (-0.5, 1.5)


def test_a_published_band_widens_the_axis_only_if_it_is_near_our_points() -> None:
    near, far = Reference("S1", "t", 64 * MIB, GIB), Reference("S1", "t", 1e3, 2e3)
    axis = x_axis(figure([MIB, 256 * MIB], references=(near,)))
    assert axis.high > GIB and band(near, axis) == (64 * MIB, GIB)
    axis = x_axis(figure([1, 2, 4], unit="", references=(far,)))
    assert axis.high < 8 and band(far, axis) is None
    assert band(Reference("S1", "text only"), axis) is None


@pytest.mark.parametrize("points", [[64.0 * KIB], [7.0]])
def test_a_single_point_has_an_axis_around_it(points: list[float]) -> None:
    for scale in ("log", "linear"):
        axis = x_axis(figure(list(points), scale=scale))
        assert axis.low < points[0] < axis.high and len(axis.ticks) == 1


def test_near_values_have_an_axis_from_zero_and_distant_ones_a_log_axis() -> None:
    near = y_axis(figure([1, 2]), [900.0 * MIB, 1000.0 * MIB], [850.0 * MIB, 1050.0 * MIB])
    assert (near.scale, near.low) == ("linear", 0.0)
    assert texts(near.ticks) == ["0", "200", "400", "600", "800", "1,000"] and near.title == "rate (MiB/s)"
    far = y_axis(figure([1, 2]), [1.0 * MIB, 1000.0 * MIB], [1.0 * MIB, 1000.0 * MIB])
    assert far.scale == "log" and {"1", "10", "100", "1,000"} <= set(texts(far.ticks))


def test_times_on_a_log_axis_carry_their_own_units() -> None:
    axis = y_axis(figure([1, 2], y_unit="s"), [1e-6, 2e-3], [1e-6, 2e-3])
    assert {"1 us", "100 us", "1 ms"} <= set(texts(axis.ticks)) and axis.title == "rate"


@pytest.mark.parametrize(
    ("largest", "unit"), [(3.0, "rate (s)"), (0.02, "rate (ms)"), (4e-6, "rate (us)"), (4e-10, "rate (ns)")]
)
def test_times_on_a_linear_axis_take_the_unit_of_the_largest(largest: float, unit: str) -> None:
    assert y_axis(figure([1], y_unit="s"), [largest], [largest]).title == unit


def test_an_axis_with_a_zero_is_linear() -> None:
    assert x_axis(figure([0, 1, 2], unit="")).scale == "linear"
    assert y_axis(figure([1, 2]), [0.0, 1e9], [0.0, 1e9]).scale == "linear"
    assert y_axis(figure([1]), [0.0], [0.0]).high > 0


@pytest.mark.parametrize("decades", [2, 3, 5, 9, 20])
def test_any_number_of_decades_has_a_legible_number_of_ticks(decades: int) -> None:
    assert 3 <= len(y_axis(figure([1, 2], y_unit="op/s"), [1.0, 10.0**decades], [1.0, 10.0**decades]).ticks) <= 11
