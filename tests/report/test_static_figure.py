"""Figures in files have the content of the report, and the same run gives the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from report.example import example_portrait as portrait
from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.model.portrait import RunWarning
from strakes.report.static_figure import FORMATS, find_figure, name_figures, write_figure


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]


def test_every_figure_of_a_portrait_has_a_unique_name() -> None:
    names = name_figures(portrait())
    assert list(names.values()) == list(portrait().figures)
    assert all(find_figure(portrait(), name) is not None for name in names)


def test_an_svg_names_title_axes_series_and_the_run(tmp_path: Path) -> None:
    for name, shown in name_figures(portrait()).items():
        path, figure = tmp_path / f"{name}.svg", replace(shown, title=f"{shown.title} $\\frac$")
        write_figure(figure, portrait(), path)
        written = texts(path)
        assert figure.title in written and any(figure.x_label in text for text in written)
        assert len(figure.series) == 1 or all(series.name in written for series in figure.series)
        assert any(str(portrait().run["id"]) in text for text in written)


def test_a_cell_with_a_warning_is_drawn_hollow_in_a_file(tmp_path: Path) -> None:
    figure = portrait().figures[0]
    cell = figure.series[0].points[0].cell
    clear = replace(portrait(), warnings=())
    warned = replace(portrait(), warnings=(RunWarning("few-runs", "few runs", "more runs", (cell,)),))
    for run, name in ((clear, "clear.svg"), (warned, "warned.svg")):
        write_figure(figure, run, tmp_path / name)
    hollow = "hollow markers: a warning affects them"
    for name, drawn in (("clear.svg", False), ("warned.svg", True)):
        assert any(hollow in text for text in texts(tmp_path / name)) == drawn
        assert ("fill: #ffffff; stroke" in (tmp_path / name).read_text()) == drawn


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    figure = portrait().figures[0]
    for name in ("a.svg", "b.svg"):
        write_figure(figure, portrait(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_each_format_is_written(form: str, begins: bytes, tmp_path: Path) -> None:
    assert form in FORMATS
    write_figure(portrait().figures[0], portrait(), tmp_path / f"figure.{form}")
    assert (tmp_path / f"figure.{form}").read_bytes().startswith(begins)


def test_another_format_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="format"):
        write_figure(portrait().figures[0], portrait(), tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(EnvironmentLacksError, match=r"pip install matplotlib .*strakes\[figures\]"):
        write_figure(portrait().figures[0], portrait(), tmp_path / "figure.svg")
