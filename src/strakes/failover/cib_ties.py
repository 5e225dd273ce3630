"""Ties between resources of a CIB: members of groups, clones and tags, colocations and orders.

Rules ask this for every pair of resources. Indexes keep the time of each answer proportional to the size of the CIB.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from strakes.failover.pacemaker_resources import Colocation, Order, Primitive

_INFINITY = float("inf")


class _Path(NamedTuple):
    """A chain of orders as a linked list, last one first, so that chains share their beginnings."""

    order: Order
    before: _Path | None


class Ties:
    """Groups, colocations and orders of one CIB. ``templates``: primitive -> template. ``tags``: tag -> ids."""

    def __init__(
        self,
        primitives: Sequence[Primitive],
        templates: Mapping[str, str],
        tags: Mapping[str, Sequence[str]],
        colocations: Iterable[Colocation],
        orders: Iterable[Order],
    ) -> None:
        self._tags = tags
        self._members: dict[str, list[Primitive]] = defaultdict(list)
        self._groups: dict[str, list[Primitive]] = defaultdict(list)
        # The place of each primitive in its group.
        self._place: dict[str, int] = {}
        for one in primitives:
            for name in dict.fromkeys((one.id, one.group, one.clone)):
                self._members[name].append(one)
            if (template := templates.get(one.id)) and template not in (one.id, one.group, one.clone):
                self._members[template].append(one)
            if one.group:
                self._place.setdefault(one.id, len(self._groups[one.group]))
                self._groups[one.group].append(one)
        self._colocated: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for constraint in colocations:
            if constraint.score == _INFINITY:
                (near, near_role), (far, far_role) = constraint.resources
                self._colocated[near].append((far, far_role))
                self._colocated[far].append((near, near_role))
        self._orders = [order for order in orders if order.mandatory]
        self._orders_from: dict[str, list[Order]] = defaultdict(list)
        for order in self._orders:
            self._orders_from[order.first].append(order)
        self._ids = {one.id for one in primitives}
        self._together: dict[str, frozenset[str]] = {}
        self._after: dict[str, frozenset[str]] = {}

    def members(self, identity: str) -> tuple[Primitive, ...]:
        """Return the primitives of a primitive, group, clone, template or tag; tags may name tags."""
        found: dict[int, Primitive] = {}
        seen, waiting = {identity}, [identity]
        while waiting:
            name = waiting.pop()
            if name not in self._tags:
                found |= {id(one): one for one in self._members.get(name, ())}
                continue
            named = [other for other in dict.fromkeys(self._tags[name]) if other not in seen]
            seen |= set(named)
            waiting += reversed(named)
        return tuple(found.values())

    def together(self, primitive: Primitive) -> frozenset[str]:
        """Return the ids that groups and mandatory colocations place on the same node as the primitive."""
        if primitive.id not in self._together:
            waiting = [primitive.id]
            reached = list[str]()
            for name in _each_once(waiting):
                reached.append(name)
                for member in self.members(name):
                    waiting += [member.id, member.group, member.clone]
                for far, role in self._colocated.get(name, ()):
                    copies = [member.id for member in self.members(far) if member.clone]
                    if copies and role != "Promoted":
                        # Copies run on every node: two resources that are each with one of them may be apart.
                        reached += [far, *copies]
                    else:
                        waiting.append(far)
            self._together[primitive.id] = frozenset(reached)
        return self._together[primitive.id]

    def tied(self, primitive: Primitive, clone: str) -> bool:
        """Return whether the primitive runs only where the clone is promoted, directly or through other resources."""
        waiting = [primitive.id, primitive.group, primitive.clone]
        for name in _each_once(waiting):
            for member in self.members(name):
                waiting += [member.id, member.group]
            for far, role in self._colocated.get(name, ()):
                if far == clone or any(member.clone == clone for member in self.members(far)):
                    if role == "Promoted":
                        return True
                else:
                    waiting.append(far)
        return False

    def ordered_after_promotion(self, primitive: Primitive, clone: str) -> list[Order] | None:
        """Return the orders that lead from the promotion to its start, or None."""
        copies = {clone, *(member.id for member in self.members(clone))}
        first = [order for order in self._orders if order.first in copies and order.first_action == "promote"]
        reached = self._reached([(order.then, _Path(order, None)) for order in first])
        if primitive.id not in reached:
            return None
        path, orders = reached[primitive.id], list[Order]()
        while path is not None:
            orders.append(path.order)
            path = path.before
        return orders[::-1]

    def starts_after(self, later: Primitive, earlier: Primitive) -> bool:
        """Return whether one primitive starts only after the other, by their group or by orders."""
        if earlier.id not in self._after:
            mates = self._groups.get(earlier.group, ())
            behind = mates[self._place[earlier.id] + 1 :] if mates else ()
            names = {earlier.id, earlier.group, earlier.clone} - {""}
            orders = [order for name in names for order in self._orders_from.get(name, ())]
            reached = self._reached([*((one.id, None) for one in behind), *((order.then, None) for order in orders)])
            self._after[earlier.id] = frozenset(self._ids & reached.keys())
        return later.id in self._after[earlier.id]

    def _reached(self, first: Iterable[tuple[str, _Path | None]]) -> dict[str, _Path | None]:
        """Return resource -> chain of orders, for all resources that must wait for ``first``."""
        reached: dict[str, _Path | None] = {}
        waiting = deque[str]()
        followed = set[str]()
        # Group -> index of its first reached member.
        from_here: dict[str, int] = {}

        def wait(name: str, path: _Path | None) -> None:
            if name not in reached:
                reached[name] = path
                waiting.append(name)

        def follow(name: str, path: _Path | None) -> None:
            if name and name not in followed:
                followed.add(name)
                for order in self._orders_from.get(name, ()):
                    wait(order.then, _Path(order, path))

        for name, path in first:
            wait(name, path)
        while waiting:
            name = waiting.popleft()
            path = reached[name]
            for member in self.members(name):
                mates = self._groups.get(member.group, [])
                place, last = self._place.get(member.id, 0), from_here.get(member.group, len(mates))
                for one in (member, *mates[place:last]):
                    wait(one.id, path)
                if member.group:
                    from_here[member.group] = min(place, last)
                # Resources that wait for the whole group or clone also wait for this member.
                follow(member.group, path)
                follow(member.clone, path)
            follow(name, path)
        return reached


def _each_once(waiting: list[str]) -> Iterator[str]:
    """Yield each non-empty name of a list once until the list is empty; the caller may add names meanwhile."""
    taken = {""}
    while waiting:
        if (name := waiting.pop()) not in taken:
            taken.add(name)
            yield name
