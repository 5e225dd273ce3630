"""The page for a file system's users: every line says what it stands on, and nothing in it can break the page."""

from __future__ import annotations

from dataclasses import replace

from report.example import example_portrait
from report.golden import assert_golden
from strakes.report.guide import render_guide


def test_the_page_of_the_example_is_the_golden_one() -> None:
    assert_golden("guide.md", render_guide(example_portrait(), [("files of about 1 MiB", "lfs setstripe -c 1 DIR")]))


def test_a_hostile_path_is_text_on_the_page() -> None:
    # What is between fences is shown as it is.
    prose = render_guide(example_portrait()).split("```")[::2]
    assert not any("<b>" in part or "<script>" in part for part in prose)


def test_what_is_not_confirmed_is_not_advised() -> None:
    portrait = example_portrait()
    page = render_guide(
        replace(
            portrait,
            recommendations=tuple(
                replace(recommendation, confirmed=False) for recommendation in portrait.recommendations
            ),
        )
    )
    assert portrait.recommendations and "No setting is recommended" in page
    assert not any(f"**{recommendation.value}**" in page for recommendation in portrait.recommendations)


def test_a_figure_that_changed_says_before_and_after() -> None:
    portrait = example_portrait()
    changed = {line.cell for line in portrait.headlines}
    cells = tuple(replace(cell, levels=(1e6, 2e6)) if cell.id in changed else cell for cell in portrait.cells)
    guide = render_guide(replace(portrait, cells=cells))
    # In the table of the headlines, and in those of the studies.
    assert "| changed | " in guide and "| changed (" in guide
    turns = tuple(replace(cell, by_turns=True) for cell in cells)
    assert " then " not in render_guide(replace(portrait, cells=turns))


def test_a_run_without_intervals_advises_nothing_and_says_why() -> None:
    portrait = example_portrait()
    page = render_guide(
        replace(
            portrait, recommendations=(), cells=tuple(replace(cell, low=None, high=None) for cell in portrait.cells)
        )
    )
    assert "too short for advice" in page and "No setting is recommended" not in page


def test_where_nothing_stands_out_the_page_says_so() -> None:
    assert "No setting is recommended" in render_guide(replace(example_portrait(), recommendations=()))


def test_words_of_others_are_no_tags_and_no_links_wherever_they_stand() -> None:
    portrait = example_portrait()
    nasty = '/tmp/"><img src=x onerror=alert(1)> [here](javascript:alert)'
    warned = tuple(replace(warning, text=nasty, cells=(nasty,)) for warning in portrait.warnings)
    page = render_guide(replace(portrait, scope=nasty, warnings=warned))
    assert nasty.partition("<")[0] in page
    assert "<img" not in page and "](" not in page
