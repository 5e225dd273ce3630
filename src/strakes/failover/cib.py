"""Pacemaker's configuration with the values in force: templates, groups, defaults and references are resolved."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise
from xml.etree import ElementTree as Xml

from strakes.base.errors import BadInputError
from strakes.failover.facts import TRUE, hide_secrets, is_true, renamed, role_of, score, seconds
from strakes.failover.limits import MOST_RESOURCES, REPLICAS, matches, too_much
from strakes.failover.pacemaker_resources import (
    DEFAULT_TIMEOUT_S,
    Colocation,
    Location,
    Operation,
    Order,
    Primitive,
    Ties,
)

# Pacemaker's tools refuse the CIB of a newer release, so these numbers replace newer version numbers.
_OLD_FEATURES, _OLD_SCHEMA = "3.0.14", "pacemaker-3.7"
# Cluster properties of old releases, which Pacemaker's current schema forbids.
_GONE = re.compile("cluster-infrastructure|expected-quorum-votes|(default|is-managed)-.*|[a-z]+_[a-z_]+")
# Sections that Pacemaker's schema requires but a hand-written CIB may lack.
_SECTIONS = ("crm_config", "nodes", "resources", "constraints")
_NAME_OTHERS = ("obj_ref", "resource_ref")  # Elements whose attribute ``id`` is a reference to another element.


class Cib:
    """Pacemaker's cluster information base. Raises BadInputError for a text that is not a CIB."""

    def __init__(self, text: str, where: str) -> None:
        try:
            self.root = Xml.fromstring(text.encode(errors="replace").decode())  # For a str, no encoding is looked up.
        except Xml.ParseError as error:
            raise BadInputError("the CIB is not valid XML", where=where, why=str(error)) from error
        if why := too_much(self.root):
            raise BadInputError("this CIB cannot be checked", where=where, why=why)
        if self.root.tag != "cib":
            raise BadInputError("this is not a CIB", where=where, why=f"the root element is <{self.root.tag}>")
        own = (element for element in self.root.iter() if element.tag not in _NAME_OTHERS)
        self._sets_of: dict[str, list[Xml.Element]] = {}
        self._by_id = {element.get("id", ""): element for element in own if element.get("id")}

    @cached_property
    def properties(self) -> dict[str, str]:
        """Return cluster properties by their names in Pacemaker 2. Values under Pacemaker 3 names take precedence."""
        given, names = self._merged("./configuration/crm_config/cluster_property_set"), renamed("properties")
        plain = {name: value for name, value in given.items() if name not in names}
        return plain | {names[name]: value for name, value in given.items() if name in names}

    def readable(self) -> Xml.Element:
        """Return a copy of the CIB that every Pacemaker release accepts."""
        root = copy.deepcopy(self.root)
        configuration = root.find("./configuration")
        configuration = Xml.SubElement(root, "configuration") if configuration is None else configuration
        for name in _SECTIONS:
            if configuration.find(name) is None:
                Xml.SubElement(configuration, name)
        hide_secrets(root)
        root.set("crm_feature_set", _OLD_FEATURES)
        if _version(root.get("validate-with", "")) > _version(_OLD_SCHEMA):
            root.set("validate-with", _OLD_SCHEMA)
        for resource in root.iterfind(".//*[@class='nagios']"):
            # crm_simulate aborts at the first action of a resource of class nagios, so replace such a resource.
            resource.attrib |= {"class": "ocf", "provider": "heartbeat", "type": "Dummy"}
        for properties in root.iterfind("./configuration/crm_config/cluster_property_set"):
            for pair in properties.findall("./nvpair"):
                name = pair.get("name", "")
                pair.set("name", renamed("properties").get(name, name))
                if _GONE.fullmatch(name) and root.get("validate-with", "").startswith("pacemaker-3"):
                    properties.remove(pair)
        return root

    @cached_property
    def operation_defaults(self) -> dict[str, str]:
        """Return the settings of ``op_defaults``, which apply to all operations."""
        return self._merged("./configuration/op_defaults/meta_attributes")

    @cached_property
    def primitives(self) -> tuple[Primitive, ...]:
        """Return all resources and fencing devices, with their effective values."""
        resources = self.root.find("./configuration/resources")
        return tuple(self._walk(resources, (), "", "")) if resources is not None else ()

    @cached_property
    def services(self) -> tuple[Primitive, ...]:
        """Return all resources except fencing devices."""
        return tuple(one for one in self.primitives if one.standard != "stonith")

    @cached_property
    def devices(self) -> tuple[Primitive, ...]:
        """Return the fencing devices, except those with ``target-role=Stopped``."""
        present = (one for one in self.primitives if one.standard == "stonith")
        return tuple(one for one in present if one.meta.get("target-role") != "Stopped")

    @cached_property
    def clones(self) -> dict[str, dict[str, str]]:
        """Return id -> meta attributes of clones and bundles."""
        found = {}
        for clone in [*self.root.iter("clone"), *self.root.iter("master")]:
            meta: dict[str, str] = {"promotable": "true"} if clone.tag == "master" else {}
            found[clone.get("id", "")] = meta | self._block(clone, "meta_attributes")
        for bundle in self.root.iter("bundle"):
            promoted = any((each.get("promoted-max") or each.get("masters") or "0") != "0" for each in bundle)
            meta = {"promotable": "true"} if promoted else {}
            found[bundle.get("id", "")] = self._block(bundle, "meta_attributes") | meta
        return found

    @cached_property
    def inside_clones(self) -> frozenset[str]:
        """Return the ids of the resources and groups that are cloned."""
        clones = [*self.root.iter("clone"), *self.root.iter("master")]
        inner = (one for clone in clones for tag in ("primitive", "group") for one in clone.iter(tag))
        return frozenset(one.get("id", "") for one in inner)

    def promotable(self, clone: str) -> bool:
        """Return whether a clone, given by its id, can have promoted copies."""
        return is_true(self.clones.get(clone, {}).get("promotable", "false"))

    def is_stacked(self, clone: str) -> bool:
        """Return whether a clone is DRBD stacked on DRBD or on an IP address, and so replicates to another cluster."""
        own = {clone, *(one.id for one in self.ties.members(clone))}
        names = [one.first for one in self.orders if one.then in own]
        names += [far for (near, _), (far, _) in (one.resources for one in self.colocations) if near in own]
        below = [part for name in names for part in self.ties.members(name) if part.clone != clone]
        below = [part for part in below if part.is_drbd or part.agent in ("IPaddr", "IPaddr2")]
        return bool(below) and self.clones.get(clone, {}).get("clone-max") == "1"

    @cached_property
    def groups(self) -> dict[str, tuple[Primitive, ...]]:
        """Return id -> members of each group, in the order in which they start."""
        names = dict.fromkeys(one.group for one in self.primitives if one.group)
        return {name: tuple(one for one in self.primitives if one.group == name) for name in names}

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes."""
        return tuple(node.get("uname", "") for node in self.root.iterfind("./configuration/nodes/node"))

    @cached_property
    def members_of_corosync(self) -> tuple[str, ...]:
        """Return the names of the nodes that run Corosync: all except remote nodes."""
        nodes = self.root.iterfind("./configuration/nodes/node")
        return tuple(node.get("uname", "") for node in nodes if node.get("type") != "remote")

    @cached_property
    def remote_nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes without Corosync: remote nodes, guest nodes, and replicas of bundles."""
        guests = (one.meta.get("remote-node", "") for one in self.services)
        replicas = (name for bundle in self.root.iter("bundle") for name in _replicas(bundle))
        return (*(one.id for one in self.services if one.agent == "remote"), *filter(None, guests), *replicas)

    @cached_property
    def node_attributes(self) -> dict[str, dict[str, str]]:
        """Return node -> its permanent attributes."""
        return {
            node.get("uname", ""): self._block(node, "instance_attributes")
            for node in self.root.iterfind("./configuration/nodes/node")
        }

    @cached_property
    def banned(self) -> dict[str, frozenset[str]]:
        """Return resource id -> nodes on which location constraints forbid it. Resources without a ban are absent."""
        found = dict[str, frozenset[str]]()
        for place in self.locations:
            if place.certain and place.score == -math.inf and place.role in ("", "Promoted", "Started"):
                for one in (each for name in place.resources for each in self.ties.members(name)):
                    found[one.id] = found.get(one.id, frozenset()).union(place.nodes)
        return found

    def only_node(self, one: Primitive) -> str:
        """Return the only node on which location constraints allow a resource, or an empty text."""
        left = set(self.nodes) - self.banned.get(one.id, frozenset())
        return min(left) if len(left) == 1 < len(self.nodes) else ""

    def is_bound(self, one: Primitive) -> bool:
        """Return whether a resource is meant for one node only: it is standalone, or each node has a similar one."""
        alike = {self.only_node(other) for other in self.services if other.agent == one.agent} - {""}
        shares = any(one.id in (tie.resources[0][0], tie.resources[1][0]) for tie in self.colocations)
        alone = not (one.group or one.clone or one.is_mount or one.values.get("ip") or shares)
        return bool(self.only_node(one)) and (len(alike) > 1 or alone)

    def constraints(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of all constraint elements with a tag such as ``rsc_order``."""
        return [dict(one.attrib) for one in self.root.iterfind(f"./configuration/constraints/{tag}")]

    @cached_property
    def locations(self) -> tuple[Location, ...]:
        """Return the location constraints that have not expired. Each rule in a constraint counts as a constraint."""
        found = []
        for element in self.root.iterfind("./configuration/constraints/rsc_location"):
            role = role_of(element.get("role", ""))
            about = (element.get("id", ""), self.resources_of(element))
            if node := element.get("node"):
                found.append(Location(*about, (node,), score(element.get("score", "0")), role))
            for rule in element.iterfind("./rule"):
                nodes, certain = self._matching(rule)
                value = float("nan") if rule.get("score-attribute") else score(rule.get("score", "0"))
                # Skip expired rules. For example, crm_resource --ban --lifetime=PT2H writes a rule with an end date.
                if len(rule) == 0 or _holds(rule, lambda part: not _has_ended(part)):
                    found.append(Location(*about, nodes, value, role_of(rule.get("role", "")) or role, certain))
        return tuple(found)

    @cached_property
    def colocations(self) -> tuple[Colocation, ...]:
        """Return all colocation constraints. A constraint on a set of resources becomes pairs of resources."""
        found = []
        for element in self.root.iterfind("./configuration/constraints/rsc_colocation"):
            identity, value = element.get("id", ""), score(element.get("score", "INFINITY"))
            ends = [(element.get(end, ""), role_of(element.get(f"{end}-role", ""))) for end in ("rsc", "with-rsc")]
            sets = [(_refs(one), one) for one in element.iterfind("./resource_set")]
            members = [(name, role_of(one.get("role", ""))) for names, one in sets for name in names]
            apart = [set(names) for names, one in sets if one.get("sequential", "true").lower() not in TRUE]
            pairs = [*zip(members[1:], members, strict=False), *((one, members[-1]) for one in members[:-2])]
            pairs = [(a, b) for a, b in pairs if not any({a[0], b[0]} <= names for names in apart)]
            if ends[0][0]:
                pairs = [(ends[0], ends[1])]
            found += [Colocation(identity, pair, value) for pair in pairs]
        return tuple(found)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Return all ordering constraints. A constraint on a set of resources becomes pairs of actions."""
        found = []
        for element in self.root.iterfind("./configuration/constraints/rsc_order"):
            kind = element.get("kind") or ("Optional" if element.get("score") == "0" else "Mandatory")
            symmetrical = element.get("symmetrical", "true").lower() in TRUE
            pairs = _ordered_pairs(list(element.iterfind("./resource_set")))
            if first := element.get("first"):
                action = element.get("first-action", "start")
                pairs = [((first, action), (element.get("then", ""), element.get("then-action", action)))]
            for one, then in pairs:
                found.append(Order(element.get("id", ""), *one, *then, kind == "Mandatory", symmetrical))
        return tuple(found)

    @cached_property
    def levels(self) -> list[dict[str, str]]:
        """Return the attributes of all fencing levels."""
        return [dict(one.attrib) for one in self.root.iterfind("./configuration/fencing-topology/fencing-level")]

    def levels_of(self, node: str) -> list[tuple[str, ...]]:
        """Return the fencing levels of a node, each as ids of devices. Pacemaker tries the levels in this order."""
        found: dict[int, list[str]] = {}
        for level in self.levels:
            pattern = level.get("target-pattern")
            own = self.node_attributes.get(node, {}).get(level.get("target-attribute", ""))
            by_attribute = own is not None and own == level.get("target-value")
            if level.get("target") == node or by_attribute or (pattern and matches(pattern, node)):
                names = [name for name in re.split(r"[\s,]+", level.get("devices", "")) if name]
                found.setdefault(_number(level.get("index", "1")), []).extend(names)
        return [tuple(found[index]) for index in sorted(found)]

    def fences(self, device: Primitive) -> tuple[str, ...]:
        """Return the nodes that a fencing device powers off: the hosts in its parameters, or by default all nodes."""
        if self.fences_everybody(device):
            return self.nodes
        listed = re.split(r"[\s,;]+", self._hosts(device).strip())
        if device.agent.startswith("external/"):
            # In external/libvirt, an entry is HOST:DOMAIN, that is, a node and its virtual machine.
            listed = [name.partition(":")[0] for name in listed]
        pairs = re.split(r"[;\s]+", device.values.get("pcmk_host_map", "").strip())
        mapped = [pair.partition(":")[0] for pair in pairs]
        known = {name.lower(): name for name in (*self.remote_nodes, *self.nodes)}  # Pacemaker ignores case in names.
        return tuple(dict.fromkeys(known.get(name.lower(), name) for name in (*listed, *mapped) if name))

    def fences_everybody(self, device: Primitive) -> bool:
        """Return whether a device may fence every node: it lists no hosts, or ``pcmk_host_check`` is none."""
        named = self._hosts(device) or device.values.get("pcmk_host_map")
        return device.values.get("pcmk_host_check") == "none" or not named

    def _hosts(self, device: Primitive) -> str:
        keys = ("pcmk_host_list", "hostlist", "hostname" if device.agent.startswith("external/") else "hostlist")
        outlets = [device.values[key] for key in ("plug", "port") if device.values.get(key) in self.nodes]
        return next((device.values[key] for key in keys if device.values.get(key)), "".join(outlets[:1]))

    def delay_s(self, device: Primitive, node: str = "") -> float:
        """Return the seconds, without random delay, before a device fences ``node`` (default: any node)."""
        value = device.values.get("pcmk_delay_base", "") or device.values.get("delay", "")
        mapped = dict(pair.split(":", 1) for pair in re.split(r"[;\s]+", value) if ":" in pair)
        if mapped:
            return seconds(mapped[node]) if node in mapped else max(map(seconds, mapped.values())) if not node else 0.0
        return seconds(value)

    @property
    def watchdog_s(self) -> float:
        """Return stonith-watchdog-timeout in seconds: 0 without watchdogs, -1 for twice sbd's watchdog time-out."""
        given = self.properties.get("stonith-watchdog-timeout", "0")
        return -1.0 if given.startswith("-") else seconds(given)

    @cached_property
    def ties(self) -> Ties:
        """Return an index of groups, colocations and orders, which shows which resources belong together."""
        templates = {name: element.get("template", "") for name, element in self._by_id.items()}
        tags = {
            name: [ref.get("id", "") for ref in element.iterfind("./obj_ref")]
            for name, element in self._by_id.items()
            if element.tag == "tag"
        }
        return Ties(self.primitives, templates, tags, self.colocations, self.orders)

    def _merged(self, path: str, about: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, str]:
        found: dict[str, str] = {}
        for block in self._sets(path):
            rule = block.find("./rule")
            if rule is None or (about is not None and _holds(rule, partial(_is_about, about=about))):
                found |= self._values(block)
        return found

    def _sets(self, path: str) -> list[Xml.Element]:
        if path not in self._sets_of:
            blocks = [self._resolved(block) for block in self.root.iterfind(path)]
            self._sets_of[path] = sorted(blocks, key=lambda block: score(block.get("score", "0")))
        return self._sets_of[path]

    def _resolved(self, element: Xml.Element) -> Xml.Element:
        reference = element.get("id-ref")
        return self._by_id.get(reference, element) if reference else element

    def _values(self, block: Xml.Element) -> dict[str, str]:
        pairs = [self._resolved(pair) for pair in block.iterfind("./nvpair")]
        return {pair.get("name", ""): pair.get("value", "") for pair in pairs}

    def _block(self, element: Xml.Element, tag: str) -> dict[str, str]:
        blocks = list(reversed([self._resolved(block) for block in element.iterfind(f"./{tag}")]))
        if tag == "instance_attributes":
            blocks.sort(key=lambda block: block.find("./rule") is None)
        found: dict[str, str] = {}
        for block in blocks:
            found |= self._values(block)
        return found

    def _walk(
        self, parent: Xml.Element, metas: Sequence[dict[str, str]], clone: str, group: str
    ) -> Iterator[Primitive]:
        for element in parent:
            identity = element.get("id", "")
            if element.tag == "primitive":
                yield self._primitive(element, metas, clone, group)
            elif element.tag in ("clone", "master", "bundle", "group"):
                within = (clone, identity) if element.tag == "group" else (identity, group)
                yield from self._walk(element, (*metas, self._block(element, "meta_attributes")), *within)

    def _primitive(self, element: Xml.Element, metas: Sequence[dict[str, str]], clone: str, group: str) -> Primitive:
        template = self._by_id.get(element.get("template", ""))
        sources = [element] if template is None else [template, element]
        head = sources[0]
        values, own = dict[str, str](), dict[str, str]()
        operations: dict[tuple[str, str], Operation] = {}
        for source in sources:
            values |= self._block(source, "instance_attributes")
            own |= self._block(source, "meta_attributes")
            for block in source.iterfind("./operations"):
                for operation in (self._operation(one, head) for one in self._resolved(block).iterfind("./op")):
                    operations[operation.name, f"{operation.interval_s} {operation.role}"] = operation
        meta = self._merged("./configuration/rsc_defaults/meta_attributes", {"rsc_expression": head.attrib})
        for inherited in (*metas, own):
            meta |= inherited
        meta = {key: role_of(value) if key == "target-role" else value for key, value in meta.items()}
        return Primitive(
            element.get("id", ""),
            head.get("class", ""),
            head.get("provider", ""),
            head.get("type", ""),
            values,
            meta,
            tuple(operations.values()),
            clone,
            group,
            self._default_timeout_s,
        )

    @cached_property
    def _default_timeout_s(self) -> float:
        given = self.operation_defaults.get("timeout") or self.properties.get("default-action-timeout", "")
        return seconds(given) or DEFAULT_TIMEOUT_S

    def _operation(self, element: Xml.Element, resource: Xml.Element) -> Operation:
        about = {"rsc_expression": resource.attrib, "op_expression": element.attrib}
        defaults = self._merged("./configuration/op_defaults/meta_attributes", about)
        values = defaults | self._block(element, "meta_attributes") | dict(element.attrib)
        name = element.get("name", "")
        return Operation(
            name,
            seconds(element.get("interval", "0")),
            seconds(values.get("timeout", "")) or self._default_timeout_s,
            role_of(element.get("role", "")),
            values.get("on-fail", ""),
            values.get("enabled", "true").lower() in TRUE,
            values.get("requires", ""),
        )

    def resources_of(self, element: Xml.Element) -> tuple[str, ...]:
        """Return the ids of the resources to which a location constraint applies."""
        if element.get("rsc"):
            return (element.get("rsc", ""),)
        pattern = element.get("rsc-pattern")
        if pattern:
            names = [name for one in self.primitives for name in (one.id, one.group, one.clone) if name]
            return tuple(dict.fromkeys(name for name in names if matches(pattern, name)))
        return tuple(name for one in element.iterfind("./resource_set") for name in _refs(one))

    def _matching(self, rule: Xml.Element) -> tuple[tuple[str, ...], bool]:
        certain, columns = True, list[set[str]]()
        for part in rule:
            if part.tag == "rule":
                nodes, sure = self._matching(part)
                certain = certain and sure
                columns.append(set(nodes))
            elif (found := self._with_attribute(part)) is not None:
                columns.append(found)
            else:
                certain = False
        if not columns:
            return self.nodes, certain
        either = rule.get("boolean-op", "and") == "or"
        chosen = set.union(*columns) if either else set.intersection(*columns)
        return tuple(node for node in self.nodes if node in chosen), certain

    def _with_attribute(self, expression: Xml.Element) -> set[str] | None:
        name, wanted = expression.get("attribute", ""), expression.get("value")
        given = {node: self.node_attributes.get(node, {}).get(name) for node in self.nodes}
        given = {node: node for node in self.nodes} if name == "#uname" else given
        defined = {node for node, value in given.items() if value is not None}
        equal = {node for node in defined if given[node] == wanted}
        others, unset = set(self.nodes) - equal, set(self.nodes) - defined
        nodes = {"eq": equal, "ne": others, "defined": defined, "not_defined": unset}
        return nodes.get(expression.get("operation", "")) if defined and expression.tag == "expression" else None


def _holds(rule: Xml.Element, test: Callable[[Xml.Element], bool]) -> bool:
    answers = [_holds(part, test) if part.tag == "rule" else test(part) for part in rule]
    return bool(answers) and (any(answers) if rule.get("boolean-op") == "or" else all(answers))


def _is_about(part: Xml.Element, about: Mapping[str, Mapping[str, str]]) -> bool:
    keys = [key for key in ("class", "provider", "type", "name", "interval") if key in part.attrib]
    one = about.get(part.tag)
    return one is not None and all(
        seconds(part.get(key, "")) == seconds(one.get(key, "")) if key == "interval" else part.get(key) == one.get(key)
        for key in keys
    )


def _version(schema: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", schema)))


def _has_ended(part: Xml.Element) -> bool:
    try:
        end = datetime.fromisoformat(part.get("end", "").strip().replace(" ", "T", 1).replace(" ", "")).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    limited = part.tag == "date_expression" and part.get("operation") in ("lt", "in_range")
    return limited and end < datetime.now(UTC)


def _replicas(bundle: Xml.Element) -> Iterator[str]:
    given = [each.get(name, "") for name in REPLICAS for each in bundle if each.get(name)]
    for number in range(min(_number(given[0]), MOST_RESOURCES) if given else 1):
        yield f"{bundle.get('id')}-{number}"


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,18}", text) else 0


def _refs(resource_set: Xml.Element) -> list[str]:
    return [ref.get("id", "") for ref in resource_set.iterfind("./resource_ref")]


def _ordered_pairs(sets: list[Xml.Element]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    rows = [[(name, one.get("action", "start")) for name in _refs(one)] for one in sets]
    pairs = []
    for one, row in zip(sets, rows, strict=True):
        if one.get("sequential", "true").lower() in TRUE:
            pairs += list(pairwise(row))
    for row, following in pairwise(rows):
        pairs += [(first, then) for first in row for then in following]
    return pairs
