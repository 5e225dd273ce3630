"""Draw the text of a terminal as SVG: ``strakes report RUN | python packaging/screen.py FILE.svg TITLE``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def draw(text: str, title: str) -> str:
    """Return the picture. Its fonts are those of the reader's machine."""
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(Text(text.rstrip()))
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(sys.stdin.read(), sys.argv[2]), encoding="utf-8")
