"""The checks of looking.py find planted faults: cut words and broken lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from newcomer.looking import broken_lines, clipped_texts, cut_words, words_of
from newcomer.screen import screen_of
from report.example import example_portrait
from report.test_browser import CHROMIUM, Visit, browser
from strakes.report.html import render_html
from strakes.report.summary import render_summary

__all__ = ["browser"]

needs_chromium = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium (Debian package chromium)")
OpenPage = Callable[[str], Visit]
# Styles that hide a part of a text.
CLIPPING = {
    "cut": "width: 4rem; white-space: nowrap; overflow: hidden",
    "dotted": "width: 4rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis",
    "clip": "width: 4rem; white-space: nowrap; overflow-x: clip",
    "low": "height: 0.5rem; overflow: hidden",
    "left": "position: relative; left: -3rem; white-space: nowrap",
    "right": "width: 300rem; text-align: right",
    "indented": "text-indent: -9rem; overflow: hidden; white-space: nowrap",
}


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    """Return a function that opens a page with this HTML in the browser."""
    visits = []

    def open_page(text: str) -> Visit:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        visits.append(Visit(browser, path))
        return visits[-1]

    yield open_page
    for visit in visits:
        visit.context.close()


@needs_chromium
def test_a_report_has_no_clipped_text_until_a_style_clips_its_advice(opened: OpenPage) -> None:
    report = render_html(example_portrait())
    visit = opened(report)
    page = visit.drawn()
    assert clipped_texts(page) == clipped_texts(page, on_paper=True) == visit.complaints == []
    planted = ".answers td { max-width: 8rem; white-space: nowrap; overflow: hidden; }</style>"
    cut = clipped_texts(opened(report.replace("</style>", planted, 1)).drawn())
    assert any("no clear difference" in text for text in cut), cut


@needs_chromium
def test_every_way_to_clip_a_word_is_noticed(opened: OpenPage) -> None:
    planted = [f'<p style="{style}">bytes per write() are {name} here</p>' for name, style in CLIPPING.items()]
    page = opened(f"<p>This is whole.</p>{''.join(planted)}").page
    assert clipped_texts(page) == [f"bytes per write() are {name} here" for name in CLIPPING]
    page = opened(
        '<div style="width: 5rem; overflow: hidden"><p style="width: 40rem"><b>median of all runs</b></p></div>'
        '<svg width="60" height="20" style="overflow: hidden"><text x="0" y="15">processes per node</text></svg>'
        '<div style="width: 5rem; overflow-x: auto; white-space: nowrap">a table of many columns</div>'
    ).page
    assert clipped_texts(page) == ["median of all runs", "processes per node"]
    assert "a table of many columns" in clipped_texts(page, on_paper=True)


def test_a_cut_word_on_a_screen_is_noticed() -> None:
    whole = render_summary(example_portrait(), width=80, colour=False).splitlines()
    known = words_of("\n".join(whole))
    assert cut_words(whole, known) == set()
    assert cut_words([*whole, "Opening one shared file costs each pro"], known) == {"pro"}
    assert cut_words([*whole, "Opening one shared file costs each p…"], known) == {"p…"}


def test_a_line_beyond_the_screen_is_noticed_in_a_terminal(tmp_path: Path) -> None:
    with screen_of(tmp_path, 60, {}) as screen:
        assert screen.type(f"echo {'word ' * 13}; echo 'Report  /{'x' * 70}'", limit_s=20) == 0
        broken = broken_lines(screen.lines(), screen.written(), 60)
    assert [line.strip() for line in broken] == [("word " * 13).strip()]
