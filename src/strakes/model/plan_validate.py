"""Plan documents are checked against ``schemas/plan.json``; errors name the key at fault as the engine names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from strakes.base.errors import BadInputError
from strakes.base.schemas import load_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

# In a choice between forms (``oneOf``) these keys say which form is meant.
_DISCRIMINATORS = ("kind", "rule")
_TYPES = {
    "object": "an object",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "minItems": "a list of at least",
    "maxItems": "a list of at most",
}
_PATTERNS = {
    "^[a-z0-9][a-z0-9-]{0,31}$": "1 to 32 of a-z, 0-9 and '-', not beginning with '-'",
    "^[!-.0-~]{0,64}$": "0 to 64 visible characters without blanks or /",
    "^[!-~]{1,35}$": "a name of 1 to 35 visible characters without blanks",
    "^[!-~]{1,255}$": "1 to 255 visible characters without blanks",
    "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$": "a list of numbers such as 0-3,8",
}
_REMEDY = "docs/reference/engine.md and schemas/plan.json describe plans."


def validate_plan_document(document: Mapping[str, Any]) -> None:
    """Return for a plan; raise BadInputError that names every key at fault otherwise, the first one as its place.

    >>> validate_plan_document({"schema": 1, "seed": 0, "team": {"ranks": 0}, "phases": []})
    Traceback (most recent call last):
    strakes.base.errors.BadInputError: not a plan: phases must be a list of at least 1, it is []; team.ranks must be ...
    """
    errors = sorted(
        _validator().iter_errors(document), key=lambda error: (len(error.absolute_path), str(list(error.absolute_path)))
    )
    faults = list(dict.fromkeys(fault for error in errors for fault in _explain(error)))
    if faults:
        texts = [f"{key or 'it'} {problem}" for key, problem in faults]
        raise BadInputError("not a plan: " + "; ".join(texts), where=faults[0][0], remedy=_REMEDY)


@cache
def _validator() -> Validator:
    """Return the schema's validator, as strict as the engine where JSON Schema as Python sees it is not."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number)
    strict: Any = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=types)  # type: ignore[no-untyped-call]
    validator: Validator = strict(load_schema("plan"))
    return validator


def _is_number(_: object, value: object) -> bool:
    """NaN and the infinities are not JSON, though Python reads them."""
    from math import isfinite

    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _pattern(_: Validator, pattern: str, value: object, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Python's ``$`` also matches before a last line break; a schema's does not."""
    import re

    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not re.search(pattern.removesuffix("$") + r"\Z", value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _key_path(path: Iterable[str | int]) -> str:
    """Write a key as the engine does: ``phases[0].stop.seconds``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _explain(error: ValidationError) -> list[tuple[str, str]]:
    """Return the invalid keys, each with the reason in plain words."""
    path = list(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    schema: Any = error.schema
    shown = _shown(value)
    match error.validator:
        case "oneOf":
            return _explain_choice(error)
        case "additionalProperties":
            unknown = [key for key in value if key not in schema["properties"]]
            problem = f"is not a valid key; the keys are {', '.join(schema['properties'])}"
            return [(_key_path([*path, key]), problem) for key in unknown]
        case "required":
            # Each missing key is a separate error that does not name the key.
            return [(_key_path([*path, key]), "is missing") for key in wanted if key not in value]
        case "type":
            problem = f"must be {_TYPES[wanted]}, it is {shown}"
        case "const":
            problem = f"must be {_shown(wanted)}, it is {shown}"
        case "enum":
            problem = f"must be one of {', '.join(map(str, wanted))}, it is {shown}"
        case "pattern":
            problem = f"must be {_PATTERNS.get(wanted, f'text that matches {wanted}')}, it is {shown}"
        case "maxProperties":
            problem = f"must have at most {wanted} keys, it has {len(value)}"
        case bound if bound in _BOUNDS:
            problem = f"must be {_BOUNDS[bound]} {wanted}, it is {shown}"
        case _:
            problem = f"is not valid: {error.message}"
    return [(_key_path(path), problem)]


def _explain_choice(error: ValidationError) -> list[tuple[str, str]]:
    """Return the errors of the form that the document selects by its discriminator."""
    path = list(error.absolute_path)
    if not isinstance(error.instance, dict):
        return [(_key_path(path), f"must be an object, it is {_shown(error.instance)}")]
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
    for branch in branches.values():
        if not any(_about_discriminator(inner) for inner in branch):
            return [
                fault
                for inner in sorted(branch, key=lambda inner: len(inner.absolute_path))
                for fault in _explain(inner)
            ]
    # No form fits: the discriminator itself is missing or wrong.
    first = next(inner for inner in branches[0] if _about_discriminator(inner))
    if first.validator == "required":
        return _explain(first)
    allowed = [
        name
        for branch in branches.values()
        for inner in branch
        if _about_discriminator(inner)
        for name in _names(inner)
    ]
    return [(_key_path(first.absolute_path), f"must be one of {', '.join(allowed)}, it is {_shown(first.instance)}")]


def _about_discriminator(error: ValidationError) -> bool:
    wanted: Any = error.validator_value
    value: Any = error.instance
    if error.validator == "required":
        return any(key in wanted and key not in value for key in _DISCRIMINATORS)
    return error.validator in ("const", "enum") and error.absolute_path[-1] in _DISCRIMINATORS


def _names(error: ValidationError) -> list[str]:
    wanted: Any = error.validator_value
    return [str(wanted)] if error.validator == "const" else [str(value) for value in wanted]


def _shown(value: object) -> str:
    import json

    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
