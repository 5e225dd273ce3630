"""Application descriptions: errors and contradictions are refused with their line, key and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strakes.base.errors import BadInputError
from strakes.base.units import GIB, MIB
from strakes.tuning.advise_app import App, AppPhase, Files, Interface, app_from_text, read_app, to_toml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "apps"

GOOD = """title = "a simulation"
interface = "mpiio"
ranks = 64
ranks_per_node = 16
grouping = 4

[[phase]]
name = "dump"
operation = "write"
files = "shared"
data_per_rank = "64MiB"
record_size = ["1MiB", "64KiB"]
share = 0.75
collective = true

[[phase]]
name = "input"
operation = "read"
files = "same"
data_per_rank = "1GiB"
share = 0.25
"""


def test_a_valid_description_is_read() -> None:
    app = app_from_text(GOOD, "app.toml")
    dump, start = app.phases
    assert (app.nodes, app.grouping, dump.record_bytes, dump.collective) == (4, 4, (MIB, MIB // 16), True)
    assert (app.file_bytes(dump), app.file_bytes(start), app.total_bytes(start)) == (4 * GIB, GIB, 64 * GIB)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_survive_writing_and_reading(path: Path) -> None:
    app = read_app(path)
    assert app_from_text(to_toml(app, ("a remark",)), "again.toml") == app


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('interface = "mpiio"\n', "", 1, "interface"),
        ("ranks = 64", "ranks = 0", 3, "whole number"),
        ("ranks = 64", 'ranks = "64"', 3, "whole number"),
        ("ranks = 64", "ranks = 8", 4, "only 8 in all"),
        ("grouping = 4", "grouping = 65", 5, "only 64 in all"),
        ("grouping = 4", "groping = 4", 5, "Did you mean grouping"),
        ('operation = "write"', 'operation = "append"', 9, "write, read"),
        ('files = "shared"', 'files = "per-process"', 14, "collective = false"),
        ('interface = "mpiio"', 'interface = "posix"', 14, "no collective calls"),
        ('data_per_rank = "64MiB"', 'data_per_rank = "64 apples"', 11, "64KiB, 8MiB"),
        ('data_per_rank = "64MiB"', 'data_per_rank = "512KiB"', 12, "one call moves"),
        ("share = 0.75", "share = 1.5", 13, "share"),
        ("share = 0.75", "share = 0.9", 21, "1.15"),
        ("share = 0.75", "share = 0.1", 21, "0.35"),
        ('name = "input"', 'name = "dump"', 17, "two phases"),
        ('operation = "read"', 'operation = "write"', 19, "the whole file"),
        ('name = "input"\n', "", 16, "name"),
        ('[[phase]]\nname = "input"', '[[faze]]\nname = "input"', 16, "faze"),
        ("", "[[phase]]\n" * 63, 79, "more than 64"),
    ],
)
def test_errors_and_contradictions_are_refused_with_line_and_remedy(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        app_from_text(GOOD.replace(old, new, 1), "app.toml")
    assert caught.value.where == f"app.toml, line {line}"
    assert says in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize(
    "text", ["", "interface = ", 'interface = "posix"\nranks = 1\nranks_per_node = 1\nphase = 3\n']
)
def test_text_that_is_not_a_description_is_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        app_from_text(text, "app.toml")


@given(
    interface=st.sampled_from(get_args(Interface)),
    files=st.sampled_from(get_args(Files)),
    ranks=st.integers(1, 10**6),
    data=st.integers(1, 1 << 45),
    title=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).filter(str.strip),
)
def test_every_description_survives_writing_and_reading(
    interface: Interface, files: Files, ranks: int, data: int, title: str
) -> None:
    assume(not (interface == "pnetcdf" and files == "per-process"))
    app = App(title, interface, ranks, -(-ranks // 3), (AppPhase(title, "read", files, data),))
    assert app_from_text(to_toml(app), "app.toml") == app
