"""The Chinese catalogue: every message is in the sources, and has the fields of its original."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import strakes
from strakes.language import choose, english, gettext, ngettext
from strakes.language.current import catalogue

SOURCES = Path(strakes.__file__).parent
_TEMPLATE_TEXT = re.compile(r"""_\(\s*(["'])(.*?)\1""")


def texts_of_the_sources() -> set[str]:
    """Return all string constants of the Python files, and all messages of the templates."""
    texts = set()
    for file in SOURCES.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        texts |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for file in SOURCES.rglob("*.j2"):
        texts |= {match[2] for match in _TEMPLATE_TEXT.finditer(file.read_text(encoding="utf-8"))}
    return texts


def fields_of(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_translated_message_is_in_the_sources() -> None:
    assert set(catalogue("zh")) <= texts_of_the_sources()


def test_every_translation_has_the_fields_of_its_message() -> None:
    for message, text in catalogue("zh").items():
        # Chinese has no plural, so the field of a form in one may be left out.
        assert fields_of(text) <= fields_of(message), message
        assert fields_of(message) - fields_of(text) <= {"count"}, message


def test_values_are_put_in_after_the_translation() -> None:
    choose("zh")
    try:
        assert gettext("{low} to {high}", low="drbd", high="data has") == "drbd 至 data has"
        with english():
            assert ngettext("{count} run", "{count} runs", 3) == "3 runs"
        assert gettext("a text without a translation") == "a text without a translation"
    finally:
        choose("en")
