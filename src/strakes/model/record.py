"""Conversion of records of the store and of engines to frozen values, and back.

Missing keys get their default. Unknown keys are kept and written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from strakes.model.plan import Plan, plan_from_record
from strakes.targets.description import Layout

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

Rows = Sequence[Sequence[float]]
# Not converted: they have no Python types, and they are most of the data of a run.
_AS_THEY_ARE = (Rows, Mapping[str, Any])


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of records that keep unknown keys in ``extra``.

    A field with its default is only written if ``always_written`` has it.
    """

    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    def always_written(self) -> Sequence[str]:
        """Return the fields that are written even if they have their defaults."""
        return ()


def from_record(kind: type[T], record: object) -> T:
    """Return the value of ``record``. Raises KeyError, TypeError or ValueError if it is not a record of this kind.

    >>> from strakes.model.place import Place
    >>> place = Place(kept="population")
    >>> from_record(Place, to_record(place)) == place
    True
    """
    return _converter().structure(record, kind)


def to_record(value: object) -> dict[str, Any]:
    """Return the value as JSON values."""
    return cast("dict[str, Any]", _converter().unstructure(value))


@cache
def _converter() -> Converter:
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
    from cattrs.preconf.json import make_converter

    converter = make_converter(detailed_validation=False)

    def reader(kind: type[Record]) -> Callable[[Mapping[str, Any], object], Record]:
        read = make_dict_structure_fn(kind, converter)
        known = {declared.name for declared in fields(kind)}

        def structure(record: Mapping[str, Any], _kind: object) -> Record:
            extra = {key: value for key, value in record.items() if key not in known}
            return read({**record, "extra": extra} if extra else record, kind)

        return structure

    def writer(kind: type[Record]) -> Callable[[Record], dict[str, Any]]:
        write = make_dict_unstructure_fn(kind, converter, extra=override(omit=True))
        defaults = {
            declared.name: declared.default if declared.default_factory is MISSING else declared.default_factory()
            for declared in fields(kind)
            if declared.default is not MISSING or declared.default_factory is not MISSING
        }

        def unstructure(record: Record) -> dict[str, Any]:
            always = record.always_written()
            kept = {
                name: value
                for name, value in write(record).items()
                if name in always or name not in defaults or getattr(record, name) != defaults[name]
            }
            return {**kept, **record.extra}

        return unstructure

    converter.register_structure_hook_factory(lambda kind: _is_a(kind, Record), reader)
    converter.register_unstructure_hook_factory(lambda kind: _is_a(kind, Record), writer)
    converter.register_structure_hook_func(lambda kind: kind == Rows, _rows)
    converter.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], _mapping)
    converter.register_unstructure_hook_func(lambda kind: kind in _AS_THEY_ARE, lambda value: value)
    converter.register_structure_hook(Plan, lambda record, _: plan_from_record(record))
    converter.register_unstructure_hook(Plan, lambda plan: plan.to_json())
    # A layout that a run sets has no components; they are only displayed.
    layout = make_dict_unstructure_fn(Layout, converter, _cattrs_omit_if_default=True, components=override(omit=True))
    converter.register_unstructure_hook(Layout, layout)
    return converter


def _rows(value: object, _kind: object) -> Rows:
    if not isinstance(value, Sequence) or not all(isinstance(row, list | tuple) for row in value):
        raise TypeError(type(value))
    return value


def _mapping(value: object, _kind: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(type(value))
    return value


def _is_a(kind: object, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)
