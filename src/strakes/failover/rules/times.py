"""What rules about times are made of: limits in which amounts have to be, and in relation to each other."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from strakes.failover.rules.rule import Rule
from strakes.failover.setup import Setup
from strakes.failover.times import Amount, Amounts, amounts_of


@dataclass(frozen=True)
class Limit:
    """``left`` has to be in this relation to ``times`` x ``right`` + ``plus``; without ``right`` to ``plus`` alone.

    Both are names of amounts in ``strakes.failover.times``. Two defaults are never held against each other.
    ``before`` is the version of Pacemaker from which on it no longer holds.
    """

    left: str
    relation: Literal["<", "<=", ">", ">="]
    right: str = ""
    plus: float = 0.0
    times: float = 1.0
    before: tuple[int, ...] = ()


_RELATIONS: Mapping[str, tuple[Callable[[float, float], bool], str]] = {
    "<": (operator.lt, "below"),
    "<=": (operator.le, "at most"),
    ">": (operator.gt, "above"),
    ">=": (operator.ge, "at least"),
}
# Those of the setup that is looked at, which all rules share.
_latest: list[tuple[Setup, Amounts]] = []


def _amounts(setup: Setup) -> Amounts:
    if not _latest or _latest[0][0] is not setup:
        _latest[:] = [(setup, amounts_of(setup))]
    return _latest[0][1]


def _version(setup: Setup) -> tuple[int, ...]:
    """Return the version of Pacemaker that wrote the CIB, of one that does not say it a late one of the second."""
    numbers = re.match(
        r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", setup.cib.properties.get("dc-version", "") if setup.cib else ""
    )
    return tuple(map(int, numbers.groups())) if numbers else (2, 1, 5)


def _broken(setup: Setup, limit: Limit) -> Iterator[str]:
    """Find amounts that do not keep a limit."""
    if limit.before and _version(setup) >= limit.before:
        return
    amounts = _amounts(setup)
    keeps, words = _RELATIONS[limit.relation]
    for left in amounts.get(limit.left, []):
        if not limit.right:
            if left.written and not keeps(left.value, limit.plus):
                yield f"{left.where}: {left.text} is {left.shown}, and ought to be {words} {limit.plus:g}{left.unit}"
            continue
        for right in amounts.get(limit.right, []):
            same = not left.scope or not right.scope or left.scope == right.scope
            needed = limit.times * right.value + limit.plus
            if same and (left.written or right.written) and not keeps(left.value, needed):
                yield _told(left, right, words, needed)


def _told(left: Amount, right: Amount, words: str, needed: float) -> str:
    where = left.where if left.written else right.where
    return (
        f"{where}: {left.text} is {left.shown}, and ought to be {words} {needed:g}{left.unit}, because {right.text} is "
        f"{right.shown}"
    )


def _not_kept(limits: tuple[Limit, ...], setup: Setup) -> Iterator[str]:
    for limit in limits:
        yield from _broken(setup, limit)


class TimesOf:
    """Makes rules about times of these parts of a setup; each is broken where one of its limits is not kept."""

    def __init__(self, *needs: str) -> None:
        self._needs = frozenset(needs)

    def error(self, name: str, *limits: Limit, reason: str, remedy: str, source: str) -> Rule:
        """Make a rule about what is wrong."""
        return Rule(name, "error", self._needs, reason, remedy, source, partial(_not_kept, limits))

    def warning(self, name: str, *limits: Limit, reason: str, remedy: str, source: str) -> Rule:
        """Make a rule about what is doubtful."""
        return Rule(name, "warning", self._needs, reason, remedy, source, partial(_not_kept, limits))
