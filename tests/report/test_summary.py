"""The one-screen summary."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from report.example import example_portrait
from report.golden import assert_golden
from strakes.findings.portrait import Finding, Headline, Recommendation, RunWarning
from strakes.portraits.build import build_portrait
from strakes.report import summary
from strakes.report.guide import render_guide
from strakes.report.html import render_html
from strakes.report.summary import MOST_LINES, render_summary
from strakes.store.published import PublishedRun

RUNS = sorted((Path(__file__).parents[1] / "store" / "runs").glob("*.json.gz"))
REPORT = Path("/home/someone/strakes/runs/2026-11-21-0625-9f3c/report.html")


@pytest.mark.parametrize("width", [100, 80])
def test_the_summary_is_as_it_was(width: int) -> None:
    assert_golden(f"summary-{width}.txt", render_summary(example_portrait(), REPORT, width=width, colour=False) + "\n")


@pytest.mark.parametrize("width", [200, 100, 80, 60, 20])
def test_it_fits_one_screen_at_any_width(width: int) -> None:
    lines = render_summary(example_portrait(), REPORT, width=width, colour=False).splitlines()
    assert len(lines) <= MOST_LINES or width < 80
    assert lines.index("How to use it") < next(row for row, line in enumerate(lines) if line.startswith("Headline"))
    # What is there to be copied is never cut.
    whole = [line for line in lines if str(REPORT) not in line and "strakes " not in line]
    assert max(map(len, whole)) <= max(60, min(width, 100))


def test_much_to_say_still_fits_and_says_what_was_left_out() -> None:
    portrait = example_portrait()
    advice = tuple(
        replace(portrait.recommendations[0], setting=f"setting {number}", reason="because " * 60)
        for number in range(20)
    )
    warnings = tuple(RunWarning(f"code-{number}", "text " * 60, "remedy " * 60) for number in range(20))
    headlines = portrait.headlines * 4
    text = render_summary(
        replace(portrait, recommendations=advice, warnings=warnings, headlines=headlines),
        REPORT,
        width=100,
        colour=False,
    )
    assert len(text.splitlines()) <= MOST_LINES + len(advice) + 4
    assert "more in the report" in text
    assert all(f"setting {number} = 1 MiB or more  2.71" in text for number in range(20))
    assert "because" not in text
    assert "code 0" in text
    assert "Not known" in text


@pytest.mark.parametrize("width", [100, 80, 60])
def test_no_word_is_cut(width: int) -> None:
    portrait = example_portrait()
    words = set(" ".join(str(value) for value in vars(portrait).values()).split())
    for line in render_summary(portrait, REPORT, width=width, colour=False).splitlines():
        for word in re.findall(r"([A-Za-z]+)\.\.\.", line):
            assert any(re.search(rf"\b{word}\b", other) for other in words), line


def test_every_recommendation_is_named_before_any_is_explained_at_length() -> None:
    portrait = example_portrait()
    advice = tuple(
        replace(portrait.recommendations[0], setting=f"setting {number}", reason="because " * 60) for number in range(5)
    )
    text = render_summary(replace(portrait, recommendations=advice), REPORT, width=100, colour=False)
    assert all(f"setting {number} = " in text for number in range(5))


def test_a_run_that_found_nothing_says_so() -> None:
    empty = replace(
        example_portrait(), headlines=(), cells=(), findings=(), recommendations=(), figures=(), warnings=()
    )
    text = render_summary(empty, None, width=80, colour=False)
    assert "nothing was measured" in text
    assert "no setting is recommended" in text
    assert "Report" not in text


def test_a_run_that_is_not_whole_says_so() -> None:
    portrait = example_portrait()
    text = render_summary(
        replace(portrait, run={**portrait.run, "status": "interrupted"}), REPORT, width=100, colour=False
    )
    assert "This run was interrupted" in text


def test_a_hostile_path_cannot_steer_the_terminal_or_break_the_layout() -> None:
    portrait = example_portrait()
    hostile = "/mnt/\x1b[31mred\x07\n[bold]x[/bold] \u202eabc"
    text = render_summary(
        replace(portrait, target={**portrait.target, "path": hostile}), REPORT, width=100, colour=False
    )
    assert text.splitlines()[0] == "strakes  /mnt/?[31mred??[bold]x[/bold] ?abc"


def test_colours_come_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    portrait = example_portrait()
    assert "\x1b[" not in render_summary(portrait, REPORT, width=100, colour=False)
    assert "\x1b[" in render_summary(portrait, REPORT, width=100, colour=True)
    assert "\x1b[" not in render_summary(portrait, REPORT, width=100)  # standard output is no terminal in tests
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in render_summary(portrait, REPORT, width=100)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in render_summary(portrait, REPORT, width=100)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in render_summary(portrait, REPORT, width=100)


def test_colours_change_nothing_but_colours() -> None:
    coloured = render_summary(example_portrait(), REPORT, width=100, colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_summary(
        example_portrait(), REPORT, width=100, colour=False
    )


def test_a_cell_with_too_few_runs_shows_its_value_without_an_interval() -> None:
    portrait = replace(example_portrait(), headlines=(Headline("read of a shared file", "patterns-SFWA:read"),))
    line = next(
        line
        for line in render_summary(portrait, None, width=100, colour=False).splitlines()
        if "read of a shared" in line
    )
    assert "[too few runs]" in line
    assert line.endswith(" 1")


def test_unconfirmed_advice_says_that_it_is() -> None:
    def said(recommendation: Recommendation) -> str:
        return render_summary(
            replace(example_portrait(), recommendations=(recommendation,)), None, width=100, colour=False
        )

    advice = example_portrait().recommendations[0]
    assert ", confirmed" in said(replace(advice, confirmed=True))
    assert ", not confirmed" in said(replace(advice, confirmed=False))


def test_of_one_study_all_that_was_found_is_told() -> None:
    text = "2 writers against every rank: 1.20 times as fast."
    finding = Finding("f", "restart-dump", text, "measured", ())
    portrait = replace(example_portrait(), findings=(finding,))
    assert text not in render_summary(portrait, REPORT, width=100, colour=False)
    portrait = replace(portrait, run={**portrait.run, "kind": "study"})
    assert f"* {text}" in render_summary(portrait, REPORT, width=100, colour=False)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_figures_that_changed_their_level_fit_any_width_with_all_levels(width: int) -> None:
    portrait = example_portrait()
    levels = (42534.0, 539883.0, 78625.0)
    cells = tuple(replace(cell, levels=levels if cell.unit == "op/s" else cell.levels) for cell in portrait.cells)
    text = render_summary(replace(portrait, cells=cells), width=width, colour=False)
    assert max(len(line) for line in text.splitlines() if "strakes " not in line) <= width
    assert "[42,534 op/s then 539,883 op/s then 78,625 op/s]" in text


def test_no_sentence_is_cut() -> None:
    text = "Of this the file system was sure. " + "That was said of many cells in many words. " * 3
    warnings = tuple(RunWarning(f"code-{number}", text.strip(), text.strip()) for number in range(3))
    portrait = replace(example_portrait(), warnings=warnings, recommendations=())
    for width in (60, 80, 100):
        rest = render_summary(portrait, width=width, colour=False).partition("Headlines")[2]
        assert "..." not in rest and ("code-0, code-1, code-2" in rest or "the file system was sure." in rest)


# Parameters of a fitted law are plain numbers, and called by their names.
OF_A_LAW = "bootstrap over runs"
BARE_BOUNDS = re.compile(r"(?<! times) \[[\d.,]+ - [\d.,]+\]")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_bounds_have_their_unit_beside_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    portrait = build_portrait(PublishedRun(path))
    bounds = [finding.interval for finding in portrait.findings] + [one.interval for one in portrait.recommendations]
    assert [known for known in bounds if known and not known.unit and OF_A_LAW not in known.of] == []
    monkeypatch.setattr(summary, "MOST_LINES", 10_000)
    lines = render_summary(portrait, width=400, colour=False).splitlines()
    traits = [line for line in lines if line.startswith(("  + ", "  - ", "  * "))]
    assert [line for line in traits if BARE_BOUNDS.search(line)] == []


def test_where_no_warning_has_room_they_are_named_as_far_as_the_room_goes() -> None:
    portrait = example_portrait()
    text = "It says what it says at such a length that no terminal of one screen has room for two of its kind. " * 9
    many = tuple(RunWarning(f"warning-{index}", text, text) for index in range(40))
    # Advice with long reasons leaves no more than the least room.
    advice = tuple(replace(portrait.recommendations[0], reason=text) for _ in range(20))
    screen = render_summary(replace(portrait, warnings=many, recommendations=advice), width=80, colour=False)
    assert "warning 0, warning 1" in screen
    (told,) = re.findall(r"^Warnings  (\d+) more, explained in the report$", screen, flags=re.MULTILINE)
    assert int(told) + len(re.findall(r"warning \d+", screen)) == len(many)


def test_names_of_warnings_have_a_few_words_each_where_there_is_room() -> None:
    portrait = example_portrait()
    text = "It says what it says at such a length that no terminal of one screen has room for two of its kind. " * 9
    codes = ("drift", "few-runs", "bimodal", "stonewalled", "begun-apart")
    some = replace(
        portrait,
        findings=(),
        warnings=tuple(RunWarning(code, text, text) for code in codes),
        # So many that no warning has room in full.
        recommendations=portrait.recommendations[:1] * 16,
    )
    lines = render_summary(some, width=80, colour=False).splitlines()
    first = lines.index("Warnings  explained in the report") + 1
    assert lines[first] == "  drift: Everything became faster or slower during the run"
    assert lines[first + 1] == "  few runs, two groups of runs, work cut short, ranks begun apart"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(172.0, 1858.0, "varied 11-fold"), (100.0, 250.0, "varied 2.5-fold"), (100.0, 199.0, ""), (0.0, 9.0, "")],
)
def test_an_interval_that_is_too_wide_to_be_passed_over_says_so_in_words(low: float, high: float, told: str) -> None:
    portrait = example_portrait()
    shown = portrait.headlines[0].cell
    cells = tuple(
        replace(cell, low=low * 2**20, median=high * 2**20, high=high * 2**20) if cell.id == shown else cell
        for cell in portrait.cells
    )
    wide = replace(portrait, cells=cells)
    for width in (100, 60):
        screen = render_summary(wide, width=width, colour=False)
        assert re.findall(r"varied [\d.]+-fold", screen) == ([told] if told else [])
    assert render_html(wide).count("varied ") == render_guide(wide).count("varied ") == bool(told)


@pytest.mark.parametrize(("factor", "told"), [(1.4, False), (1.6, True)])
def test_a_median_of_runs_that_are_far_apart_has_most_of_them_beside_it(factor: float, told: bool) -> None:
    portrait = example_portrait()
    shown = portrait.headlines[0].cell
    cells = tuple(
        replace(cell, values=(1e9,) * 7 + (factor * 1e9,) * 7) if cell.id == shown else cell for cell in portrait.cells
    )
    apart = replace(portrait, cells=cells)
    for text in (render_summary(apart, width=100, colour=False), render_html(apart), render_guide(apart)):
        assert ("most runs 954–1,526" in text) == told


def test_one_wide_interval_does_not_take_the_room_of_all_labels() -> None:
    portrait = example_portrait()
    label = "a headline that says at length what was measured, and how"
    shown = portrait.headlines[0].cell
    cells = tuple(
        replace(cell, levels=(cell.median, cell.median / 3, cell.median / 9)) if cell.id == shown else cell
        for cell in portrait.cells
    )
    long = replace(portrait, cells=cells, headlines=tuple(replace(line, label=label) for line in portrait.headlines))
    lines = render_summary(long, width=100, colour=False).splitlines()
    beside = [line for line in lines if line.startswith(f"  {label}  ")]
    assert len(beside) == len(portrait.headlines)
