"""The Chinese catalogue: every message is in the sources, and has the fields of its original."""

from __future__ import annotations

import ast
import json
import re
import string
from pathlib import Path

from jinja2 import Environment
from jinja2.ext import extract_from_ast

import strakes
from strakes.base.language import catalogue, choose, english, gettext, ngettext
from strakes.model.setting_text import label_of

SOURCES = Path(strakes.__file__).parent


def texts_of_the_sources() -> set[str]:
    """Return all string constants of the Python files, the labels of settings, and all messages of the templates."""
    texts, names = set(), set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    literature = SOURCES / "model" / "literature.toml"
    texts.update(json.loads(text) for text in re.findall(r'"(?:[^"\\]|\\.)*"', literature.read_text(encoding="utf-8")))
    templates = Environment(extensions=["jinja2.ext.i18n"])
    for file in SOURCES.rglob("*.j2"):
        for _, _, messages in extract_from_ast(templates.parse(file.read_text(encoding="utf-8"))):
            texts.update([messages] if isinstance(messages, str) else filter(None, messages or ()))
    # Keys of settings and facts are shown as words, and names of studies as headings.
    labels = {label_of(text) for text in texts | names}
    return texts | labels | {text.replace("-", " ").capitalize() for text in texts if text.islower()}


def fields_of(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_translated_message_is_in_the_sources() -> None:
    assert set(catalogue("zh")) <= texts_of_the_sources()


def test_every_translation_has_the_fields_of_its_message() -> None:
    for message, text in catalogue("zh").items():
        # Chinese has no plural, so a singular text may omit its number.
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
