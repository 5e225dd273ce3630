"""The command line: how it loads commands, reports errors and sets the exit status."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.commands import register
from strakes.base.errors import BadInputError, EnvironmentLacksError, InterruptedByUser, MeasurementError, StrakesError
from strakes.base.file_kinds import kind_of
from strakes.cli.main import COMMANDS, _name_of, cli, run

HEAVY = {"numpy", "scipy", "rich", "jinja2", "sqlite3", "asyncio", "importlib.metadata"}
ROOT = Path(__file__).resolve().parents[2]


def modules_loaded_by(*lines: str) -> set[str]:
    program = (
        f"import sys; from strakes.cli.main import run; assert not any(run(line.split()) for line in {lines!r}); "
        "print('modules:', *sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": python_path()},
    )
    return set(process.stdout.rpartition("modules:")[2].split())


def python_path() -> str:
    # The interpreter runs without ``site``, because an editable installation imports modules at startup.
    return f"{ROOT / 'src'}:{Path(click.__file__).parents[1]}"


@pytest.mark.parametrize("before", [(), ("--",), ("--language", "de"), ("--language=de", "--")])
def test_the_command_is_found_after_options(before: tuple[str, ...]) -> None:
    assert _name_of([*before, "survey", "d"]) == "survey"


def test_help_imports_no_command_and_nothing_heavy() -> None:
    loaded = modules_loaded_by("--help")
    ours = {name.removeprefix("strakes.") for name in loaded if name.startswith("strakes.")}
    base = {f"base.{name}" for name in ("errors", "foreign_text", "interrupts", "language", "units", "version")}
    assert ours == {"base", "cli", "cli.main", "cli.say", "cli.signals"} | base and not loaded & HEAVY


def test_the_help_of_no_command_imports_anything_heavy() -> None:
    assert not modules_loaded_by(*(f"{name} --help" for name in COMMANDS)) & HEAVY


def test_a_run_of_a_command_line_imports_one_study_and_nothing_heavy(tmp_path: Path) -> None:
    line = ["run", "-q", "ior", "-b", "64k", "-t", "4k", "-o", str(tmp_path / "file")]
    program = f"import sys; from strakes.cli.main import run; print(run({line!r}), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "strakes report 2" in done.stdout, done.stderr
    status, *loaded = done.stdout.splitlines()[-1].split()
    assert status == "0" and not HEAVY & set(loaded)
    assert not {"strakes.report.html", "strakes.studies.overview", "strakes.targets.lustre_target"} & set(loaded)
    assert not list(Path(os.environ["STRAKES_STORE"]).glob("runs/*/report.html"))


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    groups = capsys.readouterr().out.split("-h, --help")[1].split("\n\n")[1:]
    assert [group.split(":")[0] for group in groups] == ["Measure", "Advise", "Results", "Operate", "Try"]
    assert sum(len(group.strip().splitlines()) - 1 for group in groups) <= 18


@pytest.mark.parametrize(
    ("typed", "meant"), [("survy", "; did you mean survey?"), ("rnus", "; did you mean runs?"), ("zzzz", "\n")]
)
def test_an_unknown_command_gets_the_nearest_one_suggested(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([typed]) == 2 and f"no such command: {typed}{meant}" in capsys.readouterr().err


def test_a_language_given_after_the_command_is_refused_with_its_right_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--language", "zh"]) == 2
    assert "next: Give the option before the command: strakes --language zh report." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", ["--no-such-option", "survey", "survey . --budget 0", "survey . --confidence 2", "survey . --seed x"]
)
def test_wrong_usage_gives_status_2_and_refers_to_the_help(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 2
    output = capsys.readouterr()
    assert output.err.startswith("strakes: error: ") and "  next: See: strakes" in output.err
    assert output.out == ""


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (StrakesError, 1),
        (MeasurementError, 1),
        (BadInputError, 2),
        (EnvironmentLacksError, 3),
        (InterruptedByUser, 130),
    ],
)
def test_an_error_prints_its_four_parts_and_gives_its_status(
    kind: type[StrakesError], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise kind("it broke", where="node 7", why="No space left on device", remedy="Make room.")

    register(monkeypatch, fail)
    assert run(["probe"]) == status
    output = capsys.readouterr()
    said = "strakes: error: it broke\n  where: node 7\n  why: No space left on device\n  next: Make room.\n"
    assert output.err == said and output.out == ""


@pytest.mark.parametrize("kind", [MeasurementError, KeyboardInterrupt, ValueError])
def test_errors_during_clean_up_are_reported(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        error = kind("the cause")
        error.add_note("not everything could be removed; next: strakes clean DIR")
        raise error

    register(monkeypatch, fail)
    assert run(["probe"]) != 0
    assert "  also: not everything could be removed; next: strakes clean DIR" in capsys.readouterr().err


def test_a_bug_gives_one_message_and_a_log_with_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug of ours")

    register(monkeypatch, fail)
    assert run(["probe"]) == 1
    errors = capsys.readouterr().err
    assert "internal error in strakes: ZeroDivisionError" in errors and "Traceback" not in errors
    log = Path(errors.rpartition("this log: ")[2].strip()).read_text()
    assert "a bug of ours" in log and "Traceback" in log


def test_a_bug_gives_one_message_even_if_no_log_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise BrokenPipeError(32, "the engine has gone")

    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    register(monkeypatch, fail)
    assert run(["probe"]) == 1
    errors = capsys.readouterr().err
    # A broken pipe is a bug unless the pipe is standard output.
    assert "it cannot be written: [Errno 2]" in errors and "the engine has gone" in errors


def test_a_missing_package_gives_status_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("strakes.cli.main.COMMANDS", {"probe": "A probe."})
    assert run(["probe"]) == 3 and "No module named 'strakes.cli.probe'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["study", "list"]])
def test_a_closed_standard_output_exits_with_141_and_no_message(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(
        [sys.executable, "-m", "strakes", *arguments],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": python_path()},
        check=False,
    )
    os.close(write_end)
    assert (process.returncode, process.stderr) == (141, "")


@pytest.mark.parametrize(
    ("command", "what", "remedy"),
    [
        ("run io500 {plan}", "a plan", "strakes run FILE DIR"),
        ("survey {ini}", "a configuration of IO500, not a directory", "strakes run io500 FILE"),
        ("run {ini} {dir}", "a configuration of IO500, not a plan", "strakes run io500 FILE"),
        ("run {ior} {dir}", "a result of another tool, not a plan", "strakes import FILE"),
        ("run {dir} {plan}", "this is a directory, not a plan", "strakes survey DIR"),
        ("accept {dir} {needs}", "this is a directory, not a list of needs", "strakes survey DIR"),
        ("accept {plan} {dir}", "a plan, not a list of needs", "strakes run FILE DIR"),
        ("advise --app {ini}", "a configuration of IO500", "strakes run io500 FILE"),
        ("advise --app {app} --from {html}", "a report of strakes, not an exported run", "strakes report RUN"),
        ("import {plan}", "a plan, not a result", "strakes run FILE DIR"),
        ("import {ini}", "a configuration of IO500, not a result", "strakes run io500 FILE"),
        ("import {dir}", "this is a directory, not a result", "strakes survey DIR"),
        ("compare {html} latest", "a report of strakes, not a run of the store", "strakes report RUN"),
        ("compare {ior} latest", "a result of another tool, not a run", "strakes import FILE"),
        ("report {dir}", "this is a directory, not a run", "strakes survey DIR"),
        ("survey 20261123-115917-ior-47fa", "the id of a run", "strakes report 20261123-115917-ior-47fa"),
    ],
)
def test_a_file_given_to_the_wrong_command_is_refused_with_the_right_one(
    command: str, what: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.html").write_text("<!doctype html>\n<title>strakes report</title>")
    examples = ROOT / "examples"
    places = {
        "ini": examples / "io500-small.ini",
        "plan": examples / "mixed.toml",
        "needs": examples / "needs-s3.toml",
        "app": examples / "apps" / "restart-dump.toml",
        "ior": ROOT / "tests" / "interop" / "samples" / "ior-4.1.txt",
        "html": tmp_path / "report.html",
        "dir": tmp_path,
    }
    assert run([word.format(**places) for word in command.split()]) == 2
    error = capsys.readouterr().err
    assert what in error and remedy in error, error


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "interop" / "samples").iterdir()), ids=lambda path: path.name)
def test_results_of_other_tools_are_recognised_as_results(path: Path) -> None:
    found = kind_of(path)
    assert found is None or found[0] == "result"


_COMMAND = re.compile(r"strakes ([a-z]+)((?: (?!strakes)[^ .;,()`{}]+)*)")


def remedies() -> Iterator[tuple[str, str]]:
    """Yield (command line, option) for each option of a command line that a string of the sources quotes."""
    for path in sorted((ROOT / "src" / "strakes").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for told in _COMMAND.finditer(node.value):
                    # Options after the name of a tool belong to that tool.
                    ours = re.split(r" (?:ior|mdtest|io500)\b", told[2])[0]
                    yield from ((f"{told[1]}{ours}", word) for word in re.findall(r"(?<= )--[a-z-]+", ours))


def test_every_option_in_a_quoted_command_line_exists() -> None:
    told, checked = sorted(set(remedies())), 0
    for words, option in told:
        names = words.split()
        name = " ".join(names[:2]) if " ".join(names[:2]) in COMMANDS else names[0]
        command = cli.get_command(click.Context(cli), name)
        while isinstance(command, click.Group) and len(names) > 1 and names[1] in command.commands:
            command, names = command.commands[names[1]], names[1:]
        if command is None or isinstance(command, click.Group):
            continue
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        assert option in known, f"strakes {words}"
        checked += 1
    assert checked > 10
