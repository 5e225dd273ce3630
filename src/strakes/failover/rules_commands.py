"""Find the commands that a node runs automatically, for example at boot or by cron."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile

from strakes.failover.cib_values import read_table
from strakes.failover.setup import Setup

_UNIT = re.compile(r"etc/systemd/system/([\w@.\\-]+\.service)(\.d/.*\.conf)?")
_LINK = re.compile(r"\.(wants|requires)/")
# Words that may precede the name of a program, such as nice -n 19 and timeout 60s.
_BEFORE = re.compile(
    r"(\S*/)?(if|then|do|else|while|until|time|exec|sudo|nohup|!|\{|\(|nice|ionice|setsid|chrt|timeout|flock|stdbuf|env)|"
    r"\w+=.*|-.*|\d.*|/(run|var|tmp)/.*"
)


@dataclass(frozen=True)
class Command:
    """One command. ``file``: file with the command. ``words``: name of the program, and arguments."""

    file: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the command in one line."""
        return " ".join(self.words)


def enabled_units(setup: Setup) -> set[str]:
    """Return the names of the systemd units that start at boot. A SysV init script is listed as a unit."""
    found = {name.rpartition("/")[2] for name in setup.units if _LINK.search(name)}
    for name in setup.texts if not found else ():
        if old := re.fullmatch(r"etc/(?:rc\.d/)?rc[2-5]\.d/S\d\d(\S+)", name):
            found.add(f"{old[1]}.service")
    timers = {name for name in found if name.endswith(".timer")}
    timers |= {name for name, text in setup.units.items() if _starts_itself(name, text, ".timer")}
    return found | {f"{name.removesuffix('.timer')}.service" for name in timers}


def _starts_itself(name: str, text: str, kind: str) -> bool:
    return "/" not in name and name.endswith(kind) and bool(re.search(r"(?m)^\s*(WantedBy|RequiredBy)\s*=\s*\S", text))


def commands_run(setup: Setup) -> Iterator[Command]:
    """Yield the commands that a node runs automatically, and the commands in Lustre scripts."""
    enabled = enabled_units(setup)
    for file, text in setup.texts.items():
        unit = _UNIT.fullmatch(file)
        is_idle = unit and not unit[2] and unit[1] not in enabled and not _starts_itself(unit[1], text, ".service")
        if is_idle or (file.startswith("etc/systemd/") and not unit):
            continue
        for pattern, inside in read_table("options/command_files").items():
            for part in re.findall(inside, re.sub(r"\\\n", " ", text)) if re.fullmatch(pattern, file) else ():
                for line in part.splitlines():
                    yield from _of_line(file, line)


def _of_line(file: str, line: str) -> Iterator[Command]:
    words: list[str] = []
    for token in _tokens(line):
        if not set(token) <= set(";&|"):
            words.append(token)
            continue
        words = list(dropwhile(_BEFORE.fullmatch, words))
        program = words[0].rpartition("/")[2] if words else ""
        if program in ("sh", "bash") and "-c" in words[1:-1]:
            yield from _of_line(file, words[words.index("-c", 1) + 1])
        elif program:
            yield Command(file, (program, *words[1:]))
        words = []


@lru_cache(maxsize=4096)
def _tokens(line: str) -> tuple[str, ...]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return (*lexer, ";")
    except ValueError:
        return ()
