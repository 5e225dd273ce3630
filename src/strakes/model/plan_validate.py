"""Check plan documents against ``schemas/plan.json``. Errors name the invalid key in the same way as the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from strakes.base.errors import BadInputError
from strakes.base.schemas import load_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

# Keys whose value selects one of the alternatives of a ``oneOf`` in the schema.
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
    """Raise BadInputError if the document is not a plan. It names every invalid key; ``where`` is the first one.

    >>> validate_plan_document({"schema": 1, "seed": 0, "team": {"ranks": 0}, "phases": []})
    Traceback (most recent call last):
    strakes.base.errors.BadInputError: not a plan: phases must be a list of at least 1, it is []; team.ranks must be ...
    """
    faults: dict[str, str] = {}
    for error in sorted(_validator().iter_errors(document), key=lambda error: len(error.absolute_path)):
        for key, problem in _explain(error):
            faults.setdefault(key, problem)
    if faults:
        texts = "; ".join(f"{key or 'it'} {problem}" for key, problem in faults.items())
        raise BadInputError(f"not a plan: {texts}", where=next(iter(faults)), remedy=_REMEDY)


@cache
def _validator() -> Validator:
    """Return a validator for the schema that is as strict as the engine; the one of jsonschema accepts more."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number)
    keywords = {"pattern": _pattern, "oneOf": _one_of}
    strict: Any = extend(Draft202012Validator, keywords, type_checker=types)  # type: ignore[no-untyped-call]
    validator: Validator = strict(load_schema("plan"))
    return validator


def _is_number(_: object, value: object) -> bool:
    """Return whether a value is a JSON number. NaN and infinity are not, although Python reads them."""
    from math import isfinite

    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _pattern(_: Validator, pattern: str, value: object, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Check a pattern. In a schema, unlike in Python, ``$`` does not match before a final line break."""
    import re

    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not re.search(pattern.removesuffix("$") + r"\Z", value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _one_of(validator: Any, forms: list[Any], value: object, _: object) -> Iterator[ValidationError]:
    """Check a value only against the alternative that its discriminator selects, so that all errors are about that."""
    definitions = load_schema("plan")["$defs"]
    resolved = [definitions[form["$ref"].rpartition("/")[2]] if "$ref" in form else form for form in forms]
    key = next(name for name in _DISCRIMINATORS if name in resolved[0]["properties"])
    selecting = [form["properties"][key] for form in resolved]
    names = [one.get("enum") or [one["const"]] for one in selecting]
    form: dict[str, Any] = {"type": "object"}
    if isinstance(value, dict):
        fallback = {"required": [key], "properties": {key: {"enum": [name for own in names for name in own]}}}
        form = next((form for form, own in zip(resolved, names, strict=True) if value.get(key) in own), fallback)
    yield from validator.descend(value, form)


def _key_path(path: Iterable[str | int]) -> str:
    """Return the path of a key as the engine writes it: ``phases[0].stop.seconds``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _explain(error: ValidationError) -> list[tuple[str, str]]:
    """Return the invalid keys, each with the reason in plain words."""
    path = list(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    schema: Any = error.schema
    shown = _shown(value)
    match error.validator:
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


def _shown(value: object) -> str:
    import json

    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
