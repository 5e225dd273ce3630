"""Options of programs and agents with their valid values, from the tables in ``options``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from strakes.base.errors import EnvironmentLacksError, MeasurementError, nearest_word
from strakes.failover.facts import read_table
from strakes.failover.pacemaker_resources import Primitive
from strakes.targets.answers import from_xml
from strakes.targets.command import run

_TABLES = ("fencing_agents", "resource_agents", "advised_times", "pacemaker", "drbd", "by_hand")
_UNITS = {"b": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIMILAR = 0.75  # Minimum similarity (0 to 1) of a misspelt name. 0.9 would miss half of the names with two errors.
DRBD_SECTIONS = ("net", "disk", "options", "handlers", "startup")
_ASK_S = 5.0  # Time limit in seconds for crm_resource.
# Pattern of an agent's name. It excludes paths, because crm_resource would run the program at a path.
_AGENT = re.compile(r"\w+(:(external/)?\w[\w.@-]*)+", re.ASCII)


@dataclass(frozen=True)
class Option:
    """An option of a program or agent."""

    name: str
    kind: str = ""  # Valid values, such as ``time``, ``1..9`` or ``yes|no|#`` (#: any number). Empty: any text.
    required: bool = False
    unique: bool = False  # whether each resource needs a different value

    def complaint(self, value: str) -> str:
        """Return a description of the valid values if ``value`` is invalid, else an empty text."""
        # Ignore placeholders in examples of manuals: $NAME, <NAME> and {NAME}.
        if not self.kind or re.match(r"lrm://|[<{]|.*\$", value):
            return ""
        if "|" in self.kind:
            words = self.kind.replace("#", "a number").split("|")
            if self.kind.startswith("#") and re.fullmatch(r"\d+", value):
                return ""
            return "" if value.lower() in map(str.lower, words) else f"one of {', '.join(words)}"
        if ".." in self.kind:
            return _out_of_range(self.kind, value)
        pattern, wanted = read_table("options/kinds").get(self.kind, (re.escape(self.kind), self.kind))
        return "" if re.fullmatch(pattern, value.strip(), re.IGNORECASE) else wanted


def _out_of_range(kind: str, value: str) -> str:
    bounds = re.fullmatch(r"(-?\d+)\.\.(\d+)([a-z]?)", kind)
    number = re.fullmatch(r"(-?\d+)([bskmgt]?)", value.lower())
    assert bounds
    if not number or (number[2] and not bounds[3]):
        return f"a number from {bounds[1]} to {bounds[2]}"
    given = int(number[1]) * _UNITS[number[2] or bounds[3] or "b"] / _UNITS[bounds[3] or "b"]
    inside = int(bounds[1]) <= given <= int(bounds[2])
    return "" if inside else f"from {bounds[1]} to {bounds[2]}{bounds[3].strip('b')}"


@cache
def _tables() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for table in _TABLES:
        for name, words in read_table(f"options/{table}").items():
            found[name] = f"{found.get(name, '')} {words}"
    return found


def _words(section: str) -> Iterator[str]:
    for word in _tables().get(section, "").split():
        yield from _words(word) if word.startswith("@") else (word,)


@cache
def options_of(*sections: str) -> Mapping[str, Option]:
    """Return name -> option for all options in the given sections of the tables in ``options``."""
    found = {}
    for section in sections:
        for word in _words(section):
            head, _, kind = word.partition(":")
            name = head.rstrip("!*")
            marks = head[len(name) :]
            found[name] = Option(name, kind, "!" in marks, "*" in marks)
    return found


@cache
def advised_times(agent: str) -> Mapping[str, float]:
    """Return operation -> advised time-out in seconds for an agent (PROVIDER:TYPE); empty for an unknown agent."""
    words = _tables().get(f"times of {agent}", "").split()
    return {name: float(limit) for name, _, limit in (word.partition("=") for word in words)}


@cache
def newer_names() -> Mapping[str, str]:
    """Return old name -> current name, for the options that newer releases have renamed."""
    return {name: newer for name, _, newer in (word.partition("=") for word in _tables()["deprecated"].split())}


@cache
def resource_agents() -> tuple[str, ...]:
    """Return the names of the known resource agents as PROVIDER:TYPE."""
    return tuple(name for name in _tables() if re.fullmatch(r"[a-z]+:[\w-]+", name))


@cache
def fencing_agents() -> tuple[str, ...]:
    """Return the names of the known fencing agents."""
    return (*(name for name in _tables() if name.startswith("fence_")), *_tables()["external"].split())


@cache
def _installed(agent: str) -> frozenset[str]:
    try:
        answer = run(["crm_resource", "--show-metadata", agent], _ASK_S) if _AGENT.fullmatch(agent) else None
        named = from_xml(answer.stdout, "crm_resource").iter("parameter") if answer and answer.status == 0 else ()
    except (EnvironmentLacksError, MeasurementError):
        return frozenset()
    return frozenset(one.get("name", "") for one in named)


def installed_options(one: Primitive) -> frozenset[str]:
    """Return the parameters in the metadata of a resource's agent; empty if this machine lacks the agent."""
    return _installed(":".join(filter(None, (one.standard, one.provider, one.agent))))


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to a misspelt name, or an empty text."""
    alike = {other.lower().replace("_", "-"): other for other in known}
    plain = name.lower().replace("_", "-")
    # difflib rates names as different if two letters are swapped, so also compare the sorted letters.
    turned = next((other for other in alike if sorted(other) == sorted(plain)), "")
    return alike.get(turned or nearest_word(plain, alike, _SIMILAR), "")


def slip(name: str, known: Iterable[str]) -> str:
    """Return the known name that differs only by case, one letter or two swapped letters, or an empty text."""
    alike = (other for other in known if other != name and abs(len(other) - len(name)) < 2)
    return next((other for other in alike if other.lower() == name.lower() or _one_letter(name, other)), "")


def _one_letter(name: str, other: str) -> bool:
    changes = [rows for rows in SequenceMatcher(None, name, other, autojunk=False).get_opcodes() if rows[0] != "equal"]
    letters = "".join(name[a:b] + other[c:d] for _, a, b, c, d in changes)
    turned = len(changes) == 2 and len(letters) == 2 and letters[0] == letters[1]
    replaced = len(changes) == 1 and (len(letters) == 1 or (len(letters) == 2 and len(name) == len(other)))
    return (replaced or turned) and not re.search(r"\d", letters)
