from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from report.example import example_portrait
from report.golden import assert_golden
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import Finding, Headline, RunWarning, SkippedCell
from strakes.report.answer_text import answer_text
from strakes.report.guide import render_guide
from strakes.report.html import render_html
from strakes.report.numbers import show_remarks
from strakes.report.summary import render_summary

REPORT = Path("/home/someone/strakes/runs/2026-11-21-0625-9f3c/report.html")


@pytest.mark.parametrize("width", [100, 80])
def test_the_summary_matches_its_golden_file(width: int) -> None:
    assert_golden(f"summary-{width}.txt", render_summary(example_portrait(), REPORT, width=width, colour=False) + "\n")


@pytest.mark.parametrize("width", [200, 100, 80, 60, 20])
def test_the_answers_come_first_and_nothing_is_wider_than_the_screen(width: int) -> None:
    lines = render_summary(example_portrait(), REPORT, width=width, colour=False).splitlines()
    first, second = (
        next(row for row, line in enumerate(lines) if line.startswith(title)) for title in ("How to use it", "How fast")
    )
    assert first < second
    # Lines with a path or command to copy are never cut.
    whole = [line for line in lines if str(REPORT) not in line and "strakes " not in line]
    assert max(map(len, whole)) <= max(60, min(width, 100))


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ([(1.02, 0.9, 1.17)], "not decided (8 is 1.02 times as fast as 1 [0.9-1.17])"),
        ([(0.95, 0.87, 1.03)], "not decided (1 is 1.05 times as fast as 8 [0.97-1.15])"),
        ([(1.14, 1.06, 1.22)], "not decided; leaning to 8 (1.14 times as fast as 1 [1.06-1.22])"),
        (
            [(0.8, 0.7, 0.9)],
            "8 may be enough (1 is 1.25 times as fast as 8 [1.11-1.43]; gains below 10 % do not count)",
        ),
        (
            [(1.15, 1.01, 1.31), (0.98, 0.9, 1.1)],
            "as 1 [1.01-1.31], 2 is 1.02 times as fast as 8 [0.91-1.11]; gains below 10 % do not count)",
        ),
    ],
)
def test_only_a_ratio_whose_interval_excludes_1_is_a_leaning(
    ratios: list[tuple[float, float, float]], text: str
) -> None:
    others = tuple(Comparison(f"{1 + at}", "m", *ratio, "undecided") for at, ratio in enumerate(ratios))
    assert answer_text(Answer("q", "s", "processes", "undecided", "8", "m", others[0], others, 0.9, 12)).endswith(text)


def test_the_last_lines_have_one_command_that_measures_next() -> None:
    portrait = example_portrait()
    text = render_summary(portrait, width=100, colour=False)
    assert text.count("Next ") == 1 and "Repeat  " not in text
    assert "--budget 36m\n        to answer about 1 of 1 open questions, preferably while no" in text
    (*_, files) = portrait.answers
    noisy = replace(files.against, low=0.1, high=9.0)
    scattered = replace(portrait, answers=(replace(files, against=noisy, others=(noisy,)),))
    assert "at a quieter time, because the runs varied too much" in render_summary(scattered, width=100, colour=False)
    skipped = SkippedCell("overview", {"ranks": 16}, "a larger --budget is needed: phases have priority")
    text = render_summary(replace(portrait, answers=(), skipped=(skipped,)), width=100, colour=False)
    assert "processes: a larger --budget is needed" in " ".join(text.split())
    assert "--budget 4m\n        to measure the cells that the budget left out, preferably" in text
    alone = Finding("ratio", "s", "The cost is unknown.", "unknown", (), needs="--against an equal device")
    written = ("strakes survey '/a --html b'\"'\"'c' --json 'a b.json' --budget 2m --html=x.html --servers ';id;#'",)
    text = render_summary(replace(portrait, findings=(alone,), reproduce=written), width=100, colour=False)
    assert (
        """ survey '/a --html b'"'"'c' --servers ';id;#' --against DIR2 --budget 4m\n        --against an eq""" in text
    )
    memory = RunWarning("memory-file-system", "The directory is on tmpfs.", "Give another one.")
    text = render_summary(replace(portrait, warnings=(memory,)), width=100, colour=False)
    assert "Give another one." in text and "Next" not in text
    load = RunWarning("background-load", "Other programs ran.", "Wait for them.")
    text = render_summary(replace(portrait, warnings=(memory, load)), width=100, colour=False)
    assert text.startswith("Other programs ran. Wait for them.\nstrakes  ")
    text = render_summary(replace(portrait, answers=(), skipped=()), width=100, colour=False)
    assert "Next" not in text and "Repeat  strakes survey" in text
    liked = replace(portrait, reproduce=("strakes survey /d --like latest --budget 2m", "strakes report"))
    assert "--like" not in render_summary(liked, width=100, colour=False).partition("Next")[2]


