"""What a row says of one option whose value may do harm, and the tests of values that rows use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from strakes.failover.cib import seconds
from strakes.failover.rules.rule import Severity

Bad = Callable[[str], bool]


def below(limit_s: float) -> Bad:
    """A time that is shorter; none where it is not understood."""
    return lambda value: bool(re.match(r"\d", value)) and seconds(value) < limit_s


def above(limit_s: float) -> Bad:
    return lambda value: seconds(value) > limit_s


def number_in(value: str) -> int | None:
    return int(value) if re.fullmatch(r"-?\d+", value) else None


def less(limit: int) -> Bad:
    return lambda value: (number := number_in(value)) is not None and number < limit


def more(limit: int) -> Bad:
    return lambda value: (number := number_in(value)) is not None and number > limit


def is_one_of(*values: str) -> Bad:
    return lambda value: value.lower() in values


def is_off(value: str) -> bool:
    return value.lower() in ("false", "no", "off", "0", "n")


def always(value: str) -> bool:
    """Whatever it is."""
    del value
    return True


def is_relative(value: str) -> bool:
    return bool(value) and not value.startswith("/")


@dataclass(frozen=True)
class Danger:
    """``place`` and ``option`` say where it stands: ``cluster`` (its properties), ``fencing`` (parameters of devices), ``meta`` (of services),
    ``op NAME``, the type of an agent, ``totem``, ``totem interface``, ``logging``, ``system`` (of Corosync), ``net``, ``disk``, ``options`` (of DRBD).

    ``bad`` which values do harm; ``example`` is one of them."""

    place: str
    option: str
    bad: Bad
    example: str
    severity: Severity
    reason: str
    remedy: str

    @property
    def suffix(self) -> str:
        """Tells two rows about one option apart."""
        return "harmful" if self.severity == "error" else "doubtful"
