"""The text of the HTML report: complete, self-contained, and safe with hostile paths."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from report.example import example_portrait
from report.golden import assert_golden
from strakes.model.portrait import Portrait
from strakes.report.answer_text import answer_lines
from strakes.report.html import PLOTLY, render_html, resource
from strakes.report.summary import render_summary

FIVE_MB = 5_000_000
PLACEHOLDER = "/* plotly */"
BUNDLE = resource("vendor", PLOTLY)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._inside = tag
        if tag == "script":
            self.scripts.append(values)
        self.links += [
            value for key in ("src", "href", "srcset", "data", "action") if (value := values.get(key)) is not None
        ]
        self.ids += [value for key, value in attrs if key == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def report() -> str:
    return render_html(example_portrait())


@pytest.fixture(scope="module")
def page(report: str) -> Page:
    return Page(report.replace(BUNDLE, PLACEHOLDER))


def test_the_report_matches_its_golden_file(report: str) -> None:
    assert_golden("report.html", report.replace(BUNDLE, PLACEHOLDER))


def test_the_report_is_small_and_refers_to_nothing_outside_itself(report: str, page: Page) -> None:
    assert len(report.encode()) < FIVE_MB
    assert [link for link in page.links if not link.startswith("#") and link != "data:,"] == []
    assert all(not script.get("src") for script in page.scripts)


def test_claims_have_intervals_and_the_page_names_papers_and_the_licence(report: str, page: Page) -> None:
    assert '3.1 times as many files a second as one. <span class="muted whole">[2.88–3.27 times]</span>' in report
    assert "The above copyright notice and this permission notice shall be included" in report
    assert "Tianhe-2" in page.text and "Booher" not in page.text


def test_every_link_within_the_page_has_a_target(page: Page) -> None:
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_the_content_security_policy_names_exactly_the_scripts_of_the_report(report: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', report)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy.group(1)
    assert "unsafe-inline" not in policy.group(1).split("style-src")[0]
    inline = re.findall(r"<script>(.*?)</script>", report, flags=re.DOTALL)
    allowed = re.findall(r"sha256-([A-Za-z0-9+/=]+)", policy.group(1).replace("&#43;", "+"))
    assert [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in inline] == allowed


def test_hostile_text_in_every_place_stays_text() -> None:
    evil = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}\u2028"
    portrait = example_portrait()
    hostile = replace(
        portrait,
        scope=evil,
        target={**portrait.target, "path": evil},
        run={**portrait.run, "id": evil, "status": evil, evil: evil},
        environment={evil: {evil: [evil]}},
        headlines=tuple(replace(headline, label=evil) for headline in portrait.headlines),
        cells=tuple(replace(cell, settings={**cell.settings, evil: evil}, warnings=(evil,)) for cell in portrait.cells),
        findings=tuple(replace(finding, statement=evil, needs=evil) for finding in portrait.findings),
        answers=tuple(replace(answer, title=evil, chosen=evil, remark=evil) for answer in portrait.answers),
        warnings=tuple(replace(warning, text=evil, remedy=evil) for warning in portrait.warnings),
        skipped=tuple(replace(omission, reason=evil) for omission in portrait.skipped),
        reproduce=(evil,),
        figures=tuple(
            replace(
                figure,
                title=evil,
                question=evil,
                x_label=evil,
                y_label=evil,
                series=tuple(replace(line, name=evil) for line in figure.series),
                references=tuple(replace(theirs, source=evil, text=evil) for theirs in figure.references),
            )
            for figure in portrait.figures
        ),
    )
    rest = render_html(hostile).replace(BUNDLE, PLACEHOLDER)
    assert len(Page(rest).scripts) == 3 and "<script>alert" not in rest
    assert "<img" not in rest and "{{ 7 * 7 }}" in rest


def test_everything_the_portrait_says_is_on_the_page(page: Page) -> None:
    portrait = example_portrait()
    texts = [text for finding in portrait.findings for text in (finding.statement, finding.needs)]
    texts += [text for warning in portrait.warnings for text in (warning.text, warning.remedy)]
    texts += [line.text for line in answer_lines(portrait)]
    texts += [*(omission.reason for omission in portrait.skipped), *portrait.reproduce]
    texts += [reference.text for figure in portrait.figures for reference in figure.references]
    texts += [headline.label for headline in portrait.headlines]
    texts += [part[:1].upper() + part[1:] for part in portrait.scope.split("; ")]
    assert [text for text in texts if text not in page.text] == []


@pytest.mark.parametrize("status", ["interrupted", "partial", "failed"])
def test_the_report_and_the_summary_of_an_incomplete_run_say_so(status: str) -> None:
    portrait = example_portrait()
    incomplete = replace(portrait, run={**portrait.run, "status": status})
    assert re.search(r'class="ended">[^<]*this run', render_html(incomplete), flags=re.IGNORECASE)
    assert status != "interrupted" or "This run was interrupted" in render_summary(incomplete, width=100, colour=False)


def test_an_empty_portrait_gives_a_report_and_a_summary() -> None:
    empty = Portrait({}, {}, {}, "one client measured", (), (), (), (), (), ())
    text = Page(render_html(empty).replace(BUNDLE, PLACEHOLDER)).text
    assert "Nothing was measured." in text and "This run asked no question." in text
    summary = render_summary(empty, width=80, colour=False)
    assert "nothing was measured" in summary and "How to use it" not in summary


def test_the_vendored_library_has_its_licence_and_ends_no_script() -> None:
    assert "MIT" in (files("strakes.report") / "vendor" / "LICENSE").read_text(encoding="utf-8")
    assert "v4.1.1" in BUNDLE[:200]
    # These texts would end or confuse the script element that embeds the library.
    assert not re.search(r"</script|<!--|\r", BUNDLE, flags=re.IGNORECASE)


def test_the_warnings_of_a_headline_figure_are_numbered_in_their_order() -> None:
    portrait = example_portrait()
    (first, *others) = portrait.headlines
    cells = {cell.id: cell for cell in portrait.cells}
    second = others[0]
    changed = {
        first.cell: replace(cells[first.cell], warnings=("drift", "bimodal")),
        second.cell: replace(cells[second.cell], warnings=("few-runs", "bimodal", "drift")),
    }
    shown = tuple(changed.get(cell.id, cell) for cell in portrait.cells)
    page = render_html(replace(portrait, headlines=(first, second), cells=shown))
    rows = re.findall(r'<tr><td>(.*?)</td><td class="n strong"', page)
    assert [re.findall(r"<sup[^>]*> (\d)</sup>", row) for row in rows] == [["1", "2"], ["1", "2", "3"]]
