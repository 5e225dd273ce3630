"""The JSON schemas of strakes, found in an installed wheel and in a checkout alike."""

from __future__ import annotations

from functools import cache
from typing import Any

from strakes.errors import EnvironmentLacksError


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema ``name`` ("plan", "findings") as parsed JSON; not to be changed by the caller.

    Raises EnvironmentLacksError when the installation does not hold it.

    >>> load_schema("plan")["title"]
    'strakes plan, version 1'
    """
    import json
    from importlib import resources
    from pathlib import Path

    # A wheel carries them inside the package; a checkout (and an editable installation) keeps them at its top.
    packaged = resources.files("strakes") / "schemas" / f"{name}.json"
    checkout = Path(__file__).resolve().parents[2] / "schemas" / f"{name}.json"
    for place in (packaged, checkout):
        if place.is_file():
            schema: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
            return schema
    remedy = "Install strakes again: pip install --force-reinstall strakes."
    raise EnvironmentLacksError(
        f"the schema {name!r} is missing from this installation", where=str(packaged), remedy=remedy
    )
