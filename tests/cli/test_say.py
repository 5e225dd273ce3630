"""Lines for people fit the terminal that they are printed on."""

from __future__ import annotations

import io

import pytest

from strakes.cli.say import say_sentences


class Terminal(io.StringIO):
    """Standard output of a person."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


TEXT = (
    "A ratio says how many times better B is than A, and the overall interval holds\n"
    "  SAME  names-of/cells  1.000 times"
)


@pytest.mark.parametrize("columns", [60, 40])
def test_each_line_of_a_text_is_broken_between_words_where_the_terminal_is_narrower(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout", screen := Terminal())
    say_sentences(TEXT)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(screen.getvalue().split()) == " ".join(TEXT.split())
    assert lines[1].startswith("    ")


def test_lines_that_a_program_reads_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout", stream := io.StringIO())
    say_sentences(TEXT)
    assert stream.getvalue() == f"{TEXT}\n"
