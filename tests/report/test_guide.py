"""The Markdown page for the users of a file system: its content, and escaping of untrusted text."""

from __future__ import annotations

from dataclasses import replace

from report.example import example_portrait
from report.golden import assert_golden
from strakes.report.guide import render_guide


def test_the_page_of_the_example_matches_its_golden_file() -> None:
    assert_golden("guide.md", render_guide(example_portrait(), [("files of about 1 MiB", "lfs setstripe -c 1 DIR")]))


def test_a_page_without_decided_questions_says_so() -> None:
    assert "No question was decided" in render_guide(replace(example_portrait(), answers=()))


def test_untrusted_text_cannot_add_tags_or_links() -> None:
    portrait = example_portrait()
    nasty = '/tmp/"><img src=x onerror=alert(1)> [here](javascript:alert)'
    warned = tuple(replace(warning, text=nasty, cells=(nasty,)) for warning in portrait.warnings)
    page = render_guide(replace(portrait, scope=nasty, warnings=warned))
    assert nasty.partition("<")[0] in page
    assert "<img" not in page and "](" not in page
