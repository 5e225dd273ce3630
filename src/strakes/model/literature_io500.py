"""Systems that others submitted to the IO500 list: a small table of figures, measured by them with many clients."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import read_regular
from strakes.base.units import GIB

NAME = "io500"
SOURCE = "IO500 submissions (github.com/IO500/submission-data), rows of 2021 to 2025"
_MOST_BYTES = 1024 * 1024
# Column of the table -> figure in our units.
_FIGURES = {
    "ior_easy_write_gib_s": ("ior_easy_write", float(GIB)),
    "ior_easy_read_gib_s": ("ior_easy_read", float(GIB)),
    "mdtest_easy_write_kiops": ("mdtest_easy_write", 1000.0),
}


@dataclass(frozen=True)
class System:
    """One submission: ``nodes`` clients; ``rates`` by the name of IO500's phase, in B/s and op/s, of all clients."""

    name: str
    file_system: str
    year: str
    nodes: int
    rates: Mapping[str, float]


def systems(which: str = NAME) -> tuple[tuple[System, ...], str]:
    """Return the systems of a list and its source: the one that comes with strakes, or a CSV file of the same columns.

    Raises BadInputError for a file that cannot be read as such.
    """
    if which == NAME:
        text, source = files("strakes.model").joinpath("io500.csv").read_text(encoding="utf-8"), SOURCE
    else:
        remedy = f"Give --compare-with {NAME}, or the name of a CSV file."
        if not which:
            raise BadInputError("the list of systems has no name", where="--compare-with", remedy=remedy)
        content, source = read_regular(Path(which), _MOST_BYTES, "the list of systems cannot be read", remedy), which
        text = content.decode(errors="replace")
    try:
        return tuple(_system(row) for row in csv.DictReader(text.splitlines())), source
    except (KeyError, TypeError, ValueError) as error:
        raise BadInputError(
            "the list of systems cannot be read",
            where=which,
            why=f"{type(error).__name__}: {error}",
            remedy=f"Give {NAME}, or a CSV file with the columns system, file_system, year, nodes, "
            f"{', '.join(_FIGURES)}.",
        ) from error


def _system(row: Mapping[str, str]) -> System:
    rates = {name: float(row[column]) * unit for column, (name, unit) in _FIGURES.items()}
    institution = row.get("institution", "")
    name = f"{institution}: {row['system']}" if institution else row["system"]
    nodes = int(row["nodes"])
    if nodes < 1:
        raise ValueError("nodes has to be at least 1")
    return System(name, row["file_system"], row["year"], nodes, rates)
