"""Bounds of the waiting time of clients, from the configured times of detection, fencing, stop and start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strakes.failover.model import Service
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules_fencing_devices import devices_for
from strakes.failover.setup import Setup
from strakes.failover.times import amounts_of

# Assumed minimum times in seconds for a power-off and for the start of a resource.
_POWER_OFF_S, _AGENT_S = 1.0, 0.1


@dataclass(frozen=True, order=True)
class Span:
    """Lower and upper bound of a time in seconds."""

    least_s: float = 0.0
    most_s: float = 0.0

    def __add__(self, other: Span) -> Span:
        return Span(self.least_s + other.least_s, self.most_s + other.most_s)

    @property
    def text(self) -> str:
        """Return the bounds in words, such as "2 s to 3 min". If the upper bound is 0, return an empty text."""
        return f"{_rough(self.least_s)} to {_rough(self.most_s)}" if self.most_s else ""


NO_WAIT = Span()


def _rough(value_s: float) -> str:
    return f"{value_s:.0f} s" if value_s < 120 else f"{value_s / 60:.0f} min"


@dataclass(frozen=True)
class Times:
    """Durations of the phases of a fail-over. ``looks_s``: resource -> time until a monitor notices its failure."""

    silence: Span
    delays_s: dict[str, float]
    power_off: Span
    starts: dict[str, Span]
    stops: dict[str, Span]
    looks_s: dict[str, float]
    watch: Span

    @classmethod
    def of(cls, setup: Setup, services: Mapping[str, Service]) -> Times:
        """Return the times in the configuration files. ``services``: target -> service."""
        cib = setup.pacemaker
        first = {name: amounts[0].value for name, amounts in amounts_of(setup).items() if amounts}
        levels = max((len(cib.levels_of(node)) for node in setup.node_names), default=0) or 1
        watchers = filter(watches_network, cib.primitives)
        return cls(
            silence=Span(first["token"], first["token"] + first["consensus"] + 2.0),
            delays_s={
                node: max((cib.delay_s(device, node) for device in devices_for(cib, node)), default=0.0)
                for node in setup.node_names
            },
            power_off=Span(_POWER_OFF_S, first["fencing-limit"] * levels),
            starts={name: _operations(own.members, "start") for name, own in services.items()},
            stops={name: _operations(own.members, "stop") for name, own in services.items()},
            looks_s={service.id: _interval_s(service) + service.timeout_s("monitor") for service in cib.primitives},
            watch=Span(0.0, max((_interval_s(one) + one.timeout_s("monitor") + 10.0 for one in watchers), default=0.0)),
        )

    def fencing(self, node: str) -> Span:
        """Return the bounds of the time to fence a node, without random delays."""
        delay_s = self.delays_s.get(node, 0.0)
        return Span(delay_s, delay_s) + self.power_off

    def start(self, targets: Iterable[str], *, stop: bool = False) -> Span:
        """Return the bounds of the start time of the slowest target; with ``stop``, after the slowest stop."""
        names = list(targets)
        slowest = max((self.starts.get(name, NO_WAIT) for name in names), default=NO_WAIT)
        return slowest + max((self.stops.get(name, NO_WAIT) for name in names if stop), default=NO_WAIT)


def watches_network(service: Primitive) -> bool:
    """Return whether a resource monitors a network and stores the result in a node attribute, as ping does."""
    return bool(service.watched_attribute) and service.agent != "healthLUSTRE"


def _operations(members: Iterable[Primitive], name: str) -> Span:
    limits = [member.timeout_s(name) for member in members]
    return Span(_AGENT_S * len(limits), sum(limits))


def _interval_s(service: Primitive) -> float:
    return max((one.interval_s for one in service.operations if one.name == "monitor"), default=0.0)
