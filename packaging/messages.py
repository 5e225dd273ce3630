"""The messages that strakes shows to people, read from the sources and templates; brings the catalogues up to date.

A string of the rooms below is a message; an f-string is one with numbered places for its values.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeGuard

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "src" / "strakes"
CATALOGUES = PACKAGE / "language" / "zh"
# Single words, which nobody can tell from names in the sources: chosen by hand, with the glossary.
WORDS = "words"

TEMPLATES = {
    "compare": ("report/templates/comparison.html.j2",),
    "report": ("report/templates/report.html.j2",),
    "predict": ("report/templates/forecast.html.j2",),
    "watch": ("report/templates/watch.html.j2",),
}

# Not shown to people as a message: help texts have pages of their own, and a plan's errors name keys.
_SILENT_KEYWORDS = frozenset({"help", "epilog", "short_help", "metavar", "format", "prefix"})
_SILENT_CALLS = frozenset({"compile", "execute", "executemany", "get_template", "strftime", "strptime", "sub", "match"})
_SHORT = 5  # letters of a branch that only bends a word: "is" or "are"
_MOST_VARIANTS = 8
_WORDS = re.compile(r"[A-Za-z]{2,}")
_SENTENCE = re.compile(r"[A-Za-z\d}),;:.]\s+[A-Za-z({\d-]")
_NAMED = re.compile(r"\{\w*(?::[^}]*)?\}")
_PLACE = re.compile(r"\{\d+\}")
_CODE = re.compile(
    r"^(bold|dict\[|default-src|system-ui|strakes advise --|SELECT|INSERT|CREATE|PRAGMA|UPDATE|DELETE)\b"
    r"|^<html|^dict\[|^strakes 0$|^[\w./*-]+$|^\S+=|^(?!without )[a-z][-\w]* --?\w|^\W*$|</|[\\^$]\w*[\[(]"
)


# Three words in a row tell something; what else is set by hand is a command.
_TOLD = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")

Pieces = tuple[str | None, ...]  # None: a place for a value


def rooms() -> list[str]:
    """Return the rooms (and files beside them) that are translated: those with a catalogue."""
    return sorted(path.stem for path in CATALOGUES.glob("*.po") if path.stem != WORDS)


def messages(room: str) -> dict[str, str]:
    """Return every message of a room, with the first file it is in."""
    collected: dict[str, str] = {}
    for path in _sources(room):
        for text in _READERS[path.suffix](path.read_text()):
            collected.setdefault(text, str(path))
    return collected


def _sources(room: str) -> Iterator[Path]:
    path = PACKAGE / room
    yield from sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    yield from sorted(path.glob("catalogue/*.toml"))
    yield from (PACKAGE / template for template in TEMPLATES.get(room, ()))


def knob_messages(source: str) -> Iterator[str]:
    """Return what a catalogue of settings says about each of them.

    >>> list(knob_messages('[[knob]]\\nname = "x"\\nmeaning = "Number of threads."'))
    ['Number of threads.']
    """
    catalogue = tomllib.loads(source)
    for knob in (catalogue, *catalogue["knob"]):
        yield from (knob[key] for key in ("meaning", "adjusts", "restart") if key in knob)
        if _TOLD.search(knob.get("by_hand", "")):
            yield knob["by_hand"]


def catalogue_of(room: str) -> Path:
    """Return the file of a room's translations."""
    return CATALOGUES / f"{room}.po"


def python_messages(source: str) -> Iterator[str]:
    """Return the messages of a module.

    >>> list(python_messages('x = f"{a:.1f} of {b} cells were left out"'))
    ['{0} of {1} cells were left out']
    >>> list(python_messages('x = f"after {counted(runs, "run")}"'))
    ['after {0} run', 'after {0} runs']
    """
    yield from _walk(ast.parse(source))


def _walk(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)):
        for pieces in _pieces(node):
            yield from _message(pieces)
        yield from _inner(node)
        return
    if isinstance(node, ast.Call) and _name(node.func) in _SILENT_CALLS:
        return
    if _is_counted(node):
        for pieces in _pieces(node):
            yield from _message(pieces)
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword) and child.arg in _SILENT_KEYWORDS:
            continue
        yield from _walk(child)


