"""The checks of looking.py find planted faults: cut words and broken lines."""

from __future__ import annotations

from pathlib import Path

from newcomer.looking import broken_lines, cut_words, words_of
from newcomer.screen import screen_of
from report.example import example_portrait
from strakes.report.summary import render_summary


def test_a_cut_word_on_a_screen_is_noticed() -> None:
    whole = render_summary(example_portrait(), width=80, colour=False).splitlines()
    known = words_of("\n".join(whole))
    assert cut_words(whole, known) == set()
    assert cut_words([*whole, "Opening one shared file costs each pro"], known) == {"pro"}
    assert cut_words([*whole, "Opening one shared file costs each p…"], known) == {"p…"}


def test_a_line_beyond_the_screen_is_noticed_in_a_terminal(tmp_path: Path) -> None:
    with screen_of(tmp_path, 60, {}) as screen:
        assert screen.type(f"echo {'word ' * 13}; echo 'Report  /{'x' * 70}'", limit_s=20) == 0
        broken = broken_lines(screen.lines(), screen.written(), 60)
    assert [line.strip() for line in broken] == [("word " * 13).strip()]
