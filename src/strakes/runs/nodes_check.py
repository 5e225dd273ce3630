"""Results of checking the nodes, and the differences between nodes. Pure except ``examine``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from strakes.base.units import format_bytes, format_value
from strakes.model.begun import begun
from strakes.model.phases import MetadataPhase
from strakes.model.plan import Plan
from strakes.runs.choice import Launch, engine_for

if TYPE_CHECKING:
    from strakes.runs.choice import Launch


# Wall clocks only date records. A larger offset, in seconds, makes logs of several nodes hard to compare.
CLOCK_LIMIT_S = 0.5
# A node with less than this share of the median is reported.
_SHARE = 0.7


@dataclass(frozen=True)
class CheckedNode:
    """One node. ``seen``: its view of the measured directory. ``link_bytes_per_s``: better direction of each round."""

    host: str
    strakes: str
    engine: str
    kernel: str
    cpus: int
    memory_available_bytes: int
    clock_ahead_s: float
    clock_uncertainty_s: float
    seen: Mapping[str, Any] | None = None
    link_bytes_per_s: tuple[float, ...] = ()

    @property
    def link(self) -> float | None:
        """Return the median rate of its link over the rounds, in bytes per second, or None if not measured."""
        return median(self.link_bytes_per_s) if self.link_bytes_per_s else None


@dataclass(frozen=True)
class Difference:
    """A node that is unlike the others. ``wrong``: with it nothing should be measured."""

    host: str
    what: str
    wrong: bool
    remedy: str = ""


def examine(
    launch: Launch, directory: str = "", file: str = "", content: str = ""
) -> tuple[list[CheckedNode], list[Difference]]:
    """Ask all nodes. ``file`` in ``directory`` says ``content`` to whoever sees the same directory.

    Raises EnvironmentLacksError when some do not answer.
    """
    from strakes.runs.nodes_hub import Hub

    with Hub(launch) as hub:
        clocks = {agent.host: hub.clock(agent) for agent in hub.agents}
        seen = hub.look(directory, file) if directory else {}
        links = hub.links()
        nodes = [
            CheckedNode(
                host=agent.host,
                strakes=str(agent.facts["strakes"]),
                engine=str(agent.facts["engine"]),
                kernel=str(agent.facts["kernel"]),
                cpus=int(agent.facts["cpus"]),
                memory_available_bytes=int(agent.facts["memory_available_bytes"]),
                clock_ahead_s=clocks[agent.host].ahead_s,
                clock_uncertainty_s=clocks[agent.host].uncertainty_s,
                seen=seen.get(agent.host),
                link_bytes_per_s=link_of(agent.host, links),
            )
            for agent in hub.agents
        ]
    return nodes, differences(nodes, content)


def link_of(host: str, links: Mapping[tuple[str, str], Sequence[float]]) -> tuple[float, ...]:
    """Return what a node's link carried in each round, sending or receiving.

    The slower of two nodes decides, so the better of its pairs counts.

    >>> link_of("b", {("a", "b"): [9.0, 9.0], ("b", "c"): [4.0, 5.0], ("c", "a"): [4.0, 4.0]})
    (9.0, 9.0)
    """
    own = [rates for pair, rates in links.items() if host in pair]
    return tuple(max(rates) for rates in zip(*own, strict=True)) if own else ()


def differences(nodes: Sequence[CheckedNode], content: str = "") -> list[Difference]:
    """Return what keeps nodes from being measured together and what would bend the figures, each with its host."""
    update = "Install the same version of strakes on all nodes."
    differing = [
        *_unlike(nodes, "strakes", lambda node: node.strakes, wrong=True, remedy=update),
        *_unlike(nodes, "engine", lambda node: node.engine or "none", wrong=True, remedy=update),
        *_directories(nodes, content),
        *_unlike(nodes, "kernel", lambda node: node.kernel),
        *_unlike(nodes, "processors", lambda node: str(node.cpus)),
        *_less(nodes, "free memory", lambda node: float(node.memory_available_bytes), format_bytes),
        *_less(nodes, "link", lambda node: node.link, lambda rate: format_value(rate, "B/s")),
    ]
    usual = median(node.clock_ahead_s for node in nodes) if nodes else 0.0
    for node in nodes:
        away = node.clock_ahead_s - usual
        if abs(away) > CLOCK_LIMIT_S:
            text = f"its wall clock is {abs(away):.3f} s {'ahead of' if away > 0 else 'behind'} the others"
            differing.append(
                Difference(
                    node.host,
                    text,
                    wrong=False,
                    remedy="Phases start together anyway; set the clock (NTP) so that the logs agree.",
                )
            )
    return differing


def _unlike(
    nodes: Sequence[CheckedNode],
    what: str,
    value: Callable[[CheckedNode], str],
    *,
    wrong: bool = False,
    remedy: str = "",
) -> list[Difference]:
    values = {node.host: value(node) for node in nodes}
    ((usual, _),) = Counter(values.values()).most_common(1) or [("", 0)]
    return [
        Difference(host, f"{what} {own}, the others {usual}", wrong, remedy)
        for host, own in values.items()
        if own != usual
    ]


def _less(
    nodes: Sequence[CheckedNode], what: str, value: Callable[[CheckedNode], float | None], write: Callable[[float], str]
) -> list[Difference]:
    values = {node.host: amount for node in nodes if (amount := value(node)) is not None}
    if not values:
        return []
    usual = median(values.values())
    return [
        Difference(host, f"{what} {write(float(amount))}, usual among them is {write(float(usual))}", wrong=False)
        for host, amount in values.items()
        if amount < _SHARE * usual
    ]


def _directories(nodes: Sequence[CheckedNode], content: str) -> list[Difference]:
    differing = []
    for node in nodes:
        seen = node.seen
        if seen is None:
            continue
        if "why" in seen:
            text = f"the directory cannot be reached on this node: {seen['why']}"
        elif content and seen["content"] != content:
            text = f"this node sees another directory of that name ({seen['file_system']} of {seen['source']})"
        elif seen["read_only"]:
            text = "the directory is mounted read-only on this node"
        else:
            continue
        differing.append(
            Difference(node.host, text, wrong=True, remedy="Mount the file system on that node, or leave the node out.")
        )
    return differing


_PHASES = 31
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Alignment:
    """How close together the ranks began.

    ``spreads_s``: of each phase, from the first rank's start to the last one's. ``clock_uncertainty_s``: its error.
    ``crowded``: some of the nodes share a machine that has fewer processors than there are nodes on it.
    """

    spreads_s: tuple[float, ...]
    clock_uncertainty_s: float
    crowded: bool = False

    @property
    def usual_s(self) -> float:
        """Median of the spreads, in seconds."""
        return median(self.spreads_s)


def measure_alignment(launch: Launch, nodes: int, workspace: Path) -> Alignment:
    """With one rank on each node, in a workspace that all of them see. Raises MeasurementError when the plan fails."""
    phases = tuple(
        MetadataPhase(f"create{number}", "file-create", "unique", items=1, files=f"set{number}")
        for number in range(_PHASES)
    )
    with engine_for(replace(launch, ranks=nodes, ranks_per_node=1)) as engine:
        result = engine.run(Plan(nodes, phases), workspace, "alignment", _LIMIT_S)
    if result.ended != "ok" and result.errors:
        raise result.errors[0].to_exception()
    starts = [start for sample in result.samples if (start := begun(sample)) is not None]
    uncertainty_s = max((start.clock_uncertainty_s for start in starts), default=0.0)
    return Alignment(tuple(start.apart_s for start in starts), uncertainty_s, any(start.crowded for start in starts))