def _inner(node: ast.AST) -> Iterator[str]:
    """Messages inside the values of a message."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side in (node.left, node.right):
            if isinstance(side, (ast.Constant, ast.JoinedStr, ast.BinOp)):
                yield from _inner(side)
            else:
                yield from _walk(side)
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            if isinstance(value, ast.FormattedValue) and not _is_counted(value.value):
                yield from _walk(value.value)
    elif not isinstance(node, ast.Constant):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _is_counted(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether it is a number of things, which has a form for one and a form for several."""
    return isinstance(node, ast.Call) and _name(node.func) == "counted"


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _pieces(node: ast.AST) -> list[Pieces]:
    """Return the variants of a text as what is written and what is filled in."""
    if isinstance(node, ast.Constant):
        return [(node.value,)] if isinstance(node.value, str) else [(None,)]
    if isinstance(node, ast.JoinedStr):
        return _combined([_pieces(value) for value in node.values])
    if isinstance(node, ast.FormattedValue):
        return _pieces(node.value) if isinstance(node.value, ast.IfExp) or _is_counted(node.value) else [(None,)]
    if _is_counted(node):
        one, *several = (ast.literal_eval(argument) for argument in node.args[1:])
        return [(None, f" {one}"), (None, f" {several[0] if several else f'{one}s'}")]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _combined([_pieces(node.left), _pieces(node.right)])
    if isinstance(node, ast.IfExp):
        branches = (node.body, node.orelse)
        if all(isinstance(branch, ast.Constant) and len(str(branch.value)) <= _SHORT for branch in branches):
            return [variant for branch in branches for variant in _pieces(branch)]
    return [(None,)]


def _combined(parts: list[list[Pieces]]) -> list[Pieces]:
    variants = itertools.islice(itertools.product(*parts), _MOST_VARIANTS)
    return [tuple(itertools.chain.from_iterable(variant)) for variant in variants]


def _message(pieces: Pieces) -> Iterator[str]:
    numbers = itertools.count()
    # A named place is for str.format later.
    parts = (
        f"{{{next(numbers)}}}" if piece is None else _NAMED.sub(lambda _: f"{{{next(numbers)}}}", piece)
        for piece in pieces
    )
    text = "".join(parts).strip()
    if is_message(text):
        yield text


def is_message(text: str) -> bool:
    """Say whether a person reads it: words with blanks between them, no code.

    >>> is_message("{0} of {1}"), is_message("per-call"), is_message("too few runs")
    (True, False, True)
    """
    bare = _PLACE.sub("0", text)
    if "\n" in text.strip() and "  " in text:
        return False
    return bool(_WORDS.search(bare)) and bool(_SENTENCE.search(bare)) and not _CODE.search(bare)


def template_messages(source: str) -> Iterator[str]:
    """Return the messages of a Jinja template: its texts between tags, its titles, and strings in its expressions."""
    for quoted in re.findall(r"\{[{%].*?[%}]\}", source, re.S):
        for text in re.findall(r'"([^"]*)"', quoted):
            yield from _message(tuple(None if part == "%d" else part for part in re.split("(%d)", text)))
    page = re.sub(r"<(style|script)\b.*?</\1>|<!--.*?-->", "", source, flags=re.S)
    page = re.sub(r"\{#.*?#\}", "", page, flags=re.S)
    values = re.sub(r"\{\{.*?\}\}", "\0", page, flags=re.S)
    blocks = re.sub(r"\{%.*?%\}", "\1", values, flags=re.S)
    attributes = re.findall(r'(?:title|aria-label|data-label|alt)="([^"]*)"', blocks)
    for text in (*re.split("<[^>]*>|\1", blocks), *attributes):
        pieces: Pieces = tuple(None if part == "\0" else part for part in re.split("(\0)", " ".join(text.split())))
        yield from _message(tuple(part for part in pieces if part != ""))


def read(path: Path) -> Catalog:
    """Return a catalogue; an empty one where there is no file."""
    if not path.exists():
        return Catalog(locale="zh", fuzzy=False)
    with path.open("rb") as stream:
        return read_po(stream, locale="zh")


_READERS = {".py": python_messages, ".j2": template_messages, ".toml": knob_messages}


def update(room: str, found: dict[str, str]) -> None:
    """Bring a room's catalogue up to date: what is new has no translation yet, what is gone is left out.

    The files that a message is in are not told: they change with every module that moves, and grep finds them.
    """
    path = catalogue_of(room)
    known = read(path)
    renewed = Catalog(locale="zh", fuzzy=False, header_comment=f"# Messages of {room}. ./dev messages keeps the list.")
    for text in sorted(found, key=lambda text: (found[text], text)):
        message = known.get(text)
        renewed.add(text, message.string if message else "")
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as stream:
        for message in renewed:
            if message.id:
                message.flags.clear()
        write_po(stream, renewed, width=118, omit_header=True)


def main(added: Sequence[str]) -> int:
    """Bring all catalogues up to date, and begin those of ``added`` rooms; say what has no translation."""
    lacking = 0
    for room in sorted({*rooms(), *added}):
        found = messages(room)
        update(room, found)
        without = sum(not message.string for message in read(catalogue_of(room)) if message.id)
        lacking += without
        print(f"{catalogue_of(room).relative_to(CHECKOUT)}: {len(found)} messages, {without} without translation")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
