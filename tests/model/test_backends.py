"""Agreement of the engine's backend table, the schema, and the page on how to add a backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from model.test_agreement import engine, hello
from strakes.base.schemas import load_schema

__all__ = ["engine", "hello"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "developers" / "add-a-backend.md").read_text()
REGISTRY = (ROOT / "engine" / "backend" / "registry.hpp").read_text()


def test_the_schema_lists_for_each_kind_the_backends_that_the_engine_has_for_it(hello: Any) -> None:
    for kind in set(hello["kinds"]) - {"mixed"}:
        able = [name for name, row in hello["abilities"].items() if kind in row["kinds"]]
        assert able == load_schema("plan")["$defs"][kind]["properties"]["backend"]["enum"], kind


def test_the_engine_says_what_each_backend_can_do(hello: Any) -> None:
    assert [name for name, row in hello["abilities"].items() if row["queues"]] == ["uring"]
    assert [name for name, row in hello["abilities"].items() if row["needs_processes"]] == ["mpiio", "hdf5", "pnetcdf"]
    assert not set(hello["abilities"]) - set(hello["backends"]) - set(hello["absent"])


def test_the_page_states_the_number_of_rows_of_the_registry() -> None:
    stated = re.search(r"There are (\d+) backends today", PAGE)
    assert stated and int(stated[1]) == len(re.findall(r"\.name = ", REGISTRY))


def test_every_name_on_the_page_exists() -> None:
    for path, name in (
        ("engine/backend/registry.hpp", "enum class Backend"),
        ("engine/backend/registry.hpp", "kBackends"),
        ("engine/workload/transfer.cpp", "make_transfer"),
        ("engine/workload/metadata.cpp", "make_metadata"),
        ("engine/plan/transfer_phase.hpp", "kTransferFields"),
    ):
        assert name in PAGE and name in (ROOT / path).read_text(), name


def test_the_page_names_every_file_that_distinguishes_backends() -> None:
    allowed = {"registry.hpp", "transfer.cpp", "metadata.cpp", "probe.cpp", "libraries.cpp"}
    sources = [
        path for path in (ROOT / "engine").rglob("*.[ch]pp") if "tests" not in path.parts and "fuzz" not in path.parts
    ]
    naming = {
        path.name for path in sources if re.search(r"== Backend::|case Backend::|[<>]=? Backend::", path.read_text())
    }
    assert naming <= allowed
