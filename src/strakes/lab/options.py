"""Options of labs: frozen dataclasses whose fields declare their form on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, cast

from strakes.base.errors import BadInputError
from strakes.base.units import format_bytes, format_seconds, parse_bytes

Form = Literal["count", "size", "seconds", "choice", "flag", "by-id"]


@dataclass(frozen=True)
class LabOption:
    """Option of a lab. ``least``, ``most``: limits of the value. ``form`` "by-id": a repeatable ID=NUMBER."""

    form: Form
    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str = ""


@dataclass(frozen=True)
class LabOptions:
    """The options of one kind of lab."""

    def document(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(json.dumps(asdict(self))))


def option(form: Form, text: str, default: Any = None, *, least: float | str | None = None, **settings: Any) -> Any:
    """Declare a field as an option of a lab. Sizes in ``default`` and ``least`` are texts such as ``2GiB``.

    ``settings``: further fields of :class:`LabOption`.
    """
    if form == "size":
        default = parse_bytes(default) if default else None
    bound = parse_bytes(least) if isinstance(least, str) else least
    return field(default=default, metadata={"option": LabOption(form, text, bound, **settings)})


def limits(metavar: str, text: str, least: int, most: int | None = None) -> Any:
    """Declare an option ID=NUMBER: a limit for the server with this id."""
    return option("by-id", f"{text} May be repeated.", (), least=least, most=most, metavar=metavar)


def require_bounds(options: LabOptions) -> None:
    """Raise BadInputError if a size or a time is out of bounds."""
    for name, (option, _) in options_of(type(options)).items():
        value = getattr(options, name)
        if option.form not in ("size", "seconds") or value is None:
            continue
        write = format_bytes if option.form == "size" else format_seconds
        for bound, words in ((option.least, "at least"), (option.most, "at most")):
            if bound is not None and (value < bound if words == "at least" else value > bound):
                what = f"--{name.replace('_', '-')} must be {words} {write(bound)}"
                raise BadInputError(what, why=f"it is {write(value)}")


def check_ids(option: str, limits: Sequence[tuple[int, int]], ids: range) -> None:
    """Raise BadInputError if an option ID=NUMBER names an unknown server, or one server twice."""
    named = [one for one, _ in limits]
    for one in named:
        if one not in ids or named.count(one) > 1:
            why = "it is given twice" if one in ids else f"they are {ids[0]} to {ids[-1]}"
            raise BadInputError(f"{option} {one} is not possible", why=why)


def options_of(kind: type[LabOptions]) -> dict[str, tuple[LabOption, object]]:
    """Return name of a field -> (option on the command line, default value)."""
    return {option.name: (cast("LabOption", option.metadata["option"]), option.default) for option in fields(kind)}
