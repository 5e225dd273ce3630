"""The example descriptions, plans made from them, and checks for the programs that validate them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import ROOT
from strakes.failover.plan import write_plan

EXAMPLES = {
    "tianhe2": ROOT / "examples" / "tianhe2.toml",
    **{path.stem: path for path in sorted((ROOT / "examples" / "failover").glob("*.toml"))},
}
_SEARCH = "/usr/sbin:/sbin:/usr/bin:/bin"


def planned(name: str, directory: Path) -> Path:
    """Write the plan of an example into a directory and return the directory."""
    write_plan(EXAMPLES[name], directory, replace=False)
    return directory


def need(*programs: str) -> None:
    """Skip the test if one of the programs is not installed."""
    absent = [program for program in programs if not Path(program).exists() and not shutil.which(program, path=_SEARCH)]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