def test_answers_and_rates_from_memory_have_their_own_group() -> None:
    portrait = example_portrait()
    (first, *others), shown = portrait.answers, portrait.headlines[0].cell
    answers = (replace(first, measure=shown), *(replace(one, measure="none") for one in others))
    for code, heading in (
        ("cache-suspect", "  From this node's memory"),
        ("cache-unseen", "  Perhaps from this node's"),
    ):
        cells = tuple(replace(cell, warnings=(code,) if cell.id == shown else ()) for cell in portrait.cells)
        cached = replace(portrait, answers=answers, cells=cells)
        text = render_summary(cached, width=100, colour=False)
        assert text.count(heading) == 2
        assert text.index("files, writes") < text.index(heading) < text.index(first.title) < text.index("How fast")
        start = heading.strip().partition("'")[0]  # HTML has a code in place of the apostrophe
        assert start in render_html(cached)
        assert f"| {portrait.headlines[0].label}, {start[0].lower()}{start[1:]}" in render_guide(cached)
        memory = RunWarning("memory-file-system", "The directory is on tmpfs.", "Give another one.")
        assert heading not in render_summary(replace(cached, warnings=(memory,)), width=100, colour=False)


def test_figures_of_short_phases_and_of_caches_are_marked_on_the_screen() -> None:
    portrait = example_portrait()
    codes = ("short-phases", "names-from-memory")
    marked = replace(portrait, cells=tuple(replace(cell, warnings=codes) for cell in portrait.cells))
    text = render_summary(marked, width=100, colour=False)
    assert "to show sustained rates" in text and "  From this node's memory, at least in part" in text
    assert "to show sustained rates" not in render_summary(portrait, width=100, colour=False)


def test_a_cell_with_too_few_runs_shows_its_value_without_an_interval() -> None:
    portrait = replace(example_portrait(), headlines=(Headline("read of a shared file", "patterns-SFWA:read"),))
    text = render_summary(portrait, None, width=100, colour=False)
    assert re.search(r"read of a shared file +[\d,]+ MiB/s  \[too few runs\]", text)


def test_the_rate_of_the_first_files_is_shown_with_the_lasting_rate() -> None:
    portrait = example_portrait()
    cells = tuple(
        replace(cell, fresh=86_607.0) if cell.id == "metadata-4:file-create" else cell for cell in portrait.cells
    )
    fresh = replace(portrait, cells=cells)
    for text in (render_summary(fresh, width=100, colour=False), render_html(fresh), render_guide(fresh)):
        assert "the first files 86,607 op/s" in text


def test_the_summary_of_one_study_has_all_its_findings() -> None:
    text = "2 writers against every rank: 1.20 times as fast."
    finding = Finding("f", "restart-dump", text, "measured", ())
    portrait = replace(example_portrait(), findings=(finding,))
    assert text not in render_summary(portrait, REPORT, width=100, colour=False)
    portrait = replace(portrait, run={**portrait.run, "kind": "study"})
    assert f"* {text}" in render_summary(portrait, REPORT, width=100, colour=False)


def test_a_hostile_path_cannot_steer_the_terminal_or_break_the_layout() -> None:
    portrait = example_portrait()
    hostile = "/mnt/\x1b[31mred\x07\n[bold]x[/bold] \u202eabc"
    target = {**portrait.target, "path": hostile}
    text = render_summary(replace(portrait, target=target), REPORT, width=100, colour=False)
    assert text.splitlines()[2] == r"strakes  /mnt/\x1b[31mred\x07\n[bold]x[/bold] \u202eabc"


def test_colours_come_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    portrait = example_portrait()
    plain, coloured = (render_summary(portrait, REPORT, width=100, colour=colour) for colour in (False, True))
    assert "\x1b[" in coloured and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[" not in render_summary(portrait, REPORT, width=100)  # standard output is no terminal in tests
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for term, no_colour, expected in (("dumb", "", False), ("xterm", "", True), ("xterm", "1", False)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_colour)
        assert ("\x1b[" in render_summary(portrait, REPORT, width=100)) == expected


@pytest.mark.parametrize(("runs", "told"), [(4, "all runs 954-3,815"), (5, "80 % of runs 954-3,815")])
def test_a_share_of_runs_is_not_stated_for_fewer_than_five(runs: int, told: str) -> None:
    cell = replace(example_portrait().cells[0], unit="B/s", low=None, high=None, values=(1e9,) * (runs - 1) + (4e9,))
    assert show_remarks(cell, "-") == told


@pytest.mark.parametrize(("factor", "told"), [(1.9, False), (2.1, True)])
def test_the_median_of_scattered_runs_is_shown_with_the_range_of_most_runs(factor: float, told: bool) -> None:
    portrait = example_portrait()
    shown = portrait.headlines[0].cell
    cells = tuple(
        replace(cell, values=(1e9,) * 7 + (factor * 1e9,) * 7) if cell.id == shown else cell for cell in portrait.cells
    )
    apart = replace(portrait, cells=cells)
    assert ("80 % of runs 954-2,003" in render_summary(apart, width=100, colour=False)) == told
    for text in (render_html(apart), render_guide(apart)):
        assert ("80 % of runs 954–2,003" in text) == told
