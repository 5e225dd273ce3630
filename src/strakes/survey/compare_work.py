"""Match the measurements of two runs that did the same work: equal plans, except for compared factors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.language import gettext
from strakes.model.cell import PLAIN, Cell
from strakes.model.record import to_record
from strakes.survey.comparison import Unlike

# Compare measurements whose work differs up to this factor. Twice the work changes a rate by less than 5 %.
ALIKE_TIMES = 2.0


def alike(
    a: Sequence[Cell], b: Sequence[Cell], factors: Sequence[str], *, any_amount: bool = False
) -> tuple[list[tuple[Cell, Cell]], list[Unlike]]:
    """Return the pairs of cells that did the same work, and all other cells with their differences.

    ``factors``: settings that may differ within a pair. ``any_amount``: amounts of work may differ too. Raises
    BadInputError if a factor is unknown, or if one run measured several values of a factor.
    """
    _check_factors(factors, [*a, *b])
    first, second = _by_name(a, factors), _by_name(b, factors)
    pairs, unlike = [], []
    for name, own in first.items():
        other = second.get(name)
        if other is None:
            unlike.append(Unlike(own.key, gettext("only in A")))
            continue
        ignored = (*factors, *_AMOUNTS) if any_amount else factors
        plans = _plan(own, ignored), _plan(other, ignored)
        if plans[0] == plans[1]:
            pairs.append((own, other))
        else:
            unlike.append(Unlike(own.key, "; ".join(_differences(*plans))))
    unlike += [Unlike(other.key, gettext("only in B")) for name, other in second.items() if name not in first]
    return pairs, unlike


def _by_name(cells: Sequence[Cell], factors: Sequence[str]) -> dict[str, Cell]:
    named: dict[str, Cell] = {}
    for cell in cells:
        settings = {key: value for key, value in cell.settings.items() if key not in factors}
        name = json.dumps([cell.study, settings, [measure.phase for measure in cell.measures]], sort_keys=True)
        name = name if factors else f"{cell.key} {name}"
        if name in named:
            raise BadInputError(
                "one run measured several values of the compared setting",
                where=f"{named[name].key} and {cell.key}",
                remedy="Compare runs with one value of the setting each, or leave out --factor.",
            )
        named[name] = cell
    return named


def _plan(cell: Cell, factors: Sequence[str]) -> dict[str, Any]:
    if cell.imported:
        return {key: value for key, value in cell.settings.items() if key not in factors}
    document: dict[str, Any] = dict(cell.plan.to_json())
    del document["seed"]
    flat: dict[str, Any] = {} if cell.place == PLAIN else {"place": to_record(cell.place)}
    for index, phase in enumerate(document.pop("phases")):
        flat |= {
            f"phase {index + 1} ({phase['name']}) {key}": value for key, value in phase.items() if key not in factors
        }
    flat |= {f"team {key}": value for key, value in document.pop("team").items() if key not in factors}
    return {**document, **flat}


def amount_ratio(own: Cell, other: Cell) -> float:
    """Return the ratio of the larger to the smaller amount of work of two measurements (at least 1)."""
    ratio = 1.0
    phases = [dict[str, Any](cell.plan.to_json())["phases"] for cell in (own, other)]
    for first, second in zip(*phases, strict=True):
        times = [float((phase.get("stop") or {}).get("seconds", 0)) for phase in (first, second)]
        amounts = (
            [times] if all(times) else [[float(phase.get(key) or 0) for phase in (first, second)] for key in SIZES]
        )
        ratio = max([ratio, *(max(pair) / min(pair) for pair in amounts if min(pair) > 0)])
    return ratio


def same_work(own: Cell, other: Cell) -> bool:
    """Return whether a cell did nearly the same amount of work in two runs."""
    if own.imported or own.fingerprint == other.fingerprint:
        return own.fingerprint == other.fingerprint
    pairs, _ = alike([own], [other], (), any_amount=True)
    return bool(pairs) and amount_ratio(own, other) <= ALIKE_TIMES


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    keys = [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
    shown = [in_both(key, _shown(a.get(key)), _shown(b.get(key))) for key in keys]
    more = len(shown) - _MOST_DIFFERENCES
    return [*shown[:_MOST_DIFFERENCES], gettext("{count} more", count=more)] if more > 0 else shown


def in_both(key: str, of_a: object, of_b: object) -> str:
    """Return a text with the value of a setting in A and its value in B.

    >>> in_both("ranks", 2, 4)
    'ranks: 2 in A, 4 in B'
    """
    return gettext("{what}: {a} in A, {b} in B", what=gettext(key), a=of_a, b=of_b)


# Maximum number of differences listed for two measurements. Twice the number would not fit a line of the terminal.
_MOST_DIFFERENCES = 3
SIZES = ("block_bytes", "segments", "items", "count")
_AMOUNTS = (*SIZES, "stop")


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {part}" for key, part in value.items())
    return gettext("absent") if value is None else str(value)


def _check_factors(factors: Sequence[str], cells: Sequence[Cell]) -> None:
    known = {key for cell in cells for key in cell.settings}
    for plan in (dict[str, Any](cell.plan.to_json()) for cell in cells if not cell.imported):
        known |= {key for part in (*plan["phases"], plan["team"]) for key in part}
    for factor in factors:
        if factor not in known:
            remedy = did_you_mean(factor, sorted(known - {"kind", "name"}))
            raise BadInputError(f"these runs have no setting {factor!r}", remedy=remedy)
