"""A portrait as a document for programs (``schemas/findings.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
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
    document: dict[str, Any] = _plain(portrait)
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
    cells: set[str] = set()
    for index, cell in enumerate(document["cells"]):
        if cell["id"] in cells:
            raise BadInputError("two cells with one id", where=f"$.cells[{index}].id", why=cell["id"], remedy=_REMEDY)
        cells.add(cell["id"])
    named: list[tuple[str, str]] = [
        (f"$.headlines[{i}].cell", headline["cell"]) for i, headline in enumerate(document["headlines"])
    ]
    named += [
        (f"$.findings[{i}].evidence", name)
        for i, finding in enumerate(document["findings"])
        for name in finding["evidence"]
    ]
    named += [
        (f"$.answers[{i}]", measure)
        for i, answer in enumerate(document["answers"])
        for measure in (answer["measure"], *(other["measure"] for other in answer["others"]))
    ]
    for i, figure in enumerate(document["figures"]):
        named += [
            (f"$.figures[{i}].series", point["cell"]) for series in figure["series"] for point in series["points"]
        ]
    for where, name in named:
        if name not in cells:
            raise BadInputError("a cell that does not exist is named", where=where, why=name, remedy=_REMEDY)


def _plain(value: object) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return finite(value)
