"""The modules have no import cycles, and ./dev lint rejects an import against the layers."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.size import circles, imports

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("package", "folder"), [("strakes", "src"), ("bench", ".")])
def test_there_are_no_import_cycles(package: str, folder: str) -> None:
    assert circles(imports(package, ROOT / folder)) == []


def test_an_import_inside_a_function_closes_a_cycle(tmp_path: Path) -> None:
    texts = {
        "mast/sail.py": "import boat.hull.keel\n",
        "hull/keel.py": "def top():\n    from boat.mast import sail\n",
        "deck.py": "from boat.mast.sail import cloth\n",
    }
    for name, text in texts.items():
        path = tmp_path / "boat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert circles(imports("boat", tmp_path)) == [["boat.hull.keel", "boat.mast.sail"]]
