"""Files in packaging/ agree with the program: requirements, metrics, man pages, completion, scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from strakes.cli.main import COMMANDS, main
from strakes.interop.export_openmetrics import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def recipe() -> tuple[type, list[tuple[str, tuple[Any, ...], dict[str, Any]]]]:
    """Return the class of the Spack recipe, and its calls of Spack directives as (name, arguments, options)."""
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def directive(name: str) -> Callable[..., None]:
        return lambda *words, **options: calls.append((name, words, options))

    spack = ModuleType("spack.package")
    names = ["license", "version", "variant", "depends_on"]
    vars(spack).update(
        {name: directive(name) for name in names},
        PythonPackage=type("PythonPackage", (), {}),
        which=None,
        __all__=[*names, "PythonPackage", "which"],
    )
    text = (PACKAGING / "spack" / "strakes" / "package.py").read_text()
    before = {name: sys.modules.get(name) for name in ("spack", "spack.package")}
    try:
        sys.modules |= {"spack": ModuleType("spack"), "spack.package": spack}
        scope: dict[str, Any] = {}
        exec(compile(text, "package.py", "exec"), scope)
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
    return scope["Strakes"], calls


def test_the_spack_recipe_has_the_requirements_version_and_licence_of_the_project() -> None:
    package, calls = recipe()
    wanted = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"]]
    required = {
        words[0].partition("@")[0]: words[0].partition("@")[2] for name, words, _ in calls if name == "depends_on"
    }
    for requirement in wanted:
        name, least, below = re.split(">=|,<", requirement)
        # The upper end of a Spack version range is inclusive.
        assert required[f"py-{name}"] == f"{least}:{int(below) - 1}", requirement
    assert required["python"] == PYPROJECT["project"]["requires-python"].removeprefix(">=") + ":"
    assert required["cmake"] == PYPROJECT["tool"]["scikit-build"]["cmake"]["version"].removeprefix(">=") + ":"
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src/strakes/base/version.py").read_text())
    assert version and ("version", (version[1],), {}) in calls
    assert [words for name, words, _ in calls if name == "license"] == [(PYPROJECT["project"]["license"],)]
    assert package.__doc__ == PYPROJECT["project"]["description"]


def stages() -> list[tuple[dict[str, str], dict[str, str]]]:
    stages: list[tuple[dict[str, str], dict[str, str]]] = []
    section = ""
    for line in (PACKAGING / "apptainer" / "strakes.def").read_text().splitlines():
        key, colon, value = line.partition(":")
        if line.startswith("Bootstrap:"):
            stages.append(({}, {}))
            section = ""
        if line.startswith("%"):
            section = line.removeprefix("%")
            assert section not in stages[-1][1], f"%{section} twice"
            stages[-1][1][section] = ""
        elif section:
            stages[-1][1][section] += line + "\n"
        elif colon and not line.startswith("#"):
            stages[-1][0][key] = value.strip()
    return stages


def test_the_apptainer_definition_has_the_parts_that_apptainer_knows_and_files_that_exist() -> None:
    build, final = stages()
    for header, sections in (build, final):
        assert set(header) == {"Bootstrap", "From", "Stage"}
        for name in {"post", "environment", "runscript", "test"} & set(sections):
            done = subprocess.run(["sh", "-n"], input=sections[name], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), name
    assert 'exec strakes "$@"' in final[1]["runscript"]
    assert "files from build" in final[1] and build[0]["Stage"] == "build"
    copied = {line.split()[0] for line in build[1]["files"].splitlines() if line.strip()}
    assert [name for name in copied if not (ROOT / name).exists()] == []
    wheel = PYPROJECT["tool"]["scikit-build"]
    wheels = [wheel["wheel"], *(each["wheel"] for each in wheel["overrides"] if "wheel" in each)]
    assert {Path(name).parts[0] for wheel in wheels for name in wheel.get("force-include", {})} <= copied
    assert {
        "CMakeLists.txt",
        "cmake",
        "engine",
        "packaging",
        "src",
        "schemas",
        PYPROJECT["project"]["readme"],
        *PYPROJECT["project"]["license-files"],
    } <= copied


def test_every_command_has_a_man_page_that_man_reads_without_a_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, PACKAGING / "man.py", tmp_path], check=True, env=environment)
    pages = {path.stem for path in tmp_path.iterdir()}
    assert {"strakes", *(f"strakes-{name.replace(' ', '-')}" for name in COMMANDS)} <= pages
    assert "\\-\\-budget" in (tmp_path / "strakes-survey.1").read_text()
    assert COMMANDS["survey"][:20] in (tmp_path / "strakes.1").read_text()
    if shutil.which("man") and shutil.which("groff"):
        for page in ("strakes.1", "strakes-survey.1", "strakes-run.1", "strakes-runs-history.1"):
            done = subprocess.run(["man", "--warnings", "-l", tmp_path / page], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), page


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("strakes sur", {"survey"}),
        ("strakes export --format ", {"csv", "openmetrics"}),
        ("strakes survey --bud", {"--budget"}),
        ("strakes surve ", set()),
    ],
)
def test_the_shell_is_offered_commands_options_and_values(
    line: str, offered: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_STRAKES_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert main() == 0 and offered <= {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()}
    monkeypatch.setenv("COMP_CWORD", "x")
    assert main() == 2


def test_the_dashboard_asks_for_exported_metrics_and_defined_variables() -> None:
    document = json.loads((PACKAGING / "grafana" / "strakes.json").read_text())
    asked = set(re.findall(r"strakes_\w+", json.dumps([document["panels"], document["templating"]])))
    # The dashboard has no panels for these metrics; users can add their own.
    assert asked == FAMILIES.keys() - {"strakes_share_percent", "strakes_amount_bytes", "strakes_latency_seconds"}
    defined = {variable["name"] for variable in document["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(document["panels"]))) <= defined


def test_the_nightly_script_measures_and_writes_metrics(tmp_path: Path) -> None:
    programs, target, metrics = tmp_path / "bin", tmp_path / "target", tmp_path / "metrics"
    for place in (programs, target, metrics):
        place.mkdir()
    command = programs / "strakes"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m strakes "$@"\n')
    command.chmod(0o755)
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the current directory is run')\n")
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "STRAKES_BUDGET": "2s",
        "STRAKES_METRICS": str(metrics),
    }
    words = [PACKAGING / "nightly" / "strakes-nightly", target]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "No measurement has been repeated yet" in done.stdout
    assert (metrics / "strakes.prom").read_text().endswith("# EOF\n")
