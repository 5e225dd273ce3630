"""Parsers of files with sections in braces: corosync.conf (``key: value``) and DRBD's files (``key value;``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import without_secrets
from strakes.failover.known_options import options_of
from strakes.failover.limits import MOST_DEPTH

# A quoted string without a closing quote extends to the next semicolon or the end of the line.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|"[^";]*|[{};]|[^\s{};"]+')
# Path, perhaps with wildcards, of an included file in the same directory or below it.
_INSIDE = re.compile(r"(?!.*\.\.)[\w.*?-]+(/[\w.*?-]+)*", re.ASCII)


@dataclass
class Block:
    """A section in braces. ``words``: the words after its name, such as ("alpha",) for ``on alpha {...}``."""

    name: str
    words: tuple[str, ...] = ()
    settings: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.settings or self.blocks)

    def get(self, key: str, default: str = "") -> str:
        """Return the last value of a key, which Corosync and DRBD use, or ``default`` if the key is absent."""
        return next((value for name, value in reversed(self.settings) if name == key), default)

    def all(self, name: str) -> list[Block]:
        """Return the inner sections with this name."""
        return [block for block in self.blocks if block.name == name]

    def one(self, name: str) -> Block:
        """Return the inner sections with this name merged into one section, which may be empty."""
        found = self.all(name)
        merged = Block(name, found[0].words if found else ())
        for block in found:
            merged.settings += block.settings
            merged.blocks += block.blocks
        return merged

    def sections(self, path: str = "") -> Iterator[tuple[str, Block]]:
        """Yield (path, section) for all inner sections. A path joins the names of sections: ``quorum device``."""
        for block in self.blocks:
            here = f"{path} {block.name}".lstrip()
            yield here, block
            yield from block.sections(here)


def read_corosync(text: str, where: str) -> Block:
    """Parse corosync.conf and return its root block. Raises BadInputError for unbalanced braces."""
    return _tree(_corosync_parts(text, where), where)


def read_drbd(text: str, where: str) -> Block:
    """Parse a DRBD file and return its root block. Raises BadInputError for unbalanced braces."""
    return _tree(_drbd_parts(text, where), where)


# (file and line, content). The content is a section that begins, a (key, value) pair, or None at a section's end.
_Part = tuple[str, Block | tuple[str, str] | None]


def _tree(parts: Iterable[_Part], where: str) -> Block:
    stack = [Block("")]
    for place, part in parts:
        if isinstance(part, tuple):
            stack[-1].settings.append(part)
        elif part is None and len(stack) == 1:
            raise BadInputError("a closing brace has no opening brace", where=place)
        elif part is None:
            stack.pop()
        elif len(stack) > MOST_DEPTH:
            why = f"sections are nested more than {MOST_DEPTH} deep"
            raise BadInputError("this is not a configuration", where=place, why=why)
        else:
            stack[-1].blocks.append(part)
            stack.append(part)
    if len(stack) > 1:
        raise BadInputError(f"the section {stack[-1].name!r} is not closed", where=where)
    return stack[0]


def _corosync_parts(text: str, where: str) -> Iterator[_Part]:
    for number, raw in enumerate(text.splitlines(), 1):
        line, place = raw.strip(), f"{where}:{number}"
        if line.endswith("{") and not line.startswith("#"):
            yield place, Block(line[:-1].strip())
        elif line and not line.startswith("#"):
            key, _, value = line.partition(":")
            yield place, None if line == "}" else (key.strip(), value.strip())


def _drbd_parts(text: str, where: str) -> Iterator[_Part]:
    words = list[str]()
    for token in _tokens(text):
        if token not in ("{", "}", ";"):
            words.append(token.strip('"'))
            continue
        # Skip any text before the keyword "resource", because drbdadm itself reports such text.
        name, *rest = words[words.index("resource") if token == "{" and "resource" in words else 0 :] or [""]
        if token == ";" and words:
            yield where, (name, " ".join(rest))
        elif token != ";":
            yield where, Block(name, tuple(rest)) if token == "{" else None
        words = []


def rewritten_drbd(text: str) -> str:
    """Return a DRBD file made safe for drbdadm. Raises BadInputError if it names files outside its directory."""
    lines, before = list[str](), ""
    for line in text.splitlines():
        words = list[str]()
        for token in _tokens(line):
            quoted = len(token) > 1 and token[0] == token[-1] == '"'
            outside = not _INSIDE.fullmatch(token.strip('"'))
            opens = not quoted and token != "include" and re.search("include|-file", token)
            if outside if before == "include" else opens:
                why = f"drbdadm could open a file outside of the directory: {token}"
                raise BadInputError("strakes does not pass this file to drbdadm", why=why)
            if before.endswith("-secret"):
                words.append(re.sub(r"[^\";]", "x", token))  # Keep the length of a secret, because drbdadm checks it.
            elif quoted:
                words.append('"' + re.sub(r'[^ -~]|[\\"]', "?", without_secrets(token[1:-1])) + '"')
            elif before == "usage-count" and token in ("yes", "ask"):
                words.append("no")  # With usage-count yes, drbdadm would report to LINBIT.
            else:
                words.append(re.sub(r"[^\w.:/@%+\[\]{};-]", "?", token, flags=re.ASCII))
            before = token
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def _tokens(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _TOKEN.findall(re.sub(r'^((?:[^"#]|"[^"]*")*)#.*', r"\1", line))


@dataclass(frozen=True)
class Host:
    """A node of a DRBD resource. ``volumes``: (device, disk, meta-disk) by number. ``addresses``: one per link."""

    name: str
    volumes: dict[str, tuple[str, str, str]]
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Resource:
    """A DRBD resource: one or more replicated devices that become primary together."""

    block: Block
    common: Block

    @property
    def name(self) -> str:
        """Return the name of the resource, or an empty text."""
        return self.block.words[0] if self.block.words else ""

    @cached_property
    def dialect9(self) -> bool:
        """Return whether the resource uses syntax that only DRBD 9 accepts."""
        hosts = [*self.block.all("on"), *self.block.all("floating")]
        if self._connections or any(host.get("node-id") for host in hosts):
            return True
        inner = [block for holder in (self.block, self.common) for _, block in holder.sections()]
        return any(
            key in options_of(f"9 {block.name}") and key not in options_of(f"8.4 {block.name}")
            for block in inner
            for key, _ in block.settings
        )

    @property
    def _connections(self) -> list[Block]:
        return [*self.block.all("connection"), *self.block.all("connection-mesh")]

    @property
    def _volumes(self) -> list[Block]:
        hosts = (*self.block.all("on"), *self.block.all("floating"))
        return [volume for holder in (self.block, *hosts, *self._connections) for volume in holder.all("volume")]

    def all_values(self, section: str, key: str) -> list[str]:
        """Return the distinct values of an option, which may differ between connections or volumes."""
        general = self._value(self.block, section, key) or self._value(self.common, section, key)
        within = {"net": self._connections, "disk": [*self._volumes, *self._connections]}.get(section, [])
        special = [value for block in within if (value := self._value(block, section, key))]
        everywhere = section == "net" and within and len(special) == len(within)
        return list(dict.fromkeys([*special, *([general] if general and not everywhere else [])]))

    def option(self, section: str, key: str, default: str = "") -> str:
        """Return the first value of an option, or the default."""
        return next(iter(self.all_values(section, key)), default)

    @staticmethod
    def _value(parent: Block, section: str, key: str) -> str:
        found = ""
        for name, value in parent.one(section).settings:
            if name in (key, f"no-{key}"):
                # DRBD 8.3 spells "disk-flushes no" as no-disk-flushes.
                found = "no" if name != key else value or "yes"
        return found

    @property
    def floating(self) -> list[str]:
        """Return the IP addresses that identify the sites of a floating resource. Empty for other resources."""
        given = [value for key, value in self.block.settings if key == "floating"]
        given += [" ".join(block.words) for block in self.block.all("floating")]
        return [re.sub(r":\d+$", "", text.split()[-1]) for text in given if text]

    @property
    def protocols(self) -> list[str]:
        """Return the distinct replication protocols (A, B or C)."""
        return self.all_values("net", "protocol") or [self.block.get("protocol") or self.common.get("protocol") or "C"]

    @property
    def is_for_a_distance(self) -> bool:
        """Return whether the resource replicates to a distant site: over a proxy, or as a stacked resource."""
        sections = [block for _, block in self.block.sections()]
        return any(block.name in ("proxy", "stacked-on-top-of") or "proxy" in block.words for block in sections)

    @property
    def fencing(self) -> list[str]:
        """Return the distinct values of DRBD's option ``fencing``."""
        return self.all_values("net", "fencing") or self.all_values("disk", "fencing") or ["dont-care"]

    @property
    def needs_majority(self) -> bool:
        """Return whether a quorum of copies, instead of fencing, prevents the promotion of old data."""
        return self.option("options", "quorum") in ("majority", "all") and self.fencing == ["dont-care"]

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """Return the nodes of the resource with their volumes and addresses."""
        return tuple(self._hosts())

    @property
    def _ends(self) -> list[list[list[str]]]:
        parts = [[one, *one.all("path")] for one in self._connections]
        plain = [[text.split() for one in own for key, text in one.settings if key == "host"] for own in parts]
        proxied = [[list(host.words) for one in own for host in one.all("host")] for own in parts]
        return [one + other for one, other in zip(plain, proxied, strict=True)]

    def _hosts(self) -> Iterator[Host]:
        paths: dict[str, list[str]] = {}
        for words in chain.from_iterable(self._ends):
            if "address" in words and "via" not in words:
                paths.setdefault(words[0], []).append(words[-1])
        shared = self._side(self.block)
        for block in self.block.all("on"):
            for name in block.words:
                own = self._side(block)
                none = ("", "", "")
                merged = {one: _filled(own.get(one, none), shared.get(one, none)) for one in {**shared, **own}}
                address = block.get("address").split()[-1:]
                yield Host(name, merged, (*address, *paths.get(name, ())))

    @staticmethod
    def _side(block: Block) -> dict[str, tuple[str, str, str]]:
        def row(part: Block) -> tuple[str, str, str]:
            metadata = part.get("meta-disk") or part.get("flexible-meta-disk")
            return _device(part.get("device")), part.get("disk"), metadata

        plain = row(block)
        sides = {"0": plain} if any(plain[:2]) else {}
        for volume in block.all("volume"):
            sides[volume.words[0] if volume.words else "0"] = _filled(row(volume), ("", "", plain[2]))
        return sides

    @property
    def devices(self) -> set[str]:
        """Return all paths of the replicated devices, such as ``/dev/drbd0`` and ``/dev/drbd/by-res/r0/0``."""
        blocks = [self.block, *self.block.all("on"), *self._volumes]
        names = {name for block in blocks for name in block.get("device").split()[:1] if name.startswith("/dev/")}
        for host in self.hosts:
            for number, (device, disk, _) in host.volumes.items():
                linked = f"/dev/drbd/by-disk/{disk.removeprefix('/dev/')}"
                names |= {device, linked, f"/dev/drbd/by-res/{self.name}/{number}"} - {""}
                if number == "0":
                    names.add(f"/dev/drbd/by-res/{self.name}")
        return names

    @property
    def disks(self) -> set[str]:
        """Return the backing disks of the resource on all nodes."""
        return {disk for host in self.hosts for _, disk, _ in host.volumes.values() if disk and disk != "none"}

    @property
    def metadata(self) -> set[str]:
        """Return the external metadata devices on all nodes."""
        found = {meta.partition("[")[0].strip() for host in self.hosts for _, _, meta in host.volumes.values()}
        return {device for device in found if device.startswith("/dev/")}


def resources_of(files: Iterable[Block]) -> tuple[Resource, ...]:
    """Return all DRBD resources in the files. The ``common`` section of any file applies to every resource."""
    whole = Block("", blocks=[block for top in files for block in top.blocks])
    return tuple(Resource(block, whole.one("common")) for block in whole.all("resource"))


def _filled(own: tuple[str, str, str], other: tuple[str, str, str]) -> tuple[str, str, str]:
    return own[0] or other[0], own[1] or other[1], own[2] or other[2]


def _device(text: str) -> str:
    words = text.split()
    minor = f"/dev/drbd{words[words.index('minor') + 1]}" if "minor" in words[:-1] else ""
    return minor or (words[0] if words else "")
