"""The files of booth, which lets one of several sites serve."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strakes.failover.setup import Setup

_FILES = re.compile(r"etc/booth/([\w.-]+)\.conf")
_DEFAULTS = {"expire": "600", "timeout": "5", "retries": "10", "acquire-after": "0"}


@dataclass(frozen=True)
class Booth:
    """One file of booth: its settings, its members and the settings of each ticket, those for all included."""

    name: str
    settings: Mapping[str, str]
    sites: tuple[str, ...]
    arbitrators: tuple[str, ...]
    tickets: Mapping[str, Mapping[str, str]]


def booths(setup: Setup) -> Iterator[Booth]:
    """Yield each file of booth."""
    for file, text in setup.texts.items():
        match = _FILES.fullmatch(file)
        if not match:
            continue
        settings: dict[str, str] = {}
        members: dict[str, list[str]] = {"site": [], "arbitrator": []}
        tickets: dict[str, dict[str, str]] = {}
        current = settings
        for line in text.splitlines():
            key, equals, value = (part.strip() for part in line.partition("#")[0].partition("="))
            value = value.strip("\"'")
            if key == "ticket":
                current = tickets.setdefault(value, {})
            elif key in members:
                members[key].append(value)
            elif equals:
                current[key] = value
        # What is said of the ticket with this name is said of all that follow.
        basic = tickets.pop("__defaults__", {})
        each = {name: {**_DEFAULTS, **basic, **own} for name, own in tickets.items()}
        yield Booth(match[1], settings, tuple(members["site"]), tuple(members["arbitrator"]), each)
