"""Checks of a findings document: the schema, and references to cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from strakes.base.schemas import load_schema


def validate(document: Mapping[str, Any]) -> None:
    """Assert that a document matches the schema, has no cell twice, and refers only to its own cells."""
    faults = [f"{error.json_path}: {error.message}" for error in _SCHEMA.iter_errors(document)]
    assert not faults, faults
    cells = [cell["id"] for cell in document["cells"]]
    assert len(set(cells)) == len(cells)
    named = {headline["cell"] for headline in document["headlines"]}
    named |= {name for finding in document["findings"] for name in finding["evidence"]}
    named |= {one["measure"] for answer in document["answers"] for one in (answer, *answer["others"])}
    series = [series for figure in document["figures"] for series in figure["series"]]
    assert named | {point["cell"] for line in series for point in line["points"]} <= set(cells)


_SCHEMA = Draft202012Validator(load_schema("findings"))
