"""Objects that rules check, and facts about them (named values). See docs/developers/add-a-rule.md."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from strakes.failover.cib_values import is_true, score, seconds

Facts = Callable[[str], tuple[str, ...]]
Table = Mapping[str, str | Iterable[str]]
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Thing:
    """An object that a rule checks. ``where`` begins its messages. ``fact`` returns the values of a named fact."""

    where: str
    fact: Facts


class Doubtful(str):
    """A place where a rule finds what may be meant, or what costs only time: a warning."""

    severity = "warning"


class Certain(str):
    """A place where a rule finds what costs data or the service for sure: an error."""

    severity = "error"


def yes(condition: object) -> str:
    """Return "yes" for a true condition, otherwise an empty text."""
    return "yes" if condition else ""


def facts(*tables: Table) -> Facts:
    """Return a function that looks up the values of a named fact. Later tables take precedence."""
    found: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for name, value in table.items():
            values = (value,) if isinstance(value, str) else tuple(value)
            found[name] = tuple(one for one in values if one)
    return lambda name: found.get(name, ())


def shared(rows: Iterable[tuple[_Key, str]]) -> Iterator[tuple[_Key, str, str]]:
    """Yield (key, first owner, other owner) for each further owner of a key. ``rows``: (key, owner)."""
    first: dict[_Key, str] = {}
    for key, owner in dict.fromkeys(rows):
        if first.setdefault(key, owner) != owner:
            yield key, first[key], owner


_FALSE = ("false", "no", "off", "0", "n")
_COMPARISON = re.compile(r"(<=|>=|<|>)\s*(?:([\d.]+) x )?(.+)")
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def number(text: str) -> float | None:
    """Parse a number, a score or a time (in seconds). Return None for an invalid text."""
    if re.fullmatch(r"[+-]?(\d{1,15}(\.\d+)?|INFINITY|inf)", text):
        return score(text) if "I" in text else float(text)
    return seconds(text) if re.match(r"(\d|PT\d)", text) else None


def holds(conditions: Mapping[str, str], facts: Facts) -> bool:
    """Return whether the facts of an object pass all tests. ``conditions``: name of a fact -> test."""
    return all(passes(test, facts(name), facts) for name, test in conditions.items())


def passes(test: str, values: tuple[str, ...], facts: Facts) -> bool:
    """Return whether a value passes a test such as ``>= 3``. ``facts`` looks up names in the test."""
    if test in ("absent", "present"):
        return bool(values) == (test == "present")
    if test in ("not on", "not off"):
        return not any(is_true(value) if test == "not on" else value.lower() in _FALSE for value in values)
    return any(_one(test, value, facts) for value in values)


def _one(test: str, value: str, facts: Facts) -> bool:
    if test in ("on", "off"):
        return is_true(value) if test == "on" else value.lower() in _FALSE
    if test.startswith("!= "):
        return any(value != other for other in facts(test[3:]))
    if comparison := _COMPARISON.fullmatch(test):
        relation, factor, right = comparison.groups()
        limits = [number(right)] if number(right) is not None else [number(text) for text in facts(right)]
        given, times = number(value), float(factor or 1)
        known = [times * limit for limit in limits if limit is not None and given is not None]
        return any(RELATIONS[relation](given or 0.0, limit) for limit in known)
    wanted, words = not test.startswith("not "), test.removeprefix("not ")
    if words.startswith("/"):
        return bool(re.fullmatch(words[1:-1], value, re.I)) == wanted
    return (value.lower() in words.lower().split("|")) == wanted
