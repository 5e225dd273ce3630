"""Read plans that users write: TOML with the keys of ``schemas/plan.json``. Sizes and times may have units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.schemas import load_schema
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_bytes, parse_seconds
from strakes.model.plan import PLACEMENT, Plan, plan_from_json

_TEAM_KEYS = ("ranks", "ranks_per_node", "memory_hog_bytes", *PLACEMENT)
_TOP_KEYS = ("title", "seed", *_TEAM_KEYS, "phase")


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
        raise BadInputError(
            error.what, where=": ".join(filter(None, (str(path), error.where))), why=error.why, remedy=error.remedy
        ) from error


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
