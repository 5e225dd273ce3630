"""What a newcomer sees who follows the README: on the screen at 80 and 60 columns, in the browser, and on paper."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from lab.running import need, own_labs
from newcomer.screen import Screen, screen_of
from report.test_browser import CHROMIUM, Visit, browser, eventually

__all__ = ["browser"]

IN_MEMORY = Path("/dev/shm")
# What the lab is started with, and how long the survey may measure.
LABS: dict[str, tuple[str, ...]] = {
    "ext4": ("--size", "2GiB"),
    "xfs": ("--size", "2GiB"),
    "ceph": ("--osds", "1", "--mds", "1", "--standby", "0"),
    "nfs": (),
    "juicefs": ("--cache-size", "256MiB"),
}
_LAB = (pytest.mark.lab, pytest.mark.long)
MOST_PAGES = 8
# Lines that hold a command or a path to be copied: a terminal breaks them where it ends, and copies them whole.
_TO_COPY = re.compile(r"(Report|Repeat|  ) +(strakes|/)")


class Newcomer:
    """A directory that was surveyed by typing it, and what came of it."""

    def __init__(self, place: Path, home: Path, columns: int, budget: str) -> None:
        self.place = place
        self.columns = columns
        self.budget = budget
        self.json = home / "findings.json"
        self.home = home

    @property
    def environment(self) -> dict[str, str]:
        return {"STRAKES_STORE": str(self.home / "store"), "PYTHONPATH": str(ROOT / "src")}

    def found(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.json.read_text())
        return document


def summary_on(lines: list[str]) -> list[str]:
    """Return what stands from the summary's first line on; progress was drawn above it."""
    first = max(number for number, line in enumerate(lines) if line.startswith("strakes  /"))
    return lines[first:]


def words_of(text: str) -> set[str]:
    """Return all words, without the dots of a sentence that was left off at a whole word."""
    return {word.removesuffix("...").strip("\"'") for word in text.split()}


def everything_in(value: object) -> str:
    """Return all texts of a JSON document."""
    if isinstance(value, dict):
        return "\n".join(map(everything_in, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything_in, value))
    return str(value)


@pytest.fixture(scope="module", params=["tmpfs", *(pytest.param(kind, marks=_LAB) for kind in LABS)])
def newcomer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    kind = request.param
    home = tmp_path_factory.mktemp("newcomer")
    with ExitStack() as stack:
        if kind == "tmpfs":
            place = IN_MEMORY / f"strakes-newcomer-{home.parent.name}"
            place.mkdir(exist_ok=True)
            stack.callback(shutil.rmtree, place, ignore_errors=True)
        else:
            need(kind)
            place = stack.enter_context(own_labs()).up(kind, *LABS[kind])
        yield Newcomer(place, home, 80, "10s" if kind == "tmpfs" else "2m")


@pytest.fixture(scope="module")
def wide(newcomer: Newcomer) -> Iterator[Screen]:
    """Type the survey on a terminal of 80 columns."""
    with screen_of(newcomer.home, 80, newcomer.environment) as screen:
        words = f"survey {newcomer.place} --budget {newcomer.budget} --json {newcomer.json}"
        assert screen.type(f"{strakes()} {words}", limit_s=420) == 0, screen.text()
        yield screen


@pytest.fixture(scope="module")
def summary(wide: Screen) -> tuple[list[str], list[str]]:
    """As it stands on the screen, and as it was written."""
    return summary_on(wide.lines()), summary_on(wide.written())


@pytest.fixture(scope="module")
def narrow(newcomer: Newcomer, wide: Screen) -> Iterator[tuple[list[str], list[str]]]:
    """Show the same on a terminal of 60 columns."""
    with screen_of(newcomer.home, 60, newcomer.environment) as screen:
        assert screen.type(f"{strakes()} report", limit_s=60) == 0, screen.text()
        yield summary_on(screen.lines()), summary_on(screen.written())


def strakes() -> str:
    return shlex.join([sys.executable, "-m", "strakes"])


@pytest.fixture(scope="module")
def page_file(summary: tuple[list[str], list[str]]) -> Path:
    """Return the report, at the path that the screen tells."""
    (line,) = [line for line in summary[1] if line.startswith("Report ")]
    return Path(line.split()[1])


@pytest.fixture
def visit(browser: Any, page_file: Path) -> Iterator[Visit]:
    if not CHROMIUM.exists():
        pytest.skip("needs Chromium")
    opened = Visit(browser, page_file)
    yield opened
    opened.context.close()


