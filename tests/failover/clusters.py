"""Good configurations of clusters (plans of the examples, and those in ``good``), and checks of their validators."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from conftest import ROOT
from strakes.base.errors import BadInputError
from strakes.failover.crm_text import read_crm
from strakes.failover.plan import write_plan
from strakes.failover.policy_engine import PolicyEngine, started
from strakes.failover.setup import Behaviour, Setup

EXAMPLES = {
    "tianhe2": ROOT / "examples" / "tianhe2.toml",
    **{path.stem: path for path in sorted((ROOT / "examples" / "failover").glob("*.toml"))},
}
GOOD = {path.name: path for path in sorted(Path(__file__).with_name("good").iterdir())}
_SEARCH = "/usr/sbin:/sbin:/usr/bin:/bin"


def planned(name: str, directory: Path) -> Path:
    write_plan(EXAMPLES[name], directory, replace=False)
    return directory


def with_cib(name: str, directory: Path) -> Path:
    if name in EXAMPLES:
        return planned(name, directory)
    shutil.copytree(GOOD[name], directory, dirs_exist_ok=True)
    if (statements := directory / "cluster.crm").exists():
        cib = Xml.ElementTree(Xml.fromstring(read_crm(statements.read_text()).text))
        Xml.indent(cib)
        (directory / "pacemaker").mkdir()
        cib.write(directory / "pacemaker/cib.xml")
        statements.unlink()
    return directory


def with_start(setup: Setup, directory: Path) -> Setup:
    """Return the setup with its simulated start and the death of each node, without the many other failures."""
    if setup.cib is not None:
        # If the policy engine refuses a configuration, the check skips the simulations.
        with suppress(BadInputError):
            engine = PolicyEngine(setup, directory)
            steady, nodes = started(setup, engine), setup.cib.members_of_corosync
            without = {node: engine.settled(steady.file, ["--node-fail", node]) for node in nodes}
            return replace(setup, behaviour=Behaviour(steady, without))
    return setup


def need(*programs: str) -> None:
    absent = [program for program in programs if not Path(program).exists() and not shutil.which(program, path=_SEARCH)]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
