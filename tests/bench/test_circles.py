"""Rooms point one way: no circles, and a wrong import does not pass ./dev lint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from bench.circles import circles, files, rooms

ROOT = Path(__file__).resolve().parents[2]
# What is installed, but not the finder by which an editable installation leads to the checkout.
PACKAGES = [path for path in sys.path if path.endswith("site-packages")]


def package(directory: Path, texts: Mapping[str, str]) -> Path:
    """Make a package named ``boat`` of these files."""
    for name, text in {"__init__.py": "", **texts}.items():
        path = directory / "boat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory / "boat"


def test_strakes_has_no_circles() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.circles"], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("0 circles of rooms, 0 of files\n", 0)


def test_an_import_in_a_function_closes_a_circle(tmp_path: Path) -> None:
    graph = files(
        package(
            tmp_path,
            {
                "mast/sail.py": "import boat.hull.keel\n",
                "hull/keel.py": "def top():\n    from boat.mast import sail\n",
                "deck.py": "from boat.mast.sail import cloth\n",
            },
        )
    )
    assert graph["boat.deck"] == {"boat.mast.sail"}
    assert [set(circle) for circle in circles(graph)] == [{"boat.mast.sail", "boat.hull.keel"}]
    assert [set(circle) for circle in circles(rooms(graph))] == [{"mast", "hull"}]


def test_files_of_one_room_may_use_each_other_one_way(tmp_path: Path) -> None:
    graph = files(package(tmp_path, {"mast/sail.py": "from boat.mast import rope\n", "mast/rope.py": "x = 1\n"}))
    assert graph["boat.mast.sail"] == {"boat.mast.rope"}
    assert circles(graph) == circles(rooms(graph)) == []


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
def test_the_layers_are_held_to(planted: str, status: int, text: str, tmp_path: Path) -> None:
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
