"""The things that rules check, and their facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strakes.failover.rules.condition import Facts

Table = Mapping[str, str | Iterable[str]]


@dataclass(frozen=True)
class Thing:
    """One thing that a rule may check; ``where`` is the beginning of the text of a finding."""

    where: str
    fact: Facts


def yes(condition: object) -> str:
    """Return the value of a fact that is true or has no value."""
    return "yes" if condition else ""


def facts(*tables: Table) -> Facts:
    """Return the facts of several tables; later tables take precedence, and an empty text counts as no value."""
    found: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for name, value in table.items():
            values = (value,) if isinstance(value, str) else tuple(value)
            found[name] = tuple(one for one in values if one)
    return lambda name: found.get(name, ())
