"""Text for people is wrapped to the width of the terminal."""

from __future__ import annotations

import io
import time

import pytest

from strakes.base.errors import MeasurementError
from strakes.base.text_width import wrapped
from strakes.cli.say import say_sentences

TEXT = (
    "A ratio says how many times better B is than A, and the overall interval holds\n"
    "  SAME  names-of/cells  1.000 times"
)


@pytest.mark.parametrize("columns", [60, 40])
def test_each_line_is_wrapped_between_words_on_a_narrow_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout", screen := io.StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: True)
    say_sentences(TEXT)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(screen.getvalue().split()) == " ".join(TEXT.split()) and lines[1].startswith("    ")


@pytest.mark.parametrize("long", ["[" * 5_000_000, "条[" * 100_000, "\x7f" * 5_000_000])
def test_a_long_word_is_wrapped_and_quoted_in_linear_time(long: str) -> None:
    began_s = time.process_time()
    assert max(map(len, wrapped(long, 80))) <= 80 and len(str(MeasurementError(long, why=long))) < 10_000
    assert time.process_time() - began_s < 10.0


def test_lines_are_not_wrapped_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout", stream := io.StringIO())
    say_sentences(TEXT)
    assert stream.getvalue() == f"{TEXT}\n"
