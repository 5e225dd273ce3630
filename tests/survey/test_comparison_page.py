"""The HTML page of a comparison: the verdicts of the terminal, drawn to scale, with foreign names escaped."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.test_browser import CHROMIUM, CLIPPED, Visit, browser
from strakes.stats.ratios import Verdict
from strakes.survey.comparison import CellVerdict, Comparison, Overall, Unlike
from strakes.survey.comparison_page import render_comparison_page

__all__ = ["browser"]


def cell(
    ratio: float, low: float | None, high: float | None, verdict: Verdict = Verdict.SAME, name: str = "x:write"
) -> CellVerdict:
    return CellVerdict(name, {}, "B/s", verdict, ratio, low, high, 1e9, 1e9 * ratio, 9, 9)


def comparison(*cells: CellVerdict, unlike: tuple[Unlike, ...] = ()) -> Comparison:
    run = {"id": "20260101-000000-survey-0001", "target": "/scratch"}
    return Comparison(
        run, run, 0.9, 0.05, Overall(Verdict.SAME, 1.0, 0.98, 1.02), cells, unlike, ("kernel: 1 | 2",), ()
    )


def test_every_cell_has_its_verdict_ratio_and_interval() -> None:
    page = render_comparison_page(
        comparison(cell(1.2, 1.1, 1.3, Verdict.FASTER, "fast"), cell(0.8, None, None, Verdict.INCONCLUSIVE, "few"))
    )
    assert "FASTER" in page and "1.100 - 1.300" in page
    assert "INCONCLUSIVE" in page and "too few runs" in page
    assert "Differs: kernel" in page and "<script" not in page


def test_foreign_names_are_escaped() -> None:
    name = "<img src=x onerror=alert(1)>"
    page = render_comparison_page(comparison(cell(1.0, 0.9, 1.1, name=name), unlike=(Unlike(name, name),)))
    assert name not in page and page.count(escape(name)) == 3


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(1.0, 1e6)), min_size=1, max_size=5))
def test_everything_is_drawn_inside_the_scale(spans: list[tuple[float, float]]) -> None:
    page = render_comparison_page(comparison(*(cell(ratio, ratio / wide, ratio * wide) for ratio, wide in spans)))
    for start, width in re.findall(r'<rect x="([-0-9.e]+)" y="4.2" width="([-0-9.e]+)"', page):
        assert 0 <= float(start) <= 100 and 0 <= float(width) <= 100.01 - float(start)


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 420])
def test_every_value_of_a_cell_is_visible_without_scrolling(browser: Any, width: int, tmp_path: Path) -> None:
    cells = (
        cell(1.2, 1.1, 1.3, Verdict.FASTER, "transfer-size/buffered/8388608:write"),
        cell(0.8, None, None, Verdict.INCONCLUSIVE, "metadata-ops/unique/2:file-create"),
    )
    path = tmp_path / "comparison.html"
    path.write_text(render_comparison_page(comparison(*cells)), encoding="utf-8")
    visit = Visit(browser, path)
    visit.page.set_viewport_size({"width": width, "height": 900})
    fits = "[document.documentElement, ...document.querySelectorAll('.scroll')].every(box => box.scrollWidth <= box.clientWidth)"
    assert visit.page.evaluate(fits) and visit.page.evaluate(CLIPPED) == []
    # In pixels: a higher row would have a column so narrow that each line has one word.
    assert (
        visit.page.evaluate("Math.max(...[...document.querySelectorAll('tbody tr')].map(row => row.offsetHeight))")
        < 150
    )
    assert visit.complaints == []
    visit.context.close()
