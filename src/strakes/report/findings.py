"""A portrait as a document for programs (``schemas/findings.json``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.finite import finite
from strakes.model.portrait import Portrait

_REMEDY = "Use the unchanged file, and the version of strakes that wrote it."


def to_document(portrait: Portrait) -> dict[str, Any]:
    """Return the portrait as JSON values; NaN and infinity become null.

    >>> nothing = Portrait({}, {}, {}, "one client measured", (), (), (), (), (), ())
    >>> sorted(to_document(nothing))[:4]
    ['answers', 'cells', 'environment', 'figures']
    """
    document: dict[str, Any] = finite(asdict(portrait))
    return document


def validate(document: Mapping[str, Any]) -> None:
    """Check that a document matches the schema and refers only to its own cells. Raises BadInputError."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    from strakes.base.schemas import load_schema

    error = best_match(Draft202012Validator(load_schema("findings")).iter_errors(document))
    if error is not None:
        raise BadInputError("not a findings document", where=error.json_path, why=error.message, remedy=_REMEDY)
    _check_names(document)


def _check_names(document: Mapping[str, Any]) -> None:
    """Check that cells are unique, and that all references to cells exist, which JSON Schema cannot express."""
    cells = Counter(cell["id"] for cell in document["cells"])
    if twice := next((name for name, number in cells.items() if number > 1), ""):
        raise BadInputError("two cells with one id", where="$.cells[*].id", why=twice, remedy=_REMEDY)
    named = [(f"$.headlines[{i}].cell", headline["cell"]) for i, headline in enumerate(document["headlines"])]
    for i, finding in enumerate(document["findings"]):
        named += [(f"$.findings[{i}].evidence", name) for name in finding["evidence"]]
    for i, answer in enumerate(document["answers"]):
        named += [(f"$.answers[{i}]", one["measure"]) for one in (answer, *answer["others"])]
    for i, figure in enumerate(document["figures"]):
        points = [point for series in figure["series"] for point in series["points"]]
        named += [(f"$.figures[{i}].series", point["cell"]) for point in points]
    for where, name in named:
        if name not in cells:
            raise BadInputError("a cell that does not exist is named", where=where, why=name, remedy=_REMEDY)
