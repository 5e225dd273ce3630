"""The way from what was measured to what is asked for: along one dimension, with all others as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from strakes.predict.figure_levels import FigureLevels
from strakes.predict.scale import NOUNS, MeasuredLevel, Scale

_DIMENSIONS = ("clients", "ranks", "files", "mdts", "osts", "link")
_STEPS = 12


def axis_of(figure: FigureLevels, scale: Scale) -> str:
    """Return the dimension along which the way leads: the first that is asked to change, else the first measured."""
    changed = [name for name in _DIMENSIONS if getattr(scale, name) != getattr(figure.outermost.scale, name)]
    varied = [name for name in _DIMENSIONS if len({getattr(level.scale, name) for level in figure.comparable}) > 1]
    return next(iter(changed + varied), "ranks")


def way_to(figure: FigureLevels, scale: Scale) -> list[Scale]:
    """Return scales from the smallest measured to the largest of those measured and the one asked for.

    They lie in steps of one factor, and those that were measured or asked for are among them.
    """
    axis = axis_of(figure, scale)
    on_way = [level.scale for level in figure.comparable if is_on_way(level, scale, axis)]
    if axis == "link":
        low, high = sorted((1.0, scale.link))
        return [replace(scale, link=low * (high / low) ** (step / _STEPS)) for step in range(_STEPS + 1)]
    asked = max(1, getattr(scale, axis))
    low = min([asked, *(max(1, getattr(level.scale, axis)) for level in figure.comparable)])
    high = max([asked, *(getattr(each, axis) for each in on_way)])
    numbers = {round(low * (high / low) ** (step / _STEPS)) for step in range(_STEPS + 1)}
    numbers |= {asked, *(max(1, getattr(each, axis)) for each in on_way)}
    return [_at(scale, axis, number) for number in sorted(numbers)]


def _at(scale: Scale, axis: str, number: int) -> Scale:
    """Return the scale asked for with another number; more clients come with as many ranks each."""
    if axis == "clients":
        return replace(scale, clients=number, ranks=max(number, round(scale.ranks / scale.clients * number)))
    if axis == "ranks":
        return replace(scale, clients=min(scale.clients, number), ranks=number)
    changed: dict[str, Any] = {axis: number}
    return replace(scale, **changed)


def is_on_way(level: MeasuredLevel, scale: Scale, axis: str) -> bool:
    """Tell whether a level differs from the scale asked for in that dimension only."""
    if axis == "link":
        return not _off(level.scale, scale, axis)
    return level.scale == _at(scale, axis, max(1, getattr(level.scale, axis)))


def say_off_way(level: MeasuredLevel, scale: Scale, axis: str) -> str:
    """Return in words in what else a level differs.

    >>> say_off_way(MeasuredLevel(Scale(2, 2, 1), 0.0, 0.1), Scale(8, 8, 3), "clients")
    '1 metadata target'
    """
    return ", ".join(_off(level.scale, scale, axis))


def _off(measured: Scale, scale: Scale, axis: str) -> Sequence[str]:
    along = {"clients": ("clients", "ranks"), "ranks": ("ranks",)}.get(axis, (axis,))
    words = [
        f"{count:,} {NOUNS[name][count != 1]}"
        for name in NOUNS
        if name not in along and (count := getattr(measured, name)) != getattr(scale, name)
    ]
    each = measured.ranks / measured.clients
    if axis == "clients" and each != scale.ranks / scale.clients:
        words.append(f"{each:.3g} ranks a client" if each != 1 else "1 rank a client")
    return words
