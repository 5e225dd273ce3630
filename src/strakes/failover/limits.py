"""How much a configuration may hold: far more than clusters have, and little enough to be looked at in a moment."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

# Rules look at resources and constraints in pairs, and walk down what lies in each other.
_MOST_RESOURCES = 1000
_MOST_PAIRS = 5000
_MOST_DEPTH = 100
MOST_DRBD = 1000
# Pacemaker's own tools need a time that grows with their square, for each of dozens of questions.
_MOST_ASKED_RESOURCES = 60
_MOST_ASKED_PAIRS = 1000


def too_much(cib: Xml.Element) -> str:
    """Say what a CIB has more of than can be checked; empty where it has not."""
    if _deeper_than(cib, _MOST_DEPTH):
        return f"its elements lie more than {_MOST_DEPTH} deep in each other"
    return _more_than(cib, _MOST_RESOURCES, _MOST_PAIRS)


def too_much_to_ask(cib: Xml.Element) -> str:
    """Say what a CIB has more of than Pacemaker's tools can be asked about in a moment; empty where it has not."""
    return _more_than(cib, _MOST_ASKED_RESOURCES, _MOST_ASKED_PAIRS)


def _deeper_than(root: Xml.Element, most: int) -> bool:
    level = [root]
    for _ in range(most):
        level = [child for element in level for child in element]
    return bool(level)


def _more_than(cib: Xml.Element, resources: int, pairs: int) -> str:
    if sum(1 for _ in cib.iter("primitive")) > resources:
        return f"it has more than {resources} resources"
    constraints = [each for section in cib.iter("constraints") for each in section]
    # Each member of a set may have to do with each of the others.
    members = [sum(len(each) for each in constraint.iter("resource_set")) for constraint in constraints]
    if len(constraints) + sum(count * count // 4 for count in members) > pairs:
        return f"it has more than {pairs} constraints between two resources"
    return ""
