"""Good configurations that are files, one directory for each: in styles that were thought of without knowing the rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

GOOD = Path(__file__).with_name("good")


def _read(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


FILE_STYLES: dict[str, Callable[[], dict[str, str]]] = {
    path.name: partial(_read, path) for path in sorted(GOOD.iterdir())
}
