"""Faults of the network: an interface that is down, and loss of all messages to one other machine.

They are caused on this machine, or through ``--via`` on a machine that has a second network: while an interface is
down, the undoing must reach the machine another way.
"""

from __future__ import annotations

import re
import shlex

from strakes.base.errors import BadInputError
from strakes.control.drill_undo import RunCommand
from strakes.control.fault import Ask
from strakes.control.fault_command import OneCommand, each_of, through
from strakes.targets.command import Completed, Runner, run

# A locally administered MAC address that no interface has.
_NOBODY = "02:00:00:00:00:99"
_WAY = re.compile(r"\bdev (?P<card>\S+)")
_STATES = re.compile(r"\s(?:linkdown|dead|onlink|pervasive)\b")


class _NetworkFault(OneCommand):
    undo: RunCommand

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        self._run, self._via = run_one, ask.via

    def _ip(self, *words: str) -> Completed:
        return self._run(through(self._via, ("ip", *words)))

    def _set(self, strike: tuple[str, ...], undo: tuple[str, ...]) -> None:
        self._strike = through(self._via, strike)
        self.undo = RunCommand(through(self._via, undo))


class CardDown(_NetworkFault):
    """A network card that is switched off; its addresses and routes come back with it."""

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Look at the card. Raises BadInputError where it is not up."""
        super().__init__(ask, run_one)
        if not ask.nic:
            raise BadInputError("--nic is required", remedy="Name the network card to switch off: --nic eth1.")
        self._card = ask.nic
        if why := self.lacking():
            raise BadInputError("the network card cannot be switched off", where=ask.nic, why=why)
        restore = [f"ip link set dev {shlex.quote(ask.nic)} up", *self._addresses(), *self._routes()]
        self._set(("ip", "link", "set", "dev", ask.nic, "down"), ("sh", "-c", each_of(restore)))
        self.text = f"switch the network card off: {shlex.join(self._strike)}"

    def lacking(self) -> str:
        """Return why the card is not up, empty when it is."""
        seen = self._ip("-o", "link", "show", "dev", self._card)
        if seen.status != 0:
            return seen.stderr.strip()
        return "" if re.search(r"[<,]UP[,>]", seen.stdout) else "it is down"

    def _addresses(self) -> list[str]:
        """Return commands that restore the IPv6 addresses, which an interface loses when it goes down."""
        shown = self._ip("-o", "-6", "address", "show", "dev", self._card, "scope", "global", "permanent").stdout
        card = shlex.quote(self._card)
        return [f"ip -6 address replace {address} dev {card}" for address in re.findall(r"\binet6 (\S+)", shown)]

    def _routes(self) -> list[str]:
        """Return what gives back the routes, those to gateways last: they need the others."""
        card = shlex.quote(self._card)
        routes = []
        for version in ("-4", "-6"):
            shown = self._ip(version, "route", "show", "dev", self._card).stdout.splitlines()
            lines = [_STATES.sub("", line).strip() for line in shown if "proto kernel" not in line]
            routes += [f"ip {version} route replace {line} dev {card}" for line in sorted(lines, key=_has_gateway)]
        return routes


class OneWayLoss(_NetworkFault):
    """Loss of all messages to one machine on the same network; messages from it arrive."""

    def __init__(self, ask: Ask, run_one: Runner = run) -> None:
        """Look for the way. Raises BadInputError where it leads through a gateway."""
        super().__init__(ask, run_one)
        if not ask.peer:
            raise BadInputError("--peer is required", remedy="Give the address of the other machine: --peer 10.1.0.2.")
        way = self._ip("-o", "route", "get", ask.peer)
        card = _WAY.search(way.stdout)
        if way.status != 0 or card is None or " via " in way.stdout or card["card"] == "lo":
            raise BadInputError(
                "packets to this machine cannot be dropped without affecting others",
                where=ask.peer,
                why=way.stderr.strip() or f"it is not a neighbour on an Ethernet: {way.stdout.strip()}",
                remedy="Give the address of a machine on the same network, or use --fault-command.",
            )
        entry = (ask.peer, "dev", card["card"])
        if "PERMANENT" in self._ip("neigh", "show", *entry).stdout:
            raise BadInputError(
                "the hardware address of the other machine is set by hand on this one",
                where=f"{ask.peer} on {card['card']}",
                remedy="strakes could not be sure to restore it. Use --fault-command and --restore-command.",
            )
        self._set(
            ("ip", "neigh", "replace", *entry, "lladdr", _NOBODY, "nud", "permanent"),
            ("ip", "neigh", "flush", "to", *entry, "nud", "permanent"),
        )
        self.text = f"drop all messages to {ask.peer}: {shlex.join(self._strike)}"


def _has_gateway(route: str) -> bool:
    return " via " in route
