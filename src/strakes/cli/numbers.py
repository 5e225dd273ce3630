"""Parameter types for numbers; errors name the accepted range."""

from __future__ import annotations

import math
import re
from typing import Any

import click

_SPANS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*", re.ASCII)


class WholeNumber(click.IntRange):
    """A whole number within limits."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"expected a whole number {_within(self)}, not {value!r}", param, ctx)
        return number


class NumberRange(click.FloatRange):
    """A number within limits; NaN is refused."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"expected a number {_within(self)}, not {value!r}", param, ctx)
        return number


class NumberList(click.ParamType[str]):
    """A list of numbers and ranges, as in a plan: 0-3,8."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the list as it was typed."""
        if not _SPANS.fullmatch(str(value)):
            self.fail(f"expected a list of numbers such as 0-3,8, not {value!r}", param, ctx)
        return str(value)


def _within(limits: click.IntRange | click.FloatRange) -> str:
    """
    >>> _within(WholeNumber(1, 65536)), _within(WholeNumber(min=1)), _within(NumberRange(0, min_open=True))
    ('from 1 to 65,536', 'of at least 1', 'above 0')
    >>> _within(NumberRange(0, 0.5, max_open=True))
    'from 0 to below 0.5'
    """
    low, high = limits.min, limits.max
    assert low is not None
    if high is None:
        return f"above {low:,}" if limits.min_open else f"of at least {low:,}"
    return f"from {low:,} to below {high:,}" if limits.max_open else f"from {low:,} to {high:,}"
