"""Limits of times: relations between two amounts, or between an amount and a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from strakes.failover.setup import Setup
from strakes.failover.times import Amount, Amounts, amounts_of

_LIMIT = re.compile(
    r"(?P<left>[a-z_-]+) (?P<relation>[<>]=?) (?:(?P<plus>[\d.]+)|"
    r"(?:(?P<times>[\d.]+) x )?(?P<right>[a-z_-]+)(?: \+ (?P<more>[\d.]+))?)(?: before (?P<before>[\d.]+))?"
)
_RELATIONS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "<": (operator.lt, "below"),
    "<=": (operator.le, "at most"),
    ">": (operator.gt, "above"),
    ">=": (operator.ge, "at least"),
}


@dataclass(frozen=True)
class Limit:
    """The required relation of ``left`` to ``times`` x ``right`` + ``plus``, or to ``plus`` without ``right``.

    Both are names of amounts in ``strakes.failover.times``. Two defaults are never compared. ``before`` is the version
    of Pacemaker that no longer needs the limit.
    """

    left: str
    relation: str
    right: str = ""
    plus: float = 0.0
    times: float = 1.0
    before: tuple[int, ...] = ()


def read_limit(text: str) -> Limit:
    """Return a limit of a TOML file.

    >>> read_limit("consensus >= 1.2 x token")
    Limit(left='consensus', relation='>=', right='token', plus=0.0, times=1.2, before=())
    """
    part = _LIMIT.fullmatch(text)
    assert part, text
    before = tuple(map(int, part["before"].split("."))) if part["before"] else ()
    plus = float(part["plus"] or part["more"] or 0)
    return Limit(part["left"], part["relation"], part["right"] or "", plus, float(part["times"] or 1), before)


def broken(limits: tuple[Limit, ...], setup: Setup) -> Iterator[str]:
    """Find amounts that violate one of the limits."""
    for limit in limits:
        if not limit.before or _version(setup) < limit.before:
            yield from _violations(_amounts(setup), limit)


_last: list[tuple[Setup, Amounts]] = []


def _amounts(setup: Setup) -> Amounts:
    if not _last or _last[0][0] is not setup:
        _last[:] = [(setup, amounts_of(setup))]
    return _last[0][1]


def _version(setup: Setup) -> tuple[int, ...]:
    """Return the version of Pacemaker that wrote the CIB, or a late release of version 2 if it does not say."""
    given = setup.cib.properties.get("dc-version", "") if setup.cib else ""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", given)
    return tuple(map(int, numbers.groups())) if numbers else (2, 1, 5)


def _violations(amounts: Amounts, limit: Limit) -> Iterator[str]:
    keeps, words = _RELATIONS[limit.relation]
    for left in amounts.get(limit.left, []):
        if not limit.right:
            if left.written and not keeps(left.value, limit.plus):
                yield f"{left.where}: {left.text} is {left.shown}, and has to be {words} {limit.plus:g}{left.unit}"
            continue
        for right in amounts.get(limit.right, []):
            same = not left.scope or not right.scope or left.scope == right.scope
            needed = limit.times * right.value + limit.plus
            if same and (left.written or right.written) and not keeps(left.value, needed):
                yield _compared(left, right, words, needed)


def _compared(left: Amount, right: Amount, words: str, needed: float) -> str:
    where = left.where if left.written else right.where
    return (
        f"{where}: {left.text} is {left.shown}, and has to be {words} {needed:g}{left.unit}, because {right.text} is "
        f"{right.shown}"
    )
