"""``lfs check``: which servers answer this client. It reports those that do not on standard error, and succeeds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import not_understood, refusal

_ACTIVE = re.compile(r"^(\S+?):? active\.$")
_FAILING = re.compile(r"^(?:lfs check: )?error: check '([^']+)': (.+?)(?: \(\d+\))?$")


@dataclass(frozen=True)
class LfsCheck:
    """Names of devices ("labfs-OST0000-osc-ffff8880083a1800"): those that answer, and the others with the reason."""

    active: tuple[str, ...]
    failing: Mapping[str, str]


def check(kind: Literal["osts", "mds", "servers", "all"], path: str = "") -> Command[LfsCheck]:
    """Ask which servers answer."""
    return Command(("lfs", "check", kind, *([path] if path else [])), read_check)


def read_check(done: Completed) -> LfsCheck:
    """Read it. Raises StrakesError when nothing was checked."""
    active, failing = [], {}
    for line in done.stdout.splitlines():
        if match := _ACTIVE.match(line):
            active.append(match[1])
        elif line.strip() and done.status == 0:
            raise not_understood("lfs check", line)
    for line in done.stderr.splitlines():
        if match := _FAILING.match(line):
            failing[match[1]] = match[2]
    if not active and not failing:
        raise refusal(done, "the servers could not be checked")
    return LfsCheck(tuple(active), failing)
