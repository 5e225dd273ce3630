"""Automatic commands of a node: scripts at boot, units, cron, udev, the network, logrotate."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from strakes.failover.setup import Setup

When = Literal["boot", "timed", "event", "script"]
# Files that contain only commands.
_SCRIPTS: tuple[tuple[re.Pattern[str], When], ...] = (
    (re.compile(r"etc/((rc\.d/)?rc\.local|init\.d/(boot|after)\.local)"), "boot"),
    (re.compile(r"etc/cron\.(hourly|daily|weekly|monthly)/.*"), "timed"),
    (re.compile(r"etc/(NetworkManager/dispatcher\.d|network/if-up\.d)/.*"), "event"),
    (re.compile(r"lustre/.*\.sh"), "script"),
)
# Files that also contain commands, with a pattern that finds them.
_WITHIN: tuple[tuple[re.Pattern[str], When, re.Pattern[str]], ...] = (
    (
        re.compile(r"etc/network/interfaces(\.d/.*)?"),
        "event",
        re.compile(r"(?m)^\s*(?:pre-up|up|post-up)\s+(.*)$"),
    ),
    (
        re.compile(r"etc/logrotate\.d/.*"),
        "timed",
        re.compile(r"(?ms)^\s*(?:pre|post|first|last)\w+$(.*?)^\s*endscript"),
    ),
    (
        re.compile(r"etc/udev/rules\.d/.*"),
        "event",
        re.compile(r"(?:RUN(?:\{program\})?|PROGRAM|IMPORT\{program\})\s*\+?:?=\s*\"([^\"]*)\""),
    ),
)
_CRON_TABLE = re.compile(r"etc/(crontab|anacrontab|cron\.d/.*)|var/spool/cron/.*")
_UNIT = re.compile(r"etc/systemd/system/([\w@.\\-]+\.service)(\.d/.*\.conf)?")
_LINK = re.compile(r"\.(wants|requires)/")
# Words that precede the program, with their own options and values.
_BEFORE = re.compile(
    r"(if|then|do|else|while|until|time|exec|sudo|nohup|!|\{|\(|nice|ionice|setsid|chrt|timeout|flock|stdbuf|env)"
)


@dataclass(frozen=True)
class Command:
    """One command: its file, when it runs, and its words. The program is given without its directory."""

    file: str
    when: When
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the words in one line."""
        return " ".join(self.words)

    @property
    def where(self) -> str:
        """Return the file without its directory, as messages name it."""
        return self.file.removeprefix("etc/").removeprefix("systemd/system/")


def enabled_units(setup: Setup) -> set[str]:
    """Return the names of the units that start at boot, including the links of SysV init."""
    found = {name.rpartition("/")[2] for name in setup.units if _LINK.search(name)}
    # systemd follows the links of SysV init only for services without a unit.
    for name in setup.texts if not found else ():
        if old := re.fullmatch(r"etc/(?:rc\.d/)?rc[2-5]\.d/S\d\d(\S+)", name):
            found.add(f"{old[1]}.service")
    timed = {name.removesuffix(".timer") for name in found if name.endswith(".timer")}
    timed |= {name.removesuffix(".timer") for name, text in setup.units.items() if _starts_itself(name, text, ".timer")}
    return found | {f"{name}.service" for name in timed}


def _starts_itself(name: str, text: str, kind: str) -> bool:
    return "/" not in name and name.endswith(kind) and bool(re.search(r"(?m)^\s*(WantedBy|RequiredBy)\s*=\s*\S", text))


def commands_run(setup: Setup) -> Iterator[Command]:
    """Yield every automatic command of a node, and the commands in scripts for administrators."""
    enabled = enabled_units(setup)
    timers = {name.rpartition("/")[2] for name in setup.units if name.endswith(".timer")}
    for file, text in setup.texts.items():
        when = next((when for pattern, when in _SCRIPTS if pattern.fullmatch(file)), None)
        if when:
            yield from _of_script(file, when, text)
        elif _CRON_TABLE.fullmatch(file):
            yield from _of_cron(file, text)
        elif unit := _UNIT.fullmatch(file):
            yield from _of_unit(file, unit[1], text, enabled, timers, dropped_in=bool(unit[2]))
        for pattern, kind, inside in _WITHIN:
            for part in inside.findall(text) if pattern.fullmatch(file) else ():
                yield from _of_script(file, kind, part)


def _of_unit(
    file: str, unit: str, text: str, enabled: set[str], timers: set[str], *, dropped_in: bool
) -> Iterator[Command]:
    """Yield the commands of a unit that is enabled, or of a drop-in file."""
    by_timer = f"{unit.removesuffix('.service')}.timer" in timers
    if unit not in enabled and not dropped_in and not _starts_itself(unit, text, ".service"):
        return
    for line in re.findall(
        r"(?m)^\s*Exec(?:Start|StartPre|StartPost|Reload)\s*=\s*[-@:+!]*(.*)$", re.sub(r"\\\n", " ", text)
    ):
        yield from _of_line(file, "timed" if by_timer else "boot", line)


def _of_cron(file: str, text: str) -> Iterator[Command]:
    with_user = not file.startswith("var/")
    for line in text.splitlines():
        plain = line.strip()
        times = re.match(r"(@\w+|(\S+\s+){4}\S+)\s+", plain)
        if not times or plain.startswith("#") or re.match(r"\w+\s*=", plain):
            continue
        command = plain[times.end() :]
        if with_user and file != "etc/anacrontab":
            command = command.partition(" ")[2]
        yield from _of_line(file, "boot" if times[1] == "@reboot" else "timed", command)


def _of_script(file: str, when: When, text: str) -> Iterator[Command]:
    for line in re.sub(r"\\\n", " ", text).splitlines():
        yield from _of_line(file, when, line)


def _of_line(file: str, when: When, line: str) -> Iterator[Command]:
    """Yield the commands of one line of a shell."""
    words: list[str] = []
    for token in _tokens(line):
        if not set(token) <= set(";&|"):
            words.append(token)
            continue
        yield from _one(file, when, words)
        words = []


@lru_cache(maxsize=4096)  # many rules ask about the same lines
def _tokens(line: str) -> tuple[str, ...]:
    """Return the words and command separators of a line; empty if a quotation mark is not closed."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        return (*lexer, ";")
    except ValueError:
        return ()


def _one(file: str, when: When, words: list[str]) -> Iterator[Command]:
    while words and (_BEFORE.fullmatch(words[0].rpartition("/")[2]) or re.match(r"\w+=", words[0])):
        first = words[0].rpartition("/")[2]
        words = words[1:]
        # Skip the arguments of the wrapper, as in nice -n 19, timeout 60, flock FILE.
        own = first in ("nice", "ionice", "timeout", "flock", "chrt", "stdbuf")
        while own and words and re.match(r"-|\d|/(run|var|tmp)/", words[0]):
            words = words[1:]
    if not words:
        return
    program = words[0].rpartition("/")[2]
    if program in ("sh", "bash") and "-c" in words[1:-1]:
        yield from _of_line(file, when, words[words.index("-c", 1) + 1])
        return
    yield Command(file, when, (program, *words[1:]))
