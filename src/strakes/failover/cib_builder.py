"""Build a CIB from statements of ``crm`` and ``pcs``, or from Heartbeat's haresources file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from xml.etree import ElementTree as Xml

from strakes.failover.known_options import advised_times, options_of, resource_agents

_STANDARDS = ("ocf", "stonith", "lsb", "systemd", "service", "upstart", "nagios")
_SECTIONS = ("crm_config", "nodes", "resources", "constraints", "fencing-topology", "rsc_defaults", "op_defaults")
Pairs = Mapping[str, str]
_NONE: Pairs = MappingProxyType({})
# Attributes of an expression in a rule, and of the date_spec or duration inside the expression.
Term = tuple[dict[str, str], dict[str, str]]
Member = tuple[str, str]  # (resource id, role or action); the second may be empty


@dataclass(frozen=True)
class Words:
    """A parsed statement of crm or pcs: settings (``a=b``), blocks (``op NAME a=b``) and other words (``plain``)."""

    plain: tuple[str, ...]
    settings: dict[str, str]
    blocks: tuple[tuple[str, str, dict[str, str]], ...]

    def block(self, name: str) -> dict[str, str]:
        """Return the merged settings after a keyword such as ``meta``."""
        return {key: value for block, _, pairs in self.blocks if block == name for key, value in pairs.items()}


def read_words(words: Iterable[str], blocks: Sequence[str]) -> Words:
    """Parse a statement. ``blocks``: keywords that begin a block, such as ``op`` and ``meta``."""
    plain, settings, found = list[str](), dict[str, str](), list[tuple[str, str, dict[str, str]]]()
    for word in words:
        key, equals, value = word.partition("=")
        if word in blocks:
            found.append((word, "", {}))
        elif equals and key:
            (found[-1][2] if found else settings)[key.removeprefix("$")] = value
        elif found and not found[-1][1] and not found[-1][2]:
            found[-1] = (found[-1][0], word, {})
        elif found and found[-1][0] == "op":
            # One ``op`` may precede several operations: op start timeout=60s stop timeout=60s.
            found.append(("op", word, {}))
        else:
            plain.append(word)
    return Words(tuple(plain), settings, tuple(found))


class CibBuilder:
    """A CIB under construction."""

    def __init__(self) -> None:
        self.nodes_assumed = False
        self.undefined: list[str] = []  # descriptions of problems in the statements
        self._root = Xml.Element(
            "cib", {"validate-with": "pacemaker-3.7", "epoch": "1", "num_updates": "0", "admin_epoch": "0"}
        )
        configuration = Xml.SubElement(self._root, "configuration")
        self._sections = {name: Xml.SubElement(configuration, name) for name in _SECTIONS}
        Xml.SubElement(self._root, "status")

    @property
    def text(self) -> str:
        """Return the CIB as XML. Ids with placeholders such as ${NAME} or <NAME> are made valid."""
        for element in self._root.iter():
            for key in ("id", "rsc", "with-rsc", "first", "then", "devices", "template"):
                if key in element.attrib:
                    element.set(key, re.sub(r"[${}<>\[\]()]", "_", element.attrib[key]))
        return Xml.tostring(self._root, encoding="unicode")

    @property
    def node_names(self) -> list[str]:
        """Return the names of the nodes added to the CIB."""
        return [node.get("uname", "") for node in self._sections["nodes"]]

    def find(self, identity: str) -> Xml.Element | None:
        """Return the resource with this id, or None."""
        return next((one for one in self._sections["resources"].iter() if one.get("id") == identity), None)

    def properties(self, pairs: Pairs, section: str = "crm_config") -> None:
        """Set cluster properties, or the defaults of ``rsc_defaults`` or ``op_defaults``."""
        tag = "cluster_property_set" if section == "crm_config" else "meta_attributes"
        self._set(self._sections[section], tag, section, pairs)

    def node(self, name: str, attributes: Pairs | None = None, identity: str = "") -> None:
        """Add a node if it does not exist, and set its attributes. ``identity``: id, by default the name."""
        nodes = self._sections["nodes"]
        found = next((one for one in nodes if one.get("uname") == name), None)
        if found is None:
            found = Xml.SubElement(nodes, "node", id=identity or name, uname=name)
        if attributes:
            self._set(found, "instance_attributes", f"node-{name}", attributes)

    def primitive(self, identity: str, agent: str, words: Words, *, standard: str = "") -> Xml.Element:
        """Add a resource with its parameters, meta attributes and operations."""
        element = self._statement("resources", "primitive", identity)
        if agent.startswith("@"):
            element.set("template", agent[1:])
        else:
            element.attrib |= _agent(agent, standard)
        self.change(identity, words)
        return element

    def change(self, identity: str, words: Words) -> None:
        """Set parameters, meta attributes and operations of an existing resource."""
        element = self.find(identity)
        if element is None:
            return
        self._set(element, "instance_attributes", identity, words.settings | words.block("params"))
        self._set(element, "meta_attributes", identity, words.block("meta"))
        for kind, name, pairs in words.blocks:
            if kind == "op" and name:
                self.operation(element, name, pairs)

    def operation(self, element: Xml.Element, name: str, pairs: Pairs) -> None:
        """Add an operation to a resource."""
        operations = element.find("./operations")
        if operations is None:
            operations = Xml.SubElement(element, "operations")
        identity = pairs.get("id", f"{element.get('id')}-{name}-{len(operations)}")
        known = options_of("operation").keys() - {"OCF_CHECK_LEVEL"}
        level = {key: value for key, value in pairs.items() if key not in known}
        given = {key: value for key, value in pairs.items() if key not in level}
        added = self._add(operations, "op", identity, {"interval": "0s"} | given | {"id": identity, "name": name})
        if level:
            self._set(added, "instance_attributes", identity, level)

    def advised_operations(self, element: Xml.Element, *, timeouts: bool = False) -> None:
        """Add all operations that the agent advises, except monitors. ``timeouts``: also set missing time-outs."""
        for name, limit in times_of(element.attrib).items():
            given = element.findall(f"./operations/op[@name='{name}']")
            if not given and name != "monitor":
                self.operation(element, name, {"timeout": f"{limit:g}s"})
            for operation in given if timeouts else ():
                operation.attrib.setdefault("timeout", f"{limit:g}s")

    def group(self, identity: str, members: Sequence[str], meta: Pairs = _NONE, place: Pairs = _NONE) -> None:
        """Move resources into a new or existing group. ``place``: {"before": ID} or {"after": ID} of a member."""
        group = self.find(identity)
        if group is None:
            group = self._add(self._sections["resources"], "group", identity)
        self._adopt(group, members)
        for side, anchor in place.items():
            places = {one.get("id", ""): float(number) for number, one in enumerate(group)}
            places |= dict.fromkeys(members, places.get(anchor, 0.0) + (0.5 if side == "after" else -0.5))
            group[:] = sorted(group, key=lambda one: places[one.get("id", "")])
        self._set(group, "meta_attributes", identity, meta)

    def clone(self, identity: str, member: str, meta: Pairs, *, promotable: bool = False) -> None:
        """Put a resource or group into a new clone."""
        inner = self.find(member)
        clone = self._statement("resources", "clone", identity)
        # The new clone replaced any older clone with its id. Add the member again if the older clone contained it.
        self._sections["resources"].extend([inner] if inner is not None and self.find(member) is None else [])
        self._set(clone, "meta_attributes", identity, ({"promotable": "true"} if promotable else {}) | dict(meta))
        self._adopt(clone, [member])

    def change_id(self, member: str, name: str) -> None:
        """Replace the name of a resource in all constraints."""
        for element in self._sections["constraints"].iter():
            for key in ("rsc", "with-rsc", "first", "then", "id" if element.tag == "resource_ref" else "rsc"):
                if element.get(key) == member:
                    element.set(key, name)

    def constraint(self, tag: str, identity: str, attributes: Pairs) -> Xml.Element:
        """Add a constraint. A resource written as ``/X/`` or ``regexp%X`` is a pattern of resource ids."""
        if pattern := re.fullmatch(r"/(.+)/|regexp%(.+)", attributes.get("rsc", "")):
            attributes = {**attributes, "rsc": "", "rsc-pattern": pattern[1] or pattern[2]}
        given, number = {key: value for key, value in attributes.items() if value}, len(self._sections["constraints"])
        return self._statement("constraints", tag, identity or f"{tag.removeprefix('rsc_')}-{number + 1}", given)

    def colocation(self, identity: str, near: Member, far: Member, score: str = "INFINITY") -> None:
        """Add a colocation. ``near``: resource that must run on the node of the resource ``far``."""
        given = {"rsc": near[0], "with-rsc": far[0], "score": score, "rsc-role": near[1], "with-rsc-role": far[1]}
        self.constraint("rsc_colocation", identity, given)

    def order(self, identity: str, first: Member, then: Member, options: Pairs) -> None:
        """Add an order constraint: the action of ``then`` comes after the action of ``first``."""
        given = {"first": first[0], "then": then[0], "first-action": first[1], "then-action": then[1]}
        self.constraint("rsc_order", identity, given | dict(options))

    def resource_set(self, constraint: Xml.Element, members: Iterable[str], attributes: Pairs) -> None:
        """Add a resource set to a constraint."""
        identity = f"{constraint.get('id')}-set-{len(constraint)}"
        given = {key: value for key, value in attributes.items() if value}
        found = Xml.SubElement(constraint, "resource_set", {"id": identity} | given)
        for member in members:
            Xml.SubElement(found, "resource_ref", id=member)

    def rule(self, constraint: Xml.Element, score: str, terms: Iterable[Term], operator: str, role: str) -> None:
        """Add a rule with the expressions ``terms``. ``score``: number, or node attribute with the score."""
        identity = f"{constraint.get('id')}-rule{len(constraint) or ''}"
        key = "score" if re.fullmatch(r"[+-]?(\d+|(?i:inf(inity)?))", score) else "score-attribute"
        given = {"id": identity, key: score, "boolean-op": operator} | ({"role": role} if role else {})
        found = Xml.SubElement(constraint, "rule", given)
        unread: Term = ({"attribute": "unknown", "operation": "defined"}, {})
        for number, (term, inner) in enumerate([*terms] or [unread]):
            own, tag = {"id": f"{identity}-{number}"}, "expression" if "attribute" in term else "date_expression"
            part = Xml.SubElement(found, tag, own | term)
            if inner:
                tag = "date_spec" if term["operation"] == "date_spec" else "duration"
                Xml.SubElement(part, tag, {"id": f"{identity}-{number}-{tag}"} | inner)

    def level(self, target: str, index: str, devices: Iterable[str]) -> None:
        """Add a fencing level; ``target`` may be a pattern such as ``regexp%n[12]``."""
        topology = self._sections["fencing-topology"]
        kind, _, name = target.rpartition("%")
        given = {"target-pattern" if kind.startswith("regexp") else "target": name}
        identity = f"fl-{len(topology) + 1}"
        self._add(topology, "fencing-level", identity, given | {"index": index, "devices": ",".join(devices)})

    def prune(self) -> None:
        """Remove empty groups, empty clones, and constraints that name unknown resources."""
        resources, constraints = self._sections["resources"], self._sections["constraints"]
        for parent in (*resources.findall("./clone"), resources):
            parent[:] = [one for one in parent if one.tag not in ("group", "clone") or set(one.iter("primitive"))]
        known = {one.get("id") for one in resources.iter()}
        for one in list(constraints):
            names = [one.get(key) for key in ("rsc", "with-rsc", "first", "then") if key in one.attrib]
            names += [reference.get("id") for reference in one.iter("resource_ref")]
            if not known.issuperset(names):
                constraints.remove(one)
                lacking = ", ".join(name for name in names if name and name not in known)
                self.undefined.append(f"{one.get('id')} names {lacking}")

    def _statement(self, section: str, tag: str, identity: str, attributes: Pairs | None = None) -> Xml.Element:
        for parent in list(self._sections[section].iter()):
            parent[:] = [one for one in parent if one.get("id") != identity]
        return self._add(self._sections[section], tag, identity, attributes)

    def _add(self, parent: Xml.Element, tag: str, identity: str, attributes: Pairs | None = None) -> Xml.Element:
        return Xml.SubElement(parent, tag, {"id": identity} | dict(attributes or {}))

    def _adopt(self, parent: Xml.Element, members: Iterable[str]) -> None:
        for name in members:
            member = self.find(name)
            if member is None:
                self.undefined.append(f"{parent.get('id')} names {name}")
            elif member is not parent:
                for other in self._sections["resources"].iter():
                    if member in list(other):
                        other.remove(member)
                parent.append(member)

    def _set(self, parent: Xml.Element, tag: str, identity: str, pairs: Pairs) -> None:
        if not pairs:
            return
        block = parent.find(f"./{tag}")
        if block is None:
            block = Xml.Element(tag, id=f"{identity}-{tag}")
            parent.insert(0, block)
        for name, value in pairs.items():
            found = next((pair for pair in block if pair.get("name") == name), None)
            if found is None:
                found = self._add(block, "nvpair", f"{identity}-{tag}-{name}", {"name": name})
            found.set("value", value)


def times_of(agent: Mapping[str, str]) -> dict[str, float]:
    """Return operation -> time-out in seconds that the agent's metadata advises; empty for an unknown agent."""
    kind, unit = agent.get("type", ""), "systemd" if agent.get("class") == "systemd" else ""
    return {**advised_times(unit or f"least:{kind}"), **advised_times(f"{agent.get('provider')}:{kind}")}


def _agent(text: str, standard: str) -> dict[str, str]:
    first, *rest = [part for part in text.split(":") if part]
    if standard:
        return {"class": standard, "type": text.removeprefix(f"{standard}:")}
    if first in _STANDARDS and rest:
        if first == "ocf":
            return {"class": "ocf", "provider": rest[0], "type": rest[-1]}
        return {"class": first, "type": ":".join(rest)}
    if rest:
        return {"class": "ocf", "provider": first, "type": rest[-1]}
    providers = [name.partition(":")[0] for name in resource_agents() if name.endswith(f":{text}")]
    provider = next((one for one in ("heartbeat", *providers) if one in providers), "heartbeat")
    return {"class": "ocf", "provider": provider, "type": text}
