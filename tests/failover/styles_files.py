"""All good configurations by name. Those in ``good/``, one directory each, were written without knowing the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from failover.styles_more import MORE_STYLES
from failover.styles_pairs import PAIR_STYLES
from failover.styles_sites import SITE_STYLES

GOOD = Path(__file__).with_name("good")


def _read(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


FILE_STYLES: dict[str, Callable[[], dict[str, str]]] = {
    path.name: partial(_read, path) for path in sorted(GOOD.iterdir())
}
ALL: dict[str, Callable[[], Mapping[str, str]]] = {
    **PAIR_STYLES,
    **FILE_STYLES,
    **MORE_STYLES,
    **SITE_STYLES,
}
