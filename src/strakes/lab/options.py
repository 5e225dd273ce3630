"""What can be asked of a lab: frozen dataclasses whose fields say how they are written on the command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, cast

from strakes.errors import BadInputError
from strakes.units import format_bytes, format_seconds, parse_bytes

Form = Literal["count", "size", "seconds", "choice", "flag", "by-id"]


@dataclass(frozen=True)
class LabOption:
    """How a field is written: ``least`` and ``most`` bound numbers; ``by-id`` is ``ID=NUMBER`` and may be repeated."""

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
        """As it is kept in the journal and compared with what is up."""
        return cast("dict[str, Any]", json.loads(json.dumps(asdict(self))))


def count(default: int, text: str, *, least: int = 1, most: int = 16) -> int:
    """Declare a whole number."""
    return field(default=default, metadata={"option": LabOption("count", text, least, most)})


def maybe_count(text: str, *, least: int, most: int, metavar: str) -> int | None:
    """Declare a whole number that may be absent."""
    return field(default=None, metadata={"option": LabOption("count", text, least, most, metavar=metavar)})


def size(default: str, text: str, *, least: str) -> int:
    """Declare a size."""
    return field(default=parse_bytes(default), metadata={"option": LabOption("size", text, least=parse_bytes(least))})


def maybe_size(text: str, *, least: str) -> int | None:
    """Declare a size that may be absent."""
    return field(default=None, metadata={"option": LabOption("size", text, least=parse_bytes(least))})


def seconds(default: float, text: str, *, least: float, most: float) -> float:
    """Declare a time."""
    return field(default=default, metadata={"option": LabOption("seconds", text, least, most)})


def choice(default: str, *others: str, text: str) -> str:
    """Declare one of several words."""
    return field(default=default, metadata={"option": LabOption("choice", text, choices=(default, *others))})


def flag(text: str) -> bool:
    """Declare a switch."""
    return field(default=False, metadata={"option": LabOption("flag", text)})


def iops_by_id(text: str) -> tuple[tuple[int, int], ...]:
    """Declare operations a second by number."""
    return field(default=(), metadata={"option": LabOption("by-id", text, least=10, metavar="ID=IOPS")})


def percent_by_id(text: str, metavar: str) -> tuple[tuple[int, int], ...]:
    """Declare shares of a processor by number."""
    return field(default=(), metadata={"option": LabOption("by-id", text, least=5, most=100, metavar=metavar)})


def require_bounds(options: LabOptions) -> None:
    """Raise BadInputError for a size or a time that is out of its bounds."""
    for name, (option, _) in options_of(type(options)).items():
        value = getattr(options, name)
        if option.form not in ("size", "seconds") or value is None:
            continue
        write = format_bytes if option.form == "size" else format_seconds
        low = option.least is not None and value < option.least
        if low or (option.most is not None and value > option.most):
            bound = f"at least {write(option.least or 0)}" if low else f"at most {write(option.most or 0)}"
            raise BadInputError(f"--{name.replace('_', '-')} must be {bound}", why=f"it is {write(value)}")


def options_of(kind: type[LabOptions]) -> dict[str, tuple[LabOption, object]]:
    """Name of the field -> how it is written, and its default."""
    return {option.name: (cast("LabOption", option.metadata["option"]), option.default) for option in fields(kind)}
