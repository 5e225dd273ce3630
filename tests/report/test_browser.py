"""The HTML report in a real browser without a network: it draws all figures, logs no errors and prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.truth.noise import log_normal
from bench.truth.simulated import survey
from bench.truth.world import EQUAL

from report.example import example_portrait
from strakes.report.html import render_html
from strakes.report.sections import sections
from strakes.survey.analysis_build import study_portrait

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium (Debian package chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(example_portrait()), encoding="utf-8")
    return path


class Visit:
    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())

    def drawn(self) -> Any:
        self.page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        return self.page


def eventually(page: Any, condition: str, tries: int = 100) -> bool:
    """Return whether a condition becomes true within ``tries`` times 0.1 s.

    The page's content security policy forbids the eval() of playwright's wait_for_function.
    """
    for _ in range(tries):
        if page.evaluate(condition):
            return True
        page.wait_for_timeout(100)
    return False


@pytest.fixture
def visit(browser: Any, file: Path) -> Iterator[Visit]:
    visit = Visit(browser, file)
    yield visit
    visit.context.close()


def test_the_report_makes_no_other_request_and_logs_no_error(visit: Visit, file: Path) -> None:
    page = visit.drawn()
    page.hover("#figure-1 .nsewdrag")
    assert visit.requests == [file.as_uri()] and visit.complaints == []


def test_every_figure_is_drawn_with_every_point(visit: Visit) -> None:
    page = visit.drawn()
    plots = [plot for part in sections(example_portrait()) for plot in part.plots]
    expected = {
        plot.number: sum(len(trace["x"]) for trace in plot.drawing.data if "markers" in trace["mode"])
        for plot in plots
        if plot.drawing
    }
    drawn = {
        number: page.locator(f"#figure-{number} svg.main-svg .scatterlayer .points path.point").count()
        for number in expected
    }
    assert drawn == expected and len(expected) == 6
    assert [page.locator(f"#figure-{number} svg.main-svg pattern").count() > 0 for number in (1, 5)] == [True, False]


def test_no_labels_of_an_axis_overlap(visit: Visit) -> None:
    overlaps = visit.drawn().evaluate(
        """() => [...document.querySelectorAll('.plot')].flatMap(plot => ['.xtick', '.ytick'].flatMap(kind => {
          const boxes = [...plot.querySelectorAll(kind + ' text')]
            .map(label => [label.textContent, label.getBoundingClientRect()]);
          return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
            .filter(([, q]) => p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)
            .map(([b]) => [plot.id, a, b]));
        }))"""
    )
    assert overlaps == []


@pytest.mark.parametrize("width", [1280, 800, 420])
def test_nothing_runs_off_the_page(visit: Visit, width: int) -> None:
    page = visit.drawn()
    page.set_viewport_size({"width": width, "height": 900})
    assert eventually(
        page, "[...document.querySelectorAll('.plot')].every(one => one.scrollWidth <= one.clientWidth + 1)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_report_prints_with_figures_as_wide_as_the_paper_and_all_tables_open(visit: Visit, tmp_path: Path) -> None:
    page = visit.drawn()
    page.evaluate(
        """() => addEventListener('beforeprint', () => {
          window.widths = [...document.querySelectorAll('.plot svg.main-svg')]
            .map(plot => plot.getBoundingClientRect().width);
          window.closed = document.querySelectorAll('details:not([open], .extra)').length;
        })"""
    )
    assert page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True).startswith(b"%PDF")
    assert page.evaluate("Math.max(...window.widths)") <= 680 and page.evaluate("window.closed") == 0
    assert visit.complaints == []


def test_after_printing_the_page_is_as_it_was(visit: Visit, tmp_path: Path) -> None:
    page = visit.drawn()
    box = "document.querySelector('.plot svg.main-svg').getBoundingClientRect()"
    before = page.evaluate(f"[{box}.width, {box}.height]")
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    assert eventually(page, f"{box}.width === {before[0]} && {box}.height === {before[1]}")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0


def test_without_scripts_the_report_says_so_and_shows_the_tables(browser: Any, file: Path) -> None:
    visit = Visit(browser, file, java_script_enabled=False)
    assert "scripts are switched off" in visit.page.locator("noscript p").inner_text()
    assert visit.page.get_by_text("Bytes per call: rate of all processes against transfer size").first.is_visible()
    visit.page.locator("summary").first.click()
    assert visit.page.get_by_text("1,716 MiB/s").first.is_visible()
    visit.context.close()


@pytest.fixture
def survey_visit(browser: Any, survey_file: Path) -> Iterator[Visit]:
    visit = Visit(browser, survey_file)
    yield visit
    assert visit.complaints == []
    visit.context.close()


@pytest.fixture(scope="module")
def survey_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of a survey of two minutes on a simulated engine and clock; return its file."""
    place = tmp_path_factory.mktemp("survey")
    run = survey(EQUAL, log_normal(0.1), 1, place)
    path = place / "survey.html"
    path.write_text(render_html(study_portrait(run)), encoding="utf-8")
    return path


# JavaScript that lists the elements wider than the window or than their box.
CLIPPED = """() => [...document.querySelectorAll('main *, header *')]
    .filter(one => !one.closest('.plot') && one.getBoundingClientRect().width > 0
      && (one.getBoundingClientRect().right > innerWidth + 1
          || one.clientWidth && one.scrollWidth > one.clientWidth + 1
          && getComputedStyle(one).display !== 'inline'))
    .map(one => one.tagName + ': ' + one.textContent.slice(0, 60))"""


@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_of_a_survey_is_clipped(survey_visit: Visit, width: int) -> None:
    page = survey_visit.drawn()
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate(CLIPPED) == []


# JavaScript that counts the plots whose legend overlaps the drawing area.
_LEGENDS = """[...document.querySelectorAll('.plot')].filter(plot => plot.querySelector('.legend')
  && plot.querySelector('.legend').getBoundingClientRect().bottom
     > plot.querySelector('.nsewdrag').getBoundingClientRect().top + 1).length"""


def test_no_legend_overlaps_its_figure_in_a_resized_window_or_on_paper(survey_visit: Visit) -> None:
    page = survey_visit.drawn()
    for width in (420, 860, 420, 1280, 500):
        page.set_viewport_size({"width": width, "height": 900})
        assert eventually(page, f"{_LEGENDS} === 0"), width
        # A later redraw must not bring the overlap back.
        page.wait_for_timeout(700)
        assert page.evaluate(_LEGENDS) == 0, width
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert eventually(page, f"{_LEGENDS} === 0")


def test_a_survey_of_two_minutes_prints_on_eight_pages_with_the_answer_on_the_first(
    survey_visit: Visit, tmp_path: Path
) -> None:
    printed = survey_visit.drawn().pdf(path=str(tmp_path / "survey.pdf"), prefer_css_page_size=True)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 8
    titles = survey_visit.page.locator("main > section").first.locator("h3").all_inner_texts()
    assert titles[0] == "How to use it" and "Confidence, and how much was measured" in titles
