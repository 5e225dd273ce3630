"""Python processes that strakes starts do not import modules from the current directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from strakes.base.processes import python_module
from strakes.runs.launch import Launch
from strakes.runs.node_facts import starts

ROOT = Path(__file__).parents[2]
_STARTS_PYTHON = re.compile(r"sys\.executable\b")


def test_a_module_in_the_current_directory_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "platform.py").write_text(f"open({str(tmp_path / 'planted-code-ran')!r}, 'w')\n")
    (tmp_path / "strakes").mkdir()
    (tmp_path / "strakes" / "__init__.py").write_text(f"open({str(tmp_path / 'planted-code-ran')!r}, 'w')\n")
    code = "from strakes.base.processes import python_module as of; print(*of('strakes.runs.node_facts', '/', 'x'))"
    found = {**os.environ, "PYTHONPATH": f"{ROOT}/src:.:{tmp_path}/click"}  # as Spack installs it
    named = subprocess.run(
        [os.path.realpath(sys.executable), "-P", "-c", code], env=found, capture_output=True, text=True
    )
    assert f"PYTHONPATH={ROOT}/src:{tmp_path}/click" in named.stdout
    commands = [
        python_module("strakes", "--version"),
        starts(Launch("command", ranks=1, command="{engine}"), "", "")[0][0],
        named.stdout.split(),
    ]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
        assert done.stdout and done.returncode == 0
    assert not (tmp_path / "planted-code-ran").exists()


def test_no_file_starts_python_without_isolation() -> None:
    others = {"processes.py", "mpi_family.py", "mpi.py", "static_figure.py"}
    for path in [*ROOT.glob("src/strakes/**/*.py"), *ROOT.glob("bench/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""["']-m["'],\s*(["']strakes|__name__)""", text), path
        for start in _STARTS_PYTHON.finditer(text):
            if path.name not in others:
                assert re.match(r"""sys\.executable(,\s*["']-I["']|} -I |\)\.parent)""", text[start.start() :]), path
    for path in [
        ROOT / "strakes",
        ROOT / "dev",
        *(path for path in ROOT.glob("bootstrap/*") if path.is_file()),
        *ROOT.glob("src/strakes/**/*.sh"),
    ]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"-m (strakes|pip|venv|ensurepip)", line):
                assert "-I " in line or "isolated" in line, f"{path}: {line}"
