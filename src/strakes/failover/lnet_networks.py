"""The list of networks in the options of the lnet module: ``o2ib0(ib0,ib1)[0],tcp(eth0)``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# Network drivers of LNet, including old ones.
_DRIVERS = ("tcp", "o2ib", "gni", "kfi", "efa", "ptlf", "bxi", "ra", "mx", "vib", "iib", "elan", "sock")
_LARGEST = 65535
_NETWORK = re.compile(r"\s*([^\s(),\[\]]+)\s*(\[[^\]]*\])?\s*(?:\(([^()]*)\))?\s*(\[[^\]]*\])?\s*")


@dataclass(frozen=True)
class LnetNetwork:
    """One network: ``name`` with its number (tcp is tcp0), and its network cards without aliases."""

    name: str
    cards: tuple[str, ...]


def numbered(name: str) -> str:
    """Return the name of an LNet network with its number: "tcp" is "tcp0".

    >>> numbered("o2ib"), numbered("tcp1")
    ('o2ib0', 'tcp1')
    """
    return name if name[-1:].isdecimal() else f"{name}0"


def read_networks(text: str) -> tuple[LnetNetwork, ...]:
    """Return the networks of a list, without entries that are not networks.

    >>> read_networks("o2ib(ib0,ib1),tcp1(eth0:1)")
    (LnetNetwork(name='o2ib0', cards=('ib0', 'ib1')), LnetNetwork(name='tcp1', cards=('eth0',)))
    """
    found = []
    for part in _parts(text):
        if match := _NETWORK.fullmatch(part):
            cards = re.sub(r"\[[^\]]*\]", "", match[3] or "").split(",")
            names = tuple(card.strip().partition(":")[0] for card in cards if card.strip())
            found.append(LnetNetwork(numbered(match[1]), names))
    return tuple(found)


def complaints(text: str) -> Iterator[str]:
    """Yield the errors in a list of networks."""
    if text.count("(") != text.count(")") or re.search(r"\([^)]*\(", text):
        yield "its parentheses do not match"
        return
    yield from filter(None, map(_complaint, _parts(text)))
    networks = read_networks(text)
    for name, times in Counter(network.name for network in networks).items():
        if times > 1:
            yield f"{name} is in it {times} times; write all cards of one network in one pair of parentheses"
    for network in networks:
        for card, times in Counter(network.cards).items():
            if times > 1:
                yield f"{network.name} has the card {card} {times} times"


def _complaint(part: str) -> str:
    """Return the error in one network, or an empty text."""
    match = _NETWORK.fullmatch(part)
    if not match:
        return f"{part.strip()!r} is not a network" if part.strip() else "it has a comma too many"
    name, cards = match[1], match[3]
    driver = name.rstrip("0123456789")
    number = name.removeprefix(driver)
    if driver not in _DRIVERS:
        return f"{name} is not a type of network"
    if number and int(number) > _LARGEST:
        return f"{name} has a number above {_LARGEST}"
    return f"{name} has no card" if cards is not None and not cards.strip() else ""


def _parts(text: str) -> list[str]:
    """Split the list at commas outside parentheses and brackets."""
    return re.split(r",(?![^(]*\))(?![^\[]*\])", text)
