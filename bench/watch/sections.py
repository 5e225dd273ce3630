"""Sections of docs/watch.md, each written by the command that measured it."""

from __future__ import annotations

from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "watch.md"


def write_section(name: str, text: str) -> None:
    """Put ``text`` between the marks of a section of docs/watch.md."""
    before, rest = _PAGE.read_text().split(f"<!-- {name} -->\n")
    _, after = rest.split(f"<!-- end of {name} -->\n")
    _PAGE.write_text(f"{before}<!-- {name} -->\n{text}<!-- end of {name} -->\n{after}")
