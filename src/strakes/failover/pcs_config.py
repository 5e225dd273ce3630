"""Read the output of ``pcs config`` (pcs 0.9 to 0.12)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from strakes.failover.cib_builder import CibBuilder, Words, read_words
from strakes.failover.crm_text import split_words
from strakes.failover.pcs_commands import add_colocation, add_location, add_order

HEADS = re.compile(r"(?m)^(?:Stonith Devices|Pacemaker Nodes|Fencing Levels|Cluster Properties):")
_RESOURCE = re.compile(r"Resource: (\S+) \(class=(\S+?)(?: provider=(\S+?))? type=(\S+?)\)")
_OPTION = re.compile(r"\(([\w-]+):([^()]*)\)")


@dataclass
class _Line:
    text: str
    children: list[_Line] = field(default_factory=list)

    def all(self, head: str) -> Iterator[_Line]:
        return (child for child in self.children if child.text.startswith(head))


def read_pcs_config(text: str) -> CibBuilder:
    """Return the CIB that the output of ``pcs config`` describes."""
    builder = CibBuilder()
    for section in _tree(text).children:
        head, _, rest = section.text.partition(":")
        if head == "Pacemaker Nodes":
            for name in (rest + " " + " ".join(child.text for child in section.children)).split():
                builder.node(name)
        elif head in ("Resources", "Stonith Devices"):
            for child in section.children:
                _resource(builder, child)
        elif head == "Fencing Levels":
            _levels(builder, section)
        elif head == "Cluster Properties":
            _settings(builder, section, "crm_config")
        elif head in ("Resources Defaults", "Operations Defaults"):
            _settings(builder, section, "rsc_defaults" if head.startswith("R") else "op_defaults")
        elif head.endswith("Constraints"):
            for child in section.children:
                with suppress(ValueError, IndexError):
                    _constraint(builder, head.split()[0], child)
    return builder


def _tree(text: str) -> _Line:
    top = _Line("")
    stack = [(-1, top)]
    for raw in text.splitlines():
        if not raw.strip():
            continue
        indent = len(raw) - len(raw.lstrip())
        while stack[-1][0] >= indent:
            stack.pop()
        line = _Line(raw.strip())
        stack[-1][1].children.append(line)
        stack.append((indent, line))
    return top


def _pairs(line: _Line) -> dict[str, str]:
    texts = [line.text.partition(":")[2], *(child.text for child in line.children)]
    return {key: value for text in texts for key, value in read_words(split_words(text), ()).settings.items()}


def _below(line: _Line, head: str) -> dict[str, str]:
    return {key: value for child in line.all(head) for key, value in _pairs(child).items()}


def _resource(builder: CibBuilder, line: _Line) -> list[str]:
    kind, _, rest = line.text.partition(": ")
    identity = rest.split()[0] if rest.split() else ""
    if found := _RESOURCE.match(line.text):
        agent = ":".join(filter(None, found.group(2, 3, 4)))
        words = Words((), _below(line, "Attributes:"), (("meta", "", _below(line, "Meta Attr")),))
        element = builder.primitive(identity, agent, words)
        for child in line.all("Operations:"):
            for name, pairs in _operations(child):
                builder.operation(element, name, pairs)
        return [identity]
    if kind not in ("Group", "Clone", "Master", "Bundle"):
        return []
    members = [name for child in line.children for name in _resource(builder, child)]
    container = _below(line, "Docker:") | _below(line, "Podman:")
    promoted = container.get("promoted-max") or container.get("masters", "")
    if kind == "Group":
        builder.group(identity, members, _below(line, "Meta Attr"))
        return [identity]
    if not members:
        # A bundle without a resource is represented by a Dummy resource.
        words = Words((), {}, (("op", "monitor", {"interval": "60s"}),))
        members = [builder.primitive(f"{identity}-container", "ocf:heartbeat:Dummy", words).get("id", "")]
    meta = _below(line, "Meta Attr") | ({"promoted-max": promoted} if promoted else {})
    builder.clone(identity, members[0], meta, promotable=kind == "Master" or bool(promoted))
    return [identity]


def _operations(line: _Line) -> Iterator[tuple[str, dict[str, str]]]:
    old = _Line(line.text.partition(":")[2].strip())
    for child in (old, *line.children):
        name, _, rest = child.text.partition(" ")
        if name:
            body = re.sub(r"\([^)]*\)", "", rest) if not name.endswith(":") else ""
            pairs = read_words(split_words(body), ()).settings | _pairs(_Line("", child.children))
            yield name.rstrip(":"), pairs


def _levels(builder: CibBuilder, section: _Line) -> None:
    for target in section.children:
        name = target.text.partition(": ")[2] or target.text
        for child in target.children:
            if found := re.match(r"Level (\d+)(?:: | - )?\s*(.*)", child.text):
                names = found[2] or " ".join(inner.text for inner in child.children)
                builder.level(name.split()[0], found[1], re.split(r"[,\s]+", names.strip()))


def _settings(builder: CibBuilder, section: _Line, kind: str) -> None:
    for child in section.children:
        found = re.match(r"([\w-]+)(?:=|: )(\S.*)", child.text)
        if found and found[1] not in ("Meta", "Options"):
            builder.properties({found[1]: found[2].removesuffix(" (default)").strip("\"'")}, kind)
        _settings(builder, child, kind)


def _constraint(builder: CibBuilder, kind: str, child: _Line) -> None:
    words = _OPTION.sub(r" \1=\2", child.text).replace("'", "").split()
    words = [word.strip("()") for word in words if word != "resource"]
    if kind == "Ordering" and "then" in words:
        add_order(builder, words)
    elif kind == "Colocation" and "with" in words:
        add_colocation(builder, words)
    elif kind == "Location":
        _location(builder, child)


def _location(builder: CibBuilder, line: _Line) -> None:
    text = re.sub(r"esource pattern(: | ')", r"esource\1regexp%", line.text)
    if found := re.match(r"resource '(\S+)' (prefers|avoids) node '(\S+)' with score (\S+)", text):
        add_location(builder, [found[1], found[2], f"{found[3]}={found[4]}"])
        return
    resource = text.removeprefix("Resource: ")
    for child in line.children:
        entries = child.children or [_Line(child.text.partition(":")[2].strip())]
        for entry in entries:
            node = re.match(r"(?:Node: )?(\S+) \(score:([+-]?\w+)\)", entry.text)
            identity = dict(_OPTION.findall(entry.text)).get("id", "")
            if node:
                builder.constraint("rsc_location", identity, {"rsc": resource, "node": node[1], "score": node[2]})
