"""The commands of the README and the getting-started page give legible output on 80 and on 60 columns."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from lab.running import need, own_labs
from newcomer.screen import Screen, screen_of
from strakes.model.portrait import Portrait
from strakes.model.record import from_record
from strakes.report.answer_text import answer_lines
from strakes.report.words import WARNINGS

IN_MEMORY = Path("/dev/shm")
# Options of `strakes lab up` by kind of lab.
LABS: dict[str, tuple[str, ...]] = {
    "ext4": ("--size", "2GiB"),
    "xfs": ("--size", "2GiB"),
    "ceph": ("--osds", "1", "--mds", "1", "--standby", "0"),
    "nfs": (),
}
_LAB = (pytest.mark.lab, pytest.mark.long)
README = ROOT / "README.md"
STARTING = ROOT / "docs" / "guide" / "getting-started.md"
# Lines with a command or path to copy. A terminal may wrap them, because it copies a wrapped line as one line.
_TO_COPY = re.compile(r"(Report|Repeat|Next|  ) +(strakes|/)")
# Commands on the getting-started page that measure nothing.
NEXT = ("strakes study list", "strakes runs", "strakes doctor", "strakes target DIR")


class Newcomer:
    """A directory to survey from a terminal, with its store and results."""

    def __init__(self, place: Path, home: Path, columns: int, budget: str) -> None:
        self.place = place
        self.columns = columns
        self.budget = budget
        self.json = home / "findings.json"
        self.home = home

    @property
    def environment(self) -> dict[str, str]:
        return {"STRAKES_STORE": str(self.home / "store"), "PYTHONPATH": str(ROOT / "src")}

    def findings(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.json.read_text())
        return document

    def typed(self, command: str) -> str:
        words = re.sub(r"^(\./)?strakes ", "", command)
        words = re.sub(r"/scratch/\w+|\bDIR\b", str(self.place), words)
        return f"{strakes()} {words}"


def summary_on(lines: list[str]) -> list[str]:
    return lines[max(number for number, line in enumerate(lines) if line.startswith("strakes  /")) :]


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
    (survey,) = commands_of(README)
    with screen_of(newcomer.home, 80, newcomer.environment) as screen:
        words = f"{newcomer.typed(survey)} --budget {newcomer.budget} --json {newcomer.json}"
        assert screen.type(words, limit_s=420) == 0, screen.text()
        yield screen


@pytest.fixture(scope="module")
def summary(wide: Screen) -> tuple[list[str], list[str]]:
    return summary_on(wide.lines()), summary_on(wide.written())


@pytest.fixture(scope="module")
def narrow(newcomer: Newcomer, wide: Screen) -> Iterator[tuple[list[str], list[str]]]:
    with screen_of(newcomer.home, 60, newcomer.environment) as screen:
        assert screen.type(f"{strakes()} report", limit_s=60) == 0, screen.text()
        yield summary_on(screen.lines()), summary_on(screen.written())


def strakes() -> str:
    return shlex.join([sys.executable, "-m", "strakes"])


def commands_of(page: Path) -> list[str]:
    block = page.read_text().partition("```sh\n")[2].partition("```")[0]
    return [line.partition(" #")[0].strip() for line in block.splitlines() if line.startswith("./strakes ")]


def test_the_commands_of_the_getting_started_page_write_the_report_that_the_summary_names(
    summary: tuple[list[str], list[str]], newcomer: Newcomer, wide: Screen
) -> None:
    (line,) = [line for line in summary[1] if line.startswith("Report ")]
    survey, report = commands_of(STARTING)
    assert newcomer.typed(survey) == newcomer.typed(commands_of(README)[0])
    assert wide.type(newcomer.typed(report), limit_s=60) == 0, wide.text()
    written = Path(report.split()[-1].replace("/scratch/me", str(newcomer.place)))
    assert written.read_bytes() == Path(line.split()[1]).read_bytes()


def test_every_answer_is_on_the_screen_with_its_grade(
    newcomer: Newcomer, summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    lines = answer_lines(from_record(Portrait, newcomer.findings()))
    for _, written in (summary, narrow):
        text = "\n".join(written)
        assert "How to use it" in text and "How fast it is" in text
        # The summary puts grades of answers about memory in parentheses.
        assert len(re.findall(r"  \(?(sure|likely|alike|-)\)?$", text, flags=re.MULTILINE)) == len(lines)


def test_the_terminal_wraps_only_lines_to_copy(
    summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    for (lines, written), columns in ((summary, 80), (narrow, 60)):
        assert [line for line in lines if len(line) > columns] == []
        assert [line for line in written if len(line) > columns and not _TO_COPY.match(line)] == []


def cut_words(written: Sequence[str], known: set[str]) -> set[str]:
    text = "\n".join(written)
    # Skip numbers: their format depends on the width of the screen.
    shown = {word for word in words_of(text) if re.fullmatch(r"[A-Za-z-]{2,}[.,:;]?", word)}
    unknown = {word for word in shown if not {word, word.removesuffix(",")} & known}
    return unknown | {word for word in text.split() if "…" in word}


def words_of(text: str) -> set[str]:
    return {word.removesuffix("...").strip("\"'") for word in text.split()}


def everything_in(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(map(everything_in, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything_in, value))
    return str(value)


def test_no_word_is_cut(
    newcomer: Newcomer, summary: tuple[list[str], list[str]], narrow: tuple[list[str], list[str]]
) -> None:
    """Each word on a screen is in the findings, in a text about warnings, or in the summary at full width."""
    full = subprocess.run(
        [sys.executable, "-m", "strakes", "report"],
        env={**os.environ, **newcomer.environment, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    warnings = " ".join((*WARNINGS.values(), "more, explained in the report"))
    known = words_of(everything_in(newcomer.findings())) | words_of(full) | words_of(warnings)
    for _, written in (summary, narrow):
        assert cut_words(written, known) == set()


def test_the_next_commands_of_the_getting_started_page_fit_the_screen(newcomer: Newcomer, wide: Screen) -> None:
    assert [command for command in NEXT if f"`{command}`" not in STARTING.read_text()] == []
    for command in (*NEXT, "strakes lab --help", "strakes survey --help"):
        # ``strakes doctor`` ends with status 1 if this machine lacks something.
        allowed = (0, 1) if command == "strakes doctor" else (0,)
        assert wide.type(newcomer.typed(command), limit_s=60) in allowed, wide.text()
        # Paths and lists of options have no blank at which they could be wrapped.
        assert [line for line in wide.written() if len(line) > 80 and not re.search(r"\S{40}", line)] == [], command
