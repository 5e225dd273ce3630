"""Limits on the size of a configuration, so that a check takes seconds. Real configurations are far smaller."""

from __future__ import annotations

import re
import signal
from contextlib import AbstractContextManager
from xml.etree import ElementTree as Xml

from strakes.base.errors import BadInputError
from strakes.base.interrupts import ended_after, limited

# Maximum number of resources or nodes, then of constrained pairs of resources. Rules take quadratic time.
MOST_RESOURCES, _MOST_PAIRS = 1000, 5000
MOST_DEPTH = 100  # Maximum depth of nested XML elements. At 800, rules exceed Python's default of 1,000 stack frames.
# Maximum attributes of an XML element, and characters of a name. crm_simulate takes 0.3 s for 8,192 (measured).
_MOST_ATTRIBUTES, _LONGEST_NAME = 256, 256
# Maximum numbers of resources, constrained pairs and XML elements in a simulation. A check may need 40 simulations.
_MOST_ASKED_RESOURCES, _MOST_ASKED_PAIRS, _MOST_ASKED_ELEMENTS = 60, 1000, 20_000
_MOST_COPIES = 3000  # Maximum number of copies in clones and bundles. With 9,000, a simulation takes seconds.
MOST_DIGITS = 100  # Maximum number of digits of a number, because converting a number takes quadratic time.
ENDLESS = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")
REPLICAS = ("replicas", "promoted-max", "masters")
_MOST_S = 8.0  # Maximum processor time of a check in seconds.
_MOMENT_S = 1.0  # Time limit in seconds for matching a regular expression of the CIB.


def too_much(cib: Xml.Element) -> str:
    """Return the reason why a CIB is too large to be checked, or an empty text."""
    level = [cib]
    for _ in range(MOST_DEPTH):
        level = [child for element in level for child in element]
    if level:
        return f"its elements are nested more than {MOST_DEPTH} deep"
    if any(len(each.attrib) > _MOST_ATTRIBUTES for each in cib.iter()):
        return f"an element has more than {_MOST_ATTRIBUTES} attributes"
    if any(ENDLESS.search(value) for each in cib.iter() for value in each.attrib.values()):
        return f"a number has more than {MOST_DIGITS} digits"
    if any(len(each.get(key, "")) > _LONGEST_NAME for each in cib.iter() for key in ("id", "uname")):
        return f"a name has more than {_LONGEST_NAME} characters"
    return _more_than(cib, MOST_RESOURCES, _MOST_PAIRS)


def too_much_to_ask(cib: Xml.Element) -> str:
    """Return the reason why a CIB is too large to be simulated, or an empty text."""
    if sum(1 for _ in cib.iter()) > _MOST_ASKED_ELEMENTS:
        return f"it has more than {_MOST_ASKED_ELEMENTS} elements"
    return too_many_copies(cib) or _more_than(cib, _MOST_ASKED_RESOURCES, _MOST_ASKED_PAIRS)


def too_many_copies(cib: Xml.Element) -> str:
    """Return the reason why a CIB has too many copies of resources to be simulated, or an empty text."""
    given = [pair.get("value", "") for pair in cib.iter("nvpair") if pair.get("name") == "clone-max"]
    given += [each.get(name, "") for bundle in cib.iter("bundle") for each in bundle for name in REPLICAS]
    digits = [found[0] for text in given if (found := re.search(r"[0-9]{1,18}", text))]
    most = max([*map(int, digits), sum(1 for _ in cib.iterfind("./configuration/nodes/node"))])
    cloned = sum(1 for tag in ("clone", "master", "bundle") for each in cib.iter(tag) for _ in each.iter("primitive"))
    return f"the CIB has more than {_MOST_COPIES} copies of resources" if cloned * most > _MOST_COPIES else ""


def little_enough(where: str) -> AbstractContextManager[None]:
    """Limit time and memory of a ``with`` block in the main thread. Raises BadInputError at a limit."""
    return limited(_MOST_S, lambda why: BadInputError("this configuration cannot be checked", where=where, why=why))


def matches(pattern: str, name: str) -> bool:
    """Return whether a regular expression matches part of a name. Raises BadInputError if it is invalid or slow."""
    why, remedy = f"there was no result within {_MOMENT_S:g} s", "Name the nodes or resources instead."
    slow = BadInputError("matching a pattern of the CIB takes too long", where=pattern[:80], why=why, remedy=remedy)
    try:
        with ended_after(_MOMENT_S, slow, signal.ITIMER_REAL, signal.SIGALRM):
            return re.search(pattern, name) is not None
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInputError("a pattern of the CIB is not valid", where=pattern[:80], why=str(error)) from error


def _more_than(cib: Xml.Element, resources: int, pairs: int) -> str:
    if sum(1 for _ in cib.iter("primitive")) > resources:
        return f"it has more than {resources} resources"
    if sum(1 for _ in cib.iterfind("./configuration/nodes/node")) > MOST_RESOURCES:
        return f"it has more than {MOST_RESOURCES} nodes"
    constraints = [each for section in cib.iter("constraints") for each in section]
    # Count a resource set as the pairs of its members.
    members = [sum(len(each) for each in constraint.iter("resource_set")) for constraint in constraints]
    if len(constraints) + sum(count * count // 4 for count in members) > pairs:
        return f"it has more than {pairs} constraints between two resources"
    return ""
