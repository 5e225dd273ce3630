"""Find the JSON schemas and the examples of strakes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from strakes.base.errors import EnvironmentLacksError

_REMEDY = "Install strakes again: pip install --force-reinstall strakes."


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return a JSON schema, such as ``plan``. It is cached, so callers must not change it.

    Raises EnvironmentLacksError if the installation lacks the schema.

    >>> load_schema("plan")["title"]
    'strakes plan, version 1'
    """
    import json

    path = shipped("schemas") / f"{name}.json"
    if not path.is_file():
        raise EnvironmentLacksError(f"this installation lacks the schema {name!r}", where=str(path), remedy=_REMEDY)
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def shipped(name: str) -> Path:
    """Return the path of the directory "schemas" or "examples". Raises EnvironmentLacksError if it is missing."""
    # An installed package contains these directories. In a checkout, they are at the top level.
    package = Path(__file__).resolve().parents[1]
    for place in (package / name, package.parents[1] / name):
        if place.is_dir():
            return place
    raise EnvironmentLacksError(f"the directory {name} is missing", where=str(package / name), remedy=_REMEDY)


def example_names() -> list[str]:
    """Return the paths of all examples below the directory "examples"."""
    place = shipped("examples")
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file() and path.suffix != ".md")
