from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from report.example import HOSTILE_PATH, example_portrait
from strakes.model.portrait import CellEstimate, Figure, Point, Portrait, Reference, Series
from strakes.report.figures import Drawing, draw

Scale = Literal["log", "linear", "category"]
CELL = next(iter(example_portrait().cells))


def drawing_of(study: str, portrait: Portrait | None = None, warned: tuple[str, ...] = ()) -> Drawing:
    portrait = portrait or example_portrait()
    figure = next(figure for figure in portrait.figures if figure.study == study)
    drawing = draw(figure, cells_of(portrait), warned)
    assert drawing is not None
    return drawing


def cells_of(portrait: Portrait) -> dict[str, CellEstimate]:
    return {cell.id: cell for cell in portrait.cells}


def traces(drawing: Drawing) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(json.dumps(drawing.data, allow_nan=False))
    return loaded


def test_every_run_is_drawn_in_addition_to_the_medians() -> None:
    portrait = example_portrait()
    drawn = traces(drawing_of("transfer-size"))
    cells = [cell for cell in portrait.cells if cell.study == "transfer-size"]
    points = [trace for trace in drawn if "markers" in trace["mode"]]
    assert sum(len(trace["x"]) for trace in points) == len(cells) + sum(cell.runs for cell in cells)


def test_error_bars_are_the_intervals_and_absent_without_one() -> None:
    cells = cells_of(example_portrait())
    drawn = [trace for trace in traces(drawing_of("transfer-size")) if trace["name"] == "write" and "error_y" in trace]
    first = cells["transfer-size-4096:write"]
    assert first.low is not None and first.high is not None
    assert drawn[0]["error_y"]["array"][0] == first.high - first.median
    assert drawn[0]["error_y"]["arrayminus"][0] == first.median - first.low
    drawn = [trace for trace in traces(drawing_of("data-per-process")) if "error_y" in trace]
    assert [trace["error_y"]["array"][-1] for trace in drawn] == [0.0, 0.0]


def test_no_two_series_share_colour_dash_or_marker() -> None:
    drawn = [trace for trace in traces(drawing_of("transfer-size")) if "error_y" in trace]
    assert len(drawn) == 3 and len({trace["line"]["dash"] for trace in drawn}) == 3
    assert len({trace["marker"]["symbol"] for trace in drawn}) == 3
    assert len({trace["line"]["color"] for trace in drawn}) == 3


def test_published_bands_are_hatched_and_named_and_have_no_markers() -> None:
    theirs = [trace for trace in traces(drawing_of("transfer-size")) if "fillpattern" in trace]
    assert [trace["name"] for trace in theirs] == ["published by S1, not measured here"]
    assert theirs[0]["mode"] == "lines"
    assert not any(
        "published" in trace["name"] for trace in traces(drawing_of("transfer-size")) if "markers" in trace["mode"]
    )


def test_a_cell_with_a_warning_is_drawn_hollow() -> None:
    drawn = traces(drawing_of("transfer-size", warned=("transfer-size-4096:write",)))
    colours = next(trace for trace in drawn if trace["name"] == "write" and "error_y" in trace)["marker"]["color"]
    assert colours[0] == "#ffffff"
    assert "#ffffff" not in colours[1:]


def test_categories_have_no_lines_and_series_do_not_share_positions() -> None:
    drawn = [trace for trace in traces(drawing_of("metadata-ops")) if "error_y" in trace]
    assert [trace["mode"] for trace in drawn] == ["markers", "markers"]
    assert not set(drawn[0]["x"]) & set(drawn[1]["x"])


def test_a_figure_whose_cells_have_no_value_is_not_drawn() -> None:
    figure = Figure("s", "t", "q", "x", "", "linear", "y", "op/s", (Series("a", (Point(1.0, "gone"),)),))
    assert draw(figure, {}) is None and draw(replace(figure, series=()), {}) is None


def test_values_that_are_not_numbers_are_left_out() -> None:
    portrait = example_portrait()
    cells = cells_of(portrait)
    nan, infinite = float("nan"), float("inf")
    cells["transfer-size-4096:write"] = replace(cells["transfer-size-4096:write"], median=nan)
    cells["transfer-size-16384:write"] = replace(cells["transfer-size-16384:write"], high=infinite, values=(nan, 1e9))
    drawing = draw(portrait.figures[0], cells)
    assert drawing is not None
    json.dumps([drawing.data, drawing.layout], allow_nan=False)


def test_names_are_not_interpreted_as_markup() -> None:
    portrait = example_portrait()
    figure = replace(
        portrait.figures[0], series=(replace(portrait.figures[0].series[0], name=HOSTILE_PATH),), x_label="<a href='x'>"
    )
    drawing = draw(figure, cells_of(portrait))
    assert drawing is not None and "<" not in json.dumps([trace["name"] for trace in drawing.data])
    assert "<a" not in json.dumps(drawing.layout)


@pytest.mark.parametrize("scale", ["log", "linear", "category"])
def test_a_figure_of_one_series_with_one_run_is_drawn(scale: Scale) -> None:
    cell = CellEstimate("c", "s", {}, 5.0, None, None, 0.9, 1, "op/s", (5.0,))
    x: float | str = "one" if scale == "category" else 1.0
    figure = Figure("s", "t", "q", "x", "", scale, "y", "op/s", (Series("a", (Point(x, "c"),)),))
    drawing = draw(figure, {"c": cell})
    assert drawing is not None and [len(trace["x"]) for trace in drawing.data] == [1, 1]
    at = "one" if scale == "category" else "1"
    assert drawing.alternative.startswith(f"t: y; x: {at} only. a: 5.00 op/s at {at}. ")


def test_published_points_are_drawn_hollow_and_grey_under_the_name_of_their_source() -> None:
    figure = example_portrait().figures[0]
    theirs = Reference(
        "S3", "S3: so much", label="S3, published: one client", points=((65536.0, 2e8), (1048576.0, 3e8))
    )
    drawing = draw(replace(figure, references=(theirs,)), {cell.id: cell for cell in example_portrait().cells})
    assert drawing is not None
    (trace,) = [trace for trace in drawing.data if trace["name"] == "S3, published: one client"]
    assert trace["y"] == [2e8, 3e8]
    marker = trace["marker"]
    assert isinstance(marker, dict) and marker["symbol"].endswith("-open")


def test_the_names_of_many_categories_are_vertical() -> None:
    def angle(count: int) -> object:
        cells = {f"c{number}": replace(CELL, id=f"c{number}") for number in range(count)}
        points = tuple(Point(f"a long name {number}", f"c{number}") for number in range(count))
        figure = Figure("s", "t", "q", "x", "", "category", "y", "", (Series("one", points),))
        drawing = draw(figure, cells)
        assert drawing is not None
        axis = drawing.layout["xaxis"]
        assert isinstance(axis, dict)
        return axis["tickangle"]

    assert (angle(6), angle(20)) == (0, -90)
