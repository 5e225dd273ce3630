"""Index of groups, clones, tags, colocations and orders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from strakes.failover.pacemaker_resources import Colocation, Order, Primitive

_INFINITY = float("inf")


class Ties:
    """Groups, colocations and orders of one CIB. ``templates``: primitive -> its template. ``tags``: tag -> ids."""

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
        # Id of a primitive -> its position in a group.
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
        self._orders_from: dict[str, list[Order]] = defaultdict(list)
        for order in orders:
            if order.mandatory:
                self._orders_from[order.first].append(order)
        self._ids = {one.id for one in primitives}
        self._after: dict[str, frozenset[str]] = {}

    def members(self, identity: str) -> tuple[Primitive, ...]:
        """Return the primitives of a group, clone, template or tag, or the primitive with this id."""
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

    def tied(self, primitive: Primitive, clone: str) -> bool:
        """Return whether colocations keep the primitive on the node of the promoted copy."""
        waiting, seen = [primitive.id, primitive.group, primitive.clone], {""}
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for member in self.members(name):
                waiting += [member.id, member.group]
            for far, role in self._colocated.get(name, ()):
                if far == clone or any(member.clone == clone for member in self.members(far)):
                    if role == "Promoted":
                        return True
                else:
                    waiting.append(far)
        return False

    def waits_for_promotion(self, primitive: Primitive, clone: str) -> bool:
        """Return whether orders delay the start of the primitive until the promotion of the clone."""
        copies = {clone, *(member.id for member in self.members(clone))}
        orders = [order for name in copies for order in self._orders_from[name] if order.first_action == "promote"]
        first = [order.then for order in orders if order.symmetrical]
        return primitive.id in self._reached(first, symmetrical=True)

    def starts_after(self, later: Primitive, earlier: Primitive) -> bool:
        """Return whether a group or orders delay the start of ``later`` until the start of ``earlier``."""
        if earlier.id not in self._after:
            mates = self._groups.get(earlier.group, ())
            behind = mates[self._place[earlier.id] + 1 :] if mates else ()
            names = {earlier.id, earlier.group, earlier.clone} - {""}
            orders = [order for name in names for order in self._orders_from.get(name, ())]
            reached = self._reached([*(one.id for one in behind), *(order.then for order in orders)])
            self._after[earlier.id] = frozenset(self._ids & reached)
        return later.id in self._after[earlier.id]

    def _reached(self, first: Iterable[str], *, symmetrical: bool = False) -> set[str]:
        reached, followed, waiting = set[str](), {""}, list(first)
        from_here: dict[str, int] = {}
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            own = {name}
            for member in self.members(name):
                mates = self._groups.get(member.group, [])
                place, last = self._place.get(member.id, 0), from_here.get(member.group, len(mates))
                waiting += [member.id, *(one.id for one in mates[place:last])]
                if member.group:
                    from_here[member.group] = min(place, last)
                # Orders of a group or clone apply to all members.
                own |= {member.group, member.clone}
            for one in own - followed:
                waiting += [order.then for order in self._orders_from[one] if order.symmetrical or not symmetrical]
            followed |= own
        return reached
