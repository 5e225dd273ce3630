"""A finished HTML page, or lines for a terminal, in another language: words are translated, marks and columns stay."""

from __future__ import annotations

import json
import re
from html import escape, unescape

from strakes.language.current import ENGLISH, current, translate
from strakes.language.width import columns

_LOCALES = {"zh": "zh-CN"}
_MARK = re.compile(r"(<(style|script|pre|code)\b.*?</\2>|<!--.*?-->|<[^>]*>)", re.DOTALL)
_SHOWN = re.compile(r'\b(title|aria-label|data-label|alt)="([^"]*)"')
_DRAWINGS = re.compile(r'(<script type="application/json"[^>]*>)(.*?)(</script>)', re.DOTALL)
# What plotly shows of a figure.
_DRAWN = frozenset({"text", "name", "title", "ticktext", "hovertext", "hovertemplate", "customdata"})
_CHINESE = re.compile("[\u3001-\u9fff]")
_PIECE = re.compile(r"\S+(?: \S+)*")
_MOST_PIECES = 2  # of a line that may be one message, such as a name with its value; others are rows of a table


def translate_page(page: str) -> str:
    """Return an HTML page in the language in use; scripts, styles and commands stay."""
    if current() == ENGLISH:
        return page
    page = page.replace('<html lang="en">', f'<html lang="{_LOCALES[current()]}">', 1)
    pieces = _MARK.split(page)
    # Three for each mark: the text before it, the mark, and the name of an element that is passed over whole.
    texts, marks = pieces[::3], [*pieces[1::3], ""]
    return "".join(f"{_text(text)}{_mark(mark)}" for text, mark in zip(texts, marks, strict=True))


def translate_lines(text: str) -> str:
    """Return lines for a terminal in the language in use; a column begins where it did, if there is room for it."""
    return text if current() == ENGLISH else "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if not line.isascii() and _CHINESE.search(line):
        return line  # it is translated already
    pieces = list(_PIECE.finditer(line))
    whole = translate(line) if len(pieces) <= _MOST_PIECES else line
    if whole != line:
        return whole
    made = ""
    for piece in pieces:
        made += " " * max(2 if made else 0, piece.start() - columns(made)) + translate(piece[0])
    return made


def _text(text: str) -> str:
    core = " ".join(unescape(text).split(" ")).strip()
    if not core:
        return text
    translation = translate(" ".join(core.split("\n")))
    return text if translation == core else text.replace(text.strip(), escape(translation, quote=False))


def _mark(mark: str) -> str:
    drawings = _DRAWINGS.fullmatch(mark)
    if drawings:
        shown = json.dumps(_drawn(json.loads(drawings[2])), ensure_ascii=False, separators=(",", ":"))
        for character in "<>&\u2028\u2029":
            shown = shown.replace(character, f"\\u{ord(character):04x}")
        return f"{drawings[1]}{shown}{drawings[3]}"
    if mark.startswith(("<script", "<style", "<!--")):
        return mark
    return _SHOWN.sub(lambda match: f'{match[1]}="{escape(translate(unescape(match[2])))}"', mark)


def _drawn(value: object, *, shown: bool = False) -> object:
    if isinstance(value, dict):
        return {key: _drawn(part, shown=shown or key in _DRAWN) for key, part in value.items()}
    if isinstance(value, list):
        return [_drawn(part, shown=shown) for part in value]
    if isinstance(value, str) and shown:
        return "<br>".join(translate(part) for part in value.split("<br>"))
    return value
