"""Read plans that users write: TOML with the keys of ``schemas/plan.json``. Sizes and times may have units."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.files import read_below
from strakes.base.schemas import load_schema
from strakes.base.toml_file import read_toml
from strakes.base.units import parse_bytes, parse_seconds
from strakes.model.plan import PLACEMENT, Plan, plan_from_json

_MOST_HINT_BYTES = 1 << 20
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
    phases = [_with_hints(phase, path.parent) if isinstance(phase, Mapping) else phase for phase in phases]
    team = {key: document[key] for key in _TEAM_KEYS if key in document}
    body = {"schema": 1, "seed": document.get("seed", seed), "team": team, "phases": phases}
    try:
        return str(document.get("title", path.stem)), plan_from_json(_in_units(body, ""))
    except BadInputError as error:
        raise BadInputError(
            error.what, where=": ".join(filter(None, (str(path), error.where))), why=error.why, remedy=error.remedy
        ) from error


def _with_hints(phase: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    hints = phase.get("hints")
    if isinstance(hints, str):
        file, parts = folder / hints, PurePath(hints).parts
        # Reports show hints, so a plan by another user must not name a private file of this user as a hints file.
        if hints.startswith("/") or ".." in parts or "hints" not in (parts or ("",))[-1]:
            remedy = 'Name a file with "hints" in its name, below the directory of the plan: hints = "romio-hints"'
            raise BadInputError("this hints file is not allowed in a plan", where=hints, remedy=remedy)
        try:
            text = read_below(folder, hints, _MOST_HINT_BYTES).decode()
        except UnicodeDecodeError as error:
            raise BadInputError("the hints file cannot be read", where=str(file), why=str(error)) from error
        lines = [line.split("#")[0].split() for line in text.splitlines()]
        if wrong := [
            index for index, words in enumerate(lines, start=1) if len(words) not in (0, 2) or "\0" in "".join(words)
        ]:
            raise BadInputError(
                "a line of the hints file must be a name and a value",
                where=f"{file}, line {wrong[0]}",
                remedy="Write, for example: cb_nodes 4",
            )
        return {**phase, "hints": dict(words for words in lines if words)}
    if isinstance(hints, Mapping):
        return {**phase, "hints": {name: str(value) if type(value) is int else value for name, value in hints.items()}}
    return phase


def _in_units(value: Any, key: str) -> Any:
    if key == "hints":  # Do not convert MPI-IO hints: only the MPI library knows their units.
        return value
    if isinstance(value, Mapping):
        return {name: _in_units(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [_in_units(member, key) for member in value]
    if isinstance(value, str) and (key == "bytes" or key.endswith("_bytes")):
        return parse_bytes(value)
    if isinstance(value, str) and key == "seconds":
        return parse_seconds(value)
    return value
