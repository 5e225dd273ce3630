"""Convert JSON records of the store and of engines to frozen values, and back.

Missing keys get their default, and unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from strakes.model.plan import Plan, plan_from_record
from strakes.targets.description import Layout

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

Rows = Sequence[Sequence[float]]
# Values of these types stay as they are: no class describes their contents, which are most of the data of a run.
_AS_THEY_ARE = (Rows, Mapping[str, Any])


class Record:
    """Base class of records. A field is written only if it is in ALWAYS or differs from its default."""

    ALWAYS: ClassVar[tuple[str, ...]] = ()


def from_record(kind: type[T], record: object) -> T:
    """Return the value of ``record``. Raises KeyError, TypeError or ValueError if it is not a record of this kind.

    >>> from strakes.model.place import Place
    >>> place = Place(kept="population")
    >>> from_record(Place, to_record(place)) == place
    True
    """
    converter = _converter()
    from cattrs.errors import CattrsError

    try:
        return converter.structure(record, kind)
    except CattrsError as error:
        raise ValueError(str(error)) from error


def to_record(value: object) -> dict[str, Any]:
    """Return the fields of a value as a dictionary of JSON values."""
    return cast("dict[str, Any]", _converter().unstructure(value))


@cache
def _converter() -> Converter:
    from cattrs.gen import make_dict_unstructure_fn, override
    from cattrs.preconf.json import make_converter

    converter = make_converter(detailed_validation=False)

    def writer(kind: type[Record]) -> Callable[[Record], dict[str, Any]]:
        always: Any = {name: override(omit_if_default=False) for name in kind.ALWAYS}
        return make_dict_unstructure_fn(kind, converter, _cattrs_omit_if_default=True, **always)

    converter.register_unstructure_hook_factory(_is_record, writer)
    converter.register_structure_hook_func(lambda kind: kind == Rows, _rows)
    converter.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], _mapping)
    converter.register_unstructure_hook_func(lambda kind: kind in _AS_THEY_ARE, lambda value: value)
    converter.register_structure_hook(Plan, lambda record, _: plan_from_record(record))
    converter.register_unstructure_hook(Plan, lambda plan: plan.to_json())
    # The components of a layout are only displayed, never stored: a run sets layouts without components.
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


def _is_record(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)