def test_every_piece_of_advice_is_on_the_screen_with_value_and_gain(
    newcomer: Newcomer, summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    for _, written in (summary, narrow):
        text = " ".join(" ".join(written).split())
        advice = newcomer.found()["recommendations"]
        assert "How to use it" in text
        for recommendation in advice:
            assert f"{recommendation['setting']} = {recommendation['value']}" in text
        assert text.count("confirmed") >= len(advice)
        assert bool(advice) != ("no setting is recommended" in text)


def test_the_screen_says_on_what_amounts_it_rests(
    summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    for lines, _ in (summary, narrow):
        head = " ".join(" ".join(lines[: lines.index("How to use it")]).split())
        assert re.search(r"phases took [\d.,]+ \w+", head), head
        assert re.search(r"each rank moved [\d.,]+ [KMGT]iB", head), head
        assert re.search(r"[\d,]+ files", head), head


def test_no_line_is_broken_by_the_terminal_but_those_to_copy(
    summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    for columns, (lines, written) in ((80, summary), (60, narrow)):
        assert max(map(len, lines)) <= columns
        assert [line for line in written if len(line) > columns and not _TO_COPY.match(line)] == []


def test_no_word_is_cut(
    newcomer: Newcomer, summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    """Each word on a screen is one of the texts that it was made of, or of the summary at its full width."""
    full = subprocess.run(
        [sys.executable, "-m", "strakes", "report"],
        env={**os.environ, **newcomer.environment, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    known = words_of(everything_in(newcomer.found())) | words_of(full)
    for _, written in (summary, narrow):
        assert "…" not in "\n".join(written)
        # Numbers are written for the screen, and not all of them are at its full width.
        shown = {word for word in words_of("\n".join(written)) if re.fullmatch(r"[A-Za-z-]{2,}[.,:;]?", word)}
        assert shown - known == set()


def test_the_warning_about_a_cache_names_its_remedy(newcomer: Newcomer, summary: tuple[list[str], list[str]]) -> None:
    warned = newcomer.found()["warnings"]
    shown = [warning for warning in warned if any(warning["code"] in line for line in summary[0])]
    arrows = [line for line in summary[0] if line.lstrip().startswith("-> ")]
    assert len({warning["code"] for warning in shown}) == len(arrows)


def test_the_browser_shows_all_of_it_and_complains_of_nothing(visit: Visit, newcomer: Newcomer) -> None:
    page = visit.drawn()
    text = page.inner_text("body")
    for recommendation in newcomer.found()["recommendations"]:
        assert recommendation["setting"] in text and recommendation["value"] in text
    assert visit.complaints == []
    assert all(request.startswith("file:") for request in visit.requests)


@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_is_clipped_in_the_browser(visit: Visit, width: int, tmp_path: Path) -> None:
    page = visit.drawn()
    page.set_viewport_size({"width": width, "height": 900})
    assert eventually(
        page, "[...document.querySelectorAll('.plot')].every(plot => plot.scrollWidth <= plot.clientWidth + 1)"
    )
    picture = tmp_path / f"{width}.png"
    page.screenshot(path=str(picture), full_page=True)
    assert picture.stat().st_size > 20_000
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    clipped = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter(element => {
          const style = getComputedStyle(element);
          const hides = ['hidden', 'clip'].includes(style.overflowX) || style.textOverflow === 'ellipsis';
          const visible = element.clientWidth > 1 && style.visibility === 'visible' && !element.closest('svg');
          return hides && visible && element.scrollWidth > element.clientWidth + 1 && element.innerText.trim();
        }).map(element => element.innerText.slice(0, 80))"""
    )
    assert clipped == []


def test_it_prints(visit: Visit, tmp_path: Path) -> None:
    printed = visit.drawn().pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= MOST_PAGES
    assert visit.complaints == []


def test_what_the_getting_started_page_names_next_fits_the_screen(newcomer: Newcomer, wide: Screen) -> None:
    commands = (f"target {newcomer.place}", "runs", "study list", "lab --help", "survey --help")
    for words in commands:
        assert wide.type(f"{strakes()} {words}", limit_s=60) == 0, wide.text()
        # What has no blank to break it at is a path, or a list of options.
        broken = [line for line in wide.written() if len(line) > 80 and not re.search(r"\S{40}", line)]
        assert broken == [], words
