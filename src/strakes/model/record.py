"""Convert frozen dataclasses to JSON records of the store and of engines, and back.

A missing key gets its default, and an unknown key is ignored. A class may define ``from_json`` and ``to_json`` instead.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from strakes.targets.description import Layout

T = TypeVar("T")

Rows = Sequence[Sequence[float]]
# Types of large values, which are stored without conversion.
_AS_THEY_ARE = (Rows, Mapping[str, Any])


class Record:
    """Base class of records. A field with its default value is not written, unless the field is in ALWAYS."""

    ALWAYS: ClassVar[tuple[str, ...]] = ()


def from_record(kind: type[T], record: object) -> T:
    """Convert a JSON record to a value of type ``kind``. Raises ValueError, which names the field, for an invalid one.

    >>> from strakes.model.cell import Place
    >>> place = Place(kept="population")
    >>> from_record(Place, to_record(place)) == place
    True
    """
    try:
        return cast("T", _reader(cast("Any", kind))(record))
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"it has no {error}" if isinstance(error, LookupError) else str(error)) from error


def from_fields(kind: type[T], record: object) -> T:
    """Return a dataclass instance from a JSON object of its fields. Raises the errors of :func:`from_record`."""
    found, values = _of_type(Mapping, record), {}
    for name, (read, required) in _field_readers(cast("Any", kind)).items():
        if name in found:
            try:
                values[name] = read(found[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        elif required:
            raise ValueError(f"{name} is missing")
    return kind(**values)


@cache
def _field_readers(kind: Any) -> dict[str, tuple[Callable[[Any], Any], bool]]:
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: (_reader(hints[one.name]), _default(one) is MISSING) for one in fields(kind) if one.init}


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, types = get_origin(kind), get_args(kind)
    if kind == Rows:
        return _rows
    if kind is Any:
        return lambda value: value
    if kind in (str, bool):
        return partial(_of_type, kind)
    if kind in (int, float):
        return partial(_number, kind)
    if origin is Annotated:
        return partial(_within, _reader(types[0]), *types[1])
    if origin is Literal:
        return partial(_one_of, types)
    if origin in (Union, UnionType):
        return _union_reader(types)
    if origin in (tuple, Sequence):
        return _list_reader(types)
    if origin in (Mapping, dict):
        return partial(_of_type, Mapping) if types[1] is Any else partial(_mapping, *map(_reader, types))
    return getattr(kind, "from_json", None) or partial(from_fields, kind)


def _union_reader(types: tuple[Any, ...]) -> Callable[[Any], Any]:
    members = [one for one in types if one is not NoneType]
    if len(members) == 1:
        read = _reader(members[0])
        return lambda value: None if value is None else read(value)
    if all(map(is_dataclass, members)):
        readers = {one.kind: _reader(one) for one in members}
        return lambda value: readers[value["kind"]](value)
    return partial(_of_type, (*types, int) if float in types else types)


def _list_reader(types: tuple[Any, ...]) -> Callable[[Any], Any]:
    if types[1:] and types[1] is not ...:
        readers = tuple(map(_reader, types))
        return lambda value: tuple(read(item) for read, item in zip(readers, value, strict=True))
    read_item = _reader(types[0])

    def read(value: Any) -> Any:
        items = sorted(value.items()) if isinstance(value, Mapping) else _of_type((list, tuple), value)
        return tuple(map(read_item, items))

    return read


def _of_type(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{reprlib.repr(value)} has the wrong type")
    return value


def _number(kind: Any, value: Any) -> Any:
    # JSON may contain 4 or 4.0. Both become the same integer, so that hashes are equal.
    if isinstance(value, bool) or not isinstance(value, int | float) or (kind is int and value % 1):
        raise ValueError(f"{reprlib.repr(value)} is not a valid {kind.__name__}")
    return kind(value)


def _within(read: Callable[[Any], Any], least: float, most: float, value: Any) -> Any:
    number = read(value)
    if not least <= number <= most:
        raise ValueError(f"{number!r} is not between {least:g} and {most:g}")
    return number


def _one_of(values: tuple[Any, ...], value: Any) -> Any:
    if value not in values:
        raise ValueError(f"{reprlib.repr(value)} is not one of: {', '.join(map(str, values))}")
    return value


def _mapping(read_key: Callable[[Any], Any], read_value: Callable[[Any], Any], value: Any) -> dict[Any, Any]:
    return {read_key(key): read_value(item) for key, item in _of_type(Mapping, value).items()}


def _rows(value: Any) -> Rows:
    for row in _of_type((list, tuple), value):
        _of_type((list, tuple), row)
    return cast("Rows", value)


def to_record(value: object) -> dict[str, Any]:
    """Return the fields of a value as a dictionary of JSON values."""
    record = {}
    for name, default, as_it_is in _written(cast("Any", type(value))):
        member = getattr(value, name)
        if default is MISSING or member != default:
            record[name] = member if as_it_is else _plain(member)
    return record


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return to_record(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


@cache
def _written(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    hints = get_type_hints(kind)
    sparse = issubclass(kind, Record | Layout)
    always = kind.ALWAYS if issubclass(kind, Record) else ()
    return tuple(
        (one.name, _default(one) if sparse and one.name not in always else MISSING, hints[one.name] in _AS_THEY_ARE)
        for one in fields(kind)
        # Records omit the components of a composite layout, because runs cannot set them.
        if one.init and (kind, one.name) != (Layout, "components")
    )


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default
