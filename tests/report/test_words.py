"""Warnings are shown in words, not as codes, and access patterns with their meaning."""

from __future__ import annotations

from html import unescape

from report.example import example_portrait
from strakes.report.html import render_html
from strakes.report.words import PATTERNS, WARNINGS, explained, title_of_warning
from strakes.survey.analysis_warning_texts import REMEDIES


def test_every_warning_has_a_sentence() -> None:
    assert set(REMEDIES) - set(WARNINGS) == set()


def test_patterns_are_explained_once_and_never_within_their_explanation() -> None:
    text = explained("SFSA strided is slower than SFSA, and SFSA than MFWA")
    assert text.count("one segment per rank of a shared file") == 1 and text.count(PATTERNS["SFSA strided"]) == 1


def test_the_report_says_warnings_in_words_first() -> None:
    page = unescape(render_html(example_portrait()))
    codes = {warning.code for warning in example_portrait().warnings}
    answer = page.split('id="glance"')[1].split("<nav")[0]
    assert [code for code in codes if f">{code}<" in answer or f"warning: {code}" in answer] == []
    assert [code for code in codes if title_of_warning(code) not in page or f">{code}<" in page] == []
