"""Patterns that the code may not contain, because each one broke a promise of docs/security.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = sorted(path for path in (ROOT / "src" / "strakes").rglob("*.py") if "__pycache__" not in path.parts)
Found = Iterator[tuple[int, str]]


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func) if isinstance(node.func, ast.Attribute | ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((given.value for given in call.keywords if given.arg == name), None)


def removers_that_follow_names(tree: ast.AST) -> Found:
    """Find removals by name, which may cross mounts or follow links; ``strakes.targets.removal`` does neither."""
    for call, name in calls(tree):
        if name in ("shutil.rmtree", "rmtree", "os.removedirs", "shutil.move"):
            yield call.lineno, name


def entities(tree: ast.AST) -> Found:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                if name.startswith(("lxml", "xml.sax", "xml.dom")):
                    yield node.lineno, name
        # expat fetches external entities only with this handler.
        elif isinstance(node, ast.Attribute) and node.attr == "ExternalEntityRefHandler":
            yield node.lineno, node.attr


def listeners_on_every_address(tree: ast.AST) -> Found:
    for call, name in calls(tree):
        if name.endswith(("create_server", ".bind")) and call.args and isinstance(call.args[0], ast.Tuple):
            host = call.args[0].elts[0]
            if isinstance(host, ast.Constant) and host.value in ("", "0.0.0.0", "::"):
                yield call.lineno, ast.unparse(call)


def secrets_compared_early(tree: ast.AST) -> Found:
    """Find comparisons of secrets that end at the first difference, and so reveal how long the correct prefix is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            names = {
                part.id if isinstance(part, ast.Name) else part.attr
                for side in (node.left, *node.comparators)
                for part in ast.walk(side)
                if isinstance(part, ast.Name | ast.Attribute)
            }
            if names & {"secret", "proof", "_secret", "password"}:
                yield node.lineno, ast.unparse(node)


def lines_past_the_filter(tree: ast.AST) -> Found:
    """Find terminal output in which control characters are not escaped by ``strakes.cli.say`` or ``for_terminal``."""
    for call, name in calls(tree):
        if name != "click.echo" or not call.args or isinstance(keyword(call, "nl"), ast.Constant):
            continue
        if isinstance(call.args[0], ast.Call) and _is_harmless(call.args[0]):
            continue
        for value in ast.walk(call.args[0]):
            if isinstance(value, ast.FormattedValue) and not _is_harmless(value.value):
                yield call.lineno, ast.unparse(value.value)


def _is_harmless(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in ("for_terminal", "len", "sum", "click.style", "width")
    if isinstance(value, ast.IfExp):
        return _is_harmless(value.body) and _is_harmless(value.orelse)
    return isinstance(value, ast.Constant | ast.BinOp)


def writers_by_path(tree: ast.AST) -> Found:
    """Find files opened for writing by path outside ``strakes.base.files``: the path may lead over another user's link.

    Creation with O_EXCL is safe, because it opens no existing file.
    """
    for call, name in calls(tree):
        method = name.rpartition(".")[2]
        text = ast.unparse(call)
        below = keyword(call, "dir_fd") is not None or keyword(call, "src_dir_fd") is not None
        mode = keyword(call, "mode") or next(iter(call.args[1 if name == "open" else 0 :]), None)
        if name == "os.open" and not below and "devnull" not in text:
            flags = ast.unparse(call.args[1])
            if re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", flags) and "O_EXCL" not in flags:
                yield call.lineno, text
        elif name in ("open", "io.open") or (method == "open" and "." in name and name != "os.open"):
            if (
                isinstance(mode, ast.Constant)
                and isinstance(mode.value, str)
                and re.fullmatch("[rwaxbt+]+", mode.value)
            ) and set(mode.value) & set("wax+"):
                yield call.lineno, text
        elif (
            method in ("write_text", "write_bytes", "touch")
            or name.startswith(("shutil.copy", "sqlite3."))
            or (name in ("os.rename", "os.replace", "os.unlink", "os.remove", "os.truncate") and not below)
            or (method in ("rename", "unlink") and not name.startswith("os."))
        ):
            yield call.lineno, text


RULES: tuple[Callable[[ast.AST], Found], ...] = (
    removers_that_follow_names,
    entities,
    listeners_on_every_address,
    secrets_compared_early,
    lines_past_the_filter,
    writers_by_path,
)

# Files to which a rule does not apply, with the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("processes.py", "removers_that_follow_names"): "it removes what is in its own private directory, by a descriptor",
    ("failover.py", "lines_past_the_filter"): "names of descriptions are printable: strakes.failover.description",
    ("failover_text.py", "lines_past_the_filter"): "its rules are our own words",
    ("fault_options.py", "lines_past_the_filter"): "its faults are our own words",
    ("report.py", "lines_past_the_filter"): "its figures are our own words",
    ("files.py", "writers_by_path"): "here it is done: a pipe or device that the user names",
    ("child.py", "writers_by_path"): "paths are below the open directory that --inside names",
    ("drill_journal.py", "writers_by_path"): "a descriptor that files.py opened",
    ("ha_programs.py", "writers_by_path"): "runs on the lab's own machines",
    ("measure.py", "lines_past_the_filter"): "a path that the user gave",
}


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_file_has_a_forbidden_pattern(rule: Callable[[ast.AST], Found]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in CODE
        for line, what in rule(parsed(path))
        if (path.name, rule.__name__) not in EXCEPTIONS
    ]
    assert not found


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (removers_that_follow_names, "shutil.rmtree(path, ignore_errors=True)"),
        (entities, "from lxml import etree"),
        (entities, "import xml.sax"),
        (entities, "parser.ExternalEntityRefHandler = fetch"),
        (listeners_on_every_address, 'socket.create_server(("", 0))'),
        (listeners_on_every_address, 'listener.bind(("0.0.0.0", port))'),
        (secrets_compared_early, "if proof == expected: pass"),
        (secrets_compared_early, "self._secret != other"),
        (writers_by_path, 'open(path, "a")'),
        (writers_by_path, 'path.open("wb")'),
        (writers_by_path, "os.open(path, os.O_WRONLY | os.O_CREAT)"),
        (writers_by_path, "path.write_text(text)"),
        (writers_by_path, "os.replace(fresh, path)"),
        (writers_by_path, "(root / name).unlink()"),
        (writers_by_path, "sqlite3.connect(path)"),
        (lines_past_the_filter, 'click.echo(f"{lab.name} is up")'),
    ],
)
def test_a_rule_finds_its_pattern(rule: Callable[[ast.AST], Found], text: str) -> None:
    assert list(rule(ast.parse(text)))
