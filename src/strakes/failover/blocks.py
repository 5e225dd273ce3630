"""Readers of files with sections in braces: corosync.conf (``key: value``) and DRBD's files (``key value;``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from strakes.base.errors import BadInputError
from strakes.failover.limits import MOST_DEPTH

# A quoted string without end extends to the end of the line, which keeps the matching time linear.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{};]|[^\s{};"]+')
# Path of an included file in the same directory or below, with or without wildcards.
_INSIDE = re.compile(r"(?!.*\.\.)[\w.*?-]+(/[\w.*?-]+)*", re.ASCII)


@dataclass
class Block:
    """A section such as ``on alpha {...}``, whose ``words`` are ("alpha",). ``settings``: (key, value) pairs."""

    name: str
    words: tuple[str, ...] = ()
    settings: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return whether the section has any content."""
        return bool(self.settings or self.blocks)

    def get(self, key: str, default: str = "") -> str:
        """Return the last value of a key, as Corosync and DRBD do, or ``default`` if the key is absent."""
        return next((value for name, value in reversed(self.settings) if name == key), default)

    def all(self, name: str) -> list[Block]:
        """Return the inner sections with this name."""
        return [block for block in self.blocks if block.name == name]

    def one(self, name: str) -> Block:
        """Merge all inner sections with this name. Without such a section, return an empty one."""
        found = self.all(name)
        merged = Block(name, found[0].words if found else ())
        for block in found:
            merged.settings += block.settings
            merged.blocks += block.blocks
        return merged

    def sections(self, path: str = "") -> Iterator[tuple[str, Block]]:
        """Yield (path, section) of all inner sections, with paths such as ``quorum device``."""
        for block in self.blocks:
            here = f"{path} {block.name}".lstrip()
            yield here, block
            yield from block.sections(here)


def read_corosync(text: str, where: str) -> Block:
    """Parse corosync.conf and return its root block. Raises BadInputError for braces that do not match."""
    return _tree(_corosync_parts(text, where), where)


def read_drbd(text: str, where: str) -> Block:
    """Parse a DRBD file and return its root block. Raises BadInputError for braces that do not match."""
    return _tree(_drbd_parts(text, where), where)


# (file and line, content). Content is a section that begins, a (key, value) pair, or None at the end of a section.
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
        name, *rest = words or [""]
        if token == ";" and words:
            yield where, (name, " ".join(rest))
        elif token != ";":
            yield where, Block(name, tuple(rest)) if token == "{" else None
        words = []


def rewritten_drbd(text: str) -> str:
    """Make a DRBD file safe for drbdadm. Raises BadInputError if drbdadm could open a file in another directory."""
    lines, before = list[str](), ""
    for line in text.splitlines():
        words = list[str]()
        for token in _tokens(line):
            quoted = len(token) > 1 and token[0] == token[-1] == '"'
            if before == "include":
                opens = not _INSIDE.fullmatch(token.strip('"'))
            else:
                opens = not quoted and token != "include" and bool(re.search("include|-file", token))
            if opens:
                why = f"drbdadm could open a file outside of the directory: {token}"
                raise BadInputError("strakes does not pass this file to drbdadm", why=why)
            if before == "shared-secret":
                words.append(re.sub(r"[^\";]", "x", token))  # drbdadm checks the secret's length.
            elif quoted:
                words.append('"' + re.sub(r'[^ -~]|[\\"]', "?", token[1:-1]) + '"')
            elif before == "usage-count" and token in ("yes", "ask"):
                words.append("no")  # drbdadm reports to LINBIT if usage-count is yes.
            else:
                words.append(re.sub(r"[^\w.:/@%+\[\]{};-]", "?", token, flags=re.ASCII))
            before = token
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def _tokens(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _TOKEN.findall(re.sub(r'^((?:[^"#]|"[^"]*")*)#.*', r"\1", line))
