"""Names of factors and values, as users see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.units import parse_bytes
from strakes.model.portrait import Setting
from strakes.model.setting_text import label_of, level_of
from strakes.tuning.tune_offers import FILES, INTERFACE, INTERFACES, READERS, TRANSFER, WRITERS
from strakes.tuning.tune_space import SearchSpace

KNOB = "knob:"


def named(factor: str) -> str:
    """Return the displayed name of a factor.

    >>> named("transfer_bytes"), named("stripe_count"), named("knob:vm.dirty_bytes")
    ('transfer', 'stripe count', 'vm.dirty_bytes')
    """
    if factor.startswith(KNOB):
        return factor.removeprefix(KNOB)
    return "stripe size" if factor == "stripe_bytes" else label_of(factor)


def to_do(factor: str, level: Setting) -> str:
    """Return the change in the application that a value of a factor requires, or "" if it requires none.

    >>> to_do("writers", 1)
    'of each node 1 rank writes; the others pass their data to it'
    >>> to_do("stripe_count", 3)
    ''
    """
    if factor in (WRITERS, READERS):
        does = "writes" if factor == WRITERS else "reads"
        who = f"1 rank {does}" if level == 1 else f"{level} ranks {does.removesuffix('s')}"
        over = "the others pass their data to" if factor == WRITERS else "the others receive the data (MPI_Bcast) from"
        return f"of each node {who}; {over} {'it' if level == 1 else 'them'}"
    if factor == TRANSFER:
        return f"calls of {level_of(factor, level)}"
    if factor == FILES:
        return "one shared file" if level == "shared" else "one file per writing process"
    if factor == INTERFACE:
        backend, direct, depth = INTERFACES[str(level)]
        parts = {f"{backend} calls": True, "without the page cache (O_DIRECT)": direct, f"{depth} at a time": depth > 1}
        return ", ".join(part for part, holds in parts.items() if holds)
    return ""


def levels_from(space: SearchSpace, only: Mapping[str, Sequence[str]]) -> dict[str, tuple[Setting, ...]]:
    """Convert the user's texts to values of the search space. Raises BadInputError for unknown values."""
    known = {factor.name: factor for factor in space.factors}
    chosen: dict[str, tuple[Setting, ...]] = {}
    for name, texts in only.items():
        factor = next((each for each in space.factors if name in (each.name, named(each.name))), None)
        factor = factor or known.get(f"{name}_bytes")
        if factor is None:
            raise BadInputError(f"this search has no setting {name!r}", remedy=did_you_mean(name, map(named, known)))
        chosen[factor.name] = tuple(_level(factor.name, factor.levels, text) for text in texts)
    return chosen


def typed(settings: Mapping[str, Setting]) -> str:
    """Return a setting as one line of text: each factor with its value."""
    return ", ".join(f"{named(name)} {level_of(name, level)}" for name, level in settings.items())


def _level(name: str, levels: Sequence[Setting], text: str) -> Setting:
    for level in levels:
        if text in (str(level), level_of(name, level)):
            return level
    if name.endswith("_bytes") and (size := parse_bytes(text)) in levels:
        return size
    valid = ", ".join(level_of(name, level) for level in levels)
    raise BadInputError(f"{named(name)} cannot have the value {text!r} here", remedy=f"Valid levels are: {valid}.")
