"""``*.*.import``: a client's connection to one target, as the client sees it. Root only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strakes.targets.lustre.output import key_values, not_understood, number

_TOOL = "lctl get_param (import)"
# Before 2.14 without quotes.
_ADDRESS = re.compile(r"[^\s\[\],\"]+@[^\s\[\],\"]+")
# Among its flags, where an administrator took the target out.
DEACTIVATED = re.compile(r"\bIMPF_DEACTIVE\b")


@dataclass(frozen=True)
class Import:
    """``state`` is FULL when connected, IDLE when unused (it connects by itself), else DISCONN, CONNECTING, REPLAY...

    ``deactivated``: an administrator took the target out, whatever the state says.
    """

    device: str
    target: str
    state: str
    deactivated: bool
    address: str
    failover_addresses: tuple[str, ...]
    server_version: str
    attempts: int
    idle_s: int | None
    in_flight: int | None
    timeouts: int | None


def parse_import(text: str) -> Import:
    """Read it. Raises NotUnderstoodError."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        for key, value in key_values(line):
            values.setdefault(key, value)
    for key in (
        "name",
        "target",
        "state",
        "import_flags",
        "failover_nids",
        "current_connection",
        "connection_attempts",
    ):
        if not values.get(key):
            raise not_understood(_TOOL, f"no {key}")
    address = _ADDRESS.search(values["current_connection"])
    return Import(
        device=values["name"],
        target=values["target"].removesuffix("_UUID"),
        state=values["state"],
        deactivated=DEACTIVATED.search(values["import_flags"]) is not None,
        address=address[0] if address else "",
        failover_addresses=tuple(_ADDRESS.findall(values["failover_nids"])),
        server_version=values.get("target_version", ""),
        attempts=number(values["connection_attempts"], _TOOL),
        idle_s=_first_number(values.get("idle")),
        in_flight=_first_number(values.get("inflight")),
        timeouts=_first_number(values.get("timeouts")),
    )


def _first_number(text: str | None) -> int | None:
    """Return the number of "12 sec"."""
    return number(text.split()[0], _TOOL) if text else None
