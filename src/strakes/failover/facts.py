"""Parsers of values in Pacemaker's configuration, and the objects that rules check (docs/developers/add-a-rule.md)."""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from xml.etree import ElementTree as Xml

from strakes.base.foreign_text import is_secret, without_secrets

# Pacemaker's units of time in seconds.
_FACTORS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "msec": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0}
_ISO_S = {"W": 604800.0, "D": 86400.0, "H": 3600.0, "M": 60.0, "S": 1.0}  # Units of time in ISO 8601, in seconds.
_MOST_S = 1e12  # Maximum time in seconds, so that sums are finite.
TRUE = ("true", "yes", "on", "1", "y")


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """Return the contents of a TOML file of this package. ``name``: path without suffix, such as ``options/drbd``."""
    return tomllib.loads((files("strakes.failover") / f"{name}.toml").read_text(encoding="utf-8"))


def renamed(kind: str) -> Mapping[str, str]:
    """Return name in other releases -> name in Pacemaker 2. ``kind``: "properties" or "roles", the kind of names."""
    names: Mapping[str, str] = read_table("options/renamed")[kind]
    return names


def is_true(text: str) -> bool:
    """Return whether Pacemaker reads the text as true."""
    return text.strip().lower() in TRUE


def seconds(text: str) -> float:
    """Parse a time such as 10s, 500ms or PT1M30S as Pacemaker does. Return seconds; 0 for an invalid text."""
    if re.fullmatch(r"P(?:\d{1,18}[WDHS])*(?:T(?:\d{1,18}[HMS])*)?", text.strip()):
        return sum(int(number) * _ISO_S[unit] for number, unit in re.findall(r"(\d+)(\D)", text))
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)\s*+([a-z]*)", text.strip())
    return min(float(match[1]), _MOST_S) * _FACTORS.get(match[2], 0.0) if match else 0.0


def score(text: str) -> float:
    """Parse a score. As in Pacemaker, an absolute value of a million or more is infinite. An invalid text is 0."""
    if text.lstrip("+-").upper() in ("INFINITY", "INF"):
        return float("-inf") if text.startswith("-") else float("inf")
    value = float(text) if re.fullmatch(r"[+-]?\d+", text) else 0.0
    return value if abs(value) < 1_000_000 else value * float("inf")


def role_of(text: str) -> str:
    """Return the current name of a role, such as Promoted for the older name Master."""
    text = text[:1].upper() + text[1:].lower()
    return renamed("roles").get(text, text)


Facts = Callable[[str], tuple[str, ...]]
Table = Mapping[str, str | Iterable[str]]
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Thing:
    """An object that a rule checks. ``where``: its name in messages. ``fact``: values of each property."""

    where: str
    fact: Facts


class Doubtful(str):
    """Text on a mistake that may be intended, or that only costs time. It is reported as a warning."""

    severity = "warning"


class Certain(str):
    """Text on a mistake that surely costs data or interrupts the service. It is reported as an error."""

    severity = "error"


def graded(sure: object, text: str) -> str:
    """Return the text of a finding. If the mistake is not ``sure``, mark the text as a warning."""
    return text if sure else Doubtful(text)


def yes(condition: object) -> str:
    """Return "yes" for a true condition, otherwise an empty text."""
    return "yes" if condition else ""


def facts(*tables: Table) -> Facts:
    """Return a function that looks up the values of a property in ``tables``. Later tables take precedence."""
    found: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for name, value in table.items():
            values = (value,) if isinstance(value, str) else tuple(value)
            found[name] = tuple(one for one in values if one)
    return lambda name: found.get(name, ())


def shared(rows: Iterable[tuple[_Key, str]]) -> Iterator[tuple[_Key, str, str]]:
    """Yield each key with several owners, as (key, first owner, other owner). ``rows``: (key, owner) pairs."""
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
    """Return whether the properties of an object pass all tests. ``conditions``: tests by property name."""
    return all(passes(test, facts(name), facts) for name, test in conditions.items())


def passes(test: str, values: tuple[str, ...], facts: Facts) -> bool:
    """Return whether one of the values passes a test such as ``>= 3``. ``facts``: properties that the test may name."""
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


def hide_secrets(root: Xml.Element) -> None:
    """Replace the secrets in a CIB, and remove the digests of the operations that had them."""
    hidden = set()
    for one in (*root.iter("nvpair"), *root.iter("recipient")):
        value = one.get("value", "")
        if (shown := "hidden" if is_secret(one.get("name", ""), value) else without_secrets(value)) != value:
            one.set("value", shown)
            hidden.add(one)
    changed = {one.get("id") for one in root.iter("primitive") if not hidden.isdisjoint(one.iter("nvpair"))}
    for resource in root.iter("lrm_resource"):
        if resource.get("id", "").partition(":")[0] in changed:
            for operation in resource.iter("lrm_rsc_op"):
                for name in [name for name in operation.attrib if name.endswith("-digest")]:
                    del operation.attrib[name]
