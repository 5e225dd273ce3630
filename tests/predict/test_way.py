"""The way that is drawn: one dimension changes, and measured points are on it or are told what else they differ in."""

from __future__ import annotations

import math
import re

import pytest

from strakes.predict.asked import Stated, parse_asked
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.forecast_page import render_forecast_page
from strakes.predict.forecasts import forecast_figures
from strakes.predict.scale import MeasuredLevel, Scale
from strakes.predict.sealed import Record
from strakes.predict.way import axis_of, is_on_way, say_off_way, way_to

NAMES = ("clients", "ranks", "mdts", "osts", "files", "link")


def figure_of(*scales: Scale) -> FigureLevels:
    levels = tuple(MeasuredLevel(scale, math.log(100.0 * scale.ranks**0.8), 0.05) for scale in scales)
    return FigureLevels("namespace-scaling", "file-create", "op/s", {"block_bytes": 1024}, levels)


SESSIONS = figure_of(Scale(2, 2, 1), Scale(2, 2, 2), Scale(4, 4, 1), Scale(4, 4, 2), Scale(4, 4, 3))


@pytest.mark.parametrize(
    ("figure", "scale", "changes"),
    [
        (SESSIONS, Scale(8, 8, 3), {"clients", "ranks"}),
        (SESSIONS, Scale(4, 4, 8), {"mdts"}),
        (figure_of(Scale(1, 1), Scale(1, 8)), Scale(1, 64), {"ranks"}),
        (figure_of(Scale(1, 4), Scale(2, 8)), Scale(64, 256), {"clients", "ranks"}),
        (figure_of(Scale(1, 4), Scale(2, 8)), Scale(2, 8, link=1 / 12), {"link"}),
        (figure_of(Scale(files=1000), Scale(files=8000)), Scale(files=10**9), {"files"}),
    ],
)
def test_one_dimension_changes_along_the_way_and_it_ends_where_asked(
    figure: FigureLevels, scale: Scale, changes: set[str]
) -> None:
    way = way_to(figure, scale)
    assert {name for name in NAMES if len({getattr(each, name) for each in way}) > 1} == changes
    assert scale in way
    axis = axis_of(figure, scale)
    if axis != "link":
        assert {level.scale for level in figure.levels if is_on_way(level, scale, axis)} <= set(way)


def test_points_off_the_way_are_told_what_they_differ_in() -> None:
    asked = Scale(8, 8, 3)
    told = {level.scale: say_off_way(level, asked, "clients") for level in SESSIONS.levels}
    assert told[Scale(2, 2, 1)] == "1 metadata target" and told[Scale(4, 4, 3)] == ""
    assert say_off_way(MeasuredLevel(Scale(2, 8, 3), 0.0, 0.1), asked, "clients") == "4 ranks a client"


def test_the_page_has_a_table_and_names_the_points_that_are_not_of_the_line() -> None:
    asked = parse_asked("clients=8,mdts=3")
    page = render_forecast_page(asked, forecast_figures([SESSIONS], asked, Stated()), Record())
    assert "<h1>Forecast for 8 clients, 3 metadata targets</h1>" in page
    assert "<td>file create, block 1 KiB (namespace-scaling)</td>" in page
    assert re.search(r"□ 1 metadata target;\s*△ 2 metadata targets", page)
    assert "times [" not in page
