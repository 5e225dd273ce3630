"""The modules have no import cycles, and ./dev lint rejects an import against the layers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.size import circles, imports

ROOT = Path(__file__).resolve().parents[2]
# The site-packages directories alone: the import finder of an editable installation would lead back to the checkout.
PACKAGES = [path for path in sys.path if path.endswith("site-packages")]


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


@pytest.mark.parametrize(
    ("planted", "status", "text"),
    [
        ("", 0, "1 kept, 0 broken"),
        (
            "\n\ndef wrong() -> None:\n    import strakes.cli.main\n",
            1,
            "strakes.units is not allowed to import strakes.cli",
        ),
    ],
    ids=["as it is", "planted"],
)
def test_an_import_against_the_layers_is_rejected(planted: str, status: int, text: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "strakes", tmp_path / "strakes", ignore=shutil.ignore_patterns("__pycache__", "bin"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "strakes" / "units.py").open("a") as units:
        units.write(planted)
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *PACKAGES])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", lint], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert text in done.stdout
