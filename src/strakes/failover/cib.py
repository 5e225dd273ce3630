"""Pacemaker's configuration as the rules look at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from xml.etree import ElementTree as Xml

from strakes.errors import BadInputError

_FACTORS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "msec": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0}
# What older configurations call them.
_ROLES = {"Master": "Promoted", "Slave": "Unpromoted"}


@dataclass(frozen=True)
class Operation:
    name: str
    interval_s: float
    timeout_s: float
    role: str


@dataclass(frozen=True)
class Primitive:
    """``clone`` and ``group`` are the ids of what it is in; ``clone_meta`` are that clone's attributes."""

    id: str
    standard: str
    provider: str
    agent: str
    values: dict[str, str]
    meta: dict[str, str]
    operations: tuple[Operation, ...]
    clone: str = ""
    group: str = ""

    def operation(self, name: str, role: str = "") -> Operation | None:
        return next((one for one in self.operations if one.name == name and (not role or one.role == role)), None)

    @property
    def is_drbd(self) -> bool:
        return self.agent == "drbd"

    @property
    def is_mount(self) -> bool:
        return self.agent in ("Filesystem", "Lustre")


class Cib:
    """Raises BadInputError when the text is no CIB."""

    def __init__(self, text: str, where: str) -> None:
        try:
            self.root = Xml.fromstring(text)
        except Xml.ParseError as error:
            raise BadInputError("the CIB is not valid XML", where=where, why=str(error)) from error
        if self.root.tag != "cib":
            raise BadInputError("this is no CIB", where=where, why=f"its root is <{self.root.tag}>")

    @cached_property
    def properties(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for block in self.root.iterfind("./configuration/crm_config/cluster_property_set"):
            found |= _values(block)
        return found

    @cached_property
    def defaults(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for block in self.root.iterfind("./configuration/rsc_defaults/meta_attributes"):
            found |= _values(block)
        return found

    @cached_property
    def primitives(self) -> tuple[Primitive, ...]:
        resources = self.root.find("./configuration/resources")
        return tuple(_walk(resources, "", "")) if resources is not None else ()

    @cached_property
    def devices(self) -> tuple[Primitive, ...]:
        """Those of fencing."""
        return tuple(one for one in self.primitives if one.standard == "stonith")

    @cached_property
    def clones(self) -> dict[str, dict[str, str]]:
        """Id -> meta attributes."""
        found = {}
        for clone in [*self.root.iter("clone"), *self.root.iter("master")]:
            meta: dict[str, str] = {"promotable": "true"} if clone.tag == "master" else {}
            for block in clone.iterfind("./meta_attributes"):
                meta |= _values(block)
            found[clone.get("id", "")] = meta
        return found

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node.get("uname", "") for node in self.root.iterfind("./configuration/nodes/node"))

    def constraints(self, tag: str) -> list[dict[str, str]]:
        return [dict(one.attrib) for one in self.root.iterfind(f"./configuration/constraints/{tag}")]

    @cached_property
    def levels(self) -> list[dict[str, str]]:
        return [dict(one.attrib) for one in self.root.iterfind("./configuration/fencing-topology/fencing-level")]

    @cached_property
    def alerts(self) -> int:
        return len(self.root.findall("./configuration/alerts/alert"))

    def fences(self, device: Primitive) -> tuple[str, ...]:
        """The nodes that a device powers off, as far as it says."""
        listed = re.split(r"[\s,]+", device.values.get("pcmk_host_list", "").strip())
        mapped = [pair.partition(":")[0] for pair in re.split(r"[;\s]+", device.values.get("pcmk_host_map", "").strip())]
        return tuple(dict.fromkeys(name for name in (*listed, *mapped) if name))

    def delay_s(self, device: Primitive) -> float:
        """The static one, in the first of its words that is there."""
        value = device.values.get("pcmk_delay_base", "") or device.values.get("delay", "")
        return seconds(value.rpartition(":")[2]) if value else 0.0


def seconds(text: str) -> float:
    """As Pacemaker reads times; 0 for what it does not understand.

    >>> seconds("10s"), seconds("2min"), seconds("500ms"), seconds("90"), seconds("")
    (10.0, 120.0, 0.5, 90.0, 0.0)
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", text)
    return float(match[1]) * _FACTORS.get(match[2], 0.0) if match else 0.0


def score(text: str) -> float:
    """A score; INFINITY is one too."""
    if text.lstrip("+-").upper() == "INFINITY":
        return float("-inf") if text.startswith("-") else float("inf")
    return float(text) if re.fullmatch(r"[+-]?\d+", text) else 0.0


def _walk(parent: Xml.Element, clone: str, group: str) -> Iterator[Primitive]:
    for element in parent:
        identity = element.get("id", "")
        if element.tag == "primitive":
            yield _primitive(element, clone, group)
        elif element.tag in ("clone", "master"):
            yield from _walk(element, identity, group)
        elif element.tag == "group":
            yield from _walk(element, clone, identity)


def _primitive(element: Xml.Element, clone: str, group: str) -> Primitive:
    values: dict[str, str] = {}
    meta: dict[str, str] = {}
    for block in element.iterfind("./instance_attributes"):
        values |= _values(block)
    for block in element.iterfind("./meta_attributes"):
        meta |= _values(block)
    operations = tuple(
        Operation(
            one.get("name", ""),
            seconds(one.get("interval", "0")),
            seconds(one.get("timeout", "")),
            _ROLES.get(one.get("role", ""), one.get("role", "")),
        )
        for one in element.iterfind("./operations/op")
    )
    get = element.get
    return Primitive(get("id", ""), get("class", ""), get("provider", ""), get("type", ""), values, meta, operations, clone, group)


def _values(block: Xml.Element) -> dict[str, str]:
    return {pair.get("name", ""): pair.get("value", "") for pair in block.iterfind("./nvpair")}
