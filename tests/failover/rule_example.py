"""Examples of rules. Each is a change to a good pair, with one statement per line.

The statements are those of ``crm configure``: ``property``, ``rsc_defaults``, ``op_defaults``, ``node``, ``primitive``,
``group``, ``clone``, ``ms``, ``location ID RSC SCORE: NODE``, ``colocation ID SCORE: RSC[:ROLE] RSC[:ROLE]``,
``order ID FIRST[:ACTION] THEN[:ACTION]``, ``level NODE INDEX DEVICES``; and ``without ID``. Further statements are
``corosync SECTION KEY=VALUE`` (``node.1`` is the first node, an empty value removes a key), ``drbd TEXT``,
``replicated MOUNT`` (puts DRBD with the clone ``m`` below a mount), ``xml SECTION ELEMENT`` for other parts of the CIB,
and ``file NAME: TEXT``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.failover.setup import Setup, setup_of

_TIMES = "op monitor interval=20s timeout=40s op start timeout=60s op stop timeout=60s"
_PAIR = (
    "property stonith-enabled=true",
    "rsc_defaults resource-stickiness=1000",
    "node a",
    "node b",
    *(
        f"primitive fence_{node} stonith:fence_ipmilan ip=10.9.0.{number} lanplus=1 username=u password_script=/etc/p "
        f"pcmk_host_list={node} {delay} op monitor interval=60s timeout=60s"
        for node, number, delay in (("a", 1, "pcmk_delay_base=10s"), ("b", 2, ""))
    ),
    f"primitive fs ocf:heartbeat:Filesystem device=/dev/vg/data directory=/srv/data fstype=ext4 {_TIMES}",
    "primitive ip ocf:heartbeat:IPaddr2 ip=10.0.0.9 cidr_netmask=24 op monitor interval=10s timeout=20s",
    "group g fs ip",
    "corosync totem version=2 cluster_name=pair transport=knet token=3000 crypto_cipher=aes256 crypto_hash=sha256",
    "corosync quorum provider=corosync_votequorum two_node=1",
    "corosync node.1 name=a nodeid=1 ring0_addr=10.0.0.1 ring1_addr=10.0.1.1",
    "corosync node.2 name=b nodeid=2 ring0_addr=10.0.0.2 ring1_addr=10.0.1.2",
)
# The statements that put DRBD below a mount of the pair.
_REPLICATED = (
    "drbd resource r { on a { device /dev/drbd0; disk /dev/vg/r; } on b { device /dev/drbd0; disk /dev/vg/r; } }",
    "primitive d ocf:linbit:drbd drbd_resource=r",
    "ms m d meta notify=true",
    "primitive {name} ocf:heartbeat:Filesystem device=/dev/drbd0 directory=/srv/data fstype=ext4",
)
_SECTIONS = {"property": "crm_config", "rsc_defaults": "rsc_defaults", "op_defaults": "op_defaults"}
_HELD_BY = {
    "primitive": "resources",
    "group": "resources",
    "clone": "resources",
    "ms": "resources",
    "location": "constraints",
    "colocation": "constraints",
    "order": "constraints",
    "node": "nodes",
    "level": "fencing-topology",
}


def setup_of_example(statements: Iterable[str]) -> Setup:
    """Return the setup of the pair with these changes."""
    return setup_of("an example", Path("/nonexistent"), _Pair((*_PAIR, *statements)).texts(), None)


class _Pair:
    """The parts of the pair by name; a later statement replaces an earlier one with the same name."""

    def __init__(self, statements: Iterable[str]) -> None:
        self._elements: dict[str, tuple[str, Xml.Element]] = {}
        self._pairs: dict[str, dict[str, str]] = {}
        self._corosync: dict[str, dict[str, str]] = {}
        self._files: dict[str, str] = {}
        for statement in statements:
            self._take(*statement.partition(" ")[::2])

    def _take(self, word: str, rest: str) -> None:
        if word == "file":
            name, _, text = rest.partition(": ")
            self._files[name] = text.replace("\\n", "\n")
        elif word == "drbd":
            self._files[f"etc/drbd.d/{len(self._files)}.res"] = rest
        elif word == "replicated":
            for statement in _REPLICATED:
                self._take(*statement.replace("{name}", rest).partition(" ")[::2])
        elif word == "xml":
            section, _, text = rest.partition(" ")
            element = Xml.fromstring(text)
            self._elements[element.get("id", text)] = (section, element)
        elif word in ("without", "corosync", *_SECTIONS):
            self._set(word, *shlex.split(rest))
        else:
            name, *words = shlex.split(rest)
            self._elements[name] = (_HELD_BY[word], _BUILDERS[word](name, words))

    def _set(self, word: str, *words: str) -> None:
        if word == "without":
            for name in words:
                self._elements.pop(name, None)
                self._corosync.pop(name, None)
        elif word == "corosync":
            self._corosync.setdefault(words[0], {}).update(_pairs(words[1:]))
        else:
            self._pairs.setdefault(word, {}).update(_pairs(words))

    def texts(self) -> dict[str, str]:
        """Return the files of the pair as path -> text."""
        cib = Xml.Element(
            "cib", {"validate-with": "pacemaker-3.9", "epoch": "1", "admin_epoch": "0", "num_updates": "0"}
        )
        configuration = Xml.SubElement(cib, "configuration")
        sections = {name: Xml.SubElement(configuration, name) for name in ("crm_config", "nodes", "resources")}
        sections |= {name: Xml.SubElement(configuration, name) for name in ("constraints", "fencing-topology")}
        sections |= {name: Xml.SubElement(configuration, name) for name in ("rsc_defaults", "op_defaults", "alerts")}
        for word, pairs in self._pairs.items():
            tag = "cluster_property_set" if word == "property" else "meta_attributes"
            sections[_SECTIONS[word]].append(_block(tag, word, pairs))
        inner = {name for _, element in self._elements.values() for name in element.get("members", "").split()}
        for name, (section, element) in self._elements.items():
            if name not in inner:
                sections[section].append(self._filled(element))
        Xml.SubElement(cib, "status")
        return {
            "pacemaker/cib.xml": Xml.tostring(cib, "unicode"),
            "etc/corosync/corosync.conf": self._conf(),
            **self._files,
        }

    def _filled(self, element: Xml.Element) -> Xml.Element:
        for name in element.attrib.pop("members", "").split():
            element.append(self._filled(self._elements[name][1]))
        return element

    def _conf(self) -> str:
        nodes = [_section("node", pairs) for name, pairs in self._corosync.items() if name.startswith("node.")]
        inner = [
            _section(name, self._corosync[f"quorum.device.{name}"])
            for name in ("net", "heuristics")
            if f"quorum.device.{name}" in self._corosync
        ]
        device = self._corosync.get("quorum.device")
        quorum = _section("device", device, *inner) if device else ""
        top = [name for name in self._corosync if "." not in name and name != "quorum"]
        subsystem = self._corosync.get("logging.logger_subsys")
        return "".join(
            (
                *(_section(name, self._corosync[name]) for name in top),
                _section("logging", {}, _section("logger_subsys", subsystem)) if subsystem else "",
                _section("quorum", self._corosync.get("quorum", {}), quorum),
                _section("nodelist", {}, *nodes) if nodes else "",
            )
        )


def _section(name: str, pairs: Mapping[str, str], *inner: str) -> str:
    return "\n".join((f"{name} {{", *(f"{key}: {value}" for key, value in pairs.items() if value), *inner, "}\n"))


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _block(tag: str, name: str, pairs: Mapping[str, str]) -> Xml.Element:
    block = Xml.Element(tag, id=f"{name}-{tag}")
    for key, value in pairs.items():
        Xml.SubElement(block, "nvpair", id=f"{name}-{tag}-{key}", name=key, value=value)
    return block


def _resource(tag: str, name: str, words: list[str], attributes: Mapping[str, str]) -> Xml.Element:
    """Return a resource element; ``words`` has parameters, then blocks that start with ``meta`` or ``op NAME``."""
    element = Xml.Element(tag, {"id": name, **attributes})
    starts = [place for place, word in enumerate(words) if word in ("meta", "op")]
    blocks = [words[begin:end] for begin, end in zip([0, *starts], [*starts, len(words)], strict=True)]
    if blocks[0]:
        element.append(_block("instance_attributes", name, _pairs(blocks[0])))
    operations = Xml.Element("operations")
    for number, (kind, *rest) in enumerate(block for block in blocks[1:]):
        if kind == "meta":
            element.append(_block("meta_attributes", name, _pairs(rest)))
        else:
            identity = f"{name}-{rest[0]}-{number}"
            Xml.SubElement(operations, "op", {"id": identity, "name": rest[0], "interval": "0s"} | _pairs(rest[1:]))
    if len(operations):
        element.append(operations)
    return element


def _primitive(name: str, words: list[str]) -> Xml.Element:
    kind, *middle, agent = words[0].split(":")
    provider = {"provider": middle[0]} if middle else {}
    return _resource("primitive", name, words[1:], {"class": kind, "type": agent} | provider)


def _holder(tag: str, name: str, words: list[str]) -> Xml.Element:
    """Return a group or clone element; ``words`` has the names of its members, then ``meta`` and its attributes."""
    cut = words.index("meta") if "meta" in words else len(words)
    element = _resource("clone" if tag == "ms" else tag, name, words[cut:], {})
    if tag == "ms":
        element.append(_block("meta_attributes", f"{name}-ms", {"promotable": "true"}))
    element.set("members", " ".join(words[:cut]))
    return element


def _location(name: str, words: list[str]) -> Xml.Element:
    rsc, value, node, *more = words
    return Xml.Element(
        "rsc_location", {"id": name, "rsc": rsc, "score": value.rstrip(":"), "node": node, **_pairs(more)}
    )


def _colocation(name: str, words: list[str]) -> Xml.Element:
    value, one, other = words
    (rsc, _, role), (far, _, far_role) = one.partition(":"), other.partition(":")
    roles = {key: given for key, given in (("rsc-role", role), ("with-rsc-role", far_role)) if given}
    return Xml.Element("rsc_colocation", {"id": name, "score": value.rstrip(":"), "rsc": rsc, "with-rsc": far, **roles})


def _order(name: str, words: list[str]) -> Xml.Element:
    first, then, *more = words
    given = {"id": name, "first": first.partition(":")[0], "then": then.partition(":")[0], **_pairs(more)}
    for key, word in (("first-action", first), ("then-action", then)):
        given |= {key: word.partition(":")[2]} if ":" in word else {}
    return Xml.Element("rsc_order", given)


def _node(name: str, words: list[str]) -> Xml.Element:
    element = Xml.Element("node", id={"a": "1", "b": "2", "c": "3"}.get(name, "9"), uname=name)
    if words:
        element.append(_block("instance_attributes", f"node-{name}", _pairs(words)))
    return element


def _level(name: str, words: list[str]) -> Xml.Element:
    return Xml.Element(
        "fencing-level", id=f"{name}-{words[0]}", target=name.partition("/")[0], index=words[0], devices=words[1]
    )


_BUILDERS = {
    "primitive": _primitive,
    "group": lambda name, words: _holder("group", name, words),
    "clone": lambda name, words: _holder("clone", name, words),
    "ms": lambda name, words: _holder("ms", name, words),
    "location": _location,
    "colocation": _colocation,
    "order": _order,
    "node": _node,
    "level": _level,
}
