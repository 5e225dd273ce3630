"""The lock files of ./strakes and ./dev: versions, hashes and licences, and agreement with pyproject.toml."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "bootstrap" / "lock"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
RUN = [*PYPROJECT["build-system"]["requires"], *PROJECT["dependencies"]]
DEV = [*RUN, *PROJECT["optional-dependencies"]["dev"]]
ALL = {*DEV, *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)}


def locked(kind: str) -> dict[str, list[str]]:
    """Return the versions of each package in a lock; there are several if they depend on the Python version."""
    numbers: dict[str, list[str]] = {}
    for name, number in re.findall(r"^([\w.-]+)==([\w.]+)", (LOCKS / f"{kind}.txt").read_text(), re.MULTILINE):
        numbers.setdefault(name, []).append(number)
    return numbers


@pytest.mark.parametrize("requirement", sorted(ALL))
def test_every_dependency_has_an_upper_bound(requirement: str) -> None:
    assert {specifier.operator for specifier in Requirement(requirement).specifier} & {"<", "<=", "=="}, requirement


@pytest.mark.parametrize(("kind", "wanted"), [("run", RUN), ("dev", DEV)], ids=["run", "dev"])
def test_a_lock_meets_the_requirements_of_the_project(kind: str, wanted: list[str]) -> None:
    versions = locked(kind)
    for requirement in map(Requirement, wanted):
        assert all(requirement.specifier.contains(number) for number in versions[requirement.name.lower()])


def test_packages_in_both_locks_have_the_same_version() -> None:
    dev = locked("dev")
    assert {name: dev[name] for name in locked("run")} == locked("run")


@pytest.mark.parametrize("kind", ["run", "dev"])
def test_every_requirement_of_a_lock_has_hashes_and_no_lock_names_an_index(kind: str) -> None:
    text = (LOCKS / f"{kind}.txt").read_text()
    for requirement in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]:
        assert "    --hash=sha256:" in requirement, requirement
    assert not re.search(r"https?:|index-url|find-links|/", re.sub("^#.*", "", text, flags=re.MULTILINE))


def test_installed_versions_are_those_of_the_lock() -> None:
    versions = locked("dev")
    assert all(version(name) in versions[name] for name in ("click", "hypothesis", "numpy", "pytest"))


def test_build_tools_are_those_of_pyproject() -> None:
    tools = {line for line in (LOCKS / "tools.in").read_text().splitlines() if not line.startswith("#")}
    assert set(PYPROJECT["build-system"]["requires"]) <= tools
    assert any(line.startswith(f"cmake{PYPROJECT['tool']['scikit-build']['cmake']['version']}") for line in tools)


def printed(path: Path) -> str:
    command = [sys.executable, "-I", str(ROOT / "bootstrap/requirements.py"), str(LOCKS / "run.txt")]
    environment = {**os.environ, "PATH": str(path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_build_tools_are_installed_only_where_the_machine_lacks_them(tmp_path: Path) -> None:
    assert printed(tmp_path) == (LOCKS / "run.txt").read_text()
    for name, text in {"ninja": "", "cmake": "echo cmake version 3.31.0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    rest = printed(tmp_path)
    assert "\nclick==" in rest and "\ncmake==" not in rest and "\nninja==" not in rest
    (tmp_path / "cmake").write_text("#!/bin/sh\necho cmake version 3.19.9\n")
    assert "\ncmake==" in printed(tmp_path)


def test_vendored_files_match_the_digests_of_their_page() -> None:
    vendor = ROOT / "src/strakes/report/vendor"
    rows = re.findall(r"^\| `([\w.-]+)` \|.*\| `([0-9a-f]{64})` \|$", (vendor / "README.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == {path.name for path in vendor.iterdir()} - {"README.md", "LICENSE"}
    for name, digest in rows:
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest, name


def test_the_licence_of_everything_that_is_installed_is_listed() -> None:
    page = (ROOT / "docs/licences.md").read_text()
    listed = dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", page, re.MULTILINE))
    assert set(locked("dev")) | set(locked("run")) <= set(listed)
    assert not [name for name, licence in listed.items() if licence == "not stated"]
