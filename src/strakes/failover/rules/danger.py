"""What a row says of one option whose value may do harm, and the tests of values that rows use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from strakes.failover.cib_values import seconds
from strakes.failover.rules.rule import Severity

Bad = Callable[[str], bool]


def below(limit_s: float) -> Bad:
    """Return a test for times below a limit in seconds; a text that is no time does not count."""
    return lambda value: bool(re.match(r"\d", value)) and seconds(value) < limit_s


def above(limit_s: float) -> Bad:
    """Return a test for times above a limit in seconds."""
    return lambda value: seconds(value) > limit_s


def number_in(value: str) -> int | None:
    """Return a value as a whole number, None where it is none."""
    return int(value) if re.fullmatch(r"-?\d+", value) else None


def less(limit: int) -> Bad:
    """Return a test for whole numbers below a limit."""
    return lambda value: (number := number_in(value)) is not None and number < limit


def more(limit: int) -> Bad:
    """Return a test for whole numbers above a limit."""
    return lambda value: (number := number_in(value)) is not None and number > limit


def is_one_of(*values: str) -> Bad:
    """Return a test for values in a list, whatever their case."""
    return lambda value: value.lower() in values


def is_off(value: str) -> bool:
    """Tell whether a value switches something off."""
    return value.lower() in ("false", "no", "off", "0", "n")


def always(value: str) -> bool:
    """Accept any value as harmful."""
    del value
    return True


def is_relative(value: str) -> bool:
    """Tell whether a value is a path that does not begin at the root."""
    return bool(value) and not value.startswith("/")


@dataclass(frozen=True)
class Danger:
    """One option with the values that do harm.

    ``place`` says where the option is: ``cluster`` (its properties), ``fencing`` (parameters of devices), ``meta`` (of
    services), ``op NAME``, the type of an agent, ``totem``, ``totem interface``, ``logging``, ``system`` (of Corosync),
    ``net``, ``disk``, ``options`` (of DRBD). ``bad`` tells which values do harm; ``example`` is one of them.
    """

    place: str
    option: str
    bad: Bad
    example: str
    severity: Severity
    reason: str
    remedy: str

    @property
    def suffix(self) -> str:
        """Return what tells two rows about one option apart."""
        return "harmful" if self.severity == "error" else "doubtful"


@dataclass(frozen=True)
class OptionsOf:
    """Makes rows about the options of one place: which option, its values that do harm, one of them, why, a remedy."""

    place: str

    def error(self, option: str, bad: Bad, example: str, reason: str, remedy: str) -> Danger:
        """Make a row about values that are wrong."""
        return Danger(self.place, option, bad, example, "error", reason, remedy)

    def warning(self, option: str, bad: Bad, example: str, reason: str, remedy: str) -> Danger:
        """Make a row about values that are doubtful."""
        return Danger(self.place, option, bad, example, "warning", reason, remedy)
