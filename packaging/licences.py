"""The page of licences, docs/licences.md: of what is vendored, and of what the locks install.

``./dev lock`` calls it.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCKS = ROOT / "bootstrap" / "lock"
_HEAD = """# Licences

strakes itself is under Apache-2.0 (`LICENSE`). Made by `./dev lock`; do not edit.

## Part of strakes

| what | where | licence |
|---|---|---|
| plotly.js, cartesian bundle | `src/strakes/report/vendor`, in every HTML report | MIT (`LICENSE` there) |

The engine is linked with what the machine that builds it has: nlohmann-json (MIT), liburing (MIT or LGPL-2.1),
libcephfs (LGPL-2.1), libcurl (curl), an MPI, HDF5 (BSD), PnetCDF (BSD).

"""
# Not installed on a machine that has them, or that is another.
_ELSEWHERE = {"cmake": "BSD-3-Clause", "colorama": "BSD-3-Clause", "ninja": "Apache-2.0"}


def locked(kind: str) -> list[str]:
    """Names of the packages that a lock installs, each once."""
    return sorted(set(re.findall(r"^([\w.-]+)==", (LOCKS / f"{kind}.txt").read_text(), re.MULTILINE)))


def licence_of(package: str) -> str:
    """Return what the package itself states, shortly.

    Raises KeyError for a package that is not installed here.
    """
    try:
        stated = metadata(package)
    except PackageNotFoundError:
        return _ELSEWHERE[package]
    expression = " ".join(stated.get_all("License-Expression", []))
    classifiers = [
        line.rpartition(" :: ")[2] for line in stated.get_all("Classifier", []) if line.startswith("License ::")
    ]
    text = "\n".join(stated.get_all("License", [])).strip().partition("\n")[0]
    return expression or ", ".join(classifiers) or text[:60] or "not stated"


def table(packages: list[str]) -> str:
    rows = [f"| {package} | {licence_of(package)} |" for package in packages]
    return "\n".join(["| package | licence |", "|---|---|", *rows]) + "\n"


def main() -> int:
    run = locked("run")
    beside = [package for package in locked("dev") if package not in run]
    PAGE.write_text(
        f"{_HEAD}## Installed to run and to build (`bootstrap/lock/run.txt`)\n\n{table(run)}\n"
        f"## Installed for developing and testing (`bootstrap/lock/dev.txt`)\n\n{table(beside)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
