"""Configuration in braces, as a tree: corosync.conf (``key: value`` lines) and DRBD's files (``key value;``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from strakes.base.errors import BadInputError
from strakes.failover.limits import MOST_DEPTH

# A quote without an end takes the rest of its line, so that any text takes linear time.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{};]|[^\s{};"]+')


@dataclass
class Block:
    """One section. ``settings`` keep their order and may repeat. ``words``: words between its name and the brace."""

    name: str
    words: tuple[str, ...] = ()
    settings: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def get(self, key: str, default: str = "") -> str:
        """Return the last value, as the programs take it."""
        return next((value for name, value in reversed(self.settings) if name == key), default)

    def all(self, name: str) -> list[Block]:
        """Return all blocks of this name directly within this one."""
        return [block for block in self.blocks if block.name == name]

    def one(self, name: str) -> Block:
        """Return the block of that name, several merged; an empty one if it is missing."""
        found = self.all(name)
        merged = Block(name, found[0].words if found else ())
        for block in found:
            merged.settings += block.settings
            merged.blocks += block.blocks
        return merged

    def sections(self, path: str = "") -> Iterator[tuple[str, Block]]:
        """Yield all blocks within this one, whatever their depth, each with the names that lead to it."""
        for block in self.blocks:
            here = f"{path} {block.name}".lstrip()
            yield here, block
            yield from block.sections(here)


def read_corosync(text: str, where: str) -> Block:
    """Read a text in braces. Raises BadInputError for braces that do not match."""
    top = Block("")
    stack = [top]
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.endswith("{"):
            _open(stack, Block(line[:-1].strip()), f"{where}:{number}")
        elif line == "}":
            if len(stack) == 1:
                raise BadInputError("a brace is closed that was not opened", where=f"{where}:{number}")
            stack.pop()
        else:
            key, _, value = line.partition(":")
            stack[-1].settings.append((key.strip(), value.strip()))
    if len(stack) > 1:
        raise BadInputError(f"the section {stack[-1].name!r} is not closed", where=where)
    return top


def _open(stack: list[Block], block: Block, where: str) -> None:
    if len(stack) > MOST_DEPTH:
        why = f"its sections are nested more than {MOST_DEPTH} deep"
        raise BadInputError("this is not a configuration", where=where, why=why)
    stack[-1].blocks.append(block)
    stack.append(block)


def read_drbd(text: str, where: str) -> Block:
    """Read a text in braces. Raises BadInputError for braces that do not match."""
    top = Block("")
    stack, words = [top], list[str]()
    for token in _tokens(text):
        if token == "{":
            name, *rest = words or [""]
            _open(stack, Block(name, tuple(rest)), where)
            words = []
        elif token == "}":
            if len(stack) == 1:
                raise BadInputError("a brace is closed that was not opened", where=where)
            stack.pop()
            words = []
        elif token == ";":
            if words:
                stack[-1].settings.append((words[0], " ".join(words[1:])))
            words = []
        else:
            words.append(token.strip('"'))
    if len(stack) > 1:
        raise BadInputError(f"the section {stack[-1].name!r} is not closed", where=where)
    return top


def included_by(text: str) -> list[str]:
    """Return the file patterns in the include statements of a DRBD file."""
    return [found.strip(' \t"') for found in re.findall(r"(?m)^[ \t]*include\b([^;\n]*);", text)]


def _tokens(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _TOKEN.findall(re.sub(r'^((?:[^"#]|"[^"]*")*)#.*', r"\1", line))
