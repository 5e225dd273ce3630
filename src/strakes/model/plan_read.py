"""Read plans: TOML that users write and JSON, both checked against ``schemas/plan.json``.

Sizes and times in TOML may have units. Errors name invalid keys in the same way as the engine.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.schemas import load_schema
from strakes.base.toml_file import Keys, read_toml
from strakes.base.units import parse_bytes, parse_seconds
from strakes.model.plan import PLACEMENT, Plan

# Keys whose value selects one of the alternatives in a ``oneOf`` of the schema.
_DISCRIMINATORS = ("kind", "rule")
_TYPES: Mapping[str, str] = {
    "object": "an object",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
}
# Schema keywords that limit a number or the length of a list.
_BOUNDS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", operator.ge),
    "maximum": ("at most", operator.le),
    "exclusiveMinimum": ("more than", operator.gt),
    "minItems": ("a list of at least", operator.ge),
    "maxItems": ("a list of at most", operator.le),
}
_PATTERNS = {
    "^[a-z0-9][a-z0-9-]{0,31}$": "1 to 32 of a-z, 0-9 and '-', not beginning with '-'",
    "^[!-.0-~]{0,64}$": "0 to 64 visible characters without blanks or /",
    "^[!-~]{1,35}$": "a name of 1 to 35 visible characters without blanks",
    "^[!-~]{1,255}$": "1 to 255 visible characters without blanks",
    "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$": "a list of numbers such as 0-3,8",
}
_TEAM_KEYS = ("ranks", "ranks_per_node", "memory_hog_bytes", *PLACEMENT)
_TOP_KEYS = ("title", "seed", *_TEAM_KEYS, "phase")
_REMEDY = "docs/reference/engine.md and schemas/plan.json describe plans."


def plan_from_toml(path: Path, seed: int) -> tuple[str, Plan]:
    r"""Return the title and the plan in a file. ``seed``: random seed if the file has none.

    Raises BadInputError that names the file and the invalid key.

    >>> import tempfile
    >>> text = 'ranks = 2\n[[phase]]\nkind = "metadata"\nname = "make"\noperation = "file-create"\n'
    >>> text += 'directory = "unique"\nitems = 10'
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = Path(place) / "make-files.toml"
    ...     _ = file.write_text(text)
    ...     plan_from_toml(file, seed=1)[1].ranks
    2
    """
    file = read_toml(path, "the plan", "phase")
    remedy = "Add a [[phase]] table, as in the plans in examples/."
    phases, document = file.tables("phase", _TOP_KEYS, "the plan has no phase", remedy), file.values
    if len(phases) > (most := load_schema("plan")["properties"]["phases"]["maxItems"]):
        raise BadInputError("the plan has too many phases", where=str(path), why=f"more than {most} phases")
    team = {key: document[key] for key in _TEAM_KEYS if key in document}
    body = {"schema": 1, "seed": document.get("seed", seed), "team": team, "phases": phases}
    try:
        return str(document.get("title", path.stem)), plan_from_json(_in_units(body, ""))
    except BadInputError as error:
        error.where = ": ".join(filter(None, (str(path), error.where)))
        raise


def _in_units(value: Any, key: str) -> Any:
    if key == "hints" and isinstance(value, Mapping):  # MPI-IO hints are text. Only the MPI library knows their units.
        return {name: str(hint) if type(hint) is int else hint for name, hint in value.items()}
    if isinstance(value, Mapping):
        return {name: _in_units(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [_in_units(member, key) for member in value]
    if isinstance(value, str) and (key == "bytes" or key.endswith("_bytes")):
        return parse_bytes(value)
    if isinstance(value, str) and key == "seconds":
        return parse_seconds(value)
    return value


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """Return a plan from its JSON form. Raises BadInputError that names all invalid keys."""
    validate_plan_document(document)
    return Plan.from_json(document)


def validate_plan_document(document: Mapping[str, Any]) -> None:
    """Raise BadInputError if a document is not a plan. The error lists all invalid keys.

    >>> validate_plan_document({"schema": 1, "seed": 0, "team": {"ranks": 0}, "phases": []})
    Traceback (most recent call last):
    strakes.base.errors.BadInputError: not a plan: phases must be a list of at least 1, it is []; team.ranks must be ...
    """
    faults: dict[str, str] = {}
    for _, key, problem in sorted(_faults(document, load_schema("plan"), ()), key=lambda fault: fault[0]):
        faults.setdefault(key, problem)
    if faults:
        texts = "; ".join(f"{key or 'it'} {problem}" for key, problem in faults.items())
        raise BadInputError(f"not a plan: {texts}", where=next(iter(faults)), remedy=_REMEDY)


def _faults(value: Any, schema: Mapping[str, Any], path: Keys) -> Iterator[tuple[int, str, str]]:
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            yield from _faults(value, _definition(wanted), path)
        elif keyword == "oneOf":
            yield from _faults(value, _selected(value, wanted), path)
        elif keyword == "items" and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _faults(item, wanted, (*path, index))
        elif isinstance(value, dict) and keyword in ("required", "properties", "additionalProperties", "propertyNames"):
            yield from _faults_of_keys(value, keyword, schema, path)
        elif problem := _problem(value, keyword, wanted):
            yield len(path), _key_path(path), problem


def _faults_of_keys(
    value: dict[str, Any], keyword: str, schema: Mapping[str, Any], path: Keys
) -> Iterator[tuple[int, str, str]]:
    wanted, known = schema[keyword], schema.get("properties", {})
    if keyword == "required":
        yield from ((len(path), _key_path((*path, key)), "is missing") for key in wanted if key not in value)
    elif keyword == "propertyNames":
        for key in value:
            yield from _faults(key, wanted, path)
    elif wanted is False:
        for key in (key for key in value if key not in known):
            yield len(path), _key_path((*path, key)), f"is not a valid key ({did_you_mean(key, known)})"
    else:
        rules = known if keyword == "properties" else dict.fromkeys(value.keys() - known.keys(), wanted)
        for key in (key for key in rules if key in value):
            yield from _faults(value[key], rules[key], (*path, key))


def _problem(value: Any, keyword: str, wanted: Any) -> str:
    must = ""
    if keyword == "type" and not _is_of_type(value, wanted):
        must = _TYPES[wanted]
    elif keyword == "const" and not _are_same(value, wanted):
        must = _shown(wanted)
    elif keyword == "enum" and not any(_are_same(value, one) for one in wanted):
        must = f"one of {', '.join(map(str, wanted))}"
    elif keyword == "pattern" and isinstance(value, str) and not re.search(wanted.removesuffix("$") + r"\Z", value):
        must = _PATTERNS.get(wanted, f"text that matches {wanted}")
    elif keyword == "maxProperties" and isinstance(value, dict) and len(value) > wanted:
        return f"must have at most {wanted} keys, it has {len(value)}"
    elif keyword in _BOUNDS:
        (words, holds), size = _BOUNDS[keyword], _size(value, keyword)
        must = f"{words} {wanted}" if size is not None and not holds(size, wanted) else ""
    return f"must be {must}, it is {_shown(value)}" if must else ""


def _size(value: Any, keyword: str) -> float | None:
    if keyword.endswith("Items"):
        return len(value) if isinstance(value, list) else None
    return value if _is_of_type(value, "number") else None


def _definition(reference: str) -> Mapping[str, Any]:
    definition: Mapping[str, Any] = load_schema("plan")["$defs"][reference.rpartition("/")[2]]
    return definition


def _selected(value: object, forms: list[dict[str, Any]]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        return {"type": "object"}
    resolved = [_definition(form["$ref"]) if "$ref" in form else form for form in forms]
    key = next(name for name in _DISCRIMINATORS if name in resolved[0]["properties"])
    selecting = [form["properties"][key] for form in resolved]
    names = [one.get("enum") or [one["const"]] for one in selecting]
    fallback = {"required": [key], "properties": {key: {"enum": [name for own in names for name in own]}}}
    return next((form for form, own in zip(resolved, names, strict=True) if value.get(key) in own), fallback)


def _is_of_type(value: object, name: str) -> bool:
    if name in ("integer", "number"):
        finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return finite and (name == "number" or value == int(value))  # type: ignore[call-overload]
    kinds: Mapping[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool}
    return isinstance(value, kinds[name])


def _are_same(value: object, wanted: object) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _key_path(path: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _shown(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
